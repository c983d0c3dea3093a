# SPDX-License-Identifier: Apache-2.0
find_package(nlohmann_json REQUIRED)
target_link_libraries(${name} PRIVATE moka demo_signal nlohmann_json::nlohmann_json)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
