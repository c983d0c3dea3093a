# SPDX-License-Identifier: Apache-2.0
# The static libraries of the build folder MOKA_BUILT, with what they link.
find_package(OpenMP REQUIRED)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(Threads REQUIRED)
include(${MOKA_BUILT}/moka_built.cmake)
