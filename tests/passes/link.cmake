# SPDX-License-Identifier: Apache-2.0
target_compile_definitions(${name} PRIVATE MOKA_PASS_CASES="${CMAKE_CURRENT_SOURCE_DIR}/${folder}")
