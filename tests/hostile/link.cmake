# SPDX-License-Identifier: Apache-2.0
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
target_link_libraries(${name} PRIVATE moka ZLIB::ZLIB nlohmann_json::nlohmann_json)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden"
  MOKA_CASES="${CMAKE_SOURCE_DIR}/tests/conformance/golden" MOKA_HOSTILE_FOUND="${CMAKE_BINARY_DIR}/hostile_found")
