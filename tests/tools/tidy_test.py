"""Tests that tools/tidy passes all files to each check, and reports the file of each finding.

A script takes the place of clang-tidy. It records its arguments, and reports each line that has the word
FAULT.
"""
import os
import shutil
import subprocess
import sys

from tree import TreeTest, root

clang_tidy = """#!/bin/sh
echo "$*" >>"$CALLS"
for file; do case $file in *.cpp) break ;; esac; done
! grep -nH FAULT "$file" | sed 's/$/ error: a fault/' | grep .
"""


class Tidy(TreeTest):
    def setUp(self):
        super().setUp()
        for tool in ("tools/tidy", "tests/unite.py"):
            self.write(tool, "")
            shutil.copy(root / tool, self.tree / tool)
        self.write("bin/clang-tidy-19", clang_tidy).chmod(0o755)
        self.calls = self.write("calls", "")
        self.write("src/os/one.cpp", "int one;\n")
        self.write("src/os/two.cpp", "int two;\nint three;\n")

    def tidy(self, *words):
        """Runs the tool. Returns its status, its output, and the arguments of each call of clang-tidy."""
        path = f"{self.tree}/bin:{os.environ['PATH']}"
        run = subprocess.run([sys.executable, self.tree / "tools/tidy", *words], capture_output=True, text=True,
                             env={**os.environ, "PATH": path, "CALLS": str(self.calls)})
        return run.returncode, run.stdout + run.stderr, self.calls.read_text().splitlines()

    def test_analyses_the_paths_of_each_file_separately_and_runs_other_checks_once(self):
        status, said, calls = self.tidy()
        self.assertEqual((status, said), (0, ""))
        whole = [call for call in calls if "--checks=-clang-analyzer-* " in call]
        self.assertEqual(len(whole), 1)
        self.assertIn("build/tidy/src/os/joined.cpp", whole[0])
        paths = [call for call in calls if "--checks=-bugprone-*" in call]
        self.assertEqual(len(calls), 3)
        self.assertEqual(sum(" src/os/one.cpp " in call for call in paths), 1)
        self.assertEqual(sum(" src/os/two.cpp " in call for call in paths), 1)

    def test_runs_all_checks_on_a_file_that_is_not_combined_with_others(self):
        self.write("src/heap/heap.cpp", "int heap;\n")
        _, _, calls = self.tidy("heap")
        self.assertEqual(len(calls), 1)
        self.assertIn("--checks= src/heap/heap.cpp ", calls[0])

    def test_names_the_line_in_the_original_of_a_combined_file(self):
        self.write("src/os/two.cpp", "int two;\nint FAULT;\n")
        status, said, _ = self.tidy()
        self.assertEqual(status, 1)
        self.assertEqual(said.count("src/os/two.cpp:2:"), 2, said)
        self.assertNotIn("joined.cpp", said)

    def test_combines_programs_in_separate_namespaces(self):
        for name in ("one", "two"):
            self.write(f"tests/compile/advice/{name}.cpp", "#include <new>\nint same;\nint FAULT;\n")
        _, said, _ = self.tidy("advice")
        self.assertIn("tests/compile/advice/one.cpp:3:", said)
        self.assertIn("tests/compile/advice/two.cpp:3:", said)
        text = (self.tree / "build/tidy/tests/compile/advice/joined.cpp").read_text()
        self.assertIn("namespace file_one {", text)

    def test_uses_the_settings_of_the_directory(self):
        self.write("src/os/.clang-tidy", "Checks: '-misc-*'\n")
        self.tidy()
        self.assertEqual((self.tree / "build/tidy/src/os/.clang-tidy").read_text(), "Checks: '-misc-*'\n")

    def test_rejects_an_argument_that_is_not_a_directory(self):
        status, said, calls = self.tidy("nowhere")
        self.assertEqual((status, calls), (2, []))
        self.assertEqual(said.count("\n"), 3, said)
        self.assertIn("help: ", said)
