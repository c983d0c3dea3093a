# SPDX-License-Identifier: Apache-2.0
find_package(fmt REQUIRED)
target_link_libraries(test_tools_moka PRIVATE moka_cli moka fmt::fmt)
