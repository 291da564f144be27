#!/usr/bin/env python3
"""Compares the strategies that `mallard replay` would choose with those that a measurement finds best.

    bench/replay_strategies.py demo            the three workloads of the suite demo
    bench/replay_strategies.py lakos1          DS1, DS4 and DS9 with 2^10 and 2^14 elements

Each workload is recorded under AS1, the default heap, and replayed under all 14 strategies. The same
program also runs under each strategy. The table on stdout has, for each strategy, the CPU time that the
replay and the program save compared with AS1, and at the end which choices were right. The exit status is 1
if a choice was wrong.

Needs `mallard`, its recorder and `mallard-replay` (MALLARD, MALLARD_RECORDER and MALLARD_REPLAY have their
paths) and the programs of `./x build bench` (--programs is their directory). Use a machine that does
nothing else, because other load changes both figures.

A structure of these programs and its allocator live for one repetition. So the plan of a strategy is a
region: the function of a repetition, or of all, with ends = "drained". An instance of the region ends
when no block is left, which is the end of a repetition.

A replay does not measure locality, that is, how fast the program's own code is with the blocks of a
strategy. For lakos1 the results are those of the variant `corrected`, in which all allocators get memory
from one heap, and glibc returns none to the system. The replay uses the same setting of glibc.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

STRATEGIES = [f"AS{number}" for number in range(1, 15)]
KEEP_MEMORY = "glibc.malloc.trim_threshold=4611686018427387904:glibc.malloc.mmap_max=0"
CLOSE = 0.03  # a choice may be this much from the fastest
LARGE = 0.10  # a measured difference whose direction must be right
ELEMENTS = {1: 1 << 23, 4: 1 << 18, 9: 1 << 22}  # of all repetitions together: a run takes 0.02 s or more


def run(words, **options):
    """Runs a program, and returns its output."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"replay_strategies: {words[0]} failed with status {done.returncode}\n"
                 f"  nothing was compared\n  help: {' '.join(map(str, words))}")
    return done.stdout


class Replay:
    """Records programs and replays them."""

    def __init__(self, options):
        self.mallard = os.environ.get("MALLARD", "mallard")
        self.folder = pathlib.Path(options.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.budget = options.budget

    def record(self, name, program, **options):
        trace = self.folder / name
        run([self.mallard, "record", "--quiet", "--force", "-o", trace, "--", *program], **options)
        return trace

    def functions(self, trace):
        """Yields the functions of each call stack, the innermost first."""
        sites = run([self.mallard, "sites", trace, "--json", "--top", "100000"])
        for line in sites.splitlines():
            yield [frame["function"] for frame in json.loads(line)["functions"]]

    def strategies(self, trace, region, glibc=None):
        """Replays a trace under all strategies. Returns the result, and a dictionary of its entries by
        strategy."""
        plans = []
        for strategy in STRATEGIES[1:]:
            plan = self.folder / f"{strategy}.toml"
            plan.write_text(f'[[rule]]\nregion = {json.dumps(region)}\nstrategy = "{strategy}"\n'
                            'ends = "drained"\n')
            plans += ["--plan", plan]
        variables = dict(os.environ, **({"GLIBC_TUNABLES": glibc} if glibc else {}))
        result = json.loads(run([self.mallard, "replay", trace, "--json", "--quiet", "--budget",
                                 self.budget, *plans], env=variables))
        return result, {row["name"]: row for row in result["candidates"]}


def saving(row, program_ns):
    """Returns the share of the program's CPU time that a strategy saves. Subtracts the cost of virtual
    calls, which the entries do not include, as the middle of the measured range."""
    if row["cpu"] is None:
        return float("nan")
    virtual_ns = sum(row["virtual_call_ns"] or [0, 0]) / 2
    return row["cpu"]["saving"] - row["virtual_calls"] * virtual_ns / program_ns


def verdict(row):
    """Returns the verdict on a strategy, without the cost of virtual calls."""
    return "broken" if row["cpu"] is None else row["cpu"]["verdict"]


def outermost(stacks, pattern):
    """Finds the outermost function of each call stack whose name matches. Returns the most frequent one."""
    found = {}
    for stack in stacks:
        names = [name for name in stack if re.search(pattern, name)]
        if names:
            found[names[-1]] = found.get(names[-1], 0) + 1
    if not found:
        sys.exit(f"replay_strategies: no call stack has a function like {pattern}\n"
                 "  nothing was compared\n  help: build the programs with ./x build")
    return max(found, key=found.get)


def print_rows(title, found, measured, program_ns):
    print(f"\n{title}\n  strategy  replay saves  verdict            measured saves")
    for strategy in STRATEGIES[1:]:
        row = found.get(strategy)
        if row is None or strategy not in measured:
            continue
        share = saving(row, program_ns)
        print(f"  {strategy:8}  {share:11.1%}   {verdict(row):18} {measured[strategy]:12.1%}")


def chosen(found, program_ns):
    """Returns the strategy with the largest gain, or AS1."""
    gains = {name: saving(row, program_ns) for name, row in found.items() if verdict(row) == "gain"}
    best = max(gains, key=gains.get, default="AS1")
    return best if gains.get(best, 0) > 0 else "AS1"


def demo(options):
    """Runs the three workloads of bench/demo. Returns whether the replay chose well."""
    programs = pathlib.Path(options.programs or "build/bench") / "bench"
    program = programs / "demo/mallard-bench-demo"
    replay = Replay(options)
    suite = run([programs / "mallard-bench", "demo", "--json", "--runs", options.runs])
    rows = [json.loads(line) for line in suite.splitlines()]
    text = replay.folder / "text"
    run([program, "text", text])
    is_right = True
    for workload in ["word-index", "parse-tree", "phrase-window"]:
        seconds = {row["contender"].split("/")[1]: row["median"] for row in rows
                   if row.get("metric") == "seconds" and row.get("case") == workload}
        rounds = max(1, min(1000, int(0.05 / seconds["AS1"])))
        trace = replay.record(workload, [program, workload, 1, rounds, text])
        region = outermost(replay.functions(trace), r"demo::measure(_under)?<")
        result, found = replay.strategies(trace, region)
        program_ns = result["program_cpu_ns"] or result["base"]["calls_cpu_ns"]
        measured = {name: 1 - value / seconds["AS1"] for name, value in seconds.items()}
        print_rows(f"{workload}, {rounds} rounds, region {region[:100]}", found, measured, program_ns)
        choice, fastest = chosen(found, program_ns), min(seconds, key=seconds.get)
        beyond = seconds[choice] / seconds[fastest] - 1
        is_right &= beyond <= CLOSE
        print(f"  the replay chooses {choice}; the fastest is {fastest}, {beyond:.1%} from the choice: "
              f"{'right' if beyond <= CLOSE else 'WRONG'}")
    return is_right


def lakos1(options):
    """Runs cells of lakos1. Returns whether the sign of all large differences is right."""
    program = pathlib.Path(options.programs or "build/bench") / "bench/mallard-bench-lab"
    replay = Replay(options)
    right = wrong = 0
    for structure in [1, 4, 9]:
        for exponent in [10, 14]:
            size = 1 << exponent
            inner = 128 if structure > 4 else 1
            numbers = [structure, size, max(ELEMENTS[structure], 4 * size * inner), 0, 0]
            name = f"DS{structure}-{exponent}"
            trace = replay.record(name, [program, "growth", "heap", 1, *numbers])
            region = outermost(replay.functions(trace), r"lab::growth_run<.*>::once\(")
            result, found = replay.strategies(trace, region, KEEP_MEMORY)
            program_ns = result["program_cpu_ns"] or result["base"]["calls_cpu_ns"]
            measured = measure_cell(program, numbers, options.runs)
            print_rows(f"DS{structure}/2^{exponent}, region {region[:100]}", found, measured, program_ns)
            for strategy, share in measured.items():
                if strategy == "AS1" or abs(share) <= LARGE:
                    continue
                replayed = saving(found[strategy], program_ns)
                if (replayed > 0) == (share > 0):
                    right += 1
                else:
                    wrong += 1
                    print(f"  WRONG: {strategy}: the replay {replayed:+.1%}, measured {share:+.1%}")
    print(f"\nof {right + wrong} differences beyond {LARGE:.0%}, {right} have the right direction")
    return wrong == 0


def measure_cell(program, numbers, runs):
    """Returns the share of the time that each strategy saves compared with AS1, by interleaved runs."""
    figures = {strategy: [] for strategy in STRATEGIES}
    for _ in range(runs):
        for strategy in STRATEGIES:
            library = "heap" if strategy in ("AS1", "AS2") else "mallard"
            said = run([program, "growth", library, strategy[2:], *numbers])
            if not said.startswith("!"):
                figures[strategy].append(float(said.split()[0]))
    medians = {name: statistics.median(all) for name, all in figures.items() if all}
    return {name: 1 - value / medians["AS1"] for name, value in medians.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("suite", choices=["demo", "lakos1"])
    parser.add_argument("--programs", help="the folder of the build (build/bench)")
    parser.add_argument("--folder", default="build/replay", help="where traces are written")
    parser.add_argument("--budget", default="60s", help="of each replay")
    parser.add_argument("--runs", type=int, default=9, help="of each strategy in the measurement")
    options = parser.parse_args()
    ok = {"demo": demo, "lakos1": lakos1}[options.suite](options)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
