"""Tests that tests/unite.py joins files so that a compiler accepts the result, and rejects files that it
cannot join."""
import subprocess

from tree import TreeTest

tool = "tests/unite.py"
first = """// lives: 1
#include "shared.hpp"
#include <cstdio>
static int number = one;
int main()
{
    std::printf("%d\\n", number);
}
"""
second = first.replace("= one", "= 2 * one")


class Unite(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("shared.hpp", "#pragma once\nconstexpr int one = 1;\n")
        self.output = self.tree / "united.cpp"

    def unite(self, *texts, options=()):
        sources = [self.write(f"file_{i}.cpp", text) for i, text in enumerate(texts)]
        return self.run_python(tool, self.output, *options, *sources)

    def program(self, *texts):
        self.assertEqual(self.unite(*texts, options=["--programs"]), (0, ""))
        program = self.tree / "united"
        subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", self.output, "-o", program], check=True)
        return program

    def refuses(self, text, *words, options=()):
        status, said = self.unite(first, text, options=options)
        self.assertEqual(status, 1)
        self.assertEqual(said.count("\n"), 3, said)
        for word in ("file_1.cpp: ", "nothing was written", "help: ", *words):
            self.assertIn(word, said)
        self.assertFalse(self.output.exists())

    def test_runs_the_program_that_the_argument_names(self):
        program = self.program(first, second)
        for name, output in (("file_0", "1\n"), ("file_1", "2\n")):
            run = subprocess.run([program, name], capture_output=True, text=True, check=True)
            self.assertEqual(run.stdout, output)

    def test_reports_a_program_that_does_not_exist(self):
        program = self.program(first)
        for arguments in [], ["file_1"], ["file_0", "file_0"]:
            run = subprocess.run([program, *arguments], capture_output=True, text=True)
            self.assertEqual(run.returncode, 2)
            self.assertEqual(run.stderr.count("\n"), 3)

    def test_compiler_messages_name_the_line_of_the_original_source(self):
        self.unite(first.replace("number);", "numbers);"), options=["--programs"])
        run = subprocess.run(["g++", "-fsyntax-only", self.output], capture_output=True, text=True)
        self.assertIn(f"{self.tree}/file_0.cpp:7:", run.stderr)

    def test_rejects_code_that_cannot_be_in_a_namespace(self):
        for text in "#define N 1\n", "namespace mallard {\n}\n", "template <>\nstruct a<int>;\n":
            self.refuses(text, "cannot be in a namespace: " + text.split("\n", maxsplit=1)[0].split(" N")[0][:7])

    def test_rejects_a_program_without_a_plain_main_function(self):
        for text in "int number;\n", "int main(int, char**)\n{\n}\n", first + "int number;\n":
            self.refuses(text, "`int main()`", options=["--programs"])
