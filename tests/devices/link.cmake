find_package(nlohmann_json REQUIRED)
target_sources(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/conformance/case_util.cpp)
target_link_libraries(${name} PRIVATE moka_runtime nlohmann_json::nlohmann_json)
target_compile_definitions(${name} PRIVATE MOKA_GOLDEN_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}/conformance/golden")
