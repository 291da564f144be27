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

    def test_accepts_includes_of_lower_levels(self):
        self.accepts(tool)

    def test_finds_a_header_that_includes_a_higher_level(self):
        self.write("include/mallard/detail/bits.hpp", "\n#include <mallard/pool.hpp>\n")
        self.finds(tool, "include/mallard/detail/bits.hpp:2: detail/bits is on level 0 and may include "
                         "lower levels only, but pool is on level 1; move detail/bits above level 1")

    def test_finds_a_header_that_includes_its_own_level(self):
        self.write("tools/layers.txt", "tree include/mallard\nlevel detail/bits pool\n")
        self.finds(tool, "include/mallard/pool.hpp:1: pool is on level 0 and may include lower")

    def test_finds_a_header_that_includes_src(self):
        self.write("include/mallard/pool.hpp", '#include "../../src/os/pages.hpp"\n')
        self.finds(tool, "include/mallard/pool.hpp:1: include/mallard may not include src/os")

    def test_finds_a_test_that_includes_src(self):
        self.write("tests/unit/pool.cpp", '#include "src/os/pages.hpp"\n')
        self.finds(tool, "tests/unit/pool.cpp:1: tests may not include src/os")

    def test_finds_a_header_without_a_level(self):
        self.write("include/mallard/new.hpp", "")
        self.finds(tool, "tools/layers.txt:1: include/mallard/new has no level")

    def test_finds_a_level_without_a_header(self):
        (self.tree / "include/mallard/pool.hpp").unlink()
        self.finds(tool, "tools/layers.txt:1: include/mallard/pool does not exist")

    def heap(self, **files):
        self.write("tools/layers.txt", "headers src/heap\nlevel slab fork\nlevel cache\n")
        for name in ("slab.hpp", "fork.hpp", "cache.hpp", "fork.cpp"):
            self.write(f"src/heap/{name}", files.get(name.replace(".", "_"), ""))

    def test_accepts_any_include_in_a_source_if_only_headers_have_levels(self):
        self.heap(cache_hpp='#include "slab.hpp"\n', fork_cpp='#include "cache.hpp"\n#include "fork.hpp"\n')
        self.accepts(tool)

    def test_finds_a_higher_include_in_a_header_if_only_headers_have_levels(self):
        self.heap(slab_hpp='#include "cache.hpp"\n')
        self.finds(tool, "src/heap/slab.hpp:1: slab is on level 0 and may include lower levels only, but cache "
                         "is on level 1; move slab above level 1")


class CheckLayersOfRust(TreeTest):
    def crate(self, levels, **modules):
        self.write("tools/layers.txt", "crate crate/src\n" + levels)
        self.write("crate/src/lib.rs", "mod base;\nmod pool;\npub use base::{Growth, Source};\n")
        self.write("crate/src/base.rs", modules.get("base", "pub struct Growth;\npub trait Source {}\n"))
        self.write("crate/src/pool/mod.rs", modules.get("pool", "mod chunk;\nuse chunk::Chunk;\n"))
        self.write("crate/src/pool/chunk.rs", modules.get("chunk", "use crate::base::Growth;\n"))

    def test_accepts_uses_of_lower_levels(self):
        self.crate("level base\nlevel pool\n", chunk="use super::Pool;\nuse crate::{Growth, Source as S};\n")
        self.accepts(tool)

    def test_finds_a_module_that_uses_a_higher_level(self):
        self.crate("level base\nlevel pool\n", base="\nuse crate::pool::chunk::Chunk;\n")
        self.finds(tool, "crate/src/base.rs:2: base is on level 0 and may use lower levels only, but pool is on "
                         "level 1; move base above level 1")

    def test_finds_a_use_of_a_higher_level_by_a_full_path(self):
        self.crate("level base\nlevel pool\n", base="fn f() { crate::pool::Pool::new(); }\n")
        self.finds(tool, "crate/src/base.rs:1: base is on level 0")

    def test_follows_what_a_module_re_exports(self):
        self.crate("level pool\nlevel base\n", chunk="use crate::{\n    Growth,\n};\n")
        self.finds(tool, "crate/src/pool/chunk.rs:1: pool is on level 0 and may use lower levels only, but base")

    def test_finds_a_cycle_inside_a_module_whose_parts_have_levels(self):
        self.crate("level base\nlevel pool/chunk\nlevel pool\n", chunk="use super::Pool;\n")
        self.finds(tool, "crate/src/pool/chunk.rs:1: pool/chunk is on level 1")

    def test_ignores_comments_and_tests(self):
        self.crate("level base\nlevel pool\n", base="// use crate::pool;\n/// [`crate::pool::Pool`]\nstruct A;\n"
                   "#[cfg(test)]\nmod tests {\n    use crate::pool::Pool;\n    fn f() {}\n}\n")
        self.accepts(tool)

    def test_finds_modules_without_a_level_and_levels_without_a_module(self):
        self.crate("level base gone\n")
        self.finds(tool, "tools/layers.txt:1: crate/src/gone does not exist\n"
                         "tools/layers.txt:1: crate/src/pool has no level; name it on a level above all that it uses")

    def test_finds_a_dependency_cycle_between_modules_of_one_level(self):
        self.write("tools/layers.txt", "crate crates/a/src without circles\nlevel pool\n")
        self.write("crates/a/src/lib.rs", "mod pool;\n")
        self.write("crates/a/src/pool/mod.rs", "mod chunk;\nmod list;\nmod user;\n")
        self.write("crates/a/src/pool/chunk.rs", "use super::list::List;\npub struct Chunk;\n")
        self.write("crates/a/src/pool/list.rs", "pub struct List;\n")
        self.write("crates/a/src/pool/user.rs", "use super::list::List;\n")
        self.accepts(tool)
        self.write("crates/a/src/pool/list.rs", "use super::chunk::Chunk;\npub struct List;\n")
        self.finds(tool, "crates/a/src: these modules depend on each other in a cycle: pool/chunk, pool/list;")

    def test_lets_modules_use_their_parents_if_the_list_says_so(self):
        self.write("crates/a/src/lib.rs", "mod pool;\n")
        self.write("crates/a/src/pool/mod.rs", "mod chunk;\nmod iter;\npub use iter::Iter;\npub struct Pool;\n")
        self.write("crates/a/src/pool/chunk.rs", "pub struct Chunk;\n")
        self.write("crates/a/src/pool/iter.rs", "use super::chunk::Chunk;\nuse super::Pool;\npub struct Iter;\n")
        self.write("tools/layers.txt", "crate crates/a/src without circles\nlevel pool\n")
        self.finds(tool, "crates/a/src: these modules depend on each other in a cycle: pool, pool/iter;")
        self.write("tools/layers.txt", "crate crates/a/src without circles but with parents\nlevel pool\n")
        self.accepts(tool)
        self.write("crates/a/src/pool/chunk.rs", "use super::iter::Iter;\npub struct Chunk;\n")
        self.finds(tool, "crates/a/src: these modules depend on each other in a cycle: pool/chunk, pool/iter;")
