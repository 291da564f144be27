#!/usr/bin/env python3
"""Runs test programs under a malloc again and again, and watches their memory.
`soak.py MINUTES LIBRARY.so FOLDER`. FOLDER holds the programs.
First runs a hundred thousand short threads, which must leave no memory behind.

A program fails if it aborts, for example because a block lost its contents. It also fails if it has
more resident memory in the second half of its time than in the first, beyond an allowance for the
timing of threads.
"""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

# The tests that each program runs. Tests that take long or need hundreds of MiB are left out.
programs = {
    "random": "*",                  # every function of the family, threads that swap blocks
    "threads": "*-*short_lived*:*stack*:*outlive*:*reallocated*",
    "fork": "*-*signal_handler*",   # a test for processes that never had threads
    "realloc": "*random*",
}
once = {"threads": "*a_hundred_thousand*"}  # tests that run once; they take seconds


def allowed_kib(first):
    return first + first // 10 + 2048


def resident_kib(pid):
    pages = Path(f"/proc/{pid}/statm").read_text().split()
    return int(pages[1]) * os.sysconf("SC_PAGESIZE") // 1024 if len(pages) > 1 else 0


def peak_kib(process, seconds):
    """Returns the peak resident memory during these seconds. The process keeps running."""
    peak, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise ChildProcessError(f"status {process.returncode}")
        peak = max(peak, resident_kib(process.pid))
        time.sleep(0.02)
    return peak


def soak(program, tests, seconds, library):
    """Runs one program, prints the result, and returns whether it passed."""
    command = [program, f"--gtest_filter={tests}", "--gtest_repeat=-1", "--gtest_brief=1",
               "--gtest_break_on_failure"]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said,
                                   env={**os.environ, "LD_PRELOAD": library})
        try:
            first, second = peak_kib(process, seconds / 2), peak_kib(process, seconds / 2)
            fault = "" if second <= allowed_kib(first) else ": GROWS"
            print(f"{program.name}: {first} KiB in the first half, {second} in the second{fault}",
                  flush=True)
        except ChildProcessError as death:
            said.seek(0)
            fault = f"{program.name}: DIES with {death}\n{said.read()[-2000:]}"
            print(fault, flush=True)
        finally:
            process.kill()
            process.wait()
    return not fault


def pass_once(program, tests, library):
    """Runs tests once that take too long for a build. Prints and returns whether they pass."""
    done = subprocess.run([program, "--gtest_also_run_disabled_tests", f"--gtest_filter={tests}"],
                          env={**os.environ, "LD_PRELOAD": library}, capture_output=True, text=True)
    fine = done.returncode == 0 and "1 test from" in done.stdout
    print(f"{program.name}: {tests} " + ("passes" if fine else f"FAILS\n{done.stdout[-2000:]}"), flush=True)
    return fine


def main(minutes, library, folder):
    seconds = float(minutes) * 60 / len(programs)
    library = preloadable(os.path.abspath(library))
    passed = [pass_once(Path(folder) / f"malloc-{name}", tests, library) for name, tests in once.items()]
    fine = [soak(Path(folder) / f"malloc-{name}", tests, seconds, library)
            for name, tests in programs.items()]
    return 0 if all(passed + fine) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
