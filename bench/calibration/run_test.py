#!/usr/bin/env python3
"""Tests run.py: the results that it makes from mallard's JSON, and each program once with little work.

    bench/calibration/run_test.py path/to/mallard-bench
"""
import io
import sys
import tempfile
import unittest
from contextlib import redirect_stderr
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import run

bench = sys.argv.pop(1)


def judged(saving, low, high, verdict="gain", **more):
    return {"saving": saving, "low": low, "high": high, "p": 0.01, "verdict": verdict, **more}


def result(peak, candidate, **more):
    """Returns what `mallard try` or `mallard replay` prints about glibc and one allocator."""
    base = {"name": "glibc", "cpu_ns": 2e9, peak: 2048 * 1024, "page_faults": 300}
    return {"base": base, "blocks": 9, "candidates": [{"name": "other", "broken": None, **candidate}], **more}


def real(**candidate):
    usual = {"cpu": judged(0.05, 0.04, 0.07), "memory": judged(-0.5, -0.75, -0.25, "loss"),
             "peak_rss_bytes": 3072 * 1024}
    return result("peak_rss_bytes", {**usual, **candidate})


def replayed(**more):
    usual = {"cpu": judged(0.03, 0.02, 0.04), "memory": judged(0.25, 0.25, 0.25),
             "heap_peak_bytes": 1536 * 1024, "predicted": {"low": 0.01, "high": 0.11}}
    return result("heap_peak_bytes", usual, **{"program_cpu_ns": 1e9, "contention": "replayed", "threads": 1, "cores": 2,
                                               **more})


def rows(of_replay, of_try):
    return {(name, metric): figure for name, metric, figure in run.rows_of(None, of_replay, of_try)}


class Rows(unittest.TestCase):
    def test_a_saving_is_recorded_as_a_negative_change(self):
        change = rows(replayed(), real())["other", "real_cpu_percent"]
        self.assertEqual(change, {"median": -5, "low": -7, "high": -4, "runs": 9, "verdict": "gain"})

    def test_the_median_of_a_prediction_is_the_middle_of_its_interval(self):
        change = rows(replayed(), real())["other", "predicted_cpu_percent"]
        self.assertEqual((change["low"], change["median"], change["high"]), (-11, -6, -1))

    def test_memory_changes_are_relative_to_the_peak_with_glibc(self):
        all_rows = rows(replayed(), real())
        change = all_rows["other", "real_peak_change_kib"]
        self.assertEqual((change["low"], change["median"], change["high"]), (512, 1024, 1536))
        self.assertEqual(all_rows["other", "replayed_peak_change_kib"]["median"], -512)
        self.assertEqual(all_rows["other", "real_peak_kib"]["median"], 3072)
        self.assertEqual(all_rows["glibc", "real_peak_kib"]["median"], 2048)
        self.assertEqual(all_rows["glibc", "replayed_page_faults"]["median"], 300)

    def test_a_broken_allocator_has_a_reason_and_no_figure(self):
        all_rows = rows(replayed(), real(broken="ended by signal 11", cpu=None, memory=None))
        self.assertEqual(all_rows["other", "real_cpu_percent"],
                         {"median": None, "low": None, "high": None, "runs": 0, "why": "broken: ended by signal 11"})
        self.assertNotIn(("other", "real_peak_kib"), all_rows)
        self.assertEqual(all_rows["other", "replayed_cpu_percent"]["median"], -3)

    def test_a_saving_without_a_figure_is_not_recorded_as_a_change(self):
        change = rows(replayed(), real(memory=judged(None, None, None)))["other", "real_peak_change_kib"]
        self.assertEqual((change["median"], change["why"]), (None, "the saving has no figure"))

    def test_a_result_records_why_its_change_is_uncertain(self):
        vague = judged(0.03, -0.02, 0.08, "not measurable", why="more runs are needed")
        all_rows = rows(replayed(contention="not measurable", threads=8), real(cpu=vague))
        self.assertEqual(all_rows["other", "real_cpu_percent"]["why"], "more runs are needed")
        self.assertIn("8 threads on 2 processors", all_rows["other", "replayed_cpu_percent"]["why"])


class Programs(unittest.TestCase):
    def test_each_program_succeeds_with_a_small_workload(self):
        with tempfile.TemporaryDirectory() as name:
            _, lines = run.commands_of(bench, Path(name) / "input", 0.005)
            self.assertGreaterEqual(len(lines), 14)
            for line in lines:
                with self.subTest(line["name"]):
                    if "why" in line:
                        self.skipTest(line["why"])
                    run.Program(line, "mallard", Path(name), []).run()

    def test_an_invalid_workload_fraction_is_rejected(self):
        with tempfile.TemporaryDirectory() as name, self.assertRaises(SystemExit) as refused:
            with redirect_stderr(io.StringIO()):
                run.commands_of(bench, name, 0)
        self.assertIn("printed no commands", str(refused.exception))

    def test_the_exit_status_of_a_failing_program_is_reported(self):
        line = {"name": "x", "threads": 1, "command": ["sh", "-c", "echo no >&2; exit 3"], "load": None, "environment": {}}
        with self.assertRaisesRegex(run.Failed, "sh ended with 3: no"):
            run.Program(line, "mallard", Path("/"), []).run()


if __name__ == "__main__":
    unittest.main()
