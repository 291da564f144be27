# A port of the libraries. The command `mallard` is not built: a port must not download crates.
vcpkg_from_git(
    OUT_SOURCE_PATH SOURCE_PATH
    URL https://mallard.example/mallard
    REF v${VERSION}
)
vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES malloc MALLARD_BUILD_C)
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS ${options} -DMALLARD_BUILD_COMMAND=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/mallard)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
if("malloc" IN_LIST FEATURES)
    # The files that LD_PRELOAD takes lie in a folder of their own.
    set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)
endif()
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-MIT" "${SOURCE_PATH}/LICENSE-APACHE")
