#!/usr/bin/env python3
"""Time and memory of real work in Rust under each global allocator.

    bench/crates-malloc/run.py [--rounds N] [--only PROGRAM,...] [--rows FILE]

Builds the program once for each allocator, by a feature of its package, then runs all of them in
turns: A B C ..., A B C ..., N times. Time is that of the whole process from outside, its generation
of input included; memory is the peak of its resident set. Medians, and half the distance of the
quartiles in percent of them. --rows adds each run to a file, as a line of JSON.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

here = Path(__file__).resolve().parent
allocators = ["glibc", "mallard", "mimalloc", "mimalloc2", "snmalloc", "jemalloc", "rpmalloc"]
programs = {"search": 4, "json": 2, "parser": 8, "lines": 5}


def build(target):
    built = {}
    for name in allocators:
        features = [] if name == "glibc" else ["--features", name]
        done = subprocess.run(["cargo", "build", "--release", "--locked", "--manifest-path",
                               here / "Cargo.toml", "--target-dir", target, *features])
        if done.returncode != 0:
            print(f"run.py: {name} was not built\n  the others go on without it\n"
                  f"  help: cargo build --release --features {name}", file=sys.stderr)
            continue
        built[name] = target / f"crates-malloc-{name}"
        shutil.copy(target / "release" / "crates-malloc", built[name])
    return built


def run(binary, program, times):
    before = time.perf_counter()
    child = subprocess.Popen([binary, program, str(times)], stdout=subprocess.PIPE)
    checksum = child.stdout.read().decode().strip()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - before
    child.returncode = status
    if status != 0:
        sys.exit(f"run.py: {binary.name} {program} ended with {status}\n"
                 f"  no figures were made\n  help: {binary} {program} {times}")
    return {"wall_ms": wall * 1e3, "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1e3,
            "peak_kib": usage.ru_maxrss, "checksum": checksum}


def spread(values):
    low, _, high = statistics.quantiles(values, n=4)
    return 50 * (high - low) / statistics.median(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default=",".join(programs))
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    target = Path(os.environ.get("CARGO_TARGET_DIR", here / "../../build/cargo")) / "crates-malloc"
    built = build(target)
    rows = []
    for round_ in range(options.rounds):
        for program in options.only.split(","):
            for name, binary in built.items():
                rows.append({"program": program, "allocator": name, "round": round_,
                             **run(binary, program, programs[program])})
                if options.rows:
                    with options.rows.open("a") as kept:
                        kept.write(json.dumps(rows[-1]) + "\n")
    for program in options.only.split(","):
        mine = [r for r in rows if r["program"] == program]
        if len({r["checksum"] for r in mine}) != 1:
            sys.exit(f"run.py: {program} has several results\n  its figures compare nothing\n"
                     "  help: look for what depends on addresses or the order of threads")
        print(f"\n{program:<10} {'wall ms':>9} {'+-%':>5} {'cpu ms':>9} {'+-%':>5} {'peak MiB':>9} {'+-%':>5}")
        for name in built:
            of = [r for r in mine if r["allocator"] == name]
            cells = ""
            for key, unit in (("wall_ms", 1), ("cpu_ms", 1), ("peak_kib", 1024)):
                values = [r[key] for r in of]
                cells += f" {statistics.median(values) / unit:9.1f} {spread(values):5.1f}"
            print(f"{name:<10}{cells}")


main()
