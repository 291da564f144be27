# Builds the command `mallard` with cargo, and its man pages and completions, as the component
# `command`.
#
# In the first build, cargo downloads the libraries that the command needs. If they cannot be
# downloaded, the rest of Mallard is built without the command.
file(STRINGS ${PROJECT_SOURCE_DIR}/Cargo.toml rust_version REGEX "^rust-version")
string(REGEX MATCH "[0-9.]+" rust_version "${rust_version}")
# Ubuntu has a recent cargo with the version in its name, and an older one called cargo.
find_program(CARGO NAMES cargo-${rust_version} cargo)
if(NOT CARGO)
    message(STATUS "The command mallard is not built: there is no cargo (Debian 12: apt install cargo-web rustc-web; "
        "Debian 13: cargo; Ubuntu: cargo-${rust_version})")
    return()
endif()
set(cargo_environment)
if(CARGO MATCHES "cargo-[0-9.]+$")
    set(cargo_environment RUSTC=rustc-${rust_version})
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E env ${cargo_environment} ${CARGO} fetch --locked --quiet WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    RESULT_VARIABLE failed ERROR_VARIABLE why OUTPUT_QUIET)
if(failed)
    string(REGEX REPLACE "\n.*" "" why "${why}")
    message(STATUS "The command mallard is not built: cargo cannot prepare it (${why})")
    return()
endif()

message(STATUS "The command mallard is built as well, in some minutes; -DMALLARD_BUILD_COMMAND=OFF leaves it out")

# If several builds share a cargo directory, the libraries are not compiled again.
set(cargo_dir ${PROJECT_BINARY_DIR}/cargo)
if(DEFINED ENV{CARGO_TARGET_DIR})
    set(cargo_dir $ENV{CARGO_TARGET_DIR})
endif()
set(command_share ${PROJECT_BINARY_DIR}/share)
add_custom_target(mallard-command ALL
    COMMAND ${CMAKE_COMMAND} -E env ${cargo_environment} CARGO_TARGET_DIR=${cargo_dir}
        ${CARGO} build --locked --release --quiet --package mallard-cli
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${command_share} # pages of commands that are gone
    COMMAND ${cargo_dir}/release/mallard pages ${command_share}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMENT "Building the command mallard, which takes some minutes" VERBATIM)
if(MALLARD_INSTALL)
    install(PROGRAMS ${cargo_dir}/release/mallard
        DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
    install(DIRECTORY ${command_share}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT command)
endif()
