from tree import TreeTest

tool = "tools/check-layers"


class CheckLayers(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("tools/layers.txt", "tree include/mallard\nlevel detail/bits\n"
                                       "level pool # and more\nsrc/os include/mallard\n"
                                       "tests include/mallard\n")
        self.write("include/mallard/detail/bits.hpp", "#include <cstddef>\n")
        self.write("include/mallard/pool.hpp", "#include <mallard/detail/bits.hpp>\n")
        self.write("src/os/pages.cpp", "#include <mallard/pool.hpp>\n#include <sys/mman.h>\n")
        self.write("src/os/pages.hpp", "")
        self.write("tests/unit/pool.cpp", '#include "check.hpp"\n#include <mallard/pool.hpp>\n')
        self.write("tests/unit/check.hpp", "")

    def test_accepts_includes_that_point_down(self):
        self.accepts(tool)

    def test_finds_a_header_that_sees_a_higher_level(self):
        self.write("include/mallard/detail/bits.hpp", "\n#include <mallard/pool.hpp>\n")
        self.finds(tool, "include/mallard/detail/bits.hpp:2: detail/bits is on level 0 and may include "
                         "lower levels only, but pool is on level 1; move detail/bits above level 1")

    def test_finds_a_header_that_sees_another_of_its_own_level(self):
        self.write("tools/layers.txt", "tree include/mallard\nlevel detail/bits pool\n")
        self.finds(tool, "include/mallard/pool.hpp:1: pool is on level 0 and may include lower")

    def test_finds_a_header_that_sees_src(self):
        self.write("include/mallard/pool.hpp", '#include "../../src/os/pages.hpp"\n')
        self.finds(tool, "include/mallard/pool.hpp:1: include/mallard may not include src/os")

    def test_finds_a_test_that_sees_src(self):
        self.write("tests/unit/pool.cpp", '#include "src/os/pages.hpp"\n')
        self.finds(tool, "tests/unit/pool.cpp:1: tests may not include src/os")

    def test_finds_a_header_without_a_level(self):
        self.write("include/mallard/new.hpp", "")
        self.finds(tool, "tools/layers.txt:1: include/mallard/new has no level")

    def test_finds_a_level_without_a_header(self):
        (self.tree / "include/mallard/pool.hpp").unlink()
        self.finds(tool, "tools/layers.txt:1: include/mallard/pool is gone")
