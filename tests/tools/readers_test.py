"""Tests tools/testing/readers.py: which cases it finds in what build and test programs print."""
import sys
import unittest

from tree import TreeTest, root

sys.path.insert(0, str(root / "tools/testing"))
import builds  # noqa: E402
import runner  # noqa: E402
from readers import Build, Cargo, Case, Ctest, GoogleTest, Whole  # noqa: E402


def cases_of(reader, text, status=0):
    """Returns {name: (verdict, detail)} of what a reader finds."""
    cases = [case for line in text.splitlines() for case in reader.line(line)] + reader.end(status)
    return {case.name: (case.verdict, case.detail) for case in cases}


class OfGoogleTest(unittest.TestCase):
    def test_each_test_case_has_an_outcome_and_the_prefix_of_its_program(self):
        found = cases_of(GoogleTest("p", "malloc."), """[ RUN      ] a.passes
[       OK ] a.passes (0 ms)
[ RUN      ] a.fails
x.cpp:3: Failure
[  FAILED  ] a.fails, where GetParam() = 3 (1 ms)
[ RUN      ] a.skips
a line of the case itself
x.cpp:4: Skipped
no perf here

[  SKIPPED ] a.skips (0 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] a.fails, where GetParam() = 3""", 1)
        self.assertEqual(found, {"malloc.a.passes": ("passed", ""), "malloc.a.fails": ("failed", "x.cpp:3: Failure"),
                                 "malloc.a.skips": ("skipped", "no perf here")})

    def test_a_skip_without_a_reason_is_reported_as_such(self):
        found = cases_of(GoogleTest("p"), "[ RUN      ] a.b\nx.cpp:4: Skipped\n\n[  SKIPPED ] a.b (0 ms)")
        self.assertEqual(found, {"a.b": ("skipped", "no reason")})

    def test_a_crash_fails_the_test_case_that_was_running(self):
        found = cases_of(GoogleTest("p"), "[ RUN      ] a.b\n[       OK ] a.b (0 ms)\n[ RUN      ] a.c\nSegfault", -11)
        self.assertEqual(found["a.b"][0], "passed")
        self.assertEqual(found["a.c"][0], "failed")
        self.assertIn("Segfault\nthe process terminated in this case, with status -11", found["a.c"][1])

    def test_a_program_that_fails_outside_of_its_test_cases_is_a_failure(self):
        self.assertEqual(cases_of(GoogleTest("p"), "cannot open shared object", 127),
                         {"p": ("failed", "cannot open shared object")})

    def test_names_of_typed_and_parameterised_cases_are_kept(self):
        for name in ("pool/0.takes_blocks", "sizes/pool.takes_blocks/3", "all/pool/1.takes_blocks"):
            self.assertEqual(cases_of(GoogleTest("p"), f"[ RUN      ] {name}\n[       OK ] {name} (12 ms)"),
                             {name: ("passed", "")})

    def test_a_result_marker_may_follow_other_output_on_its_line(self):
        found = cases_of(GoogleTest("p"), "[ RUN      ] a.b\nno line break[       OK ] a.b (0 ms)")
        self.assertEqual(found, {"a.b": ("passed", "")})


class OfCtest(TreeTest):
    def cases(self, text, **tests):
        file = self.tree / "results.xml"
        reader = Ctest(file, {name: builds.Test(name, (), (f"cases:{prefix}",)) for name, prefix in tests.items()})
        file.write_text(f'<testsuite name="x">{text}</testsuite>')
        return cases_of(reader, "", 8)

    def test_status_77_is_a_skip_with_the_last_line_as_reason(self):
        self.assertEqual(self.cases('<testcase name="a" status="run"/><testcase name="b" status="notrun">'
                                    '<skipped message="SKIP_RETURN_CODE=77"/><system-out>one\nno strace\n</system-out></testcase>'),
                         {"a": ("passed", ""), "b": ("skipped", "no strace")})

    def test_timeouts_and_missing_programs_fail(self):
        found = self.cases('<testcase name="a" status="fail"><failure message="Timeout"/><system-out>slow</system-out></testcase>'
                           '<testcase name="b" status="notrun"><skipped message="Unable to find executable"/></testcase>')
        self.assertEqual(found, {"a": ("failed", "slow\nTimeout"), "b": ("failed", "Unable to find executable")})

    def test_disabled_tests_are_not_counted_as_results(self):
        self.assertEqual(self.cases('<testcase name="a" status="disabled"/>'), {})

    def test_control_characters_in_output_do_not_hide_results(self):
        found = self.cases('<testcase name="a" status="fail"><failure message="Failed"/><system-out>\x1b[31mred\x00</system-out></testcase>')
        self.assertEqual(found, {"a": ("failed", "?[31mred?\nFailed")})

    def test_googletest_cases_are_counted_individually(self):
        found = self.cases('<testcase name="p" status="fail"><failure message="Timeout"/><system-out>[ RUN      ] a.b\n'
                           '[       OK ] a.b (0 ms)\n[ RUN      ] a.c\n</system-out></testcase>', p="malloc")
        self.assertEqual({name: verdict for name, (verdict, _) in found.items()}, {"malloc.a.b": "passed", "malloc.a.c": "failed"})
        self.assertIn("Timeout", found["malloc.a.c"][1])

    def test_a_missing_results_file_is_a_failure(self):
        found = cases_of(Ctest(self.tree / "none.xml", {}), "", -9)
        self.assertEqual(found["ctest"][0], "failed")
        self.assertIn("status -9", found["ctest"][1])


class OfCargo(TreeTest):
    def cases(self, text, status=0):
        self.reader = Cargo(self.tree / "skips.txt")
        return cases_of(self.reader, text, status)

    def test_results_of_rust_test_programs_and_doc_tests_are_read_in_sequence(self):
        found = self.cases("""     Running unittests src/lib.rs (build/my deps/pool-0a1b2c)
test tests::a ... ok
test tests::b - should panic ... ok
test tests::slow ... ignored, takes hours
test result: ok. 2 passed
     Running tests/all.rs (build/deps/all-0a1b2c)
printed by a childtest c ... ok
test result: ok.
   Doc-tests pool
test crates/pool/src/lib.rs - Pool::new (line 12) ... ok
test result: ok.""")
        self.assertEqual(set(found), {"tests::a", "tests::b", "c", "crates/pool/src/lib.rs - Pool::new (line 12)"})

    def test_the_output_of_a_failure_is_kept_even_if_it_looks_like_results(self):
        found = self.cases("""     Running tests/all.rs (build/deps/all-0a1b2c)
test a ... FAILED
test b ... ok

failures:

---- a stdout ----
test inner ... FAILED
thread 'a' panicked at x.rs:3

failures:
    a

test result: FAILED. 1 passed; 1 failed""", 101)
        self.assertEqual(found, {"a": ("failed", "test inner ... FAILED\nthread 'a' panicked at x.rs:3"), "b": ("passed", "")})

    def test_a_program_that_aborts_fails_with_its_last_lines(self):
        found = self.cases("""     Running tests/all.rs (build/deps/all-0a1b2c)
test a ... ok
free(): invalid pointer
error: test failed, to rerun pass `-p pool --test all`

Caused by:
  process didn't exit successfully: `all-0a1b2c` (signal: 6, SIGABRT: process abort signal)
   Doc-tests pool
test result: ok.""", 101)
        self.assertEqual(found["a"][0], "passed")
        self.assertEqual(found["all"][0], "failed")
        for words in "free(): invalid pointer", "SIGABRT", "terminated before its last test":
            self.assertIn(words, found["all"][1])

    def test_a_compiler_error_is_reported_with_its_source_location(self):
        found = self.cases("   Compiling pool v1.0\nerror[E0308]: mismatched types\n --> src/lib.rs:3:5\n"
                           "error: could not compile `pool`", 101)
        self.assertEqual(found["cargo test"][0], "failed")
        self.assertIn("error[E0308]: mismatched types\n --> src/lib.rs:3:5", found["cargo test"][1])

    def test_tests_report_skips_through_a_file(self):
        self.cases("     Running tests/all.rs (build/deps/all-0a1b2c)\ntest a::b ... ok\ntest result: ok.")
        (self.tree / "skips.txt").write_text("a::b\tno chromium\na::b\tno chromium\n")
        self.assertEqual([(case.name, case.verdict, case.detail) for case in self.reader.skipped()],
                         [("a::b", "skipped", "no chromium")])


class OfBuilds(unittest.TestCase):
    def test_a_long_failure_is_shown_starting_at_its_report(self):
        text = "\n".join(["before"] * 40 + ["==1==ERROR: AddressSanitizer: SEGV"] + ["    #0 0x1"] * 40)
        found = cases_of(Whole("misuse"), text, 1)["misuse"][1].splitlines()
        self.assertEqual((found[0], len(found)), ("==1==ERROR: AddressSanitizer: SEGV", 25))
        found = cases_of(Whole("other"), "\n".join(map(str, range(40))), 1)["other"][1].splitlines()
        self.assertEqual((found[0], found[-1]), ("15", "39"))

    def test_a_failed_build_counts_as_one_failure_with_the_compiler_errors(self):
        found = cases_of(Build("build dev"), "[1/2] Building a.o\nFAILED: b.o\nb.cpp:3: error: no type\nnote: here", 1)
        self.assertEqual(found, {"build dev": ("failed", "FAILED: b.o\nb.cpp:3: error: no type")})
        self.assertEqual(cases_of(Build("build dev"), "[1/1] error in a name"), {})

    def test_a_failure_caused_by_the_machine_is_reported_as_such(self):
        for text, what in (("b.s: No space left on device", "the disk is full"),
                           ("g++: fatal error: Killed signal terminated program cc1plus", "a compiler was killed"),
                           ("process didn't exit (signal: 9, SIGKILL: kill)", "a compiler was killed"),
                           ("cc1plus: out of memory allocating 8 bytes", "too little memory"),
                           ("error: failed to download `serde`", "could not be downloaded")):
            self.assertIn(what, runner.machine_fault(text)[0])
        self.assertIsNone(runner.machine_fault("b.cpp:3: error: no type"))

    def test_a_command_counts_as_one_test_that_may_skip(self):
        self.assertEqual(cases_of(Whole("clippy"), "fine"), {"clippy": ("passed", "")})
        self.assertEqual(cases_of(Whole("clippy"), "bad", 1), {"clippy": ("failed", "bad")})
        self.assertEqual(cases_of(Whole("clippy"), "x\nno clippy", 77), {"clippy": ("skipped", "no clippy")})


if __name__ == "__main__":
    unittest.main()
