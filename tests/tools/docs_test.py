import subprocess

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

    def test_accepts_citations_of_existing_files_and_names(self):
        self.says("[design](docs/design.md#the-free-list) and [web](https://example.org/x)\n"
                  "`include/mallard/pool.hpp:refill`, `pool.hpp:pool::refill()`, `pool.hpp:2`,\n"
                  "`include/mallard/*.hpp`, `./x test --quick`, `mallard::pool<>`, `pool/pair/64B`, `build/report.md`\n"
                  "```sh\n./x nothing; cat `docs/gone.md`\n```\n")
        self.accepts(tool)

    def test_accepts_files_that_a_build_creates(self):
        self.says("`build/performance.md`\n")
        self.accepts(tool)

    def test_finds_a_link_to_a_missing_file(self):
        self.says("\n[design](docs/desing.md)\n")
        self.finds(tool, "README.md:2: link to docs/desing.md: no such file")

    def test_finds_a_link_to_a_missing_heading(self):
        self.says("[design](docs/design.md#the-bitmap)\n")
        self.finds(tool, "README.md:1: link to docs/design.md#the-bitmap: no such heading")

    def test_finds_a_missing_file(self):
        self.says("```\ncode\n```\n`src/os/pages.cpp`\n")
        self.finds(tool, "README.md:4: `src/os/pages.cpp`: no such file")

    def test_finds_a_missing_function(self):
        self.says("`pool.hpp:refil`\n")
        self.finds(tool, "README.md:1: `pool.hpp:refil`: no refil in that file")

    def test_finds_a_line_beyond_the_end(self):
        self.says("`pool.hpp:4`\n")
        self.finds(tool, "README.md:1: `pool.hpp:4`: no 4 in that file")

    def test_checks_paths_in_comments_of_sources(self):
        self.write("docs/decisions/0001-lists.md", "# 1. Lists\n")
        self.write("crates/one/src/lib.rs", "")
        self.write("crates/one/build.rs", "//! See src/lib.rs and docs/decisions/0001.\n")
        self.write("src/a.cpp", '#include "src/gone.hpp" // see include/mallard/*.hpp\n'
                                "/* docs/design.md, include/mallard/pool.hpp:refill\n * src/pool/16B */ x;\n"
                                "int b; /// as docs/decisions/0002 says\n")
        self.finds(tool, "src/a.cpp:3: `src/pool/16B`: no such file\n"
                         "src/a.cpp:4: `docs/decisions/0002-*.md`: no such file")

    def rows_of(self, commit):
        self.write("results/m/pool.jsonl", '{"suite":"pool","commit":"%s"}\n' % commit)

    def make_repository(self):
        def git(*words):
            return subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=self.tree,
                                  check=True, capture_output=True, text=True).stdout.strip()
        git("init", "-q")
        git("commit", "-q", "--allow-empty", "-m", "First")
        return git("rev-parse", "--short", "HEAD")

    def test_finds_results_of_a_tree_with_uncommitted_changes(self):
        self.rows_of("1234567-dirty")
        self.finds(tool, "results/m/pool.jsonl: results of 1234567-dirty: the tree had uncommitted changes")

    def test_reads_compressed_results(self):
        self.rows_of("1234567-dirty")
        rows = self.tree / "results/m/pool.jsonl"
        subprocess.run(["zstd", "-q", "--rm", rows], check=True)
        self.finds(tool, "results/m/pool.jsonl.zst: results of 1234567-dirty: the tree had uncommitted changes")
        (self.tree / "results/m/pool.jsonl.zst").write_text("not compressed")
        self.finds(tool, "results/m/pool.jsonl.zst: cannot be read: ")

    def test_finds_results_of_a_missing_commit_unless_the_page_mentions_it(self):
        self.rows_of(self.make_repository())
        self.accepts(tool)
        self.rows_of("1234567")
        self.finds(tool, "results/m/pool.jsonl: results of 1234567, which is not a commit here")
        self.write("docs/performance.md", "| pool | 1 | `./x test` | 1234567 (not in this repository) |\n")
        self.accepts(tool)
        self.write("docs/performance.md", "Some rows name 1234567 (not in\nthis repository).\n")
        self.accepts(tool)

    def test_finds_two_decisions_with_the_same_number(self):
        self.write("docs/decisions/0001-lists.md", "# 1. Lists\n")
        self.write("docs/decisions/0001-trees.md", "# 2. Trees\n")
        self.finds(tool, "docs/decisions/0001-trees.md:1: 0001-lists.md has this number too\n"
                         "docs/decisions/0001-trees.md:1: the first line does not begin with # 1.")

    def test_finds_a_command_that_x_does_not_have(self):
        self.says("`./x soak`\n")
        self.finds(tool, "README.md:1: `./x soak`: x has no such command")
