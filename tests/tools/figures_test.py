import json
import subprocess

from tree import TreeTest

tool = "tools/check-figures"
guide = "docs/guide/pool.md"


def row(case, contender, median, threads=1):
    return json.dumps({"suite": "pool", "case": case, "contender": contender, "threads": threads,
                       "metric": "ns_per_op", "median": median}) + "\n"


class CheckFigures(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("results/here/pool.jsonl",
                   row("pair", "ours", 9.9) + row("pair", "ours", 2.04) + row("pair", "glibc", 12.6))
        self.write("tests/hot_path/hot_path.cpp",
                   "// hot: 5 instructions, 1 test\nvoid* pool_allocate(pool& p)\n")

    def sentence(self, says, *expressions):
        self.write("docs/figures.toml", 'machine = "here"\n[[sentence]]\nsuite = "pool"\n'
                   f'in = "{guide}"\nsays = "{says}"\nis = {json.dumps(expressions)}\n')

    def table(self):
        self.write("docs/figures.toml", 'machine = "here"\n[[table]]\nsuite = "pool"\n'
                   f'in = "{guide}"\nmetric = "ns_per_op"\ncolumns = ["ours", "glibc"]\n'
                   '[table.lines]\n"a pair" = "pair"\n')

    def test_accepts_a_figure_that_is_rounded(self):
        self.write(guide, "A pair takes 2.0 ns,\nglibc 13.\n")
        self.sentence("A pair takes {2.0} ns, glibc {13}.", "row('pair', 'ours')", "row('pair', 'glibc')")
        self.accepts(tool)

    def test_finds_a_figure_whose_result_was_replaced(self):
        self.write(guide, "\nA pair takes 9.9 ns.\n")
        self.sentence("A pair takes {9.9} ns.", "row('pair', 'ours')")
        self.finds(tool, f"{guide}:2: has 9.9, but row('pair', 'ours') is 2.04")

    def test_reads_compressed_results_before_newer_uncompressed_ones(self):
        rows = self.tree / "results/here/pool.jsonl"
        subprocess.run(["zstd", "-q", "--rm", rows], check=True)
        self.write(guide, "A pair takes 2.0 ns.\n")
        self.sentence("A pair takes {2.0} ns.", "row('pair', 'ours')")
        self.accepts(tool)
        self.write("results/here/pool.jsonl", row("pair", "ours", 3))
        self.finds(tool, f"{guide}:1: has 2.0, but row('pair', 'ours') is 3")

    def test_finds_a_suite_without_results(self):
        self.write(guide, "A pair takes 2.0 ns.\n")
        self.sentence("A pair takes {2.0} ns.", "row('pair', 'ours')")
        (self.tree / "results/here/pool.jsonl").unlink()
        self.finds(tool, "results/here/pool.jsonl.zst: there is no such file, and no pool.jsonl")

    def test_finds_a_sentence_that_was_reworded(self):
        self.write(guide, "It takes 2.0 ns.\n")
        self.sentence("A pair takes {2.0} ns.", "row('pair', 'ours')")
        self.finds(tool, f"{guide}:1: has no sentence: A pair takes {{2.0}} ns.")

    def test_finds_a_missing_result(self):
        self.write(guide, "A pair takes 2.0 ns.\n")
        self.sentence("A pair takes {2.0} ns.", "row('pair', 'jemalloc')")
        self.finds(tool, "here/pool has no ns_per_op of jemalloc in pair")

    def test_finds_an_incorrect_table_cell(self):
        self.write(guide, "| | ours | glibc |\n|---|---|---|\n| a pair | 2.0 | 17 |\n")
        self.table()
        self.finds(tool, f"{guide}:3: has 17, but glibc in pair is 12.6")

    def test_finds_an_incorrect_number_of_hot_path_instructions(self):
        self.write(guide, "It takes 4 instructions.\n")
        self.sentence("It takes {4} instructions.", "hot('pool_allocate')")
        self.finds(tool, "has 4, but hot('pool_allocate') is 5")

    def test_writes_the_figures_of_the_results(self):
        file = self.write(guide, "| a pair | 9.9 ns | 17 |\n")
        self.table()
        status, text = self.run_python(tool, "--write", self.tree)
        self.assertEqual((status, text), (0, ""))
        self.assertEqual(file.read_text(), "| a pair | 2.0 ns | 13 |\n")

    def test_compares_a_number_written_as_a_word(self):
        self.write(guide, "A pair takes five instructions.\n")
        self.sentence("takes {five} instructions", "hot('pool_allocate')")
        self.accepts(tool)
        self.sentence("takes {five} instructions", "hot('pool_allocate') + 1")
        self.finds(tool, f"{guide}:1: has five, but hot('pool_allocate') + 1 is 6")
        self.run_python(tool, "--write", self.tree)
        self.assertEqual((self.tree / guide).read_text(), "A pair takes six instructions.\n")

    def test_finds_an_incorrect_number_of_malloc_instructions(self):
        self.write("tests/malloc/instructions.py", 'promised = {("malloc", 64): (16, 6), ("free", 64): (19, 8)}\n')
        self.write(guide, "malloc takes 22 instructions and free 26\n")
        self.sentence("malloc takes {22} instructions and free {26}", "malloc('malloc')", "malloc('free')")
        self.finds(tool, f"{guide}:1: has 26, but malloc('free') is 27")

    def test_reads_constants_from_the_listed_headers(self):
        self.write("include/mallard/pool.hpp", "class pool {\n    static constexpr int bytes = 48;\n};\n")
        self.write(guide, "A pool has 40 bytes.\n")
        self.sentence("A pool has {40} bytes", "code('pool::bytes')")
        list_of_figures = self.tree / "docs/figures.toml"
        list_of_figures.write_text('headers = ["mallard/pool.hpp"]\n' + list_of_figures.read_text())
        self.finds(tool, f"{guide}:1: has 40, but code('pool::bytes') is 48")

    def test_names_a_constant_that_no_longer_exists(self):
        self.write("include/mallard/mallard.hpp", "")
        self.write(guide, "A pool has 40 bytes.\n")
        self.sentence("A pool has {40} bytes", "code('pool_bytes')")
        self.finds(tool, "docs/figures.toml:1: an expression for code() does not compile: 'pool_bytes' was not declared")
