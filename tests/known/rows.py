"""Rows of the suite `advise`, in the form that all suites have."""
import json
import statistics
import sys
from pathlib import Path

import answers

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "bench"))
from machine import machine, text_of  # noqa: E402


def asked_words():
    """Returns the options without those that name places of this machine."""
    of_places = {"--mallard", "--programs", "--keep"}
    return [word for word, before in zip(sys.argv[1:], ["", *sys.argv[1:]])
            if before not in of_places and word.partition("=")[0] not in of_places]


def origin():
    """Returns what all rows have: commit, machine and command."""
    commit = text_of("git", "rev-parse", "--short", "HEAD", folder=root)
    if text_of("git", "status", "--porcelain", "--untracked-files=no", folder=root):
        commit += "-dirty"
    compiler = f"g++ {text_of('g++', '-dumpfullversion')}"
    return {"commit": commit, "machine": machine(compiler), "command": " ".join(["./x bench advise", *asked_words()])}


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
