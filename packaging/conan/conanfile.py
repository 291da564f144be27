"""Builds a Conan 2 package of the libraries. `conan create packaging/conan`

In a clone, the recipe packages the files of the clone. The command `mallard` is not built.
"""
import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class Mallard(ConanFile):
    name = "mallard"
    description = "Memory allocation: local allocators for C++20 and C, and a malloc"
    license = "MIT OR Apache-2.0"
    url = homepage = "https://mallard.example/mallard"
    topics = "allocator", "arena", "pool", "malloc", "pmr"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"malloc": [True, False]}
    default_options = {"malloc": False}

    @property
    def root(self):
        return Path(self.recipe_folder).parent.parent

    def set_version(self):
        self.version = re.search(r'^version = "(.*)"', load(self, self.root / "Cargo.toml"), re.M)[1]

    def export_sources(self):
        for name in "CMakeLists.txt", "LICENSE-*", "cmake/*", "include/*", "src/*":
            copy(self, name, self.root, self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("Mallard runs on Linux on x86-64")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["MALLARD_BUILD_C"] = bool(self.options.malloc)
        toolchain.cache_variables["MALLARD_BUILD_COMMAND"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE-*", self.source_folder, Path(self.package_folder) / "licenses")
        for folder in "cmake", "pkgconfig":  # Conan makes these files itself
            rmdir(self, Path(self.package_folder) / "lib" / folder)

    def package_info(self):
        core, persist, trace = (self.cpp_info.components[name] for name in ("core", "persist", "trace"))
        core.libs = ["mallard"]
        persist.libs, persist.requires = ["mallard-persist"], ["core"]
        trace.libs, trace.requires = ["mallard-trace"], ["core"]
        self.cpp_info.components["all"].requires = ["persist", "trace"]
        names = {"core": "mallard-core", "persist": "mallard-persist", "trace": "mallard-trace", "all": "mallard"}
        if self.options.malloc:
            self.cpp_info.components["c"].libs = ["mallard-c"]
            self.cpp_info.components["malloc"].libs = ["mallard-malloc"]
            names |= {"c": "mallard-c", "malloc": "mallard-malloc"}
        for name, package in names.items():
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", f"mallard::{'mallard' if name == 'all' else name}")
            component.set_property("pkg_config_name", package)
