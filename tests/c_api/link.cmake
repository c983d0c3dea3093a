# SPDX-License-Identifier: Apache-2.0
# The C files show that the headers are C99 and that a C program links.
foreach(file predict_from_c files_from_c)
  target_sources(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/c_api/${file}.c)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/c_api/${file}.c PROPERTIES COMPILE_OPTIONS "-std=c99;-pedantic-errors"
    SKIP_PRECOMPILE_HEADERS ON)
endforeach()
target_link_libraries(${name} PRIVATE moka)
target_compile_definitions(${name} PRIVATE MOKA_TEST_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden"
  MOKA_TEST_EXAMPLES="${CMAKE_SOURCE_DIR}/examples/models")
if(TARGET example_c_predict)
  add_test(NAME test_c_example COMMAND example_c_predict ${CMAKE_CURRENT_SOURCE_DIR}/golden/classic/decision_tree_classifier.mlmodel)
  set_tests_properties(test_c_example PROPERTIES PASS_REGULAR_EXPRESSION "classProbability: 3 entries")
endif()
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  set(abi ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/c_api/abi_test.py)
  set(interface $<TARGET_FILE:moka> ${CMAKE_C_COMPILER} ${CMAKE_SOURCE_DIR}/include)
  add_test(NAME test_abi COMMAND ${abi} ${interface})
  add_custom_target(abi COMMAND ${abi} --renew ${interface} DEPENDS moka VERBATIM)
endif()
