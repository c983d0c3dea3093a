# SPDX-License-Identifier: Apache-2.0
target_link_libraries(test_tools_io PRIVATE moka_io)
