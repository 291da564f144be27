#!/usr/bin/env python3
"""Counts the instructions of a pair of malloc and free under libmallard-plan.so, from the call of malloc to
the return of free. `instructions.py PAIRS LIBRARY.so`

callgrind counts the difference between a run with many pairs and a run with few. The result is the same on
every machine with the same C library. A *foreign* caller is one that the plan leaves to the next malloc.
The library's overhead for its pairs is the count minus the count without the library.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import plan_file  # noqa: E402
from preload import preloadable  # noqa: E402

skipped = 77
few, many = 1000, 11000

# The maximum instructions: the count that was measured with g++ 12 and -O2, plus 2.
added_to_foreign_pairs = {"gives the caller to malloc": 23 + 2, "does not have the caller": 23 + 2}
served_pairs = {"pool": 61 + 2, "multipool": 61 + 2, "arena": 78 + 2, "multipool-over-arena": 80 + 2}
added_in_control_runs = 23 + 2
# The caller does not decide, but a call of the plan's region is active.
served_in_region = {"pool": 89 + 2, "arena": 106 + 2}
added_in_region_by_control = 62 + 2
kinds = {"pool": plan_file.POOL, "multipool": plan_file.MULTIPOOL, "arena": plan_file.ARENA,
         "multipool-over-arena": plan_file.MULTIPOOL_OVER_ARENA}


def collected(program, library, plan, pairs, control=""):
    """Returns the instructions of the program's function `pairs` and of all functions that it calls."""
    with tempfile.TemporaryDirectory() as place:
        environment = dict(os.environ)
        if plan is not None:
            Path(place, "plan").write_bytes(plan.bytes())
            environment |= {"LD_PRELOAD": preloadable(library), "MALLARD_PLAN": f"{place}/plan", "MALLARD_PLAN_CONTROL": control}
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=pairs",
                               program, str(pairs), "64"], env=environment, capture_output=True, text=True)
    count = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not count:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    return int(count[1])


def of_a_pair(program, library, plan, control=""):
    return (collected(program, library, plan, many, control) - collected(program, library, plan, few, control)) / (many - few)


def plan_for(program, answer, allocator=plan_file.MULTIPOOL):
    plan = plan_file.Plan()
    module = plan.module(program, is_program=True)
    rule = plan.rule("pairs", allocator, 64)
    caller, = plan_file.calls_in(program, "pairs", "malloc")
    if answer == "malloc":
        plan.caller(module, caller, plan_file.MALLOC)
    elif answer == "rule":
        plan.caller(module, caller, rule)
    elif answer == "region":
        begin, end = plan_file.code_of(program)["pairs"]
        plan.range(module, begin, end, rule)
    return plan


def main(program, library):
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind, which counts the instructions")
        return skipped
    alone = of_a_pair(program, library, None)
    print(f"a pair of the C library alone: {alone:g} instructions")
    faults = 0

    def check(what, count, most):
        nonlocal faults
        print(f"{what}: {count:g} instructions; at most {most}")
        faults += not 0 < count <= most

    for (what, most), answer in zip(added_to_foreign_pairs.items(), ("malloc", "unknown")):
        check(f"added where the plan {what}", of_a_pair(program, library, plan_for(program, answer)) - alone, most)
    # In a control run, the library decides but serves nothing. If it did more than in other runs, the plan
    # would look better than it is.
    in_control = of_a_pair(program, library, plan_for(program, "rule"), control="1") - alone
    check("added where the control leaves the blocks of a rule to malloc", in_control, added_in_control_runs)
    for kind, most in served_in_region.items():
        check(f"a pair that a {kind} serves in a region", of_a_pair(program, library, plan_for(program, "region", kinds[kind])), most)
    in_region = of_a_pair(program, library, plan_for(program, "region"), control="1") - alone
    check("added where the control leaves the blocks of a region to malloc", in_region, added_in_region_by_control)
    for kind, most in served_pairs.items():
        check(f"a pair that a {kind} serves", of_a_pair(program, library, plan_for(program, "rule", kinds[kind])), most)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
