#!/usr/bin/env python3
"""Verifies one model, and checks that each way to break the model is detected. `run.py MODEL.pml`

The model guards its key lines with names: `#ifdef BREAK_TAG`. If no name is defined, the search is
complete and must find no error. If one name is defined, that line is changed or missing, and the search
must find an error. Otherwise the model would not test the line.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

skipped = 77
# tcc compiles a search in 0.02 s, and cc in 0.4 to 0.9 s. The search itself takes a sixth longer with tcc,
# which is less than the time to compile, except for the longest searches.
compiler = shutil.which("tcc") or "cc"
compiler_flags = ["-O0", "-w", "-DSAFETY", "-DNOCLAIM", "-DMEMLIM=1024"]
# -m: the maximum number of steps of a run. -w: log2 of the number of hash table slots.
search_flags = ["-m1000000", "-w22"]


def search(model, *defines):
    """Searches all states of a model, and returns the output of the search."""
    with tempfile.TemporaryDirectory() as directory:
        def run(*command):
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{model}: {' '.join(command)} failed\n{done.stdout}{done.stderr}")
            return done.stdout
        run("spin", *defines, "-a", str(model))
        run(compiler, *compiler_flags, "-o", "pan", "pan.c")
        return run("./pan", *search_flags)


def error_in(report):
    match = re.search(r"^pan:\d+: (.*?)(?: \(at depth \d+\))?$", report, re.M)
    return " ".join(match[1].split()) if match else None


def is_complete(report):
    return "errors: 0" in report and not re.search("depth too small|not completed", report)


def main(path):
    missing = [tool for tool in ("spin", compiler) if not shutil.which(tool)]
    if missing:
        print(f"{' and '.join(missing)} not found: the models are not verified")
        return skipped
    model = Path(path).resolve()
    failures = 0

    report = search(model)
    if is_complete(report):
        print(f"{model.stem}: verified, {re.search(r'([0-9]+) states, stored', report)[1]} states")
    else:
        print(f"{model.stem}: {error_in(report) or 'the search is not complete'}\n{report}")
        failures += 1

    for name in sorted(set(re.findall(r"\bBREAK_\w+", model.read_text()))):
        error = error_in(search(model, f"-D{name}"))
        if error:
            print(f"{model.stem} with {name}: fails as it should: {error}")
        else:
            print(f"{model.stem} with {name}: it verifies, or its search is not complete")
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
