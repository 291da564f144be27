# What `cmake --install` leaves: headers, the library where there is one, and
# two ways to find them, find_package(mallard) and `pkg-config mallard`. The
# tree can be moved afterwards: both find the rest from where they lie.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mallard)
install(TARGETS mallard EXPORT mallard FILE_SET HEADERS)
install(EXPORT mallard NAMESPACE mallard:: FILE mallard-config.cmake DESTINATION ${package_dir})

set(any_architecture)
if(NOT mallard_sources)
    set(any_architecture ARCH_INDEPENDENT)
endif()
write_basic_package_version_file(mallard-config-version.cmake
    COMPATIBILITY SameMinorVersion ${any_architecture})
install(FILES ${PROJECT_BINARY_DIR}/mallard-config-version.cmake DESTINATION ${package_dir})

set(pkg_config_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkg_config_up /${pkg_config_dir} /)
set(pkg_config_libs)
if(mallard_sources)
    set(pkg_config_libs "-L\${libdir} -lmallard")
endif()
configure_file(cmake/mallard.pc.in mallard.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mallard.pc DESTINATION ${pkg_config_dir})
