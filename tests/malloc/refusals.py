#!/usr/bin/env python3
"""Runs a program again and again, and makes a different system call fail each time.

    refusals.py PROGRAM SCENARIO [PRELOAD]
    POINTS=1000 refusals.py ...             makes n at most 1000. The default is 48, or 12 in `./x test`

strace makes the n-th call of a kind fail, or all calls from the n-th on, for n from 1 until the
program makes no n-th call. malloc may return null, but the program must not die by a signal. The
last line counts the points tried, the failures in the loader, which then gives up, and the points
survived.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

skipped = 77
loaders_first = ("mmap", "1")  # a failure of this call kills the program by a signal
points_max = int(os.environ.get("POINTS", 48 if int(os.environ.get("MALLARD_TEST_LENGTH", 100)) >= 100 else 12))
at_once = 4  # number of values of n that are tried at the same time
faults = [("mmap", "ENOMEM"), ("munmap", "ENOMEM"), ("mprotect", "ENOMEM"), ("madvise", "EINVAL"),
          ("mremap", "ENOMEM"), ("membarrier", "EPERM"), ("prctl", "EINVAL")]
# The call brk is omitted, because the kernel never fails it in this way, and glibc's malloc would
# abort.


def run(command, preload, call, error, when):
    """Returns (exit status, whether a call failed, output)."""
    with tempfile.NamedTemporaryFile("r") as log:
        environment = ["-E", f"LD_PRELOAD={preloadable(preload)}"] if preload else []
        done = subprocess.run(
            ["strace", "-f", "--seccomp-bpf", "-o", log.name, *environment,
             "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}", *command],
            capture_output=True, text=True, timeout=250)
        return done.returncode, "INJECTED" in log.read(), done.stderr


def points(first, count):
    return [f"{number}{more}" for number in range(first, first + count) for more in ("", "+")]


def main(program, scenario, preload=""):
    if not shutil.which("strace"):
        print("skipped: there is no strace, which makes calls fail")
        return skipped
    command = [program, scenario]
    probe = run(command, preload, "getpid", "EPERM", 1)
    if probe[0] != 0:
        if refusal := re.search(".*(?:ptrace|seccomp).*", probe[2], re.I):
            print(f"skipped: strace may not trace here: {refusal[0]}")
            return skipped
        print(f"{scenario} fails without a refusal:\n{probe[2]}")
        return 1

    tried = loader = survived = 0
    failures = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for call, error in faults:
            for first in range(1, points_max + 1, at_once):
                some = points(first, at_once)
                outcomes = list(pool.map(
                    lambda when: run(command, preload, call, error, when), some))
                for when, (status, refused, said) in zip(some, outcomes):
                    tried += refused
                    if status == 0:
                        survived += refused
                    elif status == 127 or (call, when.rstrip("+")) == loaders_first:
                        loader += 1
                    else:
                        failures.append(f"{call}={error} when={when}: status {status}: {said}")
                if not all(refused for _, refused, _ in outcomes):
                    break
    print("\n".join(failures), end="\n" if failures else "")
    print(f"{scenario}: {tried} tried, {loader} in the loader, {survived} survived, "
          f"{len(failures)} not")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
