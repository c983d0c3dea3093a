# SPDX-License-Identifier: Apache-2.0
target_link_libraries(${name} PRIVATE moka_static nlohmann_json::nlohmann_json)
