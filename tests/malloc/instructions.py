#!/usr/bin/env python3
"""Counts the instructions of malloc and free on their fast paths, from the first instruction to the
return, for blocks of 64 bytes and for large blocks. `instructions.py PAIRS LIBRARY.so`

callgrind counts the difference between a run with many pairs and a run with few. The result is the
same on every machine.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

skipped = 77
few, many = 1000, 11000

mebibyte = 1 << 20
# The expected maximum for each call: (instructions of its hot path, instructions of its checks). See
# docs/decisions/0018. For a large block, the count includes a check of the size.
promised = {("malloc", 64): (16, 6), ("free", 64): (19, 8),
            ("malloc", mebibyte): (28, 6), ("free", mebibyte): (19, 8),
            ("malloc", mebibyte + 1): (64, 6), ("free", mebibyte + 1): (19, 8),
            ("malloc", 32 * mebibyte): (64, 6), ("free", 32 * mebibyte): (19, 8)}


def begins_with_endbr64(function, library):
    """Returns whether a function begins with endbr64, an instruction that marks it as a target of jumps,
    and does nothing else (-fcf-protection, a default of compilers on Ubuntu)."""
    symbols = subprocess.run(["readelf", "-sW", library], capture_output=True, text=True).stdout
    address = int(re.search(rf" ([0-9a-f]{{16}}) .* {function}$", symbols, re.M)[1], 16)
    code = subprocess.run(["objdump", "--disassemble", f"--start-address={address}", f"--stop-address={address + 4}",
                           library], capture_output=True, text=True).stdout
    return "endbr64" in code


def collected(function, program, library, pairs, size):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               f"--toggle-collect={function}", program, str(pairs), str(size)]
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": preloadable(library)}, capture_output=True,
                          text=True)
    count = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not count:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    return int(count[1])


def main(program, library):
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind, which counts the instructions")
        return skipped
    faults = 0
    for (function, size), (way, protections) in promised.items():
        count = (collected(function, program, library, many, size) -
                 collected(function, program, library, few, size)) / (many - few)
        count -= begins_with_endbr64(function, library)
        print(f"{function} of {size}: {count:g} instructions; promised: at most {way + protections}, "
              f"{protections} of them for protections")
        faults += not 0 < count <= way + protections
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
