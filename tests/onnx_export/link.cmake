target_link_libraries(${name} PRIVATE moka_static)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
