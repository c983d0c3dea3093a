find_package(ZLIB REQUIRED)
target_link_libraries(${name} PRIVATE moka ZLIB::ZLIB)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden"
  MOKA_HOSTILE_FOUND="${CMAKE_BINARY_DIR}/hostile_found")
