# SPDX-License-Identifier: Apache-2.0
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
target_link_libraries(${name} PRIVATE moka_recording)
