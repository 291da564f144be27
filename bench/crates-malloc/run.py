#!/usr/bin/env python3
"""Measures time and memory of real work in Rust under each global allocator.

    ./x bench crates-malloc [--runs N] [--case REGEX] [--json | --list]

Builds the program once for each allocator, which a feature of the package selects. Then runs all builds
interleaved (A B C ..., A B C ...), N times (default 11). Times are for the whole process, including the
generation of the input. Memory is the peak of the resident set. Prints the median, and half the interquartile
range in percent of the median. With --json, prints results of the suite `crates` in the form of `./x bench`.
"""
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))
import cases  # noqa: E402
from machine import machine, text_of  # noqa: E402
# Maps each feature of the package to the crate that the feature uses.
allocators = {"glibc": "", "mallard": "mallard-malloc", "mimalloc": "mimalloc",
              "mimalloc2": "mimalloc", "snmalloc": "snmalloc-rs", "jemalloc": "tikv-jemallocator",
              "rpmalloc": "rpmalloc"}
programs = {"search": 4, "json": 2, "parser": 8, "lines": 5}


def build(target):
    built = {}
    for name in allocators:
        features = [] if name == "glibc" else ["--features", name]
        done = subprocess.run(["cargo", "build", "--release", "--locked", "--manifest-path",
                               here / "Cargo.toml", "--target-dir", target, *features], stdout=sys.stderr)
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


def contender(name):
    if name == "glibc":
        return "-".join(platform.libc_ver())
    if name == "mallard":
        return "mallard/malloc"
    lock = (here / "Cargo.lock").read_text()
    version = re.search(rf'name = "{allocators[name]}"\nversion = "([^"]*)"', lock)[1]
    return f"{allocators[name]}-{version}" + {"mimalloc": "/v3", "mimalloc2": "/v2"}.get(name, "")


def print_rows(rows, built, chosen):
    rustc = " ".join(text_of("rustc", "--version").split()[:2])
    origin = {"commit": text_of("git", "describe", "--always", "--dirty", folder=here), "machine": machine(rustc),
              "command": "./x bench crates-malloc " + " ".join(sys.argv[1:])}
    for program in chosen:
        for metric, key, unit in (("seconds", "wall_ms", 1e3), ("cpu_seconds", "cpu_ms", 1e3),
                                  ("peak_rss_kib", "peak_kib", 1)):
            for name in built:
                values = [r[key] / unit for r in rows if (r["program"], r["allocator"]) == (program, name)]
                figures = {"median": statistics.median(values), "low": min(values), "high": max(values)}
                print(json.dumps({
                    "suite": "crates", "case": f"global-allocator/{program}",
                    "contender": contender(name), "threads": 1, "metric": metric,
                    **{k: float(f"{v:.4g}") for k, v in figures.items()}, "runs": len(values),
                    **origin}, separators=(",", ":")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--case", default="", metavar="REGEX", help="only the programs whose names match")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="name the programs")
    options = parser.parse_args()
    chosen = cases.matching(options.case, programs, "crates-malloc")
    if options.list:
        return print("\n".join(chosen))
    target = Path(os.environ.get("CARGO_TARGET_DIR", here / "../../build/cargo")) / "crates-malloc"
    built = build(target)
    rows = []
    for round_ in range(options.runs):
        for program in chosen:
            for name, binary in built.items():
                rows.append({"program": program, "allocator": name, "round": round_,
                             **run(binary, program, programs[program])})
    for program in chosen:
        mine = [r for r in rows if r["program"] == program]
        if len({r["checksum"] for r in mine}) != 1:
            sys.exit(f"run.py: {program} has several results\n  its figures compare nothing\n"
                     "  help: look for what depends on addresses or the order of threads")
        if options.json:
            continue
        print(f"\n{program:<10} {'wall ms':>9} {'+-%':>5} {'cpu ms':>9} {'+-%':>5} {'peak MiB':>9} {'+-%':>5}")
        for name in built:
            of = [r for r in mine if r["allocator"] == name]
            cells = ""
            for key, unit in (("wall_ms", 1), ("cpu_ms", 1), ("peak_kib", 1024)):
                values = [r[key] for r in of]
                cells += f" {statistics.median(values) / unit:9.1f} {spread(values):5.1f}"
            print(f"{name:<10}{cells}")
    if options.json:
        print_rows(rows, built, chosen)


main()
