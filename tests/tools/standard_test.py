"""Tests how tests/standard/run.py judges a test case, and how run.py reads the lines of
differences.txt."""
import importlib.util
import unittest
from pathlib import Path
from unittest import mock

file = Path(__file__).parents[1] / "standard/run.py"
spec = importlib.util.spec_from_file_location("standard_run", file)
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


class Verdicts(unittest.TestCase):
    def judge(self, ours, own, listed):
        suite = mock.Mock(root=Path("/"), flags_of=lambda case: [])
        ends = lambda suite, case, flags, with_ours: (ours if with_ours else own, "")
        with mock.patch.object(run, "outcome", ends):
            return run.judge(suite, "a/case.cc", listed).word

    def test_an_unlisted_case_fails_unless_the_librarys_own_class_fails_too(self):
        self.assertEqual(self.judge("pass", "pass", "pass"), "pass")
        self.assertEqual(self.judge("run", "pass", "pass"), "failed")
        self.assertEqual(self.judge("run", "compile", "pass"), "own")

    def test_a_listed_case_must_have_exactly_the_listed_outcome(self):
        self.assertEqual(self.judge("run", "pass", "run"), "differs")
        self.assertEqual(self.judge("pass", "pass", "run"), "failed")
        self.assertEqual(self.judge("compile", "pass", "run"), "failed")


class Differences(unittest.TestCase):
    def test_each_line_has_an_outcome_a_case_a_clause_and_a_reason(self):
        self.assertEqual(set(run.differences().values()) - {"compile", "run"}, set())

    def test_a_line_without_a_clause_is_rejected(self):
        with mock.patch.object(Path, "read_text", lambda self: "run a/case.cc: no clause\n"):
            with self.assertRaisesRegex(SystemExit, "differences.txt:1: is not OUTCOME CASE"):
                run.differences()


if __name__ == "__main__":
    unittest.main()
