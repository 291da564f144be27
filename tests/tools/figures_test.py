import json

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

    def test_finds_a_figure_whose_row_was_replaced(self):
        self.write(guide, "\nA pair takes 9.9 ns.\n")
        self.sentence("A pair takes {9.9} ns.", "row('pair', 'ours')")
        self.finds(tool, f"{guide}:2: says 9.9, but row('pair', 'ours') is 2.04")

    def test_finds_a_sentence_that_was_reworded(self):
        self.write(guide, "It takes 2.0 ns.\n")
        self.sentence("A pair takes {2.0} ns.", "row('pair', 'ours')")
        self.finds(tool, f"{guide}:1: has no sentence: A pair takes {{2.0}} ns.")

    def test_finds_a_row_that_is_gone(self):
        self.write(guide, "A pair takes 2.0 ns.\n")
        self.sentence("A pair takes {2.0} ns.", "row('pair', 'jemalloc')")
        self.finds(tool, "here/pool.jsonl has no ns_per_op of jemalloc in pair")

    def test_finds_a_wrong_cell_of_a_table(self):
        self.write(guide, "| | ours | glibc |\n|---|---|---|\n| a pair | 2.0 | 17 |\n")
        self.table()
        self.finds(tool, f"{guide}:3: says 17, but glibc in pair is 12.6")

    def test_finds_instructions_that_the_hot_path_does_not_promise(self):
        self.write(guide, "It takes 4 instructions.\n")
        self.sentence("It takes {4} instructions.", "hot('pool_allocate')")
        self.finds(tool, "says 4, but hot('pool_allocate') is 5")

    def test_writes_the_figures_of_the_rows(self):
        file = self.write(guide, "| a pair | 9.9 ns | 17 |\n")
        self.table()
        status, text = self.run_python(tool, "--write", self.tree)
        self.assertEqual((status, text), (0, ""))
        self.assertEqual(file.read_text(), "| a pair | 2.0 ns | 13 |\n")
