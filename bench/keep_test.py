"""Tests the option --keep of mallard-bench: python3 keep_test.py MALLARD-BENCH"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv.pop()


def run(keep):
    words = [BENCH, "lakos4", "--smoke", "--json", "--case", "^I="]
    words += ["--contender", "^glibc", "--keep", str(keep)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


class Keep(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rows = pathlib.Path(folder.name) / "rows.jsonl"

    def test_existing_results_are_not_measured_again(self):
        first = run(self.rows)
        self.assertEqual(first.stdout, self.rows.read_text())
        self.assertNotEqual(first.stdout, "")
        again = run(self.rows)
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        self.assertEqual(first.stdout, self.rows.read_text())

    def test_a_result_with_a_truncated_last_line_is_measured_again(self):
        whole = run(self.rows).stdout
        self.rows.write_text(whole[:-20])
        again = run(self.rows)
        self.assertEqual(again.returncode, 0)
        self.assertNotEqual(again.stdout, "")
        kept = self.rows.read_text()
        self.assertTrue(kept.startswith(whole[: whole.rstrip().rfind("\n") + 1]))
        self.assertNotIn(whole.splitlines()[-1][:-19] + "{", kept)

    def test_an_invalid_line_is_an_error_with_its_number_and_is_left_unchanged(self):
        for bad in ("nonsense", '{"contender":"somebody"}'):
            self.rows.write_text(bad + "\n")
            refused = run(self.rows)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn("rows.jsonl:1 is not a result", refused.stderr)
            self.assertEqual(self.rows.read_text(), bad + "\n")

    def test_an_unwritable_results_file_is_an_error_with_a_reason(self):
        refused = run(self.rows.parent / "missing" / "rows.jsonl")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("No such file or directory", refused.stderr)


unittest.main()
