#!/usr/bin/env python3
"""Finds the minimum address space in which a program starts. `starts.py PROGRAM... [--at-most MIB]`

Tries from 6 to 64 MiB of RLIMIT_AS, with the LD_PRELOAD of this script. A program has not started if
the loader ignored the preload for lack of room, or if every allocation failed.
"""
import os
import re
import resource
import subprocess
import sys


def starts(command, mebibytes, preload):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
    environment = {**os.environ, "LD_PRELOAD": preload}
    done = subprocess.run(command, env=environment, preexec_fn=limit, capture_output=True, text=True)
    blocks, refused = map(int, re.findall(r"(\d+) (?:blocks|refused)", done.stdout) or (0, 1))
    return "cannot be preloaded" not in done.stderr and refused <= blocks, done


def main(*arguments):
    at_most = 64
    if "--at-most" in arguments:
        place = arguments.index("--at-most")
        at_most = int(arguments[place + 1])
        arguments = arguments[:place] + arguments[place + 2:]
    preload = os.environ.pop("LD_PRELOAD", "")
    started = {m: starts(arguments, m, preload) for m in range(6, 65, 2)}
    least = min((m for m, (well, _) in started.items() if well), default=None)
    print(f"starts in {least} MiB")
    failed = [m for m, (well, _) in started.items() if m >= at_most and not well]
    for mebibytes in failed:
        done = started[mebibytes][1]
        print(f"fails in {mebibytes} MiB: status {done.returncode}: {done.stderr}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
