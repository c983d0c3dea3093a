# SPDX-License-Identifier: Apache-2.0
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
target_link_libraries(test_format PRIVATE moka_proto ZLIB::ZLIB ${MOKA_sodium} nlohmann_json::nlohmann_json)
target_compile_definitions(test_format PRIVATE MOKA_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/format/data")
