# SPDX-License-Identifier: Apache-2.0
target_link_libraries(test_compiler PRIVATE moka_proto)
target_compile_definitions(test_compiler PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
