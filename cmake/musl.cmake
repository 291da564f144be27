# A toolchain for Linux with musl, which consists of the compiler and the C++ runtime of Zig. Zig
# links programs statically. `pip install ziglang` installs Zig. If the program zig is not in PATH,
# set MALLARD_ZIG to it.
find_program(MALLARD_ZIG zig REQUIRED)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(zig_target ${CMAKE_SYSTEM_PROCESSOR}-linux-musl)
set(CMAKE_C_COMPILER ${MALLARD_ZIG} cc -target ${zig_target})
set(CMAKE_CXX_COMPILER ${MALLARD_ZIG} c++ -target ${zig_target})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MALLARD_ZIG)
# Do not search the libraries and headers of this machine, because they are for another C library.
# Find only the GoogleTest that tests/consumer/musl builds.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/musl-googletest/installed)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
