#!/usr/bin/env python3
"""Draws the resident memory of each contender over time. `curve.py ROWS... -o PICTURE`

    ./x bench threads --json --case flow > rows.jsonl
    bench/threads/curve.py rows.jsonl -o threads-flow.png

ROWS are files of JSON results, one on each line, as text or compressed by zstd. The results whose metric is
rss_kib and whose variant is a time, such as t=5s, are drawn, as one curve for each contender. The suffix of
PICTURE (.png or .svg) selects the format. Needs gnuplot (Debian: gnuplot-nox).
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
sys.dont_write_bytecode = True # tools/ has no folder of compiled modules
import rows

colours = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")
terminals = {".png": "pngcairo size 1000,600 font 'sans,11'", ".svg": "svg size 1000,600 font 'sans,13'"}


def fail(what, state, help_text):
    sys.exit(f"curve.py: {what}\n  {state}\n  help: {help_text}")


def curves(files):
    """Returns {contender: {second: KiB}} and the machine. If several results have the same second, the last
    result counts."""
    found, machine = {}, ""
    for line in (line for file in files for line in rows.text(file).splitlines()):
        row = json.loads(line)
        moment = re.fullmatch(r"t=([\d.e+-]+)s", row.get("variant", ""))
        if row["metric"] != "rss_kib" or moment is None or row["median"] is None:
            continue
        found.setdefault(row["contender"], {})[float(moment[1])] = row["median"]
        machine = f"{row['machine'].split(', L1d')[0]}, commit {row['commit']}"
    return found, machine


def script(found, machine, picture):
    """Returns a gnuplot script: a block of data for each contender, then one plot command."""
    def quoted(text):
        return '"' + re.sub(r'[\\"]', "", text) + '"'

    lines = [f"$curve{i} << EOD\n" + "\n".join(f"{t} {kib}" for t, kib in sorted(points.items())) + "\nEOD"
             for i, points in enumerate(found.values())]
    plots = [f"$curve{i} with linespoints lw 2 pt 7 ps 0.6 lc rgb '{colours[i % len(colours)]}' "
             f"title {quoted(name)} noenhanced" for i, name in enumerate(found)]
    return "\n".join(lines + [
        f"set terminal {terminals[picture.suffix]}",
        f"set output {quoted(str(picture))}",
        f"set title {quoted('Blocks of 64 bytes flow from one thread to another: KiB held. ' + machine)} noenhanced",
        "set xlabel 'seconds'",
        "set ylabel 'KiB beyond what the process held before'",
        "set xrange [0:*]",
        "set yrange [0:*]",
        "set key outside right center",
        "set grid lt 1 lw 0.5 lc rgb '#dddddd'",
        "set border 3",
        "set tics nomirror",
        "plot " + ", ".join(plots), ""])


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("rows", nargs="+", type=Path, metavar="ROWS")
    ask.add_argument("-o", "--output", required=True, type=Path, metavar="PICTURE")
    asked = ask.parse_args()
    if asked.output.suffix not in terminals:
        fail(f"'{asked.output}' is neither .png nor .svg", "nothing was drawn", "-o threads-flow.png")
    found, machine = curves(asked.rows)
    if not found:
        fail("no row has the metric rss_kib", "nothing was drawn", "./x bench threads --json --case flow")
    try:
        subprocess.run(["gnuplot"], input=script(found, machine, asked.output), text=True, check=True)
    except FileNotFoundError:
        fail("gnuplot is not installed", "nothing was drawn", "apt-get install gnuplot-nox")


main()
