"""Rows of the suite `advise`, in the form that all suites have."""
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import answers

root = Path(__file__).resolve().parents[2]


def words_of(*command):
    return subprocess.run(command, cwd=root, capture_output=True, text=True).stdout.strip()


def asked_words():
    """Returns the options without those that name places of this machine."""
    return [word for word, before in zip(sys.argv[1:], ["", *sys.argv[1:]])
            if not {word, before} & {"--mallard", "--programs", "--keep"}]


def origin():
    """Returns what all rows have: commit, machine and command."""
    commit = words_of("git", "rev-parse", "--short", "HEAD")
    if words_of("git", "status", "--porcelain", "--untracked-files=no"):
        commit += "-dirty"
    cpus = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")]
    machine = f"{cpus[0] if cpus else platform.machine()}, {len(cpus)} CPUs, Linux {platform.release()}"
    command = " ".join(["./x bench advise", *asked_words()])
    return {"commit": commit, "machine": machine, "command": command}


def figures(values):
    """Returns the median of values, and their 10th and 90th percentile."""
    values = sorted(values)
    last = len(values) - 1
    return {"median": float(f"{statistics.median(values):.4g}"),
            "low": float(f"{values[round(0.1 * last)]:.4g}"),
            "high": float(f"{values[round(0.9 * last)]:.4g}"), "runs": len(values)}


def stages(known):
    """Yields (stage, metric, values) of a program. The stage `advise` is the whole command."""
    yield "advise", "seconds", [advice["took_s"] for advice in known.advices]
    yield "advise", "peak_rss_kib", [used.ru_maxrss for used in known.used]
    by_stage = {}
    for advice in known.advices:
        for stage in advice.get("stages", ()):
            for metric in ("seconds", "peak_rss_kib"):
                if stage.get(metric) is not None:
                    by_stage.setdefault((stage["name"], metric), []).append(stage[metric])
    for (stage, metric), values in by_stage.items():
        yield stage, metric, values


def all_rows(programs):
    """Yields (case, contender, metric, figures)."""
    for known in programs:
        for stage, metric, values in stages(known):
            yield known.name, stage, metric, figures(values)
    wrong = sum(not judged.is_right and not judged.is_undecided
                for known in programs for judged in (answers.judge(known.expected, a) for a in known.advices))
    undecided = sum(advice["verdict"] == "undecided" for known in programs for advice in known.advices)
    for metric, count in (("wrong_answers", wrong), ("undecided_answers", undecided)):
        yield "all", "advise", metric, {"median": count, "low": None, "high": None,
                                        "runs": sum(len(known.advices) for known in programs)}


def print_all(programs):
    """Prints the rows, one JSON object a line."""
    of_all = origin()
    for case, contender, metric, figure in all_rows(programs):
        print(json.dumps({"suite": "advise", "case": case, "contender": contender, "threads": 1, "metric": metric,
                          **figure, **of_all}, separators=(",", ":")))
