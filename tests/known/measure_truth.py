#!/usr/bin/env python3
"""Measures the programs of measured/ and held_out/, and writes the table truth.csv.

    measure_truth.py [--runs N] [--case REGEX] [--libraries FOLDER] [--mallocs FOLDER]

The table has what each change of a program really saves. It has a row for the unchanged program, one for a second run
of it (the difference between these two is noise), one for the program under each malloc, and one for each changed form:
NAME_advised, the best known form, and NAME_second, the second best. The runs are in blocks, each of which has all rows
of a program in random order. A saving is the median of the savings in the blocks, as a share of the unchanged program.
The interval of a saving has 95 % confidence. It is computed from ranks, and assumes nothing about the noise. With
--case, the rows of the other programs stay unchanged. With --runs 0 the programs are only built.

The programs are built by g++, gcc and rustc in build/truth. --libraries is a build directory with Mallard's libraries
(build/release: `./x build release mallard-core mallard-c-static mallard-malloc`). --mallocs is the directory with the
libraries of libmimalloc2.0, libjemalloc2 and libtcmalloc-minimal4.
"""
import argparse
import csv
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import rows # also finds the modules of bench/
from machine import machine, text_of

here = Path(__file__).resolve().parent
root = here.parents[1]
build = root / "build/truth"
table = here / "truth.csv"
LANGUAGES = {".cpp": "C++", ".c": "C", ".rs": "Rust"}
MALLOCS = {"mimalloc": "libmimalloc.so.2", "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
COLUMNS = ["program", "language", "held_out", "form", "malloc", "runs", "cpu_ms", "cpu_ms_p10", "cpu_ms_p90",
           "saving_percent", "saving_low", "saving_high", "peak_rss_mib", "rss_saving_percent"]


def fail(what, state, help):
    sys.exit(f"measure_truth.py: {what}\n  {state}\n  help: {help}")


def run(*command):
    subprocess.run(list(map(str, command)), check=True, cwd=root)


def library(path):
    if not path.exists():
        fail(f"there is no {path}", "nothing was measured",
             "./x build release mallard-core mallard-c-static mallard-malloc, and see --help")
    return path


def build_rust_library():
    """Compiles the crate mallard-alloc, which has no dependencies."""
    crate = build / "libmallard.rlib"
    if not crate.exists():
        run("rustc", "--crate-name", "mallard", "--crate-type", "rlib", "--edition", "2024", "-C", "opt-level=3",
            "--cfg", 'feature="std"', "--cfg", 'feature="alloc"', "--cap-lints", "allow",
            "crates/mallard-alloc/src/lib.rs", "-o", crate)
    return crate


def build_program(source, libraries):
    """Compiles one variant of a program, and returns the path of the executable file."""
    program = build / source.stem
    if source.suffix == ".cpp":
        run("g++", "-std=c++20", "-O2", "-g", "-Iinclude", f'-DKNOWN_DOCUMENTS="{root}/docs"', source, "-o",
            program, library(libraries / "libmallard.a"), "-pthread")
    elif source.suffix == ".c":
        run("gcc", "-std=c11", "-O2", "-g", "-Iinclude", source, "-o", program,
            library(libraries / "src/c/libmallard-c.a"), "-pthread")
    else:
        run("rustc", "--edition", "2024", "-C", "opt-level=2", "-g", "--extern",
            f"mallard={build_rust_library()}", source, "-o", program)
    return program


def measure(program, malloc, seed):
    """Runs a program once. Returns its CPU time in ms and its peak memory in MiB.

    A new process inherits the peak memory of the process that starts it, and Python's is large. So launch.c starts the
    program."""
    environment = {**os.environ, "PADDING": "x" * seed.randrange(4096)} # moves the program's stack
    ran = subprocess.run([build / "launch", malloc or "", program], env=environment, check=True, capture_output=True,
                         text=True)
    status, cpu_ms, peak_kib = ran.stdout.split()
    if status != "0":
        fail(f"{program.name} ended with {status}", "the table is as it was", str(program))
    return float(cpu_ms), int(peak_kib) / 1024


def interval(values):
    """Returns the interval, computed from ranks, that contains the median with a confidence of 95 %, or all values."""
    values, count, below, rank = sorted(values), len(values), 0.0, 0
    while True:
        below += math.comb(count, rank) / 2 ** count
        if below > 0.025:
            break
        rank += 1
    rank = max(rank - 1, 0)
    return values[rank], values[-1 - rank]


def forms_of(source):
    """Yields (name of the variant, source file) for each variant of a program."""
    yield "plain", source
    for form in ("advised", "second"):
        changed = source.with_stem(f"{source.stem}_{form}")
        if changed.exists():
            yield form, changed


def same_output(programs):
    printed = {subprocess.run([program, "2"], check=True, capture_output=True).stdout for program in programs}
    if len(printed) > 1:
        fail(f"{programs[0].name} and its changed forms print different results", "the table is as it was",
             " 2; ".join(map(str, programs)) + " 2")


def rows_of(source, options, mallocs, seed):
    """Measures all variants of a program, and returns the rows of the table."""
    built = {form: build_program(path, options.libraries) for form, path in forms_of(source)}
    same_output(list(built.values()))
    cases = [("plain", ""), ("plain", "again")]
    cases += [("plain", malloc) for malloc in mallocs] + [(form, "") for form in built if form != "plain"]
    figures = {case: [] for case in cases}
    for _ in range(options.runs):
        for form, malloc in seed.sample(cases, len(cases)):
            figures[form, malloc].append(measure(built[form], mallocs.get(malloc), seed))
    base = figures["plain", ""]
    for (form, malloc), runs in figures.items():
        cpu = [ms for ms, _ in runs]
        spread = rows.figures(cpu)
        savings = [100 * (1 - ms / of_base) for ms, (of_base, _) in zip(cpu, base)]
        low, high = interval(savings)
        rss, rss_of_base = median(mib for _, mib in runs), median(mib for _, mib in base)
        yield dict(zip(COLUMNS, [
            source.stem, LANGUAGES[source.suffix], "yes" if source.parent.name == "held_out" else "no", form,
            f"glibc {malloc}".strip() if malloc in ("", "again") else malloc, len(runs), f"{median(cpu):.0f}",
            f"{spread['low']:.0f}", f"{spread['high']:.0f}", f"{median(savings):.1f}", f"{low:.1f}", f"{high:.1f}",
            f"{rss:.1f}", f"{100 * (1 - rss / rss_of_base):.1f}"]))


def read_table():
    if not table.exists():
        return []
    with table.open() as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def write_table(all_rows):
    with table.open("w") as out:
        out.write(f"# What changes of programs save, measured: tests/known/measure_truth.py --runs RUNS\n"
                  f"# {machine('g++ ' + text_of('g++', '-dumpfullversion'))}, {text_of('rustc', '--version')}; shared\n"
                  "# Programs with `yes` in held_out are not to be used while the advice is changed: they are there to\n"
                  "# judge it afterwards. Savings are medians of pairs, in % of the plain program under glibc.\n")
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(all_rows)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    triplet = text_of("gcc", "-print-multiarch")
    parser.add_argument("--runs", type=int, default=11, help="how often each row of the table is measured")
    parser.add_argument("--case", default="", metavar="REGEX", help="only the programs whose names match")
    parser.add_argument("--libraries", type=Path, default=root / "build/release", metavar="FOLDER")
    parser.add_argument("--mallocs", type=Path, default=Path("/usr/lib") / triplet, metavar="FOLDER")
    return parser.parse_args()


def main():
    options = parsed()
    options.libraries = options.libraries.resolve()
    mallocs = {name: options.mallocs.resolve() / file for name, file in MALLOCS.items()}
    mallocs["mallard"] = options.libraries / "src/malloc/libmallard.so"
    for path in mallocs.values() if options.runs else ():
        library(path)
    build.mkdir(parents=True, exist_ok=True)
    run("gcc", "-O2", here / "launch.c", "-o", build / "launch")
    kept = {name: [] for name in dict.fromkeys(row["program"] for row in read_table())}
    for row in read_table():
        kept[row["program"]].append(row)
    sources = sorted((source for folder in ("measured", "held_out") for source in (here / folder).iterdir()
                      if not re.search(r"_(advised|second)$", source.stem)), key=lambda source: source.stem)
    seed = random.Random(1)
    for source in sources:
        if options.runs == 0:
            for _, path in forms_of(source):
                build_program(path, options.libraries)
        elif re.search(options.case, source.stem):
            kept[source.stem] = list(rows_of(source, options, mallocs, seed))
            print(*(f"{row['program']:12} {row['form']:8} {row['malloc']:12} {row['cpu_ms']:>6} ms  "
                    f"{row['saving_percent']:>5} % ({row['saving_low']} to {row['saving_high']})  "
                    f"{row['peak_rss_mib']} MiB" for row in kept[source.stem]), sep="\n", flush=True)
            names = {source.stem for source in sources}
            write_table([row for name in sorted(names & kept.keys()) for row in kept[name]])


if __name__ == "__main__":
    main()
