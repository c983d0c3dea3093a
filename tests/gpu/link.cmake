# SPDX-License-Identifier: Apache-2.0
# A host for the operations around regions. Nothing here links a backend.
target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src/devices/reference/device.cpp)
target_link_libraries(${name} PRIVATE moka_runtime moka_gpu)
