# SPDX-License-Identifier: Apache-2.0
find_package(nlohmann_json REQUIRED)
target_link_libraries(${name} PRIVATE moka nlohmann_json::nlohmann_json)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/api/plugin_test.cpp PROPERTIES
  COMPILE_DEFINITIONS "MOKA_EXAMPLE_PLUGIN=\"$<TARGET_FILE:example_swish>\";MOKA_EXAMPLE_MODEL=\"$<TARGET_FILE:example_lengths>\";MOKA_FAILING_PLUGIN=\"$<TARGET_FILE:failing_plugin>\"")
add_library(failing_plugin MODULE ${CMAKE_CURRENT_SOURCE_DIR}/api/failing_plugin.c)
target_include_directories(failing_plugin PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_dependencies(${name} example_swish example_lengths failing_plugin)
# Defines malloc without `noexcept`, with which <malloc.h> of other files declares it.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/api/allocation_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
