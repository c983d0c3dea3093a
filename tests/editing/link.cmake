# SPDX-License-Identifier: Apache-2.0
target_link_libraries(test_editing PRIVATE moka)
target_compile_definitions(test_editing PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
