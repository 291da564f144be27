#!/usr/bin/env python3
"""Counts the instructions of malloc and free, of 64 bytes and of large blocks, if the block is in the
thread's list, from the first instruction to the return. `instructions.py PAIRS LIBRARY.so`

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

mebibyte = 1 << 20
# (the hot path, the checks on it): see docs/decisions/0018. A large block is also checked for its
# size.
promised = {("malloc", 64): (16, 6), ("free", 64): (19, 8),
            ("malloc", mebibyte): (28, 6), ("free", mebibyte): (19, 8),
            ("malloc", mebibyte + 1): (64, 6), ("free", mebibyte + 1): (19, 8),
            ("malloc", 32 * mebibyte): (64, 6), ("free", 32 * mebibyte): (19, 8)}


def collected(function, program, library, pairs, size):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               f"--toggle-collect={function}", program, str(pairs), str(size)]
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
    for (function, size), (way, protections) in promised.items():
        count = (collected(function, program, library, many, size) -
                 collected(function, program, library, few, size)) / (many - few)
        print(f"{function} of {size}: {count:g} instructions; promised: at most {way + protections}, "
              f"{protections} of them for protections")
        faults += not 0 < count <= way + protections
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
