#!/usr/bin/env python3
"""Tests aa.py with a command in place of mallard that gives known verdicts. `aa_test.py [unittest arguments]`"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import aa  # noqa: E402

# This script stands in for mallard. Each comparison prints the next verdict of the list, for CPU time and for
# memory.
FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
state = pathlib.Path(__file__).with_name("runs")
runs = int(state.read_text()) if state.exists() else 0
if sys.argv[1] != "record":
    state.write_text(str(runs + 1))
    verdicts = {verdicts}
    verdict = verdicts[runs % len(verdicts)]
    print(json.dumps({{"candidates": [{{"broken": {broken!r}, "cpu": {{"verdict": verdict}},
                                       "memory": {{"verdict": verdict}}}}]}}))
    sys.exit(verdict == "loss")
"""


class Counting(unittest.TestCase):
    def run_aa(self, verdicts, *arguments, broken=None):
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder) / "mallard"
            fake.write_text(FAKE.format(verdicts=verdicts, broken=broken))
            fake.chmod(0o755)
            return subprocess.run([sys.executable, aa.__file__, *arguments], capture_output=True, text=True,
                                  env={**os.environ, "MALLARD": str(fake)}, timeout=60)

    def test_gains_and_losses_count_as_different(self):
        done = self.run_aa(["gain", "loss", "no difference", "not measurable"], "verify", "--runs", "8", "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        for line, metric in zip(done.stdout.splitlines(), ("cpu", "memory")):
            row = json.loads(line)
            self.assertEqual((row["command"], row["metric"], row["runs"]), ("verify", metric, 8))
            self.assertEqual([row[verdict] for verdict in aa.VERDICTS], [2, 2, 2, 2])
            self.assertEqual(row["different"], 0.5)

    def test_the_two_commands_are_counted_separately(self):
        done = self.run_aa(["no difference"], "--runs", "3", "--busy")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        self.assertEqual([row[:3] for row in rows], [["verify", "cpu", "3"], ["verify", "memory", "3"],
                                                     ["replay", "cpu", "3"], ["replay", "memory", "3"]])

    def test_a_failed_comparison_counts_as_no_verdict(self):
        done = self.run_aa(["gain"], "verify", "--runs", "3", broken="line 1 differs")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 3), done.stderr)
        self.assertIn("line 1 differs", done.stderr)

    def test_an_invalid_command_line_is_rejected(self):
        for arguments in (["--runs", "0"], ["--budget", "-1"], ["compare"]):
            self.assertEqual(self.run_aa(["gain"], *arguments).returncode, 2)

    def test_the_upper_bound_is_the_largest_rate_consistent_with_so_few_hits(self):
        self.assertAlmostEqual(aa.upper_end(0, 200), 1 - 0.05 ** (1 / 200), places=9)
        self.assertAlmostEqual(aa.chance_of_at_most(5, 200, aa.upper_end(5, 200)), 0.05, places=9)
        self.assertEqual((aa.upper_end(3, 3), aa.upper_end(0, 0)), (1.0, 1.0))

    def test_arguments_are_quoted_for_a_shell(self):
        words = ["a b", "it's", '"$x"']
        done = subprocess.run(["sh", "-c", f"printf '%s\\n' {aa.shell_words(words)}"], capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines(), words)


if __name__ == "__main__":
    unittest.main()
