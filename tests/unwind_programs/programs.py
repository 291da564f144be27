#!/usr/bin/env python3
"""Runs real programs with the library compare.cpp, and prints how their stacks compare.

    programs.py LIBRARY           compares each stack, and fails above the bar: 1 wrong stack in
                                  100,000 events, 1 that is cut short in 10,000
    programs.py LIBRARY --times   measures the three ways to find stacks, five rounds
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

regex_file = """
#include <regex>
int main(int count, char** words)
{
    return std::regex_match(words[0], std::regex(words[count - 1]));
}
"""
python_script = """
import json, re
text = json.dumps([{"a": i, "b": [str(i)] * 5, "c": {"x": i * 1.5}} for i in range(6000)])
values = json.loads(text)
def tree(n): return [tree(n - 1), tree(n - 1)] if n else None
trees = [tree(12) for i in range(8)]
print(len(text), len(re.findall(r"\\w+", text)), len(trees))
"""
perl_script = """
my %h; $h{"k".($_ * 7919 % 10007)} .= "x$_" for 1 .. 40000;
my $n = 0; $n += length $h{$_} for sort keys %h; my @w = map { split /x/ } values %h;
print "$n ", scalar(@w), "\\n";
"""
sqlite_script = """
create table t(a, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000)
    insert into t select x, x || 'abc' from c;
create index i on t(b);
select count(*), sum(length(b)) from t where b like '%9a%' order by b;
"""
lua_script = "local t = {} for i = 1, 40000 do t[i] = ('x'):rep(i % 50) .. i end table.sort(t)"


def commands(folder):
    """Returns the installed programs, by name."""
    source = folder / "regex.cpp"
    source.write_text(regex_file)
    (folder / "regex.ii").write_bytes(subprocess.run(
        ["g++", "-E", source], check=True, capture_output=True).stdout)
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, text=True,
                              capture_output=True).stdout.strip()
    repository = Path(__file__).parent
    git = ["git", "-c", "safe.directory=*", "-C", repository]  # the clone may belong to another user
    has_history = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True).returncode == 0
    listed = {
        "cc1plus": [compiler, "-quiet", "-O1", folder / "regex.ii", "-o", folder / "regex.s"],
        "python3": [os.path.realpath("/usr/bin/python3"), "-c", python_script],
        "cmake": ["cmake", "--help-full"],
        "perl": ["perl", "-e", perl_script],
        "git": [*git, "log", "--stat", "-200"] if has_history
               else ["git", "--no-pager", "diff", "--no-index", "--stat", folder, folder],
        "sqlite3": ["sqlite3", ":memory:", sqlite_script],
        "lua5.4": ["lua5.4", "-e", lua_script],
        "gdb": ["gdb", "-nx", "-batch", "-ex", "info functions main", compiler],
    }
    return {name: command for name, command in listed.items() if shutil.which(command[0])}


def run(library, command, folder, only=None):
    """Runs a program, and returns the numbers that the preloaded library wrote."""
    counts = folder / "counts"
    counts.unlink(missing_ok=True)
    environment = {**os.environ, "LD_PRELOAD": preloadable(library), "UNWIND_COUNTS": str(counts),
                   "PYTHONMALLOC": "malloc", "GIT_PAGER": "cat"}
    if only:
        environment["UNWIND_ONLY"] = only
    ran = subprocess.run(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if ran.returncode != 0 or not counts.exists():
        sys.exit(f"{command[0]}: status {ran.returncode}: {ran.stderr.decode(errors='replace')}")
    names = ("events", "frames", "fresh", "wrong", "shorter", "longer", "gaps", "walk", "reference")
    lines = [[int(word) for word in line.split()] for line in counts.read_text().splitlines()]
    return dict(zip(names, map(sum, zip(*lines))))  # a line for each process


def compare(library, programs, folder):
    print(f"{'program':10} {'events':>10} {'frames':>7} {'fresh':>6} {'wrong':>6} {'short':>6} {'long':>6}")
    faults = []
    for name, command in programs.items():
        n = run(library, command, folder)
        events = n["events"]
        print(f"{name:10} {events:10,} {n['frames'] / events:7.1f} {n['fresh'] / events:6.2f} "
              f"{n['wrong']:6} {n['shorter']:6} {n['longer']:6}", flush=True)
        if n["wrong"] * 100_000 > events or n["shorter"] * 10_000 > events:
            faults.append(name)
    if faults:
        print("above the bar:", ", ".join(faults))
    return len(faults)


def ticks_a_nanosecond():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("cpu MHz"):
            return float(line.split(":")[1]) / 1000
    return 1.0


def measure(library, programs, folder):
    ways = {"walk": "walk", "whole": "walk", "libunwind": "reference"}
    print("ns an event, median of 5 rounds:", *ways)
    for name in ("cc1plus", "python3"):
        times = {way: [] for way in ways}
        for _ in range(5):
            for way, clock in ways.items():
                n = run(library, programs[name], folder, way)
                times[way].append(n[clock] / n["events"] / ticks_a_nanosecond())
        print(f"{name:10}", *(f"{way} {statistics.median(t):.0f} ({min(t):.0f}-{max(t):.0f})"
                              for way, t in times.items()), flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--times", action="store_true")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = commands(folder)
        if len(programs) < 6:
            print("skipped: of the programs that are compared, fewer than six are here:", *programs)
            return 77
        library = os.path.abspath(words.library)
        return (measure if words.times else compare)(library, programs, folder)


if __name__ == "__main__":
    sys.exit(main())
