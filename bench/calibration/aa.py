#!/usr/bin/env python3
"""Compares a program with itself, many times, and counts how often the two are called different.

    bench/calibration/aa.py --runs 200                  `mallard verify` and `mallard replay`, each 200 times
    bench/calibration/aa.py --runs 200 --busy           the same, with a busy loop on the last processor
    bench/calibration/aa.py verify --budget 5 -- PROG ARGS

verify: both commands of `mallard verify` are the program. replay: the program is recorded once, and
replayed under glibc as base and as candidate. Both sides are the same, so each gain and loss is wrong.

The table has the verdicts on CPU time and on memory. `different` is the share of gains and losses, and
`at most` the upper end of its one-sided 95 % interval: 1.5 % if none of 200 is called different. The status
is 1 if more than 5 % are called different. After Ctrl-C, the table has the comparisons made so far.

MALLARD, MALLARD_RECORDER and MALLARD_REPLAY have the paths of the command, its recorder and mallard-replay.
"""
import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter

VERDICTS = ("gain", "loss", "no difference", "not measurable")
SHARE_MAX = 0.05
PROGRAM = ["perl", "-e", 'my %h; $h{$_} = "customer $_" for 1..30000; print scalar(keys %h), "\\n"']


def fail(what, state, help):
    sys.exit(f"aa.py: {what}\n  {state}\n  help: {help}")


def shell_words(words):
    """Quotes words so that a shell reads them back unchanged. Returns the command line."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def chance_of_at_most(hits, runs, share):
    """Returns the probability of at most `hits` hits in `runs` runs, if each run is a hit with probability `share`."""
    return sum(math.comb(runs, k) * share**k * (1 - share)**(runs - k) for k in range(hits + 1))


def upper_end(hits, runs):
    """Returns the upper end of the one-sided 95 % interval of a share, by Clopper and Pearson.

    At this share, `hits` or fewer hits in `runs` runs have a probability of 5 %.
    """
    if runs == 0 or hits == runs:
        return 1.0
    low, high = hits / runs, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if chance_of_at_most(hits, runs, middle) > 0.05 else (low, middle)
    return high


class Counts:
    """The verdicts on one metric of one command."""

    def __init__(self, command, metric):
        self.command, self.metric, self.of = command, metric, Counter()

    def different(self):
        return self.of["gain"] + self.of["loss"]

    def share(self):
        return self.different() / max(1, self.of.total())

    def json(self):
        runs = self.of.total()
        return {"command": self.command, "metric": self.metric, "runs": runs,
                **{verdict: self.of[verdict] for verdict in VERDICTS},
                "different": self.share(), "at_most": upper_end(self.different(), runs)}


def table(all_counts):
    lines = [["", "", "runs", *VERDICTS, "different", "at most"]]
    for counts in all_counts:
        row = counts.json()
        lines.append([row["command"], row["metric"], str(row["runs"]), *(str(row[v]) for v in VERDICTS),
                      f"{100 * row['different']:.1f} %", f"{100 * row['at_most']:.1f} %"])
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


class Comparison:
    """A command of mallard that compares the program with itself."""

    def __init__(self, name, words):
        self.name, self.words = name, words
        self.counts = [Counts(name, "cpu"), Counts(name, "memory")]

    def run_once(self):
        done = subprocess.run(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        # `verify` returns 1 for a loss, which is a verdict and not an error.
        if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
            first = (done.stderr.strip().splitlines() or ["it printed nothing"])[0]
            fail(f"mallard {self.name}: {first}", "the runs before this one are not counted", shell_words(self.words))
        candidate = json.loads(done.stdout)["candidates"][0]
        if candidate["broken"] is not None:
            fail(f"mallard {self.name}: {candidate['broken']}", "the two cannot be compared",
                 "take a program that does the same in each run")
        for counts in self.counts:
            counts.of[candidate[counts.metric]["verdict"]] += 1


@contextlib.contextmanager
def busy_loop(wanted):
    """Runs a busy loop on the last processor while the context is open, if `wanted`."""
    if not wanted:
        yield
        return
    last = max(os.sched_getaffinity(0))
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                            preexec_fn=lambda: os.sched_setaffinity(0, {last}))
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def comparisons(options, folder):
    mallard = os.environ.get("MALLARD", "mallard")
    usual = ["--quiet", "--json", "--budget", f"{options.budget:g}s"]
    found = []
    if options.command in ("verify", "both"):
        line = shell_words(options.program)
        found.append(Comparison("verify", [mallard, "verify", *usual, "--before", line, "--after", line]))
    if options.command in ("replay", "both"):
        trace = f"{folder}/recorded"
        subprocess.run([mallard, "record", "--quiet", "-o", trace, "--", *options.program], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        found.append(Comparison("replay", [mallard, "replay", *usual, "--allocator", "glibc", trace]))
    return found


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="bench/calibration/aa.py", description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs="?", default="both", choices=["verify", "replay", "both"])
    parser.add_argument("--runs", type=int, default=200, metavar="N", help="comparisons by each command")
    parser.add_argument("--budget", type=float, default=2.5, metavar="SECONDS", help="for each comparison")
    parser.add_argument("--busy", action="store_true", help="with a busy loop on the last processor")
    parser.add_argument("--json", action="store_true", help="one object of JSON a line instead of a table")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:end])
    options.program = arguments[end + 1:] or PROGRAM
    if options.runs < 1 or options.budget <= 0:
        parser.error("--runs and --budget are above 0")
    return options


def count_all(all_comparisons, runs):
    """Runs each comparison `runs` times, interleaved. Ctrl-C ends the runs."""
    try:
        for run in range(runs):
            for comparison in all_comparisons:
                comparison.run_once()
            print(f"\r{run + 1} of {runs} ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass
    print(file=sys.stderr)


def main():
    options = parsed(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="mallard-aa-") as folder, busy_loop(options.busy):
        try:
            all_comparisons = comparisons(options, folder)
        except (OSError, subprocess.CalledProcessError) as error:
            fail(f"the program cannot be recorded: {error}", "nothing was compared",
                 "MALLARD=path/to/mallard bench/calibration/aa.py")
        count_all(all_comparisons, options.runs)
    all_counts = [counts for comparison in all_comparisons for counts in comparison.counts]
    if options.json:
        for counts in all_counts:
            print(json.dumps({**counts.json(), "busy": options.busy, "budget": options.budget}))
    else:
        print(table(all_counts))
    sys.exit(any(counts.share() > SHARE_MAX for counts in all_counts))


if __name__ == "__main__":
    main()
