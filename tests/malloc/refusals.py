#!/usr/bin/env python3
"""Refuses each system call of a program once, and from each on, one run at a time.

    refusals.py PROGRAM SCENARIO [PRELOAD]
    POINTS=1000 refusals.py ...             beyond the 48th call of a kind

strace makes the n-th call fail, for n from 1 until the program makes no n-th call. It
must end well, whatever it is refused: null is an answer, a signal is a failure. The
last line counts: points tried, those refused in the loader, which then gives up,
and those survived.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

skipped = 77
loaders_first = ("mmap", "1")  # it dies of that, by a signal
points_max = int(os.environ.get("POINTS", 48))
at_once = 4  # so many n, each once and from there on
faults = [("mmap", "ENOMEM"), ("munmap", "ENOMEM"), ("mprotect", "ENOMEM"), ("madvise", "EINVAL"),
          ("mremap", "ENOMEM"), ("membarrier", "EPERM"), ("prctl", "EINVAL")]
# Not brk: the kernel never refuses it so, and glibc's malloc dies of it.


def run(command, preload, call, error, when):
    """(status, whether anything was refused, what it said)"""
    with tempfile.NamedTemporaryFile("r") as log:
        environment = ["-E", f"LD_PRELOAD={preload}"] if preload else []
        done = subprocess.run(
            ["strace", "-f", "--seccomp-bpf", "-o", log.name, *environment,
             "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}", *command],
            capture_output=True, text=True, timeout=60)
        return done.returncode, "INJECTED" in log.read(), done.stderr


def points(first, count):
    return [f"{number}{more}" for number in range(first, first + count) for more in ("", "+")]


def main(program, scenario, preload=""):
    if not shutil.which("strace"):
        print("strace not found: no call is refused")
        return skipped
    command = [program, scenario]
    probe = run(command, preload, "getpid", "EPERM", 1)
    if probe[0] != 0:
        print(f"strace cannot trace here, or {scenario} fails without a refusal:\n{probe[2]}")
        return skipped if "ptrace" in probe[2] else 1

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
