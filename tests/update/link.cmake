# SPDX-License-Identifier: Apache-2.0
find_package(nlohmann_json REQUIRED)
target_link_libraries(${name} PRIVATE moka_static nlohmann_json::nlohmann_json)
target_compile_definitions(${name} PRIVATE MOKA_UPDATE_CASES="${CMAKE_CURRENT_SOURCE_DIR}/${folder}/cases.json")
