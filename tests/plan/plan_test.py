#!/usr/bin/env python3
"""Tests of libmallard-plan.so. `plan_test.py DIRECTORY [unittest arguments]`

DIRECTORY is where CMake builds the programs and plugins of this directory. The environment variable PLAN has the
path of the library, and MALLOC that of Mallard's malloc.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import plan_file  # noqa: E402
from plan_file import ARENA, BY_STACK, MALLOC, MULTIPOOL, MULTIPOOL_OVER_ARENA, POOL, Plan  # noqa: E402
from preload import preloadable  # noqa: E402

library = os.environ.get("PLAN", "")
malloc = os.environ.get("MALLOC", "")
folder = Path(".")
allocators = {POOL: "pool", MULTIPOOL: "multipool", ARENA: "arena", MULTIPOOL_OVER_ARENA: "multipool-over-arena"}
mebibyte = 1 << 20


def built(name):
    return str(folder / name)


class Result:
    """What a program did: status, out, err, and a report for each process that the plan served. Without a report,
    other code of the library serves the blocks, so the program also runs without: `uncounted` is the result of that
    run, or None if the test has chosen variables for plans."""

    def __init__(self, command, plan=None, preload=(), env=None, limits=(), said=None, cwd=None, timeout=250, **options):
        with tempfile.TemporaryDirectory() as place:
            report = Path(place, "report")
            environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLARD_")}
            if plan is not None:
                if isinstance(plan, Plan):
                    plan = plan.bytes()
                if isinstance(plan, bytes):
                    Path(place, "plan").write_bytes(plan)
                    plan = Path(place, "plan")
                environment |= {"MALLARD_PLAN": str(plan), "MALLARD_PLAN_REPORT": str(report)}
            environment |= {"LD_PRELOAD": " ".join(map(preloadable, preload or ([library] if plan is not None else [])))}
            environment |= env or {}

            def run(environment):
                done = subprocess.run([*limits, *map(str, command)], env=environment, input=said, capture_output=True,
                                      text=True, errors="replace", cwd=cwd, timeout=timeout, **options)
                return done.returncode, done.stdout, done.stderr

            self.uncounted = None
            if plan is not None and not any(name.startswith(("MALLARD_PLAN", "MALLARD_STATS")) for name in env or {}):
                self.uncounted = run(environment | {"MALLARD_PLAN_REPORT": ""})
            self.status, self.out, self.err = run(environment)
            self.reports = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []

    def all(self):
        return self.status, self.out, self.err

    def rules(self):
        """Returns the rules of the only process that the plan served."""
        report, = self.reports
        return {rule["name"]: rule for rule in report["rules"]}

    def blocks(self):
        return {name: rule["blocks"] for name, rule in self.rules().items()}


def acts(*words, program="plan-acts", **options):
    return Result([built(program), *words], **options)


def by_callers(path, allocator, functions, **options):
    """Returns a plan in which each of the functions has a rule for the malloc call in the function."""
    plan = Plan()
    module = plan.module(path, is_program=True)
    for function in functions:
        rule = plan.rule(function, allocator, **options)
        for address in plan_file.calls_in(path, function, "malloc"):
            plan.caller(module, address, rule)
    return plan


def by_ranges(path, allocator, functions, **options):
    plan = Plan()
    module = plan.module(path, is_program=True)
    for function in functions:
        begin, end = plan_file.code_of(path)[function]
        plan.range(module, begin, end, plan.rule(function, allocator, **options))
    return plan


def everywhere(path, allocator, **options):
    """Returns a plan with one rule for all code of a program."""
    plan = Plan()
    module = plan.module(path, is_program=True)
    plan.range(module, *plan_file.code_ends(path), plan.rule("all", allocator, **options))
    return plan


def usual(allocator=MULTIPOOL, program="plan-acts", **options):
    return by_callers(built(program), allocator, ["first", "second"], **options)


def plugin_plan(allocator, *plugins):
    plan = usual(allocator, block_bytes=128)
    for plugin in plugins:
        rule = plan.rule(Path(plugin).name, allocator, block_bytes=128)
        module = plan.module(plugin)
        for address in plan_file.calls_in(plugin, "plugin_make", "malloc"):
            plan.caller(module, address, rule)
    return plan


class Case(unittest.TestCase):
    def check_done(self, result, out="done\n"):
        self.assertEqual(result.all(), (0, out, ""))
        self.assertIn(result.uncounted, (None, result.all()))
        return result

    def check_same(self, *words, plan, **options):
        """Checks that the program does the same with the plan and without. Returns the result with the plan."""
        bare = acts(*words, **options)
        result = acts(*words, plan=plan, **options)
        self.assertEqual(result.all(), bare.all())
        self.assertIn(result.uncounted, (None, result.all()))
        return result


class Plans(Case):
    # --- which rule serves ---

    def test_a_plan_selects_the_allocator_by_the_caller(self):
        blocks = self.check_done(acts("callers", plan=usual())).rules()
        self.assertEqual((blocks["first"]["blocks"], blocks["first"]["bytes"]), (100, 2400))
        self.assertEqual((blocks["second"]["blocks"], blocks["second"]["bytes"]), (50, 50000))

    def test_a_plan_selects_by_the_caller_in_a_program_at_a_fixed_address(self):
        program = "plan-position_dependent"
        result = acts("callers", program=program, plan=usual(program=program))
        self.assertEqual(self.check_done(result).blocks(), {"first": 100, "second": 50})

    def test_a_program_without_a_build_id_is_recognised_by_its_key(self):
        program = "plan-nameless"
        self.assertEqual(plan_file.build_id(built(program)), b"")
        result = acts("callers", program=program, plan=usual(program=program))
        self.assertEqual(self.check_done(result).blocks(), {"first": 100, "second": 50})

    def test_a_plan_selects_by_the_call_stack_for_an_allocation_wrapper(self):
        path, plan = built("plan-acts"), Plan()
        module = plan.module(path, is_program=True)
        to_malloc, = plan_file.calls_in(path, "xmalloc", "malloc")
        of_left, = plan_file.calls_in(path, "left", "xmalloc")
        of_right, = plan_file.calls_in(path, "right", "xmalloc")
        rules = {name: plan.rule(name, MULTIPOOL) for name in ("left", "right")}
        plan.caller(module, to_malloc, BY_STACK + 2)
        plan.stack(rules["left"], [(module, to_malloc), (module, of_left)])
        plan.stack(rules["right"], [(module, to_malloc), (module, of_right)])
        self.assertEqual(self.check_done(acts("callers", plan=plan)).blocks(), {"left": 60, "right": 30})

    def test_a_plan_can_distinguish_call_stacks_by_three_frames(self):
        path, plan = built("plan-acts"), Plan()
        module = plan.module(path, is_program=True)
        to_malloc, = plan_file.calls_in(path, "xmalloc", "malloc")
        of_left, = plan_file.calls_in(path, "left", "xmalloc")
        of_outer, = plan_file.calls_in(path, "outer", "left")
        calls_of_left = plan_file.calls_in(path, "act_callers", "left")
        rules = {name: plan.rule(name, ARENA) for name in ("inside", "outside")}
        plan.caller(module, to_malloc, BY_STACK + 3)
        plan.stack(rules["inside"], [(module, to_malloc), (module, of_left), (module, of_outer)])
        for address in calls_of_left:
            plan.stack(rules["outside"], [(module, to_malloc), (module, of_left), (module, address)])
        result = self.check_done(acts("callers", plan=plan))
        self.assertEqual(result.blocks(), {"inside": 20, "outside": 40})
        self.assertGreaterEqual(result.reports[0]["unknown_blocks"], 30 + 150)  # `right`, and both callers

    def test_a_plan_can_assign_malloc_to_a_call_stack(self):
        path, plan = built("plan-acts"), Plan()
        module = plan.module(path, is_program=True)
        to_malloc, = plan_file.calls_in(path, "xmalloc", "malloc")
        of_left, = plan_file.calls_in(path, "left", "xmalloc")
        rule = plan.rule("xmalloc", POOL, 48)
        plan.caller(module, to_malloc, BY_STACK + 2)
        plan.stack(MALLOC, [(module, to_malloc), (module, of_left)])
        begin, end = plan_file.code_of(path)["xmalloc"]
        plan.range(module, begin, end, rule)  # applies to call stacks that are not in the plan
        self.assertEqual(self.check_done(acts("callers", plan=plan)).blocks(), {"xmalloc": 30})

    def test_the_innermost_code_range_on_the_stack_selects_the_allocator(self):
        plan = by_ranges(built("plan-acts"), MULTIPOOL, ["outer", "left", "first"])
        self.assertEqual(self.check_done(acts("callers", plan=plan)).blocks(), {"outer": 0, "left": 60, "first": 100})
        plan = by_ranges(built("plan-acts"), MULTIPOOL, ["outer", "right"])
        self.assertEqual(self.check_done(acts("callers", plan=plan)).blocks(), {"outer": 20, "right": 30})

    def test_a_region_serves_allocations_during_its_calls_and_none_after_them(self):
        # 100 calls with 20 blocks, and 25 calls with 2 more. Code outside of the region allocates by the same
        # callers.
        plan = by_ranges(built("plan-region"), ARENA, ["region"])
        for control in ("0", "1"):
            self.assertEqual(Result([built("plan-region")], plan, env={"MALLARD_PLAN_CONTROL": control}).blocks(), {"region": 2050})
        # A second rule forces the library to walk each stack.
        both = by_ranges(built("plan-region"), ARENA, ["region", "other"])
        self.assertEqual(Result([built("plan-region")], both).blocks(), {"region": 2050, "other": 2000})
        # The blocks that a function of the region allocates belong to the inner rule, that of the function.
        inner = by_ranges(built("plan-region"), ARENA, ["region", "use"])
        self.assertEqual(Result([built("plan-region")], inner).blocks(), {"region": 0, "use": 4050})

    def test_the_last_of_several_code_ranges_selects_the_allocator(self):
        path, plan = built("plan-acts"), Plan()
        module = plan.module(path, is_program=True)
        rules = [plan.rule(name, MULTIPOOL) for name in ("all", "first", "again")]
        begin, end = plan_file.code_of(path)["first"]
        plan.range(module, *plan_file.code_ends(path), rules[0])
        plan.range(module, begin, end, rules[1])
        plan.range(module, begin, end, rules[2])
        blocks = self.check_done(acts("callers", plan=plan)).blocks()
        self.assertEqual((blocks["first"], blocks["again"]), (0, 100))
        self.assertGreaterEqual(blocks["all"], 140)

    def test_a_caller_assigned_to_malloc_is_excluded_from_code_ranges(self):
        path, plan = built("plan-acts"), everywhere(built("plan-acts"), MULTIPOOL)
        for address in plan_file.calls_in(path, "first", "malloc"):
            plan.caller(0, address, MALLOC)
        with_all = acts("callers", plan=everywhere(path, MULTIPOOL)).blocks()["all"]
        self.assertEqual(self.check_done(acts("callers", plan=plan)).blocks()["all"], with_all - 100)

    def test_blocks_with_unknown_call_stacks_are_counted(self):
        result = self.check_done(acts("callers", plan=by_callers(built("plan-acts"), ARENA, ["first"])))
        self.assertGreaterEqual(result.reports[0]["unknown_blocks"], 140)

    # --- allocators ---

    def test_each_allocator_handles_random_calls_of_all_functions(self):
        for allocator, name in allocators.items():
            for seed in (1, 2):
                with self.subTest(name, seed=seed):
                    plan = everywhere(built("plan-acts"), allocator)
                    rule = self.check_done(acts("random", seed, plan=plan)).rules()["all"]
                    self.assertEqual(rule["allocator"], name)
                    self.assertGreater(rule["blocks"], 20000)
                    self.assertGreater(rule["large"], 500)
                    self.assertEqual(rule["refused"], 0)

    def test_calls_with_extreme_arguments_have_the_same_results_as_in_libc(self):
        for allocator in allocators:
            for size in (16, 16384):
                self.check_same("edges", plan=everywhere(built("plan-acts"), allocator, block_bytes=size))

    def test_errno_and_dlerror_are_preserved(self):
        for allocator in allocators:
            self.check_done(acts("errno", plan=usual(allocator, block_bytes=256)))

    def test_requests_that_are_too_large_go_to_malloc(self):
        rules = self.check_done(acts("callers", plan=usual(POOL, block_bytes=999))).rules()
        self.assertEqual((rules["second"]["blocks"], rules["second"]["large"]), (50, 50))
        self.assertEqual((rules["first"]["blocks"], rules["first"]["large"]), (100, 0))

    def test_freed_blocks_are_reused(self):
        for allocator in allocators:
            rules = self.check_done(acts("rounds", 100, plan=usual(allocator, block_bytes=512))).rules()
            # 10,000 blocks of 250 bytes on average are 2.4 MiB; in a pool of 512 bytes, 4.9 MiB.
            self.assertLess(rules["first"]["peak_bytes"], 7 * mebibyte, allocators[allocator])
            self.assertEqual(rules["first"]["blocks"], 1_000_000)

    # --- a plan that does not fit ---

    def test_a_rule_uses_at_most_twice_its_peak_plus_a_mebibyte(self):
        for allocator in allocators:
            with self.subTest(allocators[allocator]):
                plan = usual(allocator, block_bytes=1024, peak_bytes=mebibyte)
                rule = self.check_done(acts("keep", 20000, 1000, plan=plan)).rules()["first"]
                self.assertLessEqual(rule["peak_bytes"], 3 * mebibyte + 65536)
                self.assertGreater(rule["peak_bytes"], 2 * mebibyte)
                self.assertGreater(rule["refused"], 16000)
                self.assertLess(rule["refused"], 18500)

    def test_an_arena_does_not_grow_if_only_a_few_blocks_stay_live(self):
        plan = usual(ARENA, peak_bytes=100_000)
        rule = self.check_done(acts("keep_some", 2_000_000, plan=plan)).rules()["first"]
        self.assertLessEqual(rule["peak_bytes"], 200_000 + mebibyte + 65536)
        self.assertGreater(rule["refused"], 500_000)

    def test_each_size_and_thread_may_use_one_additional_chunk(self):
        plan = usual(MULTIPOOL, peak_bytes=1000)
        rules = self.check_done(acts("exchange", 8, plan=plan)).rules()
        for name in ("first", "second"):
            # There are eight threads, and 21 size classes up to 400 bytes.
            self.assertLessEqual(rules[name]["peak_bytes"], 2000 + mebibyte + 8 * 21 * 65536)

    def test_the_report_counts_blocks_beyond_the_limit_of_a_rule(self):
        plan = usual(ARENA, peak_bytes=1000)
        result = acts("keep", 20000, 100, plan=plan, env={"MALLARD_STATS": "text"})
        self.assertRegex(result.err, r"\d+ blocks came from malloc, because the rule held twice its peak")

    # --- control and reports ---

    def test_the_control_of_a_plan_makes_decisions_but_serves_no_block(self):
        result = acts("callers", plan=usual(), env={"MALLARD_PLAN_CONTROL": "1"})
        rules = self.check_done(result).rules()
        self.assertTrue(result.reports[0]["control"])
        self.assertEqual((rules["first"]["blocks"], rules["first"]["peak_bytes"]), (100, 0))
        for value in ("0", ""):
            result = acts("callers", plan=usual(), env={"MALLARD_PLAN_CONTROL": value})
            self.assertFalse(result.reports[0]["control"])
            self.assertGreater(result.rules()["first"]["peak_bytes"], 0)

    def test_statistics_are_printed_on_request(self):
        for value in ("1", "text"):
            result = acts("callers", plan=usual(), env={"MALLARD_STATS": value})
            self.assertEqual((result.status, result.out), (0, "done\n"))
            lines = result.err.splitlines()
            self.assertRegex(lines[0], "^mallard: plan .*/plan$")
            self.assertRegex(lines[1], "^  multipool first: 100 blocks, 2400 bytes, at most [0-9]+ bytes of memory$")
            self.assertRegex(lines[2], "^  multipool second: 50 blocks, 50000 bytes, at most [0-9]+ bytes of memory$")
            self.assertRegex(lines[3], "^  [0-9]+ blocks have call stacks that are not in the plan$")
            self.assertEqual(len(lines), 4)
        result = acts("callers", plan=usual(), env={"MALLARD_STATS": "json"})
        self.assertEqual(json.loads(result.err), result.reports[0])
        for value in ("0", ""):
            self.check_done(acts("callers", plan=usual(), env={"MALLARD_STATS": value}))

    def test_names_of_rules_are_written_as_json(self):
        plan = Plan()
        module = plan.module(built("plan-acts"), is_program=True)
        names = ['a "quoted" \\ name', "tab\tand\nline", "größer", ""]
        for name in names:
            plan.rule(name, ARENA)
        for address in plan_file.calls_in(built("plan-acts"), "first", "malloc"):
            plan.caller(module, address, 0)
        result = acts("callers", plan=plan, env={"MALLARD_STATS": "json"})
        self.assertEqual([rule["name"] for rule in result.reports[0]["rules"]], names)
        self.assertEqual(json.loads(result.err), result.reports[0])

    def test_a_report_with_times_contains_the_duration_of_the_frees_that_empty_an_instance(self):
        result = self.check_done(acts("callers", plan=usual(ARENA), env={"MALLARD_PLAN_TIMES": "1"}))
        report, = result.reports
        self.assertGreater(report["ran_ns"], 0)
        self.assertGreaterEqual(report["waited_ns"], 0)
        self.assertGreater(report["free_ps"] + report["sequence_ps"], 0)
        for rule in report["rules"]:
            self.assertGreater(rule["end_frees"], 0)
            self.assertGreater(rule["end_ns"], 0)
            self.assertGreater(rule["end_sequences"], 0)

    def test_other_work_between_the_last_frees_is_not_part_of_their_duration(self):
        """Between the frees of its two blocks, the program sleeps for 50 ms."""
        report, = self.check_done(acts("pause", plan=usual(ARENA), env={"MALLARD_PLAN_TIMES": "1"})).reports
        rule = report["rules"][0]
        self.assertEqual(rule["end_frees"], 1)
        self.assertLess(rule["end_ns"], 10_000_000)

    def test_reports_of_many_processes_are_not_mixed(self):
        plan = Plan()
        module = plan.module(built("plan-acts"), is_program=True)
        for number in range(64):
            plan.rule(f"{number} {'x' * 200}", ARENA)
        for address in plan_file.calls_in(built("plan-acts"), "first", "malloc"):
            plan.caller(module, address, 63)
        command = f"for i in 1 2 3 4 5 6 7 8 9 10; do {built('plan-acts')} callers & done; wait"
        result = Result(["sh", "-c", command], plan=plan)
        self.check_done(result, "done\n" * 10)
        self.assertEqual(len(result.reports), 10)

    def test_a_report_that_cannot_be_written_changes_nothing(self):
        for path in ("/nonexistent/report", "/", "/dev/full"):
            self.check_done(acts("callers", plan=usual(), env={"MALLARD_PLAN_REPORT": path}))

    def test_a_program_that_overwrites_its_environment_with_a_title_works(self):
        for value in ("text", "json", ""):
            result = acts("title", plan=usual(), env={"MALLARD_STATS": value})
            self.assertEqual((result.status, result.out), (0, "done\n"))
            self.assertEqual(result.blocks(), {"first": 1, "second": 0})
            self.assertRegex(result.err, {"text": "^mallard: plan /.*/plan\n", "json": "^{.*}\n$", "": "^$"}[value])

    def test_printing_statistics_to_a_closed_pipe_does_not_kill_the_program(self):
        command = "exec 3>&1; { sleep 0.2; " + built("plan-acts") + " callers 2>&1 >/dev/null; echo $? >&3; } | true"
        result = Result(["sh", "-c", command], plan=usual(), env={"MALLARD_STATS": "text"})
        self.assertEqual(result.out, "0\n")

    # --- threads, processes ---

    def test_threads_can_free_the_blocks_of_each_other(self):
        for allocator in allocators:
            rules = self.check_done(acts("exchange", 8, plan=usual(allocator, block_bytes=512))).rules()
            self.assertEqual(rules["first"]["blocks"] + rules["second"]["blocks"], 480_000)
            self.assertLess(rules["first"]["peak_bytes"], 24 * mebibyte)

    def test_ten_thousand_threads_can_exit_with_live_blocks(self):
        for allocator in allocators:
            rules = self.check_done(acts("ends", 10000, plan=usual(allocator, block_bytes=640))).rules()
            self.assertEqual(rules["first"]["blocks"], 10000)
            self.assertEqual(rules["second"]["blocks"], 100_000)
            # 10,000 blocks of 640 bytes are 6.2 MiB. Up to 50 threads run at a time, and each has a chunk or two.
            self.assertLess(rules["first"]["peak_bytes"], 14 * mebibyte)
            self.assertLess(rules["second"]["peak_bytes"], 8 * mebibyte)

    def test_thread_local_destructors_may_allocate_and_free(self):
        for allocator in allocators:
            self.check_done(acts("late_frees", plan=usual(allocator, block_bytes=128)))

    def test_threads_of_a_program_under_a_plan_can_fork(self):
        for allocator in allocators:
            self.check_done(acts("fork", 100, plan=everywhere(built("plan-acts"), allocator)))

    def test_children_created_without_fork_handlers_can_allocate(self):
        for allocator in allocators:
            self.check_done(acts("clone", 50, plan=usual(allocator, block_bytes=512)))

    def test_a_forked_child_writes_a_separate_report(self):
        result = self.check_done(acts("fork_and_exit", plan=usual()), "done\ndone\n")
        self.assertEqual(len({report["process"] for report in result.reports}), 2)

    def test_a_program_that_is_not_in_the_plan_is_not_served_and_prints_nothing(self):
        plan = everywhere(built("plan-acts"), ARENA)
        stdlib = next(line.split()[2] for line in subprocess.run(
            ["ldd", built("plan-exceptions")], capture_output=True, text=True).stdout.splitlines() if "libstdc++" in line)
        plan.range(plan.module(stdlib), *plan_file.code_ends(stdlib), 0)
        for stats in ("1", "json", "0"):
            for strict in ("0", "1"):
                env = {"MALLARD_STATS": stats, "MALLARD_PLAN_STRICT": strict}
                bare = Result([built("plan-exceptions")])
                result = Result([built("plan-exceptions")], plan=plan, env=env)
                self.assertEqual((*result.all(), result.reports), (*bare.all(), []))
                result = acts("exec", built("plan-exceptions"), plan=plan, env=env)
                self.assertEqual((*result.all(), result.reports), (*bare.all(), []))

    def test_a_child_that_executes_another_program_prints_nothing(self):
        result = acts("system", "/bin/echo child", plan=usual(), env={"MALLARD_STATS": "json"})
        self.assertEqual((result.status, result.out), (0, "child\ndone\n"))
        self.assertEqual(len(result.err.splitlines()), 1)
        self.assertEqual(result.blocks(), {"first": 2, "second": 0})

    def test_a_program_that_a_script_starts_is_served(self):
        result = Result(["sh", "-c", f"ls / >/dev/null; {built('plan-acts')} callers"], plan=usual())
        self.assertEqual(self.check_done(result).blocks(), {"first": 100, "second": 50})

    def test_an_exec_of_the_same_program_is_served(self):
        result = acts("exec", built("plan-acts"), "callers", plan=usual())
        self.assertEqual(self.check_done(result).blocks(), {"first": 100, "second": 50})
        result = acts("system", f"{built('plan-acts')} callers", plan=usual())
        self.check_done(result, "done\ndone\n")
        self.assertEqual(sorted(report["rules"][0]["blocks"] for report in result.reports), [2, 100])

    def test_closed_descriptors_change_nothing(self):
        for allocator in allocators:
            for env in ({}, {"MALLARD_STATS": "text"}):
                result = acts("close_all", 7, plan=usual(allocator), env=env)
                self.assertEqual(result.all(), (7, "done\n", ""))
        for closing in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            command = f"{built('plan-acts')} callers {closing}; echo $?"
            bare = Result(["sh", "-c", command])
            self.assertEqual(Result(["sh", "-c", command], plan=usual()).all(), bare.all(), closing)

    # --- signals, jumps, stacks ---

    def test_a_signal_handler_may_allocate_during_an_allocation_of_a_rule(self):
        for allocator in allocators:
            plan = everywhere(built("plan-acts"), allocator)
            self.check_done(acts("signals", 3000, plan=plan))

    def test_longjmp_out_of_functions_works(self):
        for allocator in allocators:
            self.check_done(acts("longjmp", plan=everywhere(built("plan-acts"), allocator)))

    def test_fibers_with_separate_stacks_work(self):
        for allocator in allocators:
            self.check_done(acts("fibers", plan=everywhere(built("plan-acts"), allocator)))

    def test_allocation_under_a_plan_works_on_a_small_stack(self):
        path = built("plan-acts")
        self.check_done(acts("small_stack"))
        self.check_done(acts("small_stack", plan=everywhere(path, ARENA)))
        self.check_done(acts("small_stack", plan=usual(ARENA)))

    def test_exceptions_and_allocations_before_and_after_main_work(self):
        path = built("plan-exceptions")
        bare = Result([path])
        self.assertEqual(bare.status, 0)
        for allocator in allocators:
            result = Result([path], plan=everywhere(path, allocator))
            self.assertEqual(result.all(), bare.all())
            self.assertGreater(result.blocks()["all"], 1000)

    def test_resolvers_of_indirect_functions_may_allocate(self):
        path = built("../record/record-resolver")
        for allocator in allocators:
            self.check_done(Result([path], plan=everywhere(path, allocator)), "")

    # --- plugins ---

    def test_a_plugin_is_served_each_time_that_it_is_loaded(self):
        plugin = built("libplan-plugin.so")
        for allocator in allocators:
            result = self.check_done(acts("plugins", 100, plugin, plan=plugin_plan(allocator, plugin)))
            self.assertEqual(result.blocks(), {"first": 1000, "second": 0, "libplan-plugin.so": 1300})

    def test_another_plugin_at_the_same_address_is_not_mistaken_for_the_first(self):
        plugin, twin = built("libplan-plugin.so"), built("libplan-twin.so")
        result = self.check_done(acts("plugins", 50, plugin, twin, plan=plugin_plan(ARENA, plugin)))
        self.assertEqual(result.blocks(), {"first": 1000, "second": 0, "libplan-plugin.so": 650})
        result = self.check_done(acts("plugins", 50, plugin, twin, plan=plugin_plan(ARENA, plugin, twin)))
        self.assertEqual(result.blocks(), {"first": 1000, "second": 0, "libplan-plugin.so": 650,
                                           "libplan-twin.so": 650})

    def test_code_ranges_of_a_plugin_move_with_its_load_address(self):
        plugin, twin = built("libplan-plugin.so"), built("libplan-twin.so")
        plan = usual(ARENA)
        rule = plan.rule("plugin", ARENA)
        begin, end = plan_file.code_of(plugin)["plugin_make"]
        plan.range(plan.module(plugin), begin, end, rule)
        result = self.check_done(acts("plugins", 50, plugin, twin, plan=plan))
        self.assertEqual(result.blocks(), {"first": 1000, "second": 0, "plugin": 650})

    def test_a_plugin_loaded_at_many_addresses_is_served_until_the_table_is_full(self):
        plugin = built("libplan-plugin.so")
        result = self.check_done(acts("moving_plugin", 200, plugin, plan=plugin_plan(ARENA, plugin)))
        # The library remembers 64 sets of module addresses. The first set is without the plugin.
        self.assertEqual(result.blocks(), {"first": 2000, "second": 0, "libplan-plugin.so": 63 * 13})

    def test_plugins_may_have_the_same_name(self):
        with tempfile.TemporaryDirectory() as place:
            plugins = [Path(place, name, "Util.so") for name in ("hash", "list")]
            for plugin, source in zip(plugins, ("libplan-plugin.so", "libplan-twin.so")):
                plugin.parent.mkdir()
                shutil.copy(built(source), plugin)
            for used in plugins:
                result = self.check_done(acts("plugins", 1, used, plan=plugin_plan(ARENA, *plugins)))
                self.assertEqual(sum(rule["blocks"] for rule in result.reports[0]["rules"]), 10 + 13)

    def plan_of_copies(self, place, count):
        """Returns a plan for copies of the plugin, each with a different build-id, and the copies. 5,001 stacks are
        in the program alone, and others in the program and in a copy."""
        path, source = built("plan-acts"), built("libplan-plugin.so")
        plan, code, old = Plan(), Path(source).read_bytes(), plan_file.build_id(source)
        program = plan.module(path, is_program=True)
        of_first, of_plugin = plan.rule("first", MULTIPOOL), plan.rule("plugin", MULTIPOOL)
        (in_first,), (in_second,) = (plan_file.calls_in(path, function, "malloc") for function in ("first", "second"))
        of_use, = plan_file.calls_in(path, "use_plugin", "first")
        plan.caller(program, in_first, BY_STACK + 2)
        plan.stack(of_first, [(program, in_first), (program, of_use)])
        plan.caller(program, in_second, BY_STACK + 40)
        for number in range(5000):
            plan.stack(of_first, [(program, in_second)] + [(program, 64 * number + frame) for frame in range(39)])
        in_make, = plan_file.calls_in(source, "plugin_make", "malloc")
        copies = [Path(place, f"{number}.so") for number in range(count)]
        for number, copy in enumerate(copies):
            copy.write_bytes(code.replace(old, number.to_bytes(len(old), "little")))
            module = plan.module(copy)
            plan.caller(module, in_make, BY_STACK + 2)
            for address in plan_file.indirect_calls_in(path, "use_plugin"):
                plan.stack(of_plugin, [(module, in_make), (program, address)])
        return plan, copies

    def test_call_stacks_through_plugins_loaded_one_by_one_are_recognised(self):
        with tempfile.TemporaryDirectory() as place:
            plan, copies = self.plan_of_copies(place, 5)
            for act in ("plugins", "plugins_together"):
                result = self.check_done(acts(act, 3, *copies, plan=plan))
                self.assertEqual(result.blocks(), {"first": 3 * 5 * 10, "plugin": 3 * 5 * 11})

    def test_lookup_tables_of_many_plugins_share_the_call_stacks_of_the_program(self):
        with tempfile.TemporaryDirectory() as place:
            plan, copies = self.plan_of_copies(place, 20)
            for act in ("plugins", "plugins_together"):
                peaks = []
                for used in (copies[:1], copies):
                    result = acts(act, 1, *used, plan=plan, env={"SHOW_PEAK": "1"})
                    self.assertEqual(result.status, 0)
                    peaks.append(int(re.search(r"VmHWM:\s+(\d+) kB", result.out)[1]) << 10)
                self.assertLess(peaks[1] - peaks[0], 8 * mebibyte)  # 35 MiB if each copy had its own stacks

    def test_plugins_can_be_loaded_and_unloaded_while_threads_allocate(self):
        plugin = built("libplan-plugin.so")
        for allocator in allocators:
            self.check_done(acts("plugins_and_threads", plugin, plan=plugin_plan(allocator, plugin)))

    def test_a_library_constructor_may_wait_for_a_thread_that_allocates(self):
        self.check_done(acts("load", built("libplan-waits.so"), timeout=20))
        self.check_done(acts("load", built("libplan-waits.so"), plan=usual(), timeout=20))
        self.check_done(acts("load", built("libplan-waits.so"), plan=everywhere(built("plan-acts"), ARENA), timeout=20))

    def test_a_callback_of_the_dynamic_linker_may_wait_for_a_thread_that_allocates(self):
        self.check_done(acts("lock_order", timeout=20))
        self.check_done(acts("lock_order", plan=usual(), timeout=20))
        self.check_done(acts("lock_order", plan=everywhere(built("plan-acts"), ARENA), timeout=20))

    # --- other libraries ---

    def test_another_preloaded_library_may_come_before_or_after_the_plan_library(self):
        for name in ("counts", "malloc_operators", "own_operators"):
            other = built(f"../record/librecord-{name}.so")
            for preload in ([other, library], [library, other]):
                for program, words in (("plan-acts", ("random", 3)), ("plan-exceptions", ())):
                    bare = Result([built(program), *words], preload=[other])
                    plan = everywhere(built(program), MULTIPOOL)
                    result = Result([built(program), *words], plan=plan, preload=preload)
                    self.assertEqual(result.all(), bare.all(), (name, preload, program))

    def test_the_malloc_of_mallard_may_come_before_or_after_the_plan_library(self):
        for preload in ([library, malloc], [malloc, library]):
            for allocator in allocators:
                result = acts("random", 4, plan=everywhere(built("plan-acts"), allocator), preload=preload)
                self.check_done(result)
            self.check_done(acts("fork", 30, plan=usual(), preload=preload))
            self.check_done(acts("ends", 1000, plan=usual(), preload=preload))
        self.assertEqual(acts("callers", plan=usual(), preload=[library, malloc]).blocks()["first"], 100)

    def test_a_static_program_runs_unchanged(self):
        result = self.check_done(acts("callers", program="plan-static", plan=usual(program="plan-static")))
        self.assertEqual(result.reports, [])

    def test_a_program_that_links_the_library_is_served(self):
        plan = usual(program="plan-linked")
        result = acts("callers", program="plan-linked", plan=plan, env={"LD_PRELOAD": ""})
        self.assertEqual(self.check_done(result).blocks(), {"first": 100, "second": 50})

    def test_a_set_user_id_program_ignores_the_plan(self):
        if os.getuid() != 0 or "NoNewPrivs:\t1" in Path("/proc/self/status").read_text():
            self.skipTest("no program gains privileges here")
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            copy = shutil.copy(built("plan-linked"), place)
            shutil.copy(library, place)
            plan = Path(place, "plan")
            plan.write_bytes(usual(program="plan-linked").bytes())
            os.chmod(place, 0o777)
            report = Path(place, "report")
            env = {"LD_PRELOAD": "", "MALLARD_PLAN_REPORT": str(report), "MALLARD_STATS": "json"}
            self.assertNotEqual(acts("callers", program=copy, plan=plan, env=env).err, "")
            self.assertTrue(report.exists())
            report.unlink()
            os.chown(copy, 65534, 65534)
            os.chmod(copy, 0o4755)
            self.check_done(acts("callers", program=copy, plan=plan, env=env))
            self.assertFalse(report.exists())

    def test_a_program_that_uses_all_thread_specific_keys_works(self):
        path = built("../malloc/malloc-no_keys_left")
        if not Path(path).exists():
            self.skipTest("tests/malloc is not built")
        for allocator in allocators:
            self.check_done(Result([path], plan=everywhere(path, allocator)), "")

    # --- memory ---

    def test_under_an_address_space_limit_the_plan_leaves_room_for_the_program(self):
        for limit, use in ((1024, 850), (512, 400), (256, 180), (64, 30)):
            limits = ["prlimit", f"--as={limit * mebibyte}"]
            self.check_done(acts("use", use, limits=limits))
            result = acts("use", use, plan=usual(), limits=limits)
            self.assertEqual((result.status, result.out), (0, "done\n"), f"{limit} MiB: {result.err}")
            self.assertLessEqual(len(result.err.splitlines()), 1)
            if limit >= 256:
                self.assertEqual((result.err, result.blocks()["first"]), ("", use))

    def test_if_a_rule_cannot_allocate_memory_malloc_serves_the_block(self):
        limits = ["prlimit", f"--data={64 * mebibyte}"]
        bare = acts("keep", 300_000, 100, limits=limits)
        for allocator in allocators:
            result = acts("keep", 300_000, 100, plan=usual(allocator, block_bytes=112), limits=limits)
            self.assertEqual(result.all(), bare.all())


def main():
    """Exits with status 77 if each test was skipped."""
    done = unittest.main(exit=False).result
    skipped = len(done.skipped) == done.testsRun and not done.errors and not done.failures
    sys.exit(77 if skipped else not done.wasSuccessful())


if __name__ == "__main__":
    folder = Path(sys.argv.pop(1)).resolve()
    main()
