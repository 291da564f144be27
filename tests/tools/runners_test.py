"""Tests that the runners of tests/misuse and tests/nocompile fail when they should."""
import subprocess

from tree import TreeTest

program = """// dies: mallard: free of ADDRESS
#include <cstdio>
#include <cstdlib>
int main()
{
    std::fputs(TEXT, stderr);
    END
}
"""
message = r'"mallard: free of 0x7f31c0a04180\n  it was free\n  help: do not\n"'


class MisuseRunner(TreeTest):
    def check(self, text, end):
        source = self.write("misuse.cpp", program.replace("TEXT", text).replace("END", end))
        subprocess.run(["g++", source, "-o", self.tree / "misuse"], check=True)
        return self.run_python("tests/misuse/run.py", source, self.tree / "misuse")

    def finds(self, fault, *what):
        status, text = self.check(*what)
        self.assertIn(fault, text)
        self.assertEqual(status, 1)

    def test_accepts_a_three_line_message_and_an_abort(self):
        self.assertEqual(self.check(message, "std::abort();"), (0, ""))

    def test_finds_a_program_that_does_not_abort(self):
        self.finds("expected an abort, got status 0", message, "")

    def test_finds_an_unexpected_first_line(self):
        self.finds("expected the first line: mallard: free of ADDRESS",
                   message.replace("free of", "loss of"), "std::abort();")

    def test_finds_a_message_with_a_fourth_line(self):
        self.finds("expected three lines", message.replace("help", "why\\n  help"), "std::abort();")

    def test_accepts_a_list_under_the_second_line(self):
        self.assertEqual(self.check(message.replace("  help", "    by app+0x1\\n  help"),
                                    "std::abort();"), (0, ""))

    def test_reports_a_message_that_has_no_help_line(self):
        self.finds("expected three lines", message.replace("help: ", ""), "std::abort();")

    def test_accepts_a_segmentation_fault_only_after_the_expected_line(self):
        touch = program.replace("// dies: mallard: free of ADDRESS", "// segfaults: so far")
        for text, status in (("so far", 0), ("not yet", 1)):
            source = self.write("misuse.cpp", touch.replace(
                "TEXT, stderr", f'"{text}\\n", stdout').replace(
                "END", "std::fflush(stdout); *static_cast<volatile int*>(nullptr) = 1;"))
            subprocess.run(["g++", "-w", source, "-o", self.tree / "misuse"], check=True)
            self.assertEqual(self.run_python("tests/misuse/run.py", source,
                                             self.tree / "misuse")[0], status)

    def test_a_program_that_exits_normally_must_print_the_expected_output(self):
        lives = program.replace("// dies: mallard: free of ADDRESS", "// lives: nothing")
        for text, stream, status in (("nothing", "stdout", 0), ("more", "stdout", 1),
                                     ("nothing", "stderr", 1)):
            source = self.write("misuse.cpp", lives.replace(
                "TEXT, stderr", f'"{text}\\n", {stream}').replace("END", ""))
            subprocess.run(["g++", source, "-o", self.tree / "misuse"], check=True)
            self.assertEqual(self.run_python("tests/misuse/run.py", source,
                                             self.tree / "misuse")[0], status)

    def test_requires_an_expectation(self):
        source = self.write("misuse.cpp", "int main() {}\n")
        status, text = self.run_python("tests/misuse/run.py", source, "misuse")
        self.assertEqual(status, 1)
        self.assertIn("misuse.cpp:1: expected `// dies: LINE`", text)


class NocompileRunner(TreeTest):
    def check(self, text):
        return self.run_python("tests/nocompile/run.py", self.write("no.cpp", text), "g++")

    def test_accepts_a_file_that_fails_to_compile_with_the_expected_error(self):
        self.assertEqual(self.check('// error: too (small|big)\nstatic_assert(false, "too big");\n'),
                         (0, ""))

    def test_a_file_that_compiles_without_the_expected_error_makes_the_runner_fail(self):
        status, text = self.check("// error: too big\n")
        self.assertEqual(status, 1)
        self.assertIn("no.cpp: it compiles", text)

    def test_finds_an_unexpected_compiler_error(self):
        status, text = self.check("// error: too big\nnonsense\n")
        self.assertEqual(status, 1)
        self.assertIn("expected an error that matches: too big", text)
