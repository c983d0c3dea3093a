# SPDX-License-Identifier: Apache-2.0
# The whole library as an archive: tests tell the simulator to fail.
target_link_libraries(${name} PRIVATE moka_static)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
# Shaders of registered operations, as words of SPIR-V.
find_program(GLSLANG NAMES glslangValidator glslang)
if(GLSLANG)
  target_compile_definitions(${name} PRIVATE MOKA_TEST_SHADERS)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
  foreach(shader swish mix)
    set(from ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/shaders/${shader}.comp)
    set(to ${CMAKE_CURRENT_BINARY_DIR}/units_shaders/${shader}.inc)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/units_shaders)
    add_custom_command(OUTPUT ${to} DEPENDS ${from} VERBATIM
      COMMAND ${GLSLANG} -V --quiet --target-env vulkan1.1 --vn ${shader}_spirv -o ${to} ${from})
    target_sources(${name} PRIVATE ${to})
  endforeach()
endif()
# Registered shaders under the validation layer. A message of the layer fails them.
add_test(NAME test_units_validation COMMAND ${name} --gtest_filter=Shaders.*)
set_tests_properties(test_units_validation PROPERTIES
  ENVIRONMENT "MOKA_VULKAN_VALIDATION=1" FAIL_REGULAR_EXPRESSION "Validation (Error|Performance Warning)")
# Pictures of cameras that the device converts, which a driver that computes on the processor does not do else.
add_test(NAME test_units_frames COMMAND ${name} --gtest_filter=*FramesOnDevices.*)
set_tests_properties(test_units_frames PROPERTIES
  ENVIRONMENT "MOKA_VULKAN_FRAMES=1;MOKA_VULKAN_VALIDATION=1" FAIL_REGULAR_EXPRESSION "Validation (Error|Performance Warning)")
