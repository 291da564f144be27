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
    def test_a_change_of_a_crate_affects_the_crates_that_depend_on_it(self):
        affected = changes.crates_affected(table.read(), {"crates/mallard-measure/src/lib.rs"})
        self.assertEqual(affected, ["mallard-measure", "mallard-attach", "mallard-cli", "bench-report"])
        self.assertIn("mallard-trace", changes.crates_affected(table.read(), {"crates/mallard-alloc/src/lib.rs"}))


class Table(TreeTest):
    def rows(self, text):
        return table.read(self.write("tiers.txt", text))

    def test_a_directory_runs_in_the_stages_of_its_tier(self):
        rows = self.rows("# tests plain all\nunit asan dev,tsan # why\n\nunit/pages dev -\n")
        self.assertEqual([row.tests for row in rows], ["unit", "unit/pages"])
        self.assertEqual(table.of_stage(rows, "asan", False), ["unit"])
        self.assertEqual(table.of_stage(rows, "dev", False), ["unit/pages"])
        self.assertEqual(table.of_stage(rows, "dev", True), ["unit", "unit/pages"])

    def test_a_question_mark_waits_for_changes_in_the_directory_or_the_named_files(self):
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

    def test_every_macro_of_googletest_names_its_cases(self):
        text = "".join(f"{macro}(pool, {macro.lower()})\n" for macro in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P"))
        self.assertEqual([names.patterns_of(*found) for found in names.case.findall(text)],
                         ["pool.test", "pool.test_f", "*pool.test_p/*", "pool/*.typed_test", "*pool/*.typed_test_p"])
        self.assertEqual(names.case.findall("TEST(a_long_suite,\n     a_test)\n"), [("TEST", "a_long_suite", "a_test")])
        self.assertEqual(names.registered.findall('::testing::RegisterTest("spec", name)'), ["spec"])

    def test_attributes_may_stand_between_the_mark_and_the_function_of_a_rust_test(self):
        for between in ("", '#[should_panic(expected = "a]b")]\n', "#[cfg(unix)] // why\n", "#[cfg_attr(\n    miri,\n    ignore\n)]\n"):
            for function in ("fn a()", "pub fn a()", "pub(crate) fn a()"):
                self.assertEqual(names.rust_test.findall(f"#[test]\n{between}{function} {{}}"), ["a"], between)
        self.assertEqual(names.rust_test.findall("fn a() {}\n#[ignore]\n#[test] fn b() {}"), ["b"])

    def test_macros_of_rust_name_the_tests_that_they_make(self):
        text = "macro_rules! programs {\n  ($($n:ident)*) => {\n    $(#[test]\n    fn $n() {})*\n  };\n}\n"
        text += "programs! {\n    #[cfg_attr(miri, ignore)] arena\n    pool // a pool\n}\n"
        self.assertEqual(names.of_rust_macros(text), ["arena", "pool"])

    def test_loops_and_functions_of_cmake_name_their_tests(self):
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

    def test_an_unknown_filter_has_near_names(self):
        near = names.nearest("replay.blocks_cross_between_thread", self.known)
        self.assertEqual(near[0], "replay.blocks_cross_between_threads")

    def test_a_filter_is_answered_for_each_kind_of_name_that_a_summary_prints(self):
        misuse = sorted((root / "tests/misuse").glob("*.cpp"))[0].stem
        nocompile = sorted((root / "tests/nocompile").glob("*.cpp"))[0].stem
        model = sorted((root / "tests/models").glob("*.pml"))[0].stem
        for name, stage in (("malloc.is_of_the_same_library_and_works._ZdaPv", "dev"), ("glibc.alignment.holds_for_any_size_in_memalign", "dev"),
                            ("checked_malloc.refusal.mprotect_EPERM", "dev"), ("malloc.options.huge_pages_are_off_by_default", "dev"),
                            ("checked_malloc.library.prints_how_to_resolve_the_addresses", "dev"),
                            ("container/abstract_base.deque_behaves_as_with_the_standard_allocator", "asan"), ("spec.arena", "asan"),
                            ("consumer.cargo", "dev"), ("consumer.install", "dev"), (f"misuse.{misuse}", "asan"),
                            (f"nocompile.{nocompile}", "dev"), (f"model.{model}", "dev"), ("tools.x_test", "dev"),
                            ("record.needs_libc_alone", "dev"), ("replay.threads_start_threads", "dev"), ("c_static.every_function", "asan"),
                            ("heap.every_function_in_c_with_malloc", "asan"), ("bench.pool_runs_every_case", "bench"),
                            ("example.all_quoted_code_is_in_a_program", "asan"), ("clippy", "lint"), ("layers", "lint"),
                            ("arena_objects", "rust"), ("crates/mallard-alloc/src/lib.rs - Arena<S>::new (line 12) - compile fail", "rust")):
            words = shlex.split(results.alone("dev", Case(name, "failed", "", "program"), "plain"))
            self.assertEqual(words[:2], ["--stage", "dev"])
            self.assertIn(stage, self.stages_of(words[2]), name)

    def test_a_word_that_names_tests_of_both_tiers_builds_nothing_for_the_larger_one(self):
        matches = names.matching(re.compile("arena"), "arena", self.known)
        self.assertTrue(any("bench" in row.more for name in matches for row in names.rows_of(name, self.rows)))
        chosen, everything = stages.stages_of(matches, (), self.rows, [], False)
        self.assertFalse(everything or "bench" in chosen, chosen)

    def test_a_filter_runs_in_the_tier_and_the_stage_that_has_the_tests(self):
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

    def test_a_name_in_a_loop_of_cmake_is_not_any_word(self):
        self.assertEqual(self.stages_of("consumer\\.nosuch"), set())

    def test_a_failed_build_is_repeated_by_its_stage(self):
        self.assertEqual(results.alone("clang", Case("build clang", "failed"), "all"), "--all --stage clang")

    def test_a_case_of_a_parameterised_test_runs_alone(self):
        word = "container/abstract_base.deque_behaves_as_with_the_standard_allocator"
        self.assertEqual({name.pattern for name in names.matching(re.compile(word), word, self.known)}, {word})

    def test_a_module_with_a_line_of_its_own_does_not_run_in_the_stage_of_its_crate(self):
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

    def test_one_commit_without_changes_tells_nothing(self):
        self.assertIsNone(changes.changed_files())

    def test_files_that_are_not_committed_have_changed(self):
        self.write("a.txt", "2")
        self.write("neu ü.txt", "3")
        self.assertEqual(changes.changed_files(), {"a.txt", "neu ü.txt"})

    def test_a_clean_tree_is_compared_with_the_commit_before(self):
        self.write("b.txt", "2")
        self.commit()
        self.assertEqual(changes.changed_files(), {"b.txt"})

    def test_a_branch_is_compared_with_where_it_left_the_tracked_one(self):
        self.git("checkout", "-qb", "topic", "--track", "main")
        for name in "bc":
            self.write(f"{name}.txt", "2")
            self.commit()
        self.write("d.txt", "2")
        self.assertEqual(changes.changed_files(), {"b.txt", "c.txt", "d.txt"})

    def test_a_shallow_clone_tells_only_what_is_not_committed(self):
        self.write("b.txt", "2")
        self.commit()
        copy = self.tree.parent / "copy"
        subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{self.tree}", copy], check=True, capture_output=True)
        with mock.patch.object(changes, "root", copy):
            self.assertIsNone(changes.changed_files())
            (copy / "c.txt").touch()
            self.assertEqual(changes.changed_files(), {"c.txt"})

    def test_a_folder_of_another_repository_and_a_machine_without_git_tell_nothing(self):
        self.write("inner/x.txt", "1")
        with mock.patch.object(changes, "root", self.tree / "inner"):
            self.assertIsNone(changes.changed_files())
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}):
            self.assertIsNone(changes.changed_files())

    @unittest.skipUnless(shutil.which("ninja") and shutil.which("g++"), "needs ninja and g++")
    def test_a_change_reaches_the_programs_that_include_a_header_and_the_tests_beside_a_script(self):
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

    def test_lines_and_the_status_of_a_command_are_read(self):
        child = self.command("echo a; printf 'b\\r\\nc'; exit 3")
        self.assertEqual((list(child), child.status), (["a", "b", "c"], 3))
        self.assertEqual((self.tree / "a.log").read_text(), "a\nb\nc\n")

    def test_a_program_that_is_not_there_is_a_failure(self):
        child = process.Command(["no-such-program"], self.tree / "a.log", dict(os.environ), self.tree)
        self.assertEqual((list(child), child.status), (["no-such-program: No such file or directory"], 127))

    def test_output_that_a_left_process_holds_open_does_not_stop_the_run(self):
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

    def test_adopted_processes_are_collected_but_not_commands(self):
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

    def test_ctrl_c_ends_every_child_also_one_with_a_session_of_its_own(self):
        self.end(signal.SIGINT)

    def test_a_kill_ends_every_child_too(self):
        self.end(signal.SIGTERM)

    def test_ctrl_c_before_the_tests_start_ends_at_once_and_prints_nothing(self):
        self.copy_of_the_runner()
        begun = self.tree / "begun"
        self.program("git", f"touch '{begun}'; sleep 98765")
        run = self.start("--needs", "--stage", "dev")
        while not begun.exists():
            time.sleep(0.02)
        os.killpg(run.pid, signal.SIGINT)
        self.assertEqual((run.communicate(timeout=10), run.returncode), (("", ""), -signal.SIGINT))


class Chains(unittest.TestCase):
    def test_a_stage_that_measures_runs_when_the_other_chain_has_ended(self):
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

    def test_the_closing_line_counts_and_tells_skips_only_if_there_are_some(self):
        run = self.results()
        run.add("asan", [Case("a", "passed", "", "p"), Case("b", "passed", "", "p")])
        self.assertEqual(run.closing_line(), "2 passed, 0 failed")
        run.add("rust", [Case("c", "skipped", "no perf", "p")])
        self.assertEqual(run.closing_line(), "2 passed, 0 failed, 1 skipped")

    def test_a_failure_is_printed_at_once_and_at_the_end_with_the_command_that_runs_it_alone(self):
        run = self.results()
        case = Case("crates/a/src/lib.rs - Pool (line 3)", "failed", "left: 1\nright: 2", "a, documentation")
        self.assertEqual(self.printed(run.add, "rust", [case]), "  FAILED  rust: crates/a/src/lib.rs - Pool (line 3)\n")
        said = self.printed(run.print_failures)
        self.assertIn("\n    left: 1\n    right: 2\n", said)
        command, = re.findall(r"  alone: \./x test (.*)\n", said)
        self.assertTrue(re.search(shlex.split(command)[2], case.name))

    def test_a_failure_of_all_tests_runs_alone_with_the_length_of_all_tests(self):
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

    def test_the_time_left_is_that_of_the_longest_chain(self):
        run = self.results()
        self.assertIn("about 9 min left", run.line())
        now = run.now()
        run.stages["asan"].began = now - 300
        run.stages["asan"].ended = run.stages["dev"].began = now
        self.assertIn("about 4 min left", run.line())
        self.assertNotIn("left", self.results(whole=False).line())

    def test_the_next_run_knows_the_seconds_of_this_one_unless_a_build_failed(self):
        run = self.results()
        for stage, failed in (("asan", Case("a", "failed", "", "p")), ("dev", Case("build dev", "failed"))):
            self.printed(run.add, stage, [failed])
            run.stages[stage].began, run.stages[stage].ended = 10, 110
        run.save(True)
        again = self.results()
        self.assertEqual((again.stages["asan"].expected, again.stages["dev"].expected), (100, 240))

    def test_names_of_cases_are_kept_for_filters(self):
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

    def test_a_stage_that_failed_or_whose_tree_changed_meanwhile_is_repeated(self):
        state = earlier.state()
        earlier.remember("plain", "asan", state, [*self.passed, Case("a.d", "failed", "", "a")])
        self.assertIsNone(earlier.cases("plain", "asan", state))
        self.write("arena.hpp", "changed\n")
        earlier.remember("plain", "asan", state, self.passed)
        self.assertIsNone(earlier.cases("plain", "asan", earlier.state()))

    def test_what_python_compiles_is_no_file_of_the_tree(self):
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

    def test_what_no_line_names_is_found(self):
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

    def test_a_file_of_rust_tests_that_no_program_has_is_found(self):
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
