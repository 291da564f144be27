#!/usr/bin/env python3
"""Counts what malloc(64) and its free take where the block is at hand, from the first
instruction to the return. `instructions.py PAIRS LIBRARY.so`

Counted by callgrind, as the difference between a run of the program with many pairs and
one with few: the same on every machine, whatever else it does.
"""
import os
import re
import shutil
import subprocess
import sys

skipped = 77
few, many = 1000, 11000

# (the way itself, what protects a free block on it): see docs/decisions/0018.
promised = {"malloc": (16, 6), "free": (19, 8)}


def collected(function, program, library, pairs):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               f"--toggle-collect={function}", program, str(pairs)]
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": library}, capture_output=True,
                          text=True)
    count = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not count:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    return int(count[1])


def main(program, library):
    if not shutil.which("valgrind"):
        print("valgrind not found: nothing is counted")
        return skipped
    faults = 0
    for function, (way, protections) in promised.items():
        count = (collected(function, program, library, many) -
                 collected(function, program, library, few)) / (many - few)
        print(f"{function}: {count:g} instructions; promised: at most {way + protections}, "
              f"{protections} of them for protections")
        faults += not 0 < count <= way + protections
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
