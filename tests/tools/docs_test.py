from tree import TreeTest

tool = "tools/check-docs"


class CheckDocs(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("x", "x_test() {\n")
        self.write("include/mallard/pool.hpp", "class pool {\n    void* refill();\n};\n")
        self.write("docs/design.md", "# The free list\n")

    def says(self, text):
        self.write("README.md", text)

    def test_accepts_what_exists(self):
        self.says("[design](docs/design.md#the-free-list) and [web](https://example.org/x)\n"
                  "`include/mallard/pool.hpp:refill`, `pool.hpp:pool::refill()`, `pool.hpp:2`,\n"
                  "`include/mallard/*.hpp`, `./x test --quick`, `mallard::pool<>`, `pool/pair/64B`\n"
                  "```sh\n./x nothing; cat `docs/gone.md`\n```\n")
        self.accepts(tool)

    def test_finds_a_link_to_nowhere(self):
        self.says("\n[design](docs/desing.md)\n")
        self.finds(tool, "README.md:2: link to docs/desing.md: no such file")

    def test_finds_a_link_to_a_heading_that_is_gone(self):
        self.says("[design](docs/design.md#the-bitmap)\n")
        self.finds(tool, "README.md:1: link to docs/design.md#the-bitmap: no such heading")

    def test_finds_a_file_that_is_gone(self):
        self.says("```\ncode\n```\n`src/os/pages.cpp`\n")
        self.finds(tool, "README.md:4: `src/os/pages.cpp`: no such file")

    def test_finds_a_function_that_is_gone(self):
        self.says("`pool.hpp:refil`\n")
        self.finds(tool, "README.md:1: `pool.hpp:refil`: no refil in that file")

    def test_finds_a_line_beyond_the_end(self):
        self.says("`pool.hpp:4`\n")
        self.finds(tool, "README.md:1: `pool.hpp:4`: no 4 in that file")

    def test_finds_a_command_that_x_does_not_have(self):
        self.says("`./x soak`\n")
        self.finds(tool, "README.md:1: `./x soak`: x has no such command")
