from tree import TreeTest

tool = "tools/check-layers"


class CheckLayers(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("tools/layers.txt", "level 0 bits\nlevel 1 pool # and more\n"
                                       "src/os include/mallard\ntests include/mallard\n")
        self.write("include/mallard/bits.hpp", "#include <cstddef>\n")
        self.write("include/mallard/pool.hpp", "#include <mallard/bits.hpp>\n")
        self.write("src/os/pages.cpp", "#include <mallard/pool.hpp>\n#include <sys/mman.h>\n")
        self.write("src/os/pages.hpp", "")
        self.write("tests/unit/pool.cpp", '#include "check.hpp"\n#include <mallard/pool.hpp>\n')
        self.write("tests/unit/check.hpp", "")

    def test_accepts_includes_that_point_down(self):
        self.accepts(tool)

    def test_finds_a_header_that_sees_a_higher_level(self):
        self.write("include/mallard/bits.hpp", "\n#include <mallard/pool.hpp>\n")
        self.finds(tool, "include/mallard/bits.hpp:2: level 0 (bits) may not see level 1 (pool)")

    def test_finds_a_header_that_sees_src(self):
        self.write("include/mallard/pool.hpp", '#include "../../src/os/pages.hpp"\n')
        self.finds(tool, "include/mallard/pool.hpp:1: include/mallard may not see src/os")

    def test_finds_a_test_that_sees_src(self):
        self.write("tests/unit/pool.cpp", '#include "src/os/pages.hpp"\n')
        self.finds(tool, "tests/unit/pool.cpp:1: tests may not see src/os")

    def test_finds_a_header_without_a_level(self):
        self.write("include/mallard/new.hpp", "")
        self.finds(tool, "include/mallard/new.hpp:1: has no level")

    def test_finds_a_level_without_a_header(self):
        (self.tree / "include/mallard/pool.hpp").unlink()
        self.finds(tool, "tools/layers.txt:1: include/mallard/pool.hpp is gone")
