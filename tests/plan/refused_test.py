#!/usr/bin/env python3
"""Tests plans that cannot be used, in whole or in part. One line explains why, and the program runs
without the unusable part. `refused_test.py DIRECTORY [unittest arguments]`
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import plan_file  # noqa: E402
import plan_test  # noqa: E402
from plan_file import ARENA, BY_STACK, Plan  # noqa: E402
from plan_test import Case, Result, acts, built, library, plugin_plan, preloadable, usual  # noqa: E402


class Refused(Case):
    def check_off(self, plan, why, **options):
        """Checks that one line explains why the plan is off, and that the program runs unchanged."""
        result = acts("callers", plan=plan, **options)
        self.assertEqual((result.status, result.out, result.reports), (0, "done\n", []))
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 1, result.err)
        self.assertRegex(lines[0], f"^mallard: the plan .* {why}.*; the program runs without the plan$")
        result = acts("callers", plan=plan, env={"MALLARD_PLAN_STRICT": "1"}, **options)
        self.assertEqual((result.status, result.out), (125, ""))
        self.assertRegex(result.err, f"^mallard: the plan .* {why}.*\n$")

    def test_a_file_that_is_not_a_plan_is_rejected_with_an_explanation(self):
        with tempfile.TemporaryDirectory() as place:
            self.check_off(Path(place, "missing"), "cannot be opened")
            self.check_off(place, "is not a compiled plan")
            self.check_off(b"", "is not a compiled plan")
            self.check_off(b"some text\n" * 100, "is not a compiled plan")
            self.check_off("/dev/null", "is not a compiled plan")
            os.mkfifo(Path(place, "fifo"))
            self.check_off(Path(place, "fifo"), "is not a compiled plan", timeout=20)

    def test_an_unreadable_plan_is_rejected_with_an_explanation(self):
        if os.getuid() != 0:
            self.skipTest("root alone can become another user here")
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            plan = Path(place, "plan")
            plan.write_bytes(usual().bytes())
            plan.chmod(0)
            os.chmod(place, 0o755)
            for name in ("plan-acts", Path(library).name):
                shutil.copy(built(name) if name == "plan-acts" else library, place)
            result = Result([f"{place}/plan-acts", "callers"], plan=plan, preload=[f"{place}/{Path(library).name}"],
                            user=65534, group=65534, extra_groups=[])
            self.assertEqual((result.status, result.out), (0, "done\n"))
            self.assertRegex(result.err, "^mallard: the plan .*/plan cannot be opened; help: .*\n$")

    def test_a_plan_with_another_version_or_byte_order_is_rejected_with_an_explanation(self):
        for at, value, why in ((12, 2, "another version"), (12, 0, "another version"), (8, 0x04030201, "byte order")):
            data = bytearray(usual().bytes())
            struct.pack_into("<I", data, at, value)
            self.check_off(bytes(data), f"is of .*{why}")

    def check_damage(self, plans):
        with tempfile.TemporaryDirectory() as place:
            for number, plan in enumerate(plans):
                Path(place, str(number)).write_bytes(plan)
            command = (f"for i in $(seq 0 {len(plans) - 1}); do MALLARD_PLAN={place}/$i LD_PRELOAD={preloadable(library)} "
                       f"{built('plan-acts')} callers 2>{place}/err || echo $?; wc -l <{place}/err; cat {place}/err >>{place}/all; done")
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            self.assertEqual(done.stdout.split(), ["done", "1"] * len(plans))
            for line in set(re.sub("plan [^ ]*", "plan", line) for line in Path(place, "all").read_text().splitlines()):
                self.assertRegex(line, "^mallard: the plan is (corrupt|truncated|not a compiled plan|of another version|of a machine)")

    def test_a_truncated_plan_is_rejected_with_an_explanation(self):
        data = usual().bytes()
        self.check_damage([data[:length] for length in range(len(data))] + [data + b"\0", data + bytes(8)])

    def test_a_plan_with_a_changed_byte_is_rejected_with_an_explanation(self):
        data = usual().bytes()
        plans = []
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= 1 << at % 8
            plans.append(bytes(changed))
        self.check_damage(plans)

    def test_numbers_out_of_range_in_a_plan_are_rejected(self):
        """Plans with a correct checksum, in which one number is out of range."""
        path = built("plan-acts")

        def made(change):
            plan = usual()
            begin, end = plan_file.code_of(path)["xmalloc"]
            plan.range(0, begin, end, 0)
            plan.caller(0, plan_file.calls_in(path, "xmalloc", "malloc")[0], BY_STACK + 2)
            plan.stack(0, [(0, 1), (0, 2)])
            change(plan)
            return plan.bytes()

        def with_rule(*numbers):
            return lambda plan: plan.rules.append(struct.pack("<IIIIQQ", 0, 0, *numbers, 0, 0))

        wrong = [
            lambda plan: plan.caller(7, 0, 0), lambda plan: plan.caller(0, 0, 9), lambda plan: plan.caller(0, 0, BY_STACK),
            lambda plan: plan.caller(0, 0, BY_STACK + 1), lambda plan: plan.caller(0, 0, BY_STACK + 65),
            lambda plan: plan.callers.append(plan.callers[0]),
            lambda plan: plan.stack(9, [(0, 1)]), lambda plan: plan.stack(0, []), lambda plan: plan.stack(0, [(9, 1)]),
            lambda plan: plan.stack(0, [(0, 1)] * 65), lambda plan: plan.stack(BY_STACK + 2, [(0, 1)]),
            lambda plan: plan.stacks.append(struct.pack("<IIII", 3, 1, 0, 0)),
            lambda plan: plan.stacks.append(struct.pack("<IIII", 0xFFFFFFFF, 2, 0, 0)),
            lambda plan: plan.range(9, 1, 2, 0), lambda plan: plan.range(0, 2, 2, 0), lambda plan: plan.range(0, 3, 2, 0),
            lambda plan: plan.range(0, 1, 2, 9),
            with_rule(0, 16), with_rule(5, 16), with_rule(3, 0), with_rule(3, 16385),
            lambda plan: plan.rules.append(struct.pack("<IIIIQQ", 1 << 20, 1, 3, 16, 0, 0)),
            lambda plan: plan.rules.append(struct.pack("<IIIIQQ", 0, 0xFFFFFFFF, 3, 16, 0, 0)),
            lambda plan: plan.modules.append(struct.pack("<IIIIQ32x", 0, 0, 33, 0, 0)),
            lambda plan: plan.modules.append(struct.pack("<IIIIQ32x", 0, 0, 8, 2, 0)),
            lambda plan: plan.rules.clear(), lambda plan: plan.rules.extend(plan.rules * 40),
        ]
        self.check_damage([made(change) for change in wrong])
        self.check_done(acts("callers", plan=made(lambda plan: None)))

    def test_a_plan_for_another_build_is_rejected_with_an_explanation(self):
        path = built("plan-acts")
        plan = Plan()
        module = plan.module(path, is_program=True, identity=plan_file.build_id(built("plan-rebuilt")))
        plan.caller(module, plan_file.calls_in(path, "first", "malloc")[0], plan.rule("first", ARENA))
        result = acts("callers", plan=plan)
        self.assertEqual((result.status, result.out), (0, "done\n"))
        self.assertRegex(result.err, "^mallard: plan-acts is another build than that of the plan .*; help: .*\n$")
        result = acts("callers", plan=plan, env={"MALLARD_PLAN_STRICT": "1"})
        self.assertEqual((result.status, result.out), (125, ""))
        self.assertRegex(result.err, "^mallard: plan-acts is another build than that of the plan .*\n$")

    def test_a_plugin_of_another_build_is_rejected_with_an_explanation(self):
        plugin, twin = built("libplan-plugin.so"), built("libplan-twin.so")
        plan = usual(ARENA)
        module = plan.module(plugin, identity=plan_file.build_id(twin))
        plan.caller(module, plan_file.calls_in(plugin, "plugin_make", "malloc")[0], 0)
        result = acts("plugins", 10, plugin, plan=plan)
        self.assertEqual((result.status, result.out), (0, "done\n"))
        self.assertRegex(result.err, "^mallard: libplan-plugin.so is another build than that of the plan .*; help: .*\n$")
        self.assertEqual(result.blocks(), {"first": 100, "second": 0})

    def test_modules_of_a_plan_that_are_not_loaded_are_ignored(self):
        plugin = built("libplan-plugin.so")
        result = self.check_done(acts("callers", plan=plugin_plan(ARENA, plugin)))
        self.assertEqual(result.blocks(), {"first": 100, "second": 50, "libplan-plugin.so": 0})

    def test_without_a_plan_the_program_runs_unchanged(self):
        for env in ({}, {"MALLARD_PLAN": ""}, {"MALLARD_STATS": "1"}):
            self.check_done(acts("callers", preload=[library], env=env))
            self.check_done(acts("random", 5, preload=[library], env=env))
            result = acts("callers", preload=[library], env={**env, "MALLARD_PLAN_STRICT": "1"})
            self.check_done(result)

    def test_a_plan_file_that_changes_during_the_run_has_no_effect(self):
        plugin = built("libplan-plugin.so")
        data = plugin_plan(ARENA, plugin).bytes()
        with tempfile.TemporaryDirectory() as place:
            plan = Path(place, "plan")
            for change in (b"", data[:100], bytes(len(data)), b"\xff" * len(data)):
                plan.write_bytes(data)
                env = {**os.environ, "MALLARD_PLAN": str(plan), "MALLARD_STATS": "json", "LD_PRELOAD": preloadable(library)}
                with subprocess.Popen([built("plan-acts"), "wait", plugin], env=env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    plan.write_bytes(change)
                    out, err = process.communicate("go\n", timeout=60)
                self.assertEqual((process.returncode, out), (0, "done\n"))
                blocks = {rule["name"]: rule["blocks"] for rule in json.loads(err)["rules"]}
                self.assertEqual(blocks, {"first": 11, "second": 0, "libplan-plugin.so": 13})


if __name__ == "__main__":
    plan_test.folder = Path(sys.argv.pop(1)).resolve()
    plan_test.main()
