# SPDX-License-Identifier: Apache-2.0
find_package(nlohmann_json REQUIRED)
target_sources(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/conformance/case_util.cpp)
target_link_libraries(${name} PRIVATE moka_runtime nlohmann_json::nlohmann_json)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}/conformance/golden")
# The sums that results are compared with take half of the time without optimization.
target_compile_options(${name} PRIVATE $<$<CONFIG:Dev>:-O1>)
# The same with the instructions of older processors.
foreach(isa avx2 base)
  add_test(NAME ${name}_${isa} COMMAND ${name})
  set_tests_properties(${name}_${isa} PROPERTIES ENVIRONMENT MOKA_MAX_CPU_ISA=${isa})
endforeach()
