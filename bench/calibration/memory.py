#!/usr/bin/env python3
"""Compares the memory of replays with the memory of the programs.

    bench/calibration/memory.py [--case REGEX] [--work SHARE]

Records each program of `./x bench calibration` that is not a server, and measures peaks of resident memory: of the
program, of `mallard-replay` under glibc (which writes a byte of each page of a new block), and of the command that
makes the op stream. `in use` is the peak of the allocated bytes in the recorded run, which may differ between runs
of a program with threads. `mallard-replay` may use 64 MiB plus 1.2 times the larger of the program's peak and `in
use`. The status is 1 if it uses more. The machine may be busy, because that does not change the memory of a run.
"""
import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import run  # noqa: E402

FACTOR, SPARE_KIB = 1.2, 64 * 1024


def bound(program_kib, in_use_kib):
    """Returns the upper limit of the memory that a replay may use, in KiB."""
    return FACTOR * max(program_kib, in_use_kib) + SPARE_KIB


def in_use(ops):
    """Returns the peak of the requested memory in KiB, from the header of an op stream."""
    with open(ops, "rb") as file:
        return struct.unpack_from("<Q", file.read(80), 48)[0] / 1024


class Launcher:
    """Starts commands through mallard-bench-launch, which is small, because a child's peak begins at the peak of
    its parent."""

    def __init__(self, bench):
        self.path = str(Path(bench).with_name("mallard-bench-launch"))

    def launch(self, command, environment=None):
        """Runs a command. Returns its output and its peak in KiB."""
        variables = [f"{name}={value}" for name, value in (environment or {}).items()]
        done = subprocess.run([self.path, "", *variables, *map(str, command)], stdout=subprocess.PIPE)
        output, _, figures = done.stdout.rpartition(b"\n@ ")
        status, _, _, peak = map(int, figures.split())
        if status != 0:
            raise run.Failed(f"{command[0]} ended with status {status}")
        return output, peak


def measure(line, mallard, player, launcher, folder):
    """Returns four peaks in KiB, and the result of the replay.

    The peaks are those of the program, of its allocated bytes, of `mallard-replay`, and of the command that makes
    the op stream.
    """
    _, program = launcher.launch(line["command"], line["environment"])
    trace, ops = folder / "recorded", folder / "ops"
    launcher.launch([mallard, "record", "--quiet", "--force", "-o", trace, "--", *line["command"]], line["environment"])
    _, compiling = launcher.launch([mallard, "replay", "--quiet", trace, "--write", ops])
    output, played = launcher.launch([player, ops])
    return (program, in_use(ops), played, compiling), json.loads(output)


def show(cells):
    print(f"{cells[0]:18}" + "".join(f"{cell:>12}" for cell in cells[1:]), flush=True)


def parsed():
    parser = argparse.ArgumentParser(prog="bench/calibration/memory.py", description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="", metavar="REGEX", help="only programs that match this")
    parser.add_argument("--work", type=float, default=1.0, metavar="SHARE", help="the share of a full run's work")
    parser.add_argument("--mallard", default=run.root / "build/cargo/release/mallard", metavar="COMMAND")
    parser.add_argument("--player", default=run.root / "build/bench/src/replay/mallard-replay", metavar="PROGRAM")
    parser.add_argument("--bench", default=run.root / "build/bench/bench/mallard-bench", metavar="PROGRAM")
    return parser.parse_args()


def main():
    options = parsed()
    for program in (options.bench, options.mallard, options.player):
        if not Path(program).exists():
            run.fail(f"there is no {program}", "nothing was measured", "./x bench calibration builds all that it needs")
    launcher, is_over = Launcher(options.bench), False
    show(["peaks in MiB", "program", "in use", "replay", "bound", "slots", "compiling", "calls"])
    with tempfile.TemporaryDirectory(prefix="mallard-memory-") as name:
        folder = Path(name)
        for line in run.commands_of(str(options.bench), folder / "input", options.work, options.case)[1]:
            if "why" in line or line["load"]:
                continue
            try:
                peaks, result = measure(line, options.mallard, options.player, launcher, folder)
            except run.Failed as reason:
                run.say(f"memory.py: {line['name']}: {reason}\n  it has no figures, the others go on\n"
                        f"  help: --case '^{line['name']}$'")
                continue
            program, allocated, played, compiling = peaks
            most = bound(program, allocated)
            is_over |= played > most
            mib = [f"{kib / 1024:.1f}" for kib in (program, allocated, played, most, result["own_kib"], compiling)]
            show([line["name"], *mib, f"{result['calls']:,}", *(["OVER"] if played > most else [])])
    sys.exit(is_over)


if __name__ == "__main__":
    main()
