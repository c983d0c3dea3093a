# SPDX-License-Identifier: Apache-2.0
# The shared library, its headers, find_package(moka) and pkg-config. Programs install themselves; what is
# here is the component `library`.
if(NOT TARGET moka)
  return()
endif()
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
install(TARGETS moka EXPORT moka_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/moka DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/moka)
install(EXPORT moka_targets NAMESPACE moka:: FILE mokaTargets.cmake DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/mokaConfig.cmake.in ${CMAKE_BINARY_DIR}/mokaConfig.cmake
  INSTALL_DESTINATION ${package_folder})
# Before 1.0, a minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/mokaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/mokaConfig.cmake ${CMAKE_BINARY_DIR}/mokaConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/cmake/moka_add_model.cmake DESTINATION ${package_folder})

# The prefix is found from the location of the .pc file, so that an installation can be moved.
file(RELATIVE_PATH moka_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" moka_pc_prefix "${moka_pc_prefix}")
configure_file(${CMAKE_SOURCE_DIR}/cmake/moka.pc.in ${CMAKE_BINARY_DIR}/moka.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/moka.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Each folder builds by itself against the installed library.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/c ${CMAKE_SOURCE_DIR}/examples/cpp ${CMAKE_SOURCE_DIR}/examples/layers ${CMAKE_SOURCE_DIR}/examples/python
  ${CMAKE_SOURCE_DIR}/examples/models DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples PATTERN __pycache__ EXCLUDE)
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)
