# SPDX-License-Identifier: Apache-2.0
find_package(nlohmann_json REQUIRED)
target_link_libraries(test_import_nn PRIVATE moka_import moka_format moka_proto nlohmann_json::nlohmann_json)
target_compile_definitions(test_import_nn PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
