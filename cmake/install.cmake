# What `cmake --install` leaves: headers, the libraries where there are any, and two ways to find
# them, find_package(mallard) and pkg-config (mallard, mallard-c and mallard-malloc). The tree can
# be moved afterwards: both find the rest from where they lie.
#
# What is preloaded is in a folder of its own, where `-lmallard` does not find it: that is the C++
# library (docs/decisions/0032-lmallard-is-not-malloc.md).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mallard)
set(preload_dir ${CMAKE_INSTALL_LIBDIR}/mallard)
install(TARGETS mallard EXPORT mallard FILE_SET HEADERS)
if(TARGET mallard-c)
    install(TARGETS mallard-c mallard-c-static EXPORT mallard FILE_SET HEADERS)
endif()
if(TARGET mallard-malloc)
    install(TARGETS mallard-malloc mallard-malloc-static EXPORT mallard FILE_SET HEADERS)
    install(TARGETS mallard-malloc-checked LIBRARY DESTINATION ${preload_dir})
    set(link ${PROJECT_BINARY_DIR}/preload/libmallard.so)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/preload)
    file(CREATE_LINK ../libmallard-malloc.so.${PROJECT_VERSION_MAJOR} ${link} SYMBOLIC)
    install(FILES ${link} DESTINATION ${preload_dir})
endif()
install(EXPORT mallard NAMESPACE mallard:: FILE mallard-config.cmake DESTINATION ${package_dir})

set(any_architecture)
if(NOT mallard_sources AND NOT TARGET mallard-c)
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
set(pkg_configs mallard)
if(TARGET mallard-c)
    list(APPEND pkg_configs mallard-c)
endif()
if(TARGET mallard-malloc)
    list(APPEND pkg_configs mallard-malloc)
endif()
foreach(name IN LISTS pkg_configs)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pkg_config_dir})
endforeach()
