"""Tests tools/run-tests: its table, names, changes, processes and results. readers_test.py tests the readers of
test output."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

from tree import TreeTest, root

sys.path.insert(0, str(root / "tools/testing"))
import builds  # noqa: E402
import changes  # noqa: E402
import earlier  # noqa: E402
import names  # noqa: E402
import process  # noqa: E402
import results  # noqa: E402
import stages  # noqa: E402
import table  # noqa: E402
from readers import Case  # noqa: E402


class Crates(unittest.TestCase):
    def test_a_changed_crate_affects_the_crates_that_depend_on_it(self):
        affected = changes.crates_affected(table.read(), {"crates/mallard-measure/src/lib.rs"})
        self.assertEqual(affected, ["mallard-measure", "mallard-record", "mallard-top", "mallard-cli", "bench-report"])
        self.assertIn("mallard-trace", changes.crates_affected(table.read(), {"crates/mallard-alloc/src/lib.rs"}))


class Table(TreeTest):
    def rows(self, text):
        return table.read(self.write("tiers.txt", text))

    def test_tests_of_a_directory_run_in_the_stages_of_its_tier(self):
        rows = self.rows("# tests plain all\nunit asan dev,tsan # why\n\nunit/pages dev -\n")
        self.assertEqual([row.tests for row in rows], ["unit", "unit/pages"])
        self.assertEqual(table.of_stage(rows, "asan", False), ["unit"])
        self.assertEqual(table.of_stage(rows, "dev", False), ["unit/pages"])
        self.assertEqual(table.of_stage(rows, "dev", True), ["unit", "unit/pages"])

    def test_a_stage_with_a_question_mark_runs_only_if_its_directory_or_listed_files_changed(self):
        rows = self.rows("tools dev? dev tools x\n")
        for changed, runs in (((), False), (("tests/tools/a.py",), True), (("tools/rust",), True), (("x",), True),
                              (("xyz",), False), (("tests/tools.txt",), False)):
            self.assertEqual(bool(table.of_stage(rows, "dev", False, frozenset(changed))), runs, changed)
        self.assertEqual(table.of_stage(rows, "dev", True), ["tools"])

    def test_cmake_builds_the_tests_that_the_table_names(self):
        script = self.write("tests.cmake", f"""cmake_minimum_required(VERSION 3.22)
            set(PROJECT_SOURCE_DIR "{root}")
            include("{root}/cmake/tiers.cmake")
            foreach(tests IN LISTS tests_here)
                message(STATUS ${{tests}})
            endforeach()""")
        for stage in "asan", "dev", "tsan", "clang":
            for tier in "plain", "all":
                words = ["cmake", f"-DMALLARD_STAGE={stage}", f"-DMALLARD_TIER={tier}", "-P", script]
                said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
                wanted = table.of_stage(table.read(), stage, tier == "all")
                self.assertEqual(re.findall(r"^-- (.*)$", said, re.M), wanted, words)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = table.read()
        cls.known = names.of_all(cls.rows)

    def stages_of(self, word):
        """Returns the first stage of each line of the table that a filter chooses."""
        found = names.matching(re.compile(word), word, self.known)
        return {row.stages(True)[0] for name in found for row in names.rows_of(name, self.rows)}

    def test_test_names_are_found_in_every_googletest_macro(self):
        text = "".join(f"{macro}(pool, {macro.lower()})\n" for macro in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P"))
        self.assertEqual([names.patterns_of(*found) for found in names.case.findall(text)],
                         ["pool.test", "pool.test_f", "*pool.test_p/*", "pool/*.typed_test", "*pool/*.typed_test_p"])
        self.assertEqual(names.case.findall("TEST(a_long_suite,\n     a_test)\n"), [("TEST", "a_long_suite", "a_test")])
        self.assertEqual(names.registered.findall('::testing::RegisterTest("spec", name)'), ["spec"])

    def test_attributes_may_be_between_the_test_attribute_and_a_rust_function(self):
        for between in ("", '#[should_panic(expected = "a]b")]\n', "#[cfg(unix)] // why\n", "#[cfg_attr(\n    miri,\n    ignore\n)]\n"):
            for function in ("fn a()", "pub fn a()", "pub(crate) fn a()"):
                self.assertEqual(names.rust_test.findall(f"#[test]\n{between}{function} {{}}"), ["a"], between)
        self.assertEqual(names.rust_test.findall("fn a() {}\n#[ignore]\n#[test] fn b() {}"), ["b"])

    def test_test_names_are_found_in_calls_of_rust_macros(self):
        text = "macro_rules! programs {\n  ($($n:ident)*) => {\n    $(#[test]\n    fn $n() {})*\n  };\n}\n"
        text += "programs! {\n    #[cfg_attr(miri, ignore)] arena\n    pool // a pool\n}\n"
        self.assertEqual(names.of_rust_macros(text), ["arena", "pool"])

    def test_test_names_are_found_in_cmake_loops_and_functions(self):
        text = """function(add_size_test name)
    add_test(NAME glibc.${name} COMMAND ${ARGN})
    add_test(NAME malloc.${name} COMMAND ${ARGN})
endfunction()
add_size_test(small a)
foreach(way install
        cargo)
    add_test(NAME consumer.${way} COMMAND run)
endforeach()
foreach(source IN LISTS sources)
    add_test(NAME known.${name}_works COMMAND run)
    set(test last.${name})
endforeach()
add_test(NAME ${test} COMMAND run)
"""
        self.assertEqual(list(names.of_cmake(text)), ["glibc.small", "malloc.small", "consumer.install", "consumer.cargo",
                                                      "known.*_works", "last.*"])

    def test_an_unknown_filter_is_answered_with_similar_names(self):
        near = names.nearest("replay.blocks_can_be_freed_by_other_threads_in_a_repla", self.known)
        self.assertEqual(near[0], "replay.blocks_can_be_freed_by_other_threads_in_a_replay")

    def test_every_test_name_printed_in_a_summary_works_as_a_filter(self):
        misuse = sorted((root / "tests/misuse").glob("*.cpp"))[0].stem
        nocompile = sorted((root / "tests/nocompile").glob("*.cpp"))[0].stem
        model = sorted((root / "tests/models").glob("*.pml"))[0].stem
        for name, stage in (("malloc.is_of_the_same_library_and_works._ZdaPv", "dev"), ("glibc.alignment.holds_for_any_size_in_memalign", "dev"),
                            ("checked_malloc.refusal.mprotect_EPERM", "dev"), ("malloc.options.huge_pages_are_off_by_default", "dev"),
                            ("checked_malloc.library.prints_how_to_resolve_the_addresses", "dev"),
                            ("container/abstract_base.deque_behaves_as_with_the_standard_allocator", "asan"), ("spec.arena", "asan"),
                            ("consumer.cargo", "dev"), ("consumer.install", "dev"), (f"misuse.{misuse}", "asan"),
                            (f"nocompile.{nocompile}", "dev"), (f"model.{model}", "dev"), ("tools.x_test", "dev"),
                            ("record.the_recorder_depends_only_on_libc", "dev"), ("replay.replayed_threads_can_start_threads", "dev"),
                            ("c_static.every_function", "asan"),
                            ("heap.every_function_in_c_with_malloc", "asan"), ("bench.pool_runs_every_case", "bench"),
                            ("example.all_quoted_code_is_in_a_program", "asan"), ("clippy", "lint"), ("layers", "lint"),
                            ("arena_objects", "rust"), ("crates/mallard-alloc/src/lib.rs - Arena<S>::new (line 12) - compile fail", "rust")):
            words = shlex.split(results.alone("dev", Case(name, "failed", "", "program"), "plain"))
            self.assertEqual(words[:2], ["--stage", "dev"])
            self.assertIn(stage, self.stages_of(words[2]), name)

    def test_a_filter_that_matches_tests_of_both_tiers_does_not_build_the_larger_tier(self):
        matches = names.matching(re.compile("arena"), "arena", self.known)
        self.assertTrue(any("bench" in row.more for name in matches for row in names.rows_of(name, self.rows)))
        chosen, everything = stages.stages_of(matches, (), self.rows, [], False)
        self.assertFalse(everything or "bench" in chosen, chosen)

    def test_a_filter_runs_the_stage_that_contains_the_matching_tests(self):
        ending, suite, seen = "ending_threads", "bench.pool_runs_every_case", ("dev", "p", "from_a_macro")
        for word, ran, chosen, everything, result in (
                (ending, (), [], False, (["tsan"], False)),
                (ending, (), [], True, (["asan", "dev", "tsan", "clang"], True)),
                (ending, (), ["tsan"], False, (["tsan"], False)),
                (ending, (), ["clang"], False, (["clang"], True)),
                (suite, (), [], False, (["bench"], True)),
                ("from_a_macro", (seen,), [], False, (["dev"], False)),
                ("from_a_macro", (seen,), ["dev"], False, (["dev"], False))):
            matches = names.matching(re.compile(word), word, self.known)
            self.assertEqual(stages.stages_of(matches, ran, self.rows, chosen, everything), result, (word, chosen, everything))

    def test_a_name_from_a_cmake_loop_does_not_match_arbitrary_words(self):
        self.assertEqual(self.stages_of("consumer\\.nosuch"), set())

    def test_the_command_suggested_after_a_failed_build_repeats_its_stage(self):
        self.assertEqual(results.alone("clang", Case("build clang", "failed"), "all"), "--all --stage clang")

    def test_a_filter_can_select_one_case_of_a_parameterised_test(self):
        word = "container/abstract_base.deque_behaves_as_with_the_standard_allocator"
        self.assertEqual({name.pattern for name in names.matching(re.compile(word), word, self.known)}, {word})

    def test_a_module_with_a_separate_table_line_does_not_run_in_the_stage_of_its_crate(self):
        found = [name for name in self.known if name.text.startswith("mallard-cli::sql::") and "tests" in name.file.parts]
        self.assertEqual({row.tests for name in found for row in names.rows_of(name, self.rows)}, {"mallard-cli/sql"})


class Changes(TreeTest):
    def setUp(self):
        super().setUp()
        self.tree = self.tree.resolve() / "a folder ü"
        for module in builds, changes:
            self.enter(mock.patch.object(module, "root", self.tree))
        self.git("init", "-qb", "main")
        self.write("a.txt", "1")
        self.commit()

    def enter(self, context):
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def git(self, *words):
        self.tree.mkdir(exist_ok=True)
        subprocess.run(["git", "-C", self.tree, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                       capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "a")

    def test_a_clean_tree_with_a_single_commit_gives_no_information_about_changes(self):
        self.assertIsNone(changes.changed_files())

    def test_uncommitted_files_count_as_changed(self):
        self.write("a.txt", "2")
        self.write("neu ü.txt", "3")
        self.assertEqual(changes.changed_files(), {"a.txt", "neu ü.txt"})

    def test_a_clean_tree_is_compared_with_the_previous_commit(self):
        self.write("b.txt", "2")
        self.commit()
        self.assertEqual(changes.changed_files(), {"b.txt"})

    def test_a_branch_is_compared_with_its_merge_base(self):
        self.git("checkout", "-qb", "topic", "--track", "main")
        for name in "bc":
            self.write(f"{name}.txt", "2")
            self.commit()
        self.write("d.txt", "2")
        self.assertEqual(changes.changed_files(), {"b.txt", "c.txt", "d.txt"})

    def test_in_a_shallow_clone_only_uncommitted_files_count_as_changed(self):
        self.write("b.txt", "2")
        self.commit()
        copy = self.tree.parent / "copy"
        subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{self.tree}", copy], check=True, capture_output=True)
        with mock.patch.object(changes, "root", copy):
            self.assertIsNone(changes.changed_files())
            (copy / "c.txt").touch()
            self.assertEqual(changes.changed_files(), {"c.txt"})

    def test_without_git_or_in_another_repository_changes_are_unknown(self):
        self.write("inner/x.txt", "1")
        with mock.patch.object(changes, "root", self.tree / "inner"):
            self.assertIsNone(changes.changed_files())
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}):
            self.assertIsNone(changes.changed_files())

    @unittest.skipUnless(shutil.which("ninja") and shutil.which("g++"), "needs ninja and g++")
    def test_a_change_affects_programs_that_include_the_header_and_tests_of_the_script(self):
        self.write("include/pool.hpp", "")
        self.write("tests/unit/pool.cpp", '#include "../../include/pool.hpp"\nint main() {}\n')
        self.write("tests/unit/arena.cpp", "int main() {}\n")
        self.write("tests/replay/test.py", "")
        self.write("tests/replay/harness.py", "")
        escaped = str(self.tree).replace(" ", "$ ")
        self.write("build/dev/build.ninja", "rule cxx\n  command = g++ -MD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc\n"
                   f"build pool.o: cxx {escaped}/tests/unit/pool.cpp\nbuild arena.o: cxx {escaped}/tests/unit/arena.cpp\n"
                   "rule link\n  command = g++ $in -o $out\nbuild unit-pool: link pool.o\nbuild unit-arena: link arena.o\n")
        self.write("build/dev/CTestTestfile.cmake", "".join(
            f'add_test([=[{name}]=] "{self.tree}/{path}")\n' for name, path in (
                ("unit-pool", "build/dev/unit-pool"), ("unit-arena", "build/dev/unit-arena"), ("replay.all", "tests/replay/test.py"))))
        self.write("build/dev/test_programs.txt", "".join(f"unit-{name}\t{self.tree}/tests/unit/{name}.cpp\n" for name in ("pool", "arena")))
        subprocess.run(["ninja", "-C", self.tree / "build/dev"], check=True, capture_output=True, cwd=self.tree)
        for file, tests in (("include/pool.hpp", ["unit-pool"]), ("tests/unit/arena.cpp", ["unit-arena"]),
                            ("tests/replay/harness.py", ["replay.all"]), ("README.md", [])):
            self.assertEqual(changes.affected(builds.Tree("dev"), {file}), tests, file)
        self.assertEqual(builds.Tree("dev").targets(["unit-pool", "replay.all"]), ["unit-pool"])


class Processes(TreeTest):
    def command(self, script, log="a.log"):
        return process.Command(["bash", "-c", script], self.tree / log, dict(os.environ), self.tree)

    def test_the_output_lines_and_the_status_of_a_command_are_read(self):
        child = self.command("echo a; printf 'b\\r\\nc'; exit 3")
        self.assertEqual((list(child), child.status), (["a", "b", "c"], 3))
        self.assertEqual((self.tree / "a.log").read_text(), "a\nb\nc\n")

    def test_a_missing_program_is_a_failure(self):
        child = process.Command(["no-such-program"], self.tree / "a.log", dict(os.environ), self.tree)
        self.assertEqual((list(child), child.status), (["no-such-program: No such file or directory"], 127))

    def test_a_leftover_process_that_keeps_the_output_open_does_not_block_the_run(self):
        with mock.patch.object(process, "patience_for_output", 0.2):
            child = self.command("sleep 98765 & echo $!")
            began = time.monotonic()
            line, = child
        self.assertLess(time.monotonic() - began, 5)
        self.assertTrue(child.left_running)
        self.assertEqual(child.status, 0)
        while self.runs(line) and time.monotonic() < began + 10:
            time.sleep(0.01)  # a killed process takes a moment to end
        self.assertFalse(self.runs(line))

    def runs(self, number):
        try:
            return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

    def test_orphaned_processes_are_reaped_but_not_running_commands(self):
        child = self.command("exit 5")
        time.sleep(0.3)
        process.reap()
        self.assertEqual((list(child), child.status), ([], 5))

    def copy_of_the_runner(self):
        self.tree /= "a folder ü"
        for file in ("tools/run-tests", "tests/tiers.txt", *(f"tools/testing/{file.name}" for file in (root / "tools/testing").glob("*.py"))):
            self.write(file, (root / file).read_text())
        (self.tree / "tools/run-tests").chmod(0o755)

    def program(self, name, script):
        self.write(f"bin/{name}", f"#!/bin/bash\n{script}\n").chmod(0o755)

    def start(self, *words):
        """Starts run-tests in the copy. Restores signals, because whoever runs these tests may ignore them."""
        return subprocess.Popen(["env", "--default-signal=INT,HUP,TERM", self.tree / "tools/run-tests", *words],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                env={**os.environ, "PATH": f"{self.tree}/bin:{os.environ['PATH']}", "LC_ALL": "C"})

    def end(self, number):
        """Starts run-tests with a cmake whose processes ignore signals, and ends run-tests by a signal."""
        self.copy_of_the_runner()
        pids = self.tree / "pids"
        self.program("cmake", f"""(setsid bash -c 'trap "" INT HUP; echo $$ >>"{pids}"; sleep 98765' &)
bash -c 'trap "" TERM; echo $$ >>"{pids}"; while :; do sleep 98765; done' &
echo $$ >>"{pids}"
wait""")
        run = self.start("--stage", "dev")
        while not pids.exists() or len(pids.read_text().split()) < 3:
            self.assertIsNone(run.poll())
            time.sleep(0.02)
        run.send_signal(number)
        out, said = run.communicate(timeout=30)
        self.assertEqual([pid for pid in pids.read_text().split() if self.runs(pid)], [])
        self.assertIn(f"x: stopped by {number.name}\n  all commands were stopped", said)
        self.assertEqual((run.returncode, out), (128 + number, "0 passed, 0 failed\n"))

    def test_ctrl_c_kills_every_child_even_one_in_a_separate_session(self):
        self.end(signal.SIGINT)

    def test_killing_the_runner_kills_every_child(self):
        self.end(signal.SIGTERM)

    def test_ctrl_c_before_the_tests_start_exits_immediately_without_output(self):
        self.copy_of_the_runner()
        begun = self.tree / "begun"
        self.program("git", f"touch '{begun}'; sleep 98765")
        run = self.start("--needs", "--stage", "dev")
        while not begun.exists():
            time.sleep(0.02)
        os.killpg(run.pid, signal.SIGINT)
        self.assertEqual((run.communicate(timeout=10), run.returncode), (("", ""), -signal.SIGINT))


class Chains(unittest.TestCase):
    def test_a_stage_that_measures_time_starts_after_concurrent_stages_have_finished(self):
        loader = importlib.machinery.SourceFileLoader("run_tests", str(root / "tools/run-tests"))
        run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
        loader.exec_module(run_tests)
        other, own, seen = threading.Event(), threading.Event(), []
        builds = stages.Stage("lint", lambda *_: seen.append("builds"), (), 1)
        measures = stages.Stage("known", lambda *_: seen.append(other.is_set()), (), 1, alone=True)
        runner = mock.Mock(stopped=False, faults=[], results=results.Results([["lint"]], ["known"], {}, "all", whole=False))
        chain = threading.Thread(target=run_tests.run_chain,
                                 args=([measures, builds], None, runner, [], None, True, own, [own, other]))
        chain.start()
        self.assertTrue(own.wait(60), "the stages before the measurement did not end")
        other.set()
        chain.join(60)
        self.assertEqual(seen, ["builds", True])


class ResultsOfARun(TreeTest):
    def setUp(self):
        super().setUp()
        for name in "times_file", "names_file":
            context = mock.patch.object(results, name, self.tree / name)
            context.__enter__()
            self.addCleanup(context.__exit__, None, None, None)

    def results(self, tier="plain", **options):
        return results.Results([["asan", "dev"], ["rust"]], [], {"asan": 300, "dev": 240, "rust": 60}, tier, **options)

    def printed(self, action, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            action(*arguments)
        return said.getvalue()

    def test_the_last_line_mentions_skipped_tests_only_if_there_are_any(self):
        run = self.results()
        run.add("asan", [Case("a", "passed", "", "p"), Case("b", "passed", "", "p")])
        self.assertEqual(run.closing_line(), "2 passed, 0 failed")
        run.add("rust", [Case("c", "skipped", "no perf", "p")])
        self.assertEqual(run.closing_line(), "2 passed, 0 failed, 1 skipped")

    def test_a_failure_is_printed_immediately_and_again_at_the_end_with_a_command_to_rerun_it(self):
        run = self.results()
        case = Case("crates/a/src/lib.rs - Pool (line 3)", "failed", "left: 1\nright: 2", "a, documentation")
        self.assertEqual(self.printed(run.add, "rust", [case]), "  FAILED  rust: crates/a/src/lib.rs - Pool (line 3)\n")
        said = self.printed(run.print_failures)
        self.assertIn("\n    left: 1\n    right: 2\n", said)
        command, = re.findall(r"  alone: \./x test (.*)\n", said)
        self.assertTrue(re.search(shlex.split(command)[2], case.name))

    def test_the_rerun_command_for_a_failure_of_all_tests_uses_the_full_test_length(self):
        self.assertEqual(results.alone("asan", Case("a.b", "failed", "", "p"), "all"), "--all --stage asan a.b")

    def test_skips_are_grouped_by_their_reason(self):
        run = self.results()
        run.add("asan", [Case(name, "skipped", "no perf", "p") for name in "abcd"] + [Case("e", "skipped", "no strace", "p")])
        self.assertEqual(self.printed(run.print_skips), "skipped: no perf: asan a, asan b and 2 more\nskipped: no strace: asan e\n")

    def test_a_rust_test_that_skipped_is_not_counted_as_passed(self):
        run = self.results()
        run.add("rust", [Case("a::b", "passed", "", "all")])
        run.add("rust", [Case("a::b", "skipped", "no chromium")])
        self.assertEqual(run.closing_line(), "0 passed, 0 failed, 1 skipped")

    def test_the_remaining_time_is_that_of_the_longest_chain_of_stages(self):
        run = self.results()
        self.assertIn("about 9 min left", run.line())
        now = run.now()
        run.stages["asan"].began = now - 300
        run.stages["asan"].ended = run.stages["dev"].began = now
        self.assertIn("about 4 min left", run.line())
        self.assertNotIn("left", self.results(whole=False).line())

    def test_durations_are_saved_for_the_next_run_unless_a_build_failed(self):
        run = self.results()
        for stage, failed in (("asan", Case("a", "failed", "", "p")), ("dev", Case("build dev", "failed"))):
            self.printed(run.add, stage, [failed])
            run.stages[stage].began, run.stages[stage].ended = 10, 110
        run.save(True)
        again = self.results()
        self.assertEqual((again.stages["asan"].expected, again.stages["dev"].expected), (100, 240))

    def test_names_of_test_cases_are_saved_for_later_filters(self):
        run = self.results()
        self.printed(run.add, "asan", [Case("a/0.b", "passed", "", "p"), Case("build asan", "failed")])
        run.save(False)
        with mock.patch.object(names, "names_file", results.names_file):
            self.assertEqual(names.seen(), [("asan", "p", "a/0.b")])

    def test_without_a_terminal_progress_is_printed_once_a_minute(self):
        run = self.results()
        run.shows_line = False
        self.assertEqual(self.printed(run.show_progress), "")
        run.last_line -= 61
        self.assertRegex(self.printed(run.show_progress), r"^  0 passed, 0 failed, about 9 min left\s*\n$")


class Earlier(TreeTest):
    passed = [Case("a.b", "passed", "", "a"), Case("a.c", "skipped", "no ptrace", "a")]

    def setUp(self):
        super().setUp()
        (self.tree / "build").mkdir()
        subprocess.run(["git", "init", "--quiet", self.tree], check=True)
        self.write(".gitignore", "/build/\n")
        self.write("arena.hpp", "one\n")
        for place in earlier, changes:
            self.enterContext(mock.patch.object(place, "root", self.tree))
        self.enterContext(mock.patch.object(earlier, "file", self.tree / "build/test-passed.json"))

    def test_a_stage_that_passed_is_not_repeated_until_a_file_changes(self):
        state = earlier.state()
        earlier.remember("plain", "asan", state, self.passed)
        self.assertEqual(earlier.cases("plain", "asan", earlier.state())[1], self.passed)
        self.assertIsNone(earlier.cases("all", "asan", state))
        self.assertIsNone(earlier.cases("plain", "dev", state))
        for path in "arena.hpp", "new.hpp":
            self.write(path, f"{path}\n")
            self.assertIsNone(earlier.cases("plain", "asan", earlier.state()))

    def test_a_stage_that_failed_or_whose_files_changed_during_the_run_is_repeated(self):
        state = earlier.state()
        earlier.remember("plain", "asan", state, [*self.passed, Case("a.d", "failed", "", "a")])
        self.assertIsNone(earlier.cases("plain", "asan", state))
        self.write("arena.hpp", "changed\n")
        earlier.remember("plain", "asan", state, self.passed)
        self.assertIsNone(earlier.cases("plain", "asan", earlier.state()))

    def test_compiled_python_files_do_not_count_as_source_files(self):
        made = [f"{folder}/__pycache__/a.pyc" for folder in ("tools", "tools/testing", "tests/support", "tests/tools", "bench")]
        run = subprocess.run(["git", "-C", root, "check-ignore", *made], capture_output=True, text=True)
        if run.returncode == 128:
            self.skipTest("this is no repository of git")
        self.assertEqual(run.stdout.split(), made)

    def test_without_git_every_stage_is_repeated(self):
        shutil.rmtree(self.tree / ".git")
        earlier.remember("plain", "asan", earlier.state(), self.passed)
        self.assertIsNone(earlier.cases("plain", "asan", earlier.state()))


class CheckTiers(TreeTest):
    def setUp(self):
        super().setUp()
        for path in ("tools", "x", ".github", "tests", "crates"):
            source, copy = root / path, self.tree / path
            if path == "crates":
                shutil.copytree(source, copy, ignore=lambda folder, entries: [
                    entry for entry in entries if not (Path(folder) / entry).is_dir() and not entry.endswith((".rs", ".toml"))])
            elif path == "tests":  # the directories alone, and files that have a line in the table
                for folder in (entry for entry in source.iterdir() if entry.is_dir()):
                    (copy / folder.name).mkdir(parents=True)
                    for file in folder.glob("*.cpp"):
                        (copy / folder.name / file.name).touch()
                shutil.copy(source / "tiers.txt", copy)
                shutil.copy(source / "consumer/run", copy / "consumer")
            elif source.is_dir():
                shutil.copytree(source, copy)
            else:
                shutil.copy(source, copy)

    def faults(self):
        run = subprocess.run([sys.executable, self.tree / "tools/check-tiers"], capture_output=True, text=True)
        return run.stdout + run.stderr

    def test_a_test_that_no_table_line_lists_is_reported(self):
        self.assertEqual(self.faults(), "")
        (self.tree / "tests/newcomers").mkdir()
        self.write("crates/mallard-new/Cargo.toml", "[package]\nname = 'mallard-new'\n")
        workflow = self.tree / ".github/workflows/test.yml"
        workflow.write_text(workflow.read_text().replace("stage: [asan, ", "stage: ["))
        rows = self.tree / "tests/tiers.txt"
        rows.write_text(rows.read_text() + "unit/nosuch asan -\nunit prod -\n")
        x = self.tree / "x"
        x.write_text(re.sub(r"(?m)^(#\| .*) tsan ", r"\1 tsen ", x.read_text()))
        faults = self.faults()
        for words in ("tests/newcomers: no line names it", "crates/mallard-new: no line names it", "differ in 'asan'",
                      "unit/nosuch: these tests do not exist", "unit: is listed twice", "unit: there is no stage 'prod'",
                      "the help of ./x test lacks the stage 'tsan'"):
            self.assertIn(words, faults)

    def test_a_file_of_rust_tests_that_belongs_to_no_program_is_reported(self):
        manifest = self.write("crates/mallard-malloc/Cargo.toml", "[package]\nname = 'a'\nautotests = false\n[[test]]\nname = 'all'\n")
        self.assertTrue(manifest.exists())
        tests = self.tree / "crates/mallard-malloc/tests"
        shutil.rmtree(tests)
        self.write("crates/mallard-malloc/tests/all.rs", "mod one;\n")
        for name in "one", "two":
            self.write(f"crates/mallard-malloc/tests/{name}.rs", "")
        self.assertEqual(self.faults(), "crates/mallard-malloc/tests/two.rs: no test program has it, so that its tests do not run\n")


if __name__ == "__main__":
    unittest.main()
