# Defines what `cmake --install` installs: headers, libraries, and the files with which
# find_package(mallard) and pkg-config find them. These files contain only relative paths, so the
# installed tree can be moved.
#
# To install a single component, call `cmake --install BUILD --component NAME`.
#
#   core      libmallard.a and its headers
#   persist   libmallard-persist.a: file arenas and shared memory; needs core
#   trace     libmallard-trace.a: traces in a file; needs core
#   all       mallard/mallard.hpp, which includes the three; needs them
#   c         libmallard-c.so, libmallard-c.a and mallard/c/mallard.h
#   malloc    libmallard-malloc.so and .a, and the libraries for LD_PRELOAD; mallard/heap.hpp needs core
#   record    the recorder and the replayer, which `mallard record` and `mallard replay` start
#   command   the command with its man pages and completions: see cmake/command.cmake
#
# The files for LD_PRELOAD are in a separate directory, where `-lmallard` does not find them,
# because `-lmallard` is the C++ library (docs/decisions/0032-lmallard-is-not-malloc.md).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mallard)
set(preload_dir ${CMAKE_INSTALL_LIBDIR}/mallard)
set(pkg_config_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkg_config_up /${pkg_config_dir} /)

# Installs the targets of a component with their headers, and the file that find_package reads.
function(install_component component)
    install(TARGETS ${ARGN} EXPORT mallard-${component} COMPONENT ${component}
        LIBRARY COMPONENT ${component} NAMELINK_COMPONENT ${component}
        ARCHIVE COMPONENT ${component})
    list(GET ARGN 0 target)
    get_target_property(headers ${target} MALLARD_HEADERS)
    foreach(header IN LISTS headers)
        cmake_path(GET header PARENT_PATH folder)
        file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/include ${folder})
        install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT ${component})
    endforeach()
    install(EXPORT mallard-${component} NAMESPACE mallard::
        DESTINATION ${package_dir} COMPONENT ${component})
endfunction()

# Makes NAME.pc from cmake/TEMPLATE.pc.in, and installs it.
function(install_pkg_config component template name)
    configure_file(cmake/${template}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pkg_config_dir}
        COMPONENT ${component})
endfunction()

# Installs the .pc file of one of the C++ libraries. The file names the packages that the library
# requires. It names the library itself only if this tree has src/, because otherwise the library is
# not built.
function(install_library_pkg_config component name description requires library)
    set(libs)
    if(library AND mallard_has_sources)
        set(libs "-L\${libdir} -l${library}")
    endif()
    install_pkg_config(${component} library ${name})
endfunction()

install_component(core mallard-core)
install_component(persist mallard-persist)
install_component(trace mallard-trace)
install_component(all mallard)
install_library_pkg_config(core mallard-core
    "Arenas, pools, objects, slot maps and adaptors for C++20" "" mallard)
install_library_pkg_config(persist mallard-persist
    "Arenas in a file, and pools in shared memory" mallard-core mallard-persist)
install_library_pkg_config(trace mallard-trace
    "Traces of allocations in a file" mallard-core mallard-trace)
install_library_pkg_config(all mallard
    "${PROJECT_DESCRIPTION}" "mallard-persist mallard-trace" "")

if(TARGET mallard-c)
    install_component(c mallard-c mallard-c-static)
    install_pkg_config(c mallard-c mallard-c)
endif()
if(TARGET mallard-malloc)
    install_component(malloc mallard-malloc mallard-malloc-static)
    install_pkg_config(malloc mallard-malloc mallard-malloc)
    install(TARGETS mallard-malloc-checked
        LIBRARY DESTINATION ${preload_dir} COMPONENT malloc)
    set(link ${PROJECT_BINARY_DIR}/preload/libmallard.so)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/preload)
    file(CREATE_LINK ../libmallard-malloc.so.${PROJECT_VERSION_MAJOR} ${link} SYMBOLIC)
    install(FILES ${link} DESTINATION ${preload_dir} COMPONENT malloc)
endif()
if(TARGET mallard-record)
    install(TARGETS mallard-record LIBRARY DESTINATION ${preload_dir} COMPONENT record)
endif()
if(TARGET mallard-plan)
    install(TARGETS mallard-plan LIBRARY DESTINATION ${preload_dir} COMPONENT record)
endif()
if(TARGET mallard-replay)
    install(TARGETS mallard-replay RUNTIME DESTINATION ${preload_dir} COMPONENT record)
endif()

# find_package reads mallard-config.cmake, which reads the files of the installed components. Every
# component installs mallard-config.cmake and the file with the version.
set(any_architecture)
if(NOT mallard_has_sources AND NOT TARGET mallard-c)
    set(any_architecture ARCH_INDEPENDENT)
endif()
write_basic_package_version_file(mallard-config-version.cmake
    COMPATIBILITY SameMinorVersion ${any_architecture})
foreach(component core persist trace all c malloc)
    install(FILES cmake/mallard-config.cmake ${PROJECT_BINARY_DIR}/mallard-config-version.cmake
        DESTINATION ${package_dir} COMPONENT ${component})
endforeach()
