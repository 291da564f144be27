#!/usr/bin/env python3
"""Compares what `mallard replay` predicts for programs with what `mallard try` measures.

    ./x bench calibration [--short] [--json] [--case REGEX] [--allocator NAME]... [--budget SECONDS]
    bench/calibration/run.py --mallard COMMAND --bench mallard-bench ...

Records each program once, replays the recording under each allocator, and runs the program itself under the same
allocators. mallard-bench prints the commands of the programs and writes their input. Prints a table for each
program, or with --json results of the suite `calibration`. The metrics of each allocator are changes relative to
glibc, in percent or KiB. A negative change is a saving. `low` and `high` are the ends of the 95 % interval of a
change.

    real_cpu_percent            change of the CPU time, measured with the program itself
    replayed_cpu_percent        change of the CPU time in the replay: calls and pages, without locality
    predicted_cpu_percent       the interval in which the replay expects the program's change
    real_peak_change_kib        change of the peak RSS of the program
    replayed_peak_change_kib    change of the peak of the heap in the replay

These metrics are not changes. The first has a result for each allocator, the others only for glibc:

    real_peak_kib               the peak RSS of the program
    real_cpu_seconds            the CPU time of the program
    replayed_cpu_seconds        the CPU time of the program, as the recording has it
    real_page_faults            the page faults of the program
    replayed_page_faults        the page faults of the replay

The result of a change has a `verdict`, and a `why` if there is a known reason why the change is uncertain.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

root = Path(__file__).resolve().parents[2]
ALLOCATORS = ["mallard", "mimalloc", "jemalloc", "tcmalloc", "snmalloc-0.7.6", "rpmalloc-1.4.3",
              "glibc:tcache=1000"]
START_SECONDS = 10 # for a server, until its load succeeds


class Effort:
    """How many measurements are made of each program."""

    def __init__(self, options):
        self.share = 0.3 if options.short else 1.0
        self.blocks = 8 if options.short else 10 # verdicts on seven allocators need 9
        self.least, self.most = (10, 30) if options.short else (15, 90) # seconds
        self.fixed = options.budget

    def budget(self, seconds, columns):
        """Returns the time budget for a program that runs for `seconds`, in interleaved runs under `columns`
        allocators."""
        needed = 1.1 * self.blocks * columns * seconds
        return self.fixed or round(min(max(needed, self.least), self.most))


def fail(what, state, help):
    sys.exit(f"run.py: {what}\n  {state}\n  help: {help}")


def say(text):
    print(text, file=sys.stderr, flush=True)


def commands_of(bench, *arguments):
    """Returns the machine, and the programs with their commands."""
    done = subprocess.run([bench, "commands", *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        fail("mallard-bench printed no commands", "nothing was measured", "./x build bench")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[0], lines[1:]


def installed(mallard, wanted):
    """Returns the allocators that can be used. Prints which ones are missing."""
    done = subprocess.run([mallard, "try", "--list", "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        fail("mallard does not list allocators", "nothing was measured", f"{mallard} try --list")
    known = {entry["name"]: entry for entry in json.loads(done.stdout)}
    found = []
    for name in wanted:
        entry = known.get(name)
        if entry is None and "=" not in name:
            fail(f"there is no allocator '{name}'", "nothing was measured", f"{mallard} try --list")
        if entry is None or entry["installed"]:
            found.append(name)
        else:
            say(f"run.py: {entry['missing']['what']}\n  the others go on without it\n"
                f"  help: {entry['missing']['help']}")
    return found


class Failed(Exception):
    """Raised when a program cannot be measured. The message contains the reason."""


class Program:
    def __init__(self, line, mallard, folder, allocators):
        self.name, self.threads = line["name"], line["threads"]
        self.command, self.load = line["command"], line["load"]
        self.environment = {**os.environ, **line["environment"]}
        self.mallard, self.folder = mallard, folder
        self.chosen = [word for name in allocators for word in ("--allocator", name)]
        self.loaded = ["--load", self.load] if self.load else []
        self.columns = len(allocators) + 2 # glibc runs twice
        self.trace = folder / "recorded"

    def first_line(self, text):
        return (text.strip().splitlines() or ["it printed nothing"])[0]

    def run(self):
        """Runs the program once. Returns the wall time in seconds."""
        begin = time.monotonic()
        running = subprocess.Popen(self.command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if self.load:
            self.repeat_load(running)
        _, complaints = running.communicate()
        if running.returncode not in (0, -signal.SIGTERM):
            raise Failed(f"{self.command[0]} ended with {running.returncode}: {self.first_line(complaints)}")
        return time.monotonic() - begin

    def repeat_load(self, server):
        """Repeats the client's load until it succeeds once, and ends the server by SIGTERM."""
        begin = time.monotonic()
        while subprocess.run(["sh", "-c", self.load], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL).returncode != 0:
            if server.poll() is not None or time.monotonic() - begin > START_SECONDS:
                server.kill()
                raise Failed("the load of the server did not succeed")
            time.sleep(0.02)
        server.send_signal(signal.SIGTERM)

    def record(self):
        done = subprocess.run([self.mallard, "record", "--quiet", "--force", "-o", str(self.trace),
                               *self.loaded, "--", *self.command], env=self.environment, cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failed(f"mallard record: {self.first_line(done.stderr).removeprefix('mallard: ')}")

    def json_of(self, *words):
        done = subprocess.run([self.mallard, *words], env=self.environment, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"mallard {words[0]}: {self.first_line(done.stderr).removeprefix('mallard: ')}")
        return json.loads(done.stdout)

    def replay(self, seconds):
        return self.json_of("replay", "--quiet", "--json", "--budget", f"{seconds}s", *self.chosen,
                            str(self.trace))

    def really_run(self, seconds):
        return self.json_of("try", "--quiet", "--json", "--keep-all", "--budget", f"{seconds}s", *self.loaded,
                            *self.chosen, "--", *self.command)

    def measure(self, effort):
        """Returns what `mallard replay` and `mallard try` print."""
        budget = effort.budget(self.run(), self.columns)
        self.record()
        try:
            # On fewer cores than threads, a replay takes longer than the program.
            oversubscribed = max(1, self.threads // os.cpu_count())
            replayed = self.replay(budget * oversubscribed)
        finally:
            shutil.rmtree(f"{self.trace}.mallard", ignore_errors=True)
        return replayed, self.really_run(budget)


def rounded(value):
    """Returns a number rounded to four significant digits, as in the other suites."""
    return None if value is None else float(f"{value:.4g}")


def figures(median, low, high, runs, **more):
    ends = sorted(end for end in (low, high) if end is not None)
    low, high = (ends[0], ends[-1]) if ends else (None, None)
    return {"median": rounded(median), "low": rounded(low), "high": rounded(high), "runs": runs, **more}


def without_figure(why):
    return {"median": None, "low": None, "high": None, "runs": 0, "why": why}


def scaled(saving, factor):
    return None if saving is None else -factor * saving


def change(judged, factor, runs, known=""):
    """Returns the result of a change, made from the judgement on a saving, which is a share of glibc's
    figure."""
    if judged is None or judged["saving"] is None:
        return without_figure("the saving has no figure")
    why = "; ".join(filter(None, (judged.get("why"), known)))
    return figures(*(scaled(judged[key], factor) for key in ("saving", "low", "high")), runs,
                   verdict=judged["verdict"], **({"why": why} if why else {}))


def rows_of_candidate(real, replayed, real_run, replayed_run, known):
    """Yields (metric, figures) of one allocator."""
    parts = (("real", real, real_run, "peak_rss_bytes", ""),
             ("replayed", replayed, replayed_run, "heap_peak_bytes", known))
    for which, candidate, result, peak, known_of_it in parts:
        base, runs = result["base"], result["blocks"]
        if candidate["broken"] or runs == 0:
            why = without_figure(f"broken: {candidate['broken']}" if candidate["broken"] else "no run ended in time")
            yield f"{which}_cpu_percent", why
            yield f"{which}_peak_change_kib", why
            continue
        yield f"{which}_cpu_percent", change(candidate["cpu"], 100, runs, known_of_it)
        yield f"{which}_peak_change_kib", change(candidate["memory"], base[peak] / 1024, runs)
        if which == "real":
            yield "real_peak_kib", figures(candidate[peak] / 1024, None, None, runs)
    expected = replayed.get("predicted")
    if expected:
        low, high = -100 * expected["high"], -100 * expected["low"]
        yield "predicted_cpu_percent", figures((low + high) / 2, low, high, replayed_run["blocks"])


def rows_of(program, replayed, real):
    """Yields (allocator, metric, figures) of a program."""
    if real["base"]["cpu_ns"] is not None:
        yield "glibc", "real_cpu_seconds", figures(real["base"]["cpu_ns"] / 1e9, None, None, real["blocks"])
        yield "glibc", "real_peak_kib", figures(real["base"]["peak_rss_bytes"] / 1024, None, None, real["blocks"])
    for which, result in (("real", real), ("replayed", replayed)):
        if result["base"]["page_faults"] is not None:
            faults = figures(result["base"]["page_faults"], None, None, result["blocks"])
            yield "glibc", f"{which}_page_faults", faults
    if replayed["program_cpu_ns"] is not None:
        yield "glibc", "replayed_cpu_seconds", figures(replayed["program_cpu_ns"] / 1e9, None, None, 1)
    known = ""
    if replayed["contention"] == "not measurable":
        known = f"{replayed['threads']} threads on {replayed['cores']} processor{'s' if replayed['cores'] != 1 else ''}: contention is not measurable"
    of_replay = {candidate["name"]: candidate for candidate in replayed["candidates"]}
    for candidate in real["candidates"]:
        name = candidate["name"]
        for metric, figure in rows_of_candidate(candidate, of_replay[name], real, replayed, known):
            yield name, metric, figure


def row(program, allocator, metric, figure, origin):
    return {"suite": "calibration", "case": program.name, "contender": allocator,
            "threads": program.threads, "metric": metric, **figure, **origin}


def shown(figure, unit):
    if figure is None or figure["median"] is None:
        return "-"
    scale = 1024 if unit == "MiB" else 1
    numbers = [figure[key] / scale for key in ("median", "low", "high") if figure[key] is not None]
    ends = f" ({numbers[1]:+.1f} to {numbers[2]:+.1f})" if len(numbers) == 3 else ""
    return f"{numbers[0]:+.1f}{ends} {figure.get('verdict', '')}".rstrip()


def print_table(program, rows):
    columns = (("real_cpu_percent", "CPU %, real"), ("replayed_cpu_percent", "replayed"),
               ("predicted_cpu_percent", "predicted"), ("real_peak_change_kib", "peak MiB, real"),
               ("replayed_peak_change_kib", "replayed"))
    by_name = {}
    for r in rows:
        by_name.setdefault(r["contender"], {})[r["metric"]] = r
    lines = [["", *(title for _, title in columns)]]
    for name, metrics in by_name.items():
        if name != "glibc":
            lines.append([name, *(shown(metrics.get(metric), "MiB" if "kib" in metric else "%")
                                  for metric, _ in columns)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    print(f"\n{program.name}")
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    sys.stdout.flush()


def print_list(bench):
    print("calibration: Do the predictions of mallard replay agree with mallard try?")
    for line in commands_of(bench)[1]:
        print(f"  {line['name']}" + ("" if line["in_brief"] else "  not with --short"))
        print(f"      {line['asks']}")


def parsed():
    parser = argparse.ArgumentParser(prog="./x bench calibration", description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few programs, with less work")
    parser.add_argument("--json", action="store_true", help="one JSON object per result instead of tables")
    parser.add_argument("--list", action="store_true", help="list the programs")
    parser.add_argument("--case", default="", metavar="REGEX", help="only programs that match this")
    parser.add_argument("--allocator", action="append", metavar="NAME", help="instead of the usual ones; may be repeated")
    parser.add_argument("--budget", type=int, metavar="SECONDS", help="for each replay and each measurement of a program")
    parser.add_argument("--mallard", default=root / "build/cargo/release/mallard", metavar="COMMAND")
    parser.add_argument("--bench", default=root / "build/bench/bench/mallard-bench", metavar="PROGRAM")
    options = parser.parse_args()
    try:
        re.compile(options.case)
    except re.error as error:
        fail(f"{options.case} is not a regular expression: {error}", "nothing was measured", "./x bench calibration --list")
    return options


def asked_words():
    """Returns the command line, except for the options that ./x adds."""
    words = []
    for word, before in zip(sys.argv[1:], ["", *sys.argv[1:]]):
        if not {word, before} & {"--mallard", "--bench"}:
            words.append(word)
    return words


def main():
    options = parsed()
    for program in (options.bench, *(() if options.list else (options.mallard,))):
        if not os.access(program, os.X_OK):
            fail(f"there is no {program}", "nothing was measured", "./x bench calibration builds all that it needs")
    if options.list:
        return print_list(options.bench)
    # The paths of the trace and the commands are absolute, because programs run in another directory.
    mallard, bench = (str(Path(path).resolve()) for path in (options.mallard, options.bench))
    allocators = installed(mallard, options.allocator or ALLOCATORS)
    effort = Effort(options)
    with tempfile.TemporaryDirectory(prefix="mallard-calibration-") as name:
        folder = Path(name)
        origin, lines = commands_of(bench, folder / "input", effort.share, options.case)
        origin["command"] = " ".join(["./x bench calibration", *asked_words()])
        lines = [line for line in lines if line["in_brief"] or not options.short]
        if not lines:
            fail(f"no program matches '{options.case}'", "nothing was measured", "./x bench calibration --list")
        status = 0
        for line in lines:
            status |= measure(line, mallard, folder, allocators, effort, origin, options.json)
    sys.exit(status)


def measure(line, mallard, folder, allocators, effort, origin, as_json):
    """Measures one program and prints its results. Returns 1 if the program cannot be measured."""
    begin = time.monotonic()
    try:
        if "why" in line:
            raise Failed(line["why"])
        program = Program(line, mallard, folder, allocators)
        rows = [row(program, *figure, origin) for figure in rows_of(program, *program.measure(effort))]
    except Failed as reason:
        say(f"run.py: {line['name']}: {reason}\n  it has no rows, the others go on\n"
            f"  help: ./x bench calibration --case '^{line['name']}$'")
        return 1
    if as_json:
        for r in rows:
            print(json.dumps(r, separators=(",", ":")), flush=True)
    else:
        print_table(program, rows)
    say(f"  {line['name']}: {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt: # the results of each program were printed when it ended
        sys.exit(130)
