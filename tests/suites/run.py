#!/usr/bin/env python3
"""Runs tests of CPython, perl, SQLite and redis under plans for half of all call stacks, chosen at random.

    run.py [--mallard FILE] [--work DIRECTORY] [--seed N] [--jobs N] [--same-plan] [NAME...]

A short run of each program is recorded, and half of its call stacks get local allocators of all kinds. Call stacks
that were not recorded belong to random ranges of the code. Then each test file runs without the plan and under it.
Its status and its output have to be the same, apart from process IDs, times and addresses. NAME is a program, such as
perl, or a test, such as perl.t/op/hash.t.

NAME.txt lists the tests of each program. A line `- TEST # why` leaves a test out. For a test with a line `status TEST
# why`, only the status is compared, for example because threads print in a changing order.

--same-plan uses the plan of the last run, WORK/PROGRAM.plan. Without it, plans differ a little from run to run,
because recordings of a program do.

A test whose output differs runs again, without the plan and under it. It has failed if it differs twice, or if the
plan ended the program by a signal. A test that fails twice without the plan is skipped.

MALLARD_RECORDER and MALLARD_PLAN_LIBRARY name the libraries. The status is 1 if a test failed.
"""
import argparse
import difflib
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
import programs  # noqa: E402
import stacks  # noqa: E402
from programs import Missing  # noqa: E402

root = Path(__file__).resolve().parents[2]
seconds = 400  # the limit of a test
shown = 12     # lines of a difference
everywhere = ((r"0x[0-9a-fA-F]+", "0x"), (r"(?i)\b(process|parent|child|pid)([ :=]+)\d+", r"\1\2PID"),
              (r"\b\d+(\.\d+)? ?(ms|us|s|sec|secs|seconds|microseconds)\b", "TIME"))


@dataclass(frozen=True)
class Done:
    """The result of one run of a test."""
    status: int
    out: str
    err: str


class Suite:
    """The tests of a program, and the plan under which they run."""

    def __init__(self, program, options):
        self.program, self.options = program, options
        self.plan = options.work / f"{program.name}.plan"
        self.library = os.environ.get("MALLARD_PLAN_LIBRARY") or str(root / "build/release/src/plan/libmallard-plan.so")

    def environment(self, place, plan=None):
        """Returns the environment of a test, which has no variables of the user."""
        found = {name: os.environ[name] for name in ("PATH", "USER", "LOGNAME") if name in os.environ}
        found |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(place), "TMPDIR": str(place), **self.program.environment}
        return found | ({"LD_PRELOAD": self.library, "MALLARD_PLAN": str(plan)} if plan else {})

    # --- the plan

    def make_plan(self):
        """Records the program, and makes the plan. Returns a line about it."""
        if self.options.same_plan and self.plan.exists():
            return f"the plan is {self.plan}"
        trace = self.options.work / f"{self.program.name}.mallard"
        place = self.new_place(0)
        variables = {name: value for name, value in os.environ.items() if name.startswith("MALLARD_")}
        programs.output_of(self.options.mallard, "record", "--quiet", "--force", "-o", trace, *self.program.recording(place),
                           cwd=self.program.directory(self.program.short_run, place), env=self.environment(place) | variables)
        profile = self.options.work / f"{self.program.name}.pb.gz"
        programs.output_of(self.options.mallard, "export", "--format", "pprof", "--full", "--force", "-o", profile, trace)
        recorded = stacks.recorded(profile)
        plan, served, count = stacks.half_of(self.program.file, self.program.libraries(), recorded, self.options.seed)
        self.plan.write_bytes(plan.bytes())
        return f"seed {self.options.seed}; rules for {served:,} of {count:,} recorded call stacks, and {len(plan.ranges):,} ranges"

    def blocks(self):
        """Returns the number of blocks that the rules of the plan serve in a short run."""
        report = self.options.work / f"{self.program.name}.report"
        report.unlink(missing_ok=True)
        self.run(self.program.short_run, 0, self.plan, {"MALLARD_PLAN_REPORT": str(report)})
        lines = report.read_text().splitlines() if report.exists() else []
        return sum(rule["blocks"] - rule["large"] - rule["refused"] for line in lines for rule in json.loads(line)["rules"])

    def new_place(self, job):
        """Makes an empty directory for a test. Tests that run at the same time have different job numbers."""
        place = self.options.places / str(job)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        self.program.prepare_place(place)
        return place

    # --- a test

    def run(self, test, job, plan=None, variables=None):
        """Runs a test once."""
        place = self.new_place(job)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            # A shell makes background programs ignore SIGINT, so the signals are reset.
            command = ["env", "--default-signal=INT,QUIT,HUP", *self.program.command(test, place, job)]
            process = subprocess.Popen(command, cwd=self.program.directory(test, place),
                                       env=self.environment(place, plan) | (variables or {}), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       start_new_session=True)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = f"none after {seconds} s"
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            if test in self.program.status_only:
                return Done(status, "", "")
            return Done(status, *(self.masked(file, place) for file in (out, err)))

    def masked(self, file, place):
        file.seek(0)
        text = self.program.masked(file.read().decode(errors="replace").replace(str(place), "PLACE"))
        for pattern, instead in everywhere:
            text = re.sub(pattern, instead, text)
        return text

    def check(self, test, job):
        """Runs a test without the plan and under it. Returns (verdict, detail)."""
        bare, planned, status = [], [], 0
        for _ in range(2):
            done = self.run(test, job)
            if done.status != 0:
                status = done.status
                continue
            bare.append(done)
            planned.append(self.run(test, job, self.plan))
            if isinstance(planned[-1].status, int) and planned[-1].status < 0:
                break
            if planned[-1] in bare:
                first = f"differed in the first of two runs:\n{difference(bare[0], planned[0])}" if len(bare) > 1 else ""
                return "OK", first
        if not bare:
            return "SKIPPED", f"fails twice without a plan: status {status}"
        return "FAILED", difference(bare[-1], planned[-1])


def difference(bare, planned):
    """Returns the first lines that differ between two outputs of a test."""
    lines = [] if bare.status == planned.status else [f"status {bare.status} without the plan, {planned.status} under it"]
    for name in "out", "err":
        a, b = (getattr(done, name).splitlines() for done in (bare, planned))
        lines += list(difflib.unified_diff(a, b, f"std{name} without the plan", f"std{name} under it", lineterm="", n=1))[:shown]
    return "\n".join(lines)


class Printer:
    """Prints the results as GoogleTest does, so that `./x test` counts them."""

    def __init__(self):
        self.lock, self.counts = threading.Lock(), {"OK": 0, "FAILED": 0, "SKIPPED": 0}

    def add(self, name, verdict, detail, seconds=0.0):
        with self.lock:
            self.counts[verdict] += 1
            reason = f"suites: Skipped\n{detail}\n" if verdict == "SKIPPED" else f"{detail}\n" if detail else ""
            if verdict == "FAILED":
                reason += f"alone: tests/suites/run.py --same-plan {name}\n"
            print(f"[ RUN      ] {name}\n{reason}[{verdict:>9} ] {name} ({1000 * seconds:.0f} ms)", flush=True)


def run(suite, names, printer):
    """Runs the tests of a program: the tests in `names`, or all if there are none."""
    name = suite.program.name
    tests = [test for test in suite.program.tests if not names or names & {name, f"{name}.{test}"}]
    left_out = {} if names and name not in names else suite.program.left_out
    if not tests and not left_out:
        return
    try:
        suite.program.get()
        print(f"{name}: {suite.make_plan()}", flush=True)
        blocks = suite.blocks()
        print(f"{name}: the plan serves {blocks:,} blocks of {suite.program.short_run}", flush=True)
        if not blocks:
            printer.add(f"{name}.plan", "FAILED", "the plan serves no block")
            return
    except Missing as reason:
        for test in tests:
            printer.add(f"{name}.{test}", "SKIPPED", str(reason))
        return
    for test, reason in left_out.items():
        printer.add(f"{name}.{test}", "SKIPPED", reason)
    jobs = queue.SimpleQueue()
    for job in range(suite.options.jobs):
        jobs.put(job)

    def one(test):
        job, begun = jobs.get(), time.monotonic()
        try:
            verdict, detail = suite.check(test, job)
            printer.add(f"{name}.{test}", verdict, detail, time.monotonic() - begun)
        finally:
            jobs.put(job)

    with ThreadPoolExecutor(suite.options.jobs) as pool:
        list(pool.map(one, tests))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mallard", type=Path, default=root / "build/cargo/debug/mallard")
    parser.add_argument("--work", type=Path, default=root / "build/suites")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--same-plan", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    printer, begun = Printer(), time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.work, prefix="places-", ignore_cleanup_errors=True) as places:
        options.places = Path(places)
        for program in programs.ALL:
            run(Suite(program(options.work), options), set(options.names), printer)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"in all {time.monotonic() - begun:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU time")
    print(f"{printer.counts['OK']} passed, {printer.counts['FAILED']} failed, {printer.counts['SKIPPED']} skipped")
    return 1 if printer.counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
