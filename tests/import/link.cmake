# SPDX-License-Identifier: Apache-2.0
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
target_link_libraries(test_import PRIVATE moka_import moka_format moka_proto ZLIB::ZLIB nlohmann_json::nlohmann_json)
target_compile_definitions(test_import PRIVATE MOKA_CLASSIC_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden/classic")
