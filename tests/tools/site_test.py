import importlib.util
import unittest
from importlib.machinery import SourceFileLoader

from tree import TreeTest, root

links = "tools/site/check-links"
filter_ = "tools/site/doxygen-filter"


def module(path):
    loader = SourceFileLoader("site_build", str(root / path))
    loaded = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_build", loader))
    loader.exec_module(loaded)
    return loaded


class CheckLinks(TreeTest):
    def test_accepts_links_to_pages_anchors_and_the_web(self):
        self.write("guide/arena.html", '<h2 id="growth">Growth</h2><a href="../index.html#top">back</a>')
        self.write("index.html", '<a id="top" href="guide/arena.html#growth"></a><a href="https://example.org/x">')
        self.assertEqual(self.run_python(links, self.tree), (0, "3 links, 0 wrong\n"))

    def test_finds_a_missing_page_and_a_missing_anchor(self):
        self.write("pool.html", "<h2 id='order'></h2>")
        self.write("index.html", '\n<a href="arena.html"></a>\n<a href="pool.html#grwoth"></a>')
        self.assertEqual(self.run_python(links, self.tree), (1,
            "index.html:2: arena.html: no such file\n"
            "index.html:3: pool.html#grwoth: no such anchor\n"
            "2 links, 2 wrong\n"))

    def test_rejects_a_directory_without_links(self):
        self.assertEqual(self.run_python(links, self.tree), (1, "0 links, 0 wrong\n"))


class DoxygenFilter(TreeTest):
    def shows(self, name, text):
        status, shown = self.run_python(filter_, self.write(name, text))
        self.assertEqual((status, shown.count("\n")), (0, text.count("\n")), shown)
        return shown

    def test_makes_the_first_comment_the_description_of_the_file(self):
        self.assertEqual(self.shows("a.hpp", "// Arenas.\n// More.\n#pragma once\n"),
                         "/// Arenas.\n/// More. @file\n#pragma once\n")
        self.assertEqual(self.shows("a.h", "/* Arenas.\n * More.\n */\n"), "/** Arenas.\n * More.\n @file */\n")

    def test_adds_descriptions_of_functions_that_the_standard_defines(self):
        self.assertEqual(self.shows("a.hpp", "// Arenas.\nclass arena {\n    arena(arena&& other) noexcept;\n"
                                             "    using value_type = T;\n"),
                         "/// Arenas. @file\nclass arena {\n/** Move constructor. */     arena(arena&& other) noexcept;\n"
                         "/** A name that the standard library expects. */     using value_type = T;\n")

    def test_keeps_the_comment_of_every_other_function(self):
        text = "/// Arenas. @file\n    void* allocate();\n    /// Takes all blocks.\n    arena(arena&& other);\n"
        self.assertEqual(self.shows("a.hpp", text.replace("/// Arenas. @file", "// Arenas.")), text)


class Site(TreeTest):
    def setUp(self):
        super().setUp()
        self.build = module("tools/site/build")
        self.build.root, self.build.staged = self.tree, self.tree / "staged"
        self.write("README.md", "# Mallard\n[guide](docs/guide.md)\n")
        self.write("docs/decisions/0001-one.md", "# 1. One\n")
        self.write("include/arena.hpp", "class arena;\n")

    def page(self, text):
        """Returns how the site shows docs/guide/arena.md with this text."""
        file = self.write("docs/guide/arena.md", text)
        self.write("docs/guide.md", "# Guide\n")
        site = self.build.Site()
        site.add(file, site.pages[file])
        return (self.build.staged / "guide/arena.md").read_text()

    def test_links_between_pages_use_their_addresses_on_the_site(self):
        self.assertEqual(self.page("[a](../guide.md#b) [c](../../README.md) [d](../decisions) [e](https://x.org)\n"),
                         "[a](../guide.md#b) [c](../index.md) [d](../decisions/index.md) [e](https://x.org)\n")

    def test_makes_a_page_for_each_linked_source_file(self):
        self.assertEqual(self.page("[arena](../../include/arena.hpp)\n"),
                         "[arena](../source/include/arena.hpp.md)\n")
        shown = (self.build.staged / "source/include/arena.hpp.md").read_text()
        self.assertIn("````cpp\nclass arena;\n````", shown)

    def test_leaves_code_unchanged(self):
        text = "`[](int)` and `[a](b.md)`\n```cpp\nauto f = [](x) {};\n```\n"
        self.assertEqual(self.page(text), text)

    def test_lists_each_page_once(self):
        self.page("# Arena\n")
        trees = self.build.Site().trees().split("\n")
        for name in ("guide", "guide/arena", "decisions/index", "reference"):
            self.assertEqual(trees.count(name), 1, name)


if __name__ == "__main__":
    unittest.main()
