"""Collects the results of a test run, shows its progress, and prints the summary at the end."""
import json
import os
import re
import shlex
import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from table import root

times_file = root / "build/test-seconds.json"  # how long each stage took, for the estimate of the next run
names_file = root / "build/test-names.txt"     # the cases that ran, which a filter may name


@dataclass
class Stage:
    """A running stage."""
    name: str
    expected: float                # seconds, as far as known
    began: float = 0.0
    ended: float = 0.0
    doing: str = ""
    seconds: Counter = field(default_factory=Counter)   # for the build and for the run
    cpu: Counter = field(default_factory=Counter)
    cases: dict = field(default_factory=dict)           # (program, name): Case

    def left(self, now):
        if self.ended:
            return 0.0
        spent = now - self.began if self.began else 0.0
        return max(self.expected - spent, 0.1 * self.expected)

    def count(self, verdict):
        return sum(case.verdict == verdict for case in self.cases.values())

    def built(self):
        return all(case.program for case in self.cases.values() if case.verdict == "failed")


def width_of_terminal():
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


class Results:
    """Collects cases from all stages, which may run at the same time. Every method may be called by any thread."""

    def __init__(self, chains, alone, expected, tier, whole=True):
        self.lock = threading.Lock()
        self.tier, self.whole = tier, whole  # plain or all; whether all tests of each stage run
        self.began = time.monotonic()
        try:
            measured = json.loads(times_file.read_text()).get(tier, {})
        except (OSError, ValueError):
            measured = {}
        self.stages = {name: Stage(name, measured.get(name, expected.get(name, 60))) for chain in (*chains, alone) for name in chain}
        self.chains, self.alone = chains, alone  # stage names: of parallel chains, and of others
        self.shows_line = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.last_line = time.monotonic()

    @staticmethod
    def now():
        return time.monotonic()

    def say(self, text):
        """Prints lines above the progress line."""
        with self.lock:
            print(f"\r\033[K{text}" if self.shows_line else text, file=sys.stderr, flush=True)

    def add(self, stage, cases):
        for case in cases:
            with self.lock:
                key = case.program, case.name
                found = self.stages[stage].cases
                if case.verdict == "skipped" and not case.program:  # a Rust test without its tool, which passed
                    key = next((other for other in found if other[1] == case.name), key)
                found[key] = case
            if case.verdict == "failed":
                self.say(f"  FAILED  {stage}: {case.name}")

    def count(self, verdict):
        return sum(stage.count(verdict) for stage in self.stages.values())

    # --- progress

    def line(self):
        now = self.now()
        doing = "   ".join(f"{stage.name}: {stage.doing}" for stage in self.stages.values()
                           if stage.began and not stage.ended)
        if not self.whole:
            return f"{self.count('passed'):,} passed, {self.count('failed')} failed   {doing}"
        left_of = lambda names: sum(self.stages[name].left(now) for name in names)  # noqa: E731
        left = max(map(left_of, self.chains), default=0) + left_of(self.alone)
        left = "less than a minute left" if left < 50 else f"about {left / 60:.0f} min left"
        return f"{self.count('passed'):,} passed, {self.count('failed')} failed, {left}   {doing}"

    def show_progress(self):
        """Shows the progress in one line, which is updated on a terminal, and written to a log once a minute."""
        now = self.now()
        with self.lock:
            if self.shows_line:
                print(f"\r\033[K  {self.line()[:width_of_terminal() - 3]}", end="", file=sys.stderr, flush=True)
            elif now - self.last_line >= 60:
                self.last_line = now
                print(f"  {self.line()}", file=sys.stderr, flush=True)

    # --- the end

    def save(self, ended):
        """Saves the names of cases, and the duration of stages that were built and have run, for later runs."""
        complete = ended and self.whole
        names = {tuple(line.split("\t")) for line in names_file.read_text().splitlines()} if names_file.exists() else set()
        ran = {(stage.name, program, name) for stage in self.stages.values() for program, name in stage.cases if program}
        fresh = {(stage, program) for stage, program, _ in ran} if complete else set()
        names = {entry for entry in names if entry[:2] not in fresh} | ran
        names_file.write_text("".join("\t".join(entry) + "\n" for entry in sorted(names) if "\n" not in entry[2]))
        if complete:
            try:
                known = json.loads(times_file.read_text())
            except (OSError, ValueError):
                known = {}
            known.setdefault(self.tier, {}).update(
                {stage.name: round(stage.ended - stage.began) for stage in self.stages.values() if stage.ended and stage.built()})
            times_file.write_text(json.dumps(known, indent=1))

    def print_summary(self, log):
        if self.shows_line:
            print("\r\033[K", end="", file=sys.stderr)
        self.print_skips()
        self.print_failures()
        self.print_stages()
        print(f"the logs are in {log}", file=sys.stderr)

    def print_skips(self):
        reasons = defaultdict(list)
        for stage in self.stages.values():
            for case in stage.cases.values():
                if case.verdict == "skipped":
                    reasons[case.detail.strip()].append(f"{stage.name} {case.name}")
        for reason, names in sorted(reasons.items()):
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            print(f"skipped: {reason}: {', '.join(names[:2])}{more}", file=sys.stderr)

    def print_failures(self):
        for stage in self.stages.values():
            for case in stage.cases.values():
                if case.verdict == "failed":
                    detail = "".join(f"\n    {line}" for line in case.detail.splitlines())
                    print(f"\nFAILED  {stage.name}: {case.name}{detail}\n"
                          f"  alone: ./x test {alone(stage.name, case, self.tier)}", file=sys.stderr)

    def print_stages(self):
        print(f"\n{'stage':10} {'passed':>7} {'failed':>7} {'skipped':>8} {'build':>8} {'CPU':>8} {'tests':>8} {'CPU':>8}",
              file=sys.stderr)
        for stage in self.stages.values():
            if stage.began:
                print(f"{stage.name:10} {stage.count('passed'):7,} {stage.count('failed'):7,} {stage.count('skipped'):8,}"
                      f" {stage.seconds['build']:6.0f} s {stage.cpu['build']:6.0f} s"
                      f" {stage.seconds['test']:6.0f} s {stage.cpu['test']:6.0f} s", file=sys.stderr)
        cpu = sum(sum(stage.cpu.values()) for stage in self.stages.values())
        print(f"in all {time.monotonic() - self.began:.0f} s, {cpu:.0f} s of CPU time", file=sys.stderr)

    def closing_line(self):
        line = f"{self.count('passed')} passed, {self.count('failed')} failed"
        return f"{line}, {self.count('skipped')} skipped" if self.count("skipped") else line


def alone(stage, case, tier):
    """Returns the arguments for ./x test that run a failed case, or its whole stage, again."""
    words = ["--all"] if tier == "all" else []  # with --all, random tests are longer
    words += ["--stage", stage]
    if case.program:
        words.append(re.sub(r"[][(){}+*?^$|\\]", r"\\\g<0>", case.name))
    return shlex.join(words)
