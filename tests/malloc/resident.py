#!/usr/bin/env python3
"""Compares the memory of a program under a malloc with its memory under glibc's malloc.
`resident.py PRELOAD TIMES PROGRAM [WORD...]`

The program prints its memory in KiB. With PRELOAD the number is at most TIMES the number without
PRELOAD, or at most that number and MIB MiB if TIMES is +MIB.
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

skipped = 77


def measure(command, preload):
    environment = {**os.environ, "LD_PRELOAD": preloadable(preload)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode == skipped:
        print(done.stderr)
        sys.exit(skipped)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    return int(done.stdout)


def main(preload, times, *command):
    glibc, ours = measure(command, ""), measure(command, preload)
    print(f"{ours} KiB, and {glibc} KiB under glibc: {ours / glibc:.2f} times as much")
    return ours > (glibc + (int(times) << 10) if times.startswith("+") else glibc * float(times))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
