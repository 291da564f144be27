#!/usr/bin/env python3
"""Runs one misuse program and compares what happens with the first line of its source.

    run.py SOURCE PROGRAM [PRELOAD [BUILD]]

The argument of PROGRAM is the name of SOURCE without .cpp: a united program runs that source. The
first line has the expected outcome of the program:

    // dies: LINE       Mallard detects the misuse and aborts the program. stderr is three lines: LINE
                        first, help last; after the second line there may be lines indented by four.
    // segfaults: TEXT  the program accesses an inaccessible page, after printing TEXT
    // lives: TEXT      the misuse is not detected; the program continues and prints TEXT
    // asan: TEXT       AddressSanitizer reports TEXT; skipped in other builds
    // valgrind: TEXT   Valgrind reports TEXT; skipped under a sanitizer

A second line `// asan: TEXT` has what AddressSanitizer reports, in its builds, before Mallard detects
anything.

In LINE, the word ADDRESS stands for any address. The programs of tests/malloc/misuse have a second
such line, for the checked malloc (libmallard-checked.so): `// checked dies: LINE`. The second line
applies if BUILD is `checked`.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

skipped = 77


def verdict_of_death(expected, run, helper=""):
    """Returns None if the program died as expected and its help line names `helper`. Otherwise returns
    what is wrong."""
    pattern = re.escape(expected).replace("ADDRESS", "0x[0-9a-f]+")
    lines = run.stderr.splitlines()
    if run.returncode != -signal.SIGABRT:
        return f"expected an abort, got status {run.returncode}"
    if not lines or not re.fullmatch(pattern, lines[0]):
        return f"expected the first line: {expected}"
    lines = [line for line in lines if not line.startswith("    ")]
    if len(lines) != 3 or not lines[1].startswith("  ") or not lines[2].startswith("  help: "):
        return "expected three lines: what happened, what state things are in, help"
    if helper not in lines[2]:
        return f"expected a help that names {helper}"
    path = re.search(r"LD_PRELOAD=(\S+)", lines[2])
    if path and not os.path.exists(path[1]):
        return "expected a help that names a library by a path that exists"
    return None


def verdict_of_touch(expected, run):
    # AddressSanitizer has its own signal handler, which reports SEGV and exits.
    if run.returncode != -signal.SIGSEGV and "Sanitizer: SEGV" not in run.stderr:
        return f"expected a segmentation fault, got status {run.returncode}"
    return None if run.stdout.strip() == expected else f"expected to get to: {expected}"


def verdict_of_life(expected, run):
    if run.returncode != 0 or run.stderr:
        return f"expected no complaint, got status {run.returncode}"
    return None if run.stdout.strip() == expected else f"expected to see: {expected}"


def verdict_of_report(expected, run):
    if run.returncode == 0 or expected not in run.stderr:
        return f"expected a failure that reports: {expected}"
    return None


def main(source, program, preload="", build=""):
    with open(source) as file:
        line, second = file.readline(), file.readline()
        if build:
            line = second.replace(f"// {build} ", "// ", 1)
    match = re.fullmatch(r"// (dies|segfaults|lives|asan|valgrind): (\S.*)\n", line)
    if not match:
        sys.exit(f"{source}:1: expected `// dies: LINE`, `// segfaults: TEXT`, "
                 "`// lives: TEXT`, `// asan: TEXT` or `// valgrind: TEXT`")
    kind, expected = match.groups()

    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    if second.startswith("// asan: ") and "__asan_init" in symbols:
        kind, expected = "asan", second.removeprefix("// asan: ").strip()
    if kind == "asan" and "__asan_init" not in symbols:
        print("skipped: this is not built with AddressSanitizer, which reports it")
        return skipped
    if kind == "valgrind" and (re.search("__(asan|tsan|ubsan)_", symbols) or not shutil.which("valgrind")):
        print("skipped: Valgrind reports it, which is not here or does not run a program with a sanitizer")
        return skipped
    tracer = ["valgrind", "-q", "--error-exitcode=1"] if kind == "valgrind" else []
    environment = {**os.environ, "LD_PRELOAD": preloadable(preload)} if preload else None
    run = subprocess.run([*tracer, program, Path(source).stem], env=environment, capture_output=True,
                         text=True, timeout=250)
    # qemu-user, which tests/consumer/aarch64 uses, adds this line.
    run.stderr = re.sub(r"(?m)^qemu: uncaught target signal .*\n", "", run.stderr)

    # When malloc stops a program, its help line names the checked malloc, which finds more bugs.
    helper = "libmallard-checked.so" if preload and not build else ""
    verdicts = {"dies": lambda expected, run: verdict_of_death(expected, run, helper), "segfaults": verdict_of_touch,
                "lives": verdict_of_life}
    verdict = verdicts.get(kind, verdict_of_report)(expected, run)
    if verdict:
        print(f"{source}: {verdict}\nstatus {run.returncode}, stderr:\n{run.stderr}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
