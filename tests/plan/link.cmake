target_link_libraries(${name} PRIVATE moka_devices moka_ops)
