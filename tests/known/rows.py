"""Prints results of the suite `advise`, in the form ("rows") that all benchmark suites have."""
import json
import statistics
import sys
from pathlib import Path

import answers

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "bench"))
from machine import machine, text_of  # noqa: E402


def asked_words():
    """Returns the options, except for those that name places of this machine."""
    of_places = {"--mallard", "--programs", "--keep"}
    return [word for word, before in zip(sys.argv[1:], ["", *sys.argv[1:]])
            if before not in of_places and word.partition("=")[0] not in of_places]


def origin():
    """Returns what all results have in common: commit, machine and command."""
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


def count(number, runs):
    return {"median": number, "low": None, "high": None, "runs": runs}


def answer_counts(knowns):
    """Yields (metric, figures) of all answers to programs. Some right answers are equal switches: they recommend
    another malloc that saves as much as the expected change."""
    pairs = [(known, advice) for known in knowns for advice in known.advices]
    judged = [answers.judge(known.expected, advice) for known, advice in pairs]
    yield "right_answers", count(sum(one.is_right for one in judged), len(pairs))
    yield "wrong_answers", count(sum(not one.is_right and not one.is_undecided for one in judged), len(pairs))
    yield "undecided_answers", count(sum(one.is_undecided for one in judged), len(pairs))
    equal = sum(one.is_right and answers.is_level_switch(known.expected, advice)
                for one, (known, advice) in zip(judged, pairs))
    yield "equal_switches", count(equal, len(pairs))
    left = [advice["verdict"] == "change" for known, advice in pairs if known.expected.is_leave]
    if left:
        yield "false_changes", count(sum(left), len(left))


def interval(low, high):
    """Returns the figures of a predicted interval, with its middle."""
    return {"median": (low + high) / 2, "low": low, "high": high, "runs": 1}


def measured(row):
    """Returns the figures of a measured saving."""
    return {"median": row["saving"], "low": row["low"], "high": row["high"], "runs": 1}


def savings(known):
    """Yields (metric, figures) of the change that the last advice recommended: the saving that was measured in the
    changed program; the saving when a plan applies the change to the original program; the interval that the last
    advice predicted; and the interval that advice from a replay alone predicted."""
    yield "measured_saving", measured(known.verified)
    in_program = answers.in_program(known.followed, known.advices[-1])
    if in_program:
        yield "in_program_saving", measured(in_program)
    predictions = [("predicted_saving", known.predicted())]
    if known.replayed:
        predictions.append(("replayed_saving", answers.predicted(known.followed, known.replayed)))
    for metric, (low, high) in predictions:
        if None not in (low, high):
            yield metric, interval(low, high)


def all_rows(programs):
    """Yields (case, variant, contender, metric, figures). For an advised program, the variant is the change."""
    for known in programs:
        for stage, metric, values in stages(known):
            yield known.name, "", stage, metric, figures(values)
        for metric, counted in answer_counts([known]):
            yield known.name, "", "advise", metric, counted
        if known.verified:
            for metric, figure in savings(known):
                yield known.name, str(known.followed), "advised", metric, figure
    for metric, counted in answer_counts(programs):
        yield "all", "", "advise", metric, counted


def print_all(programs):
    """Prints the results, one JSON object a line."""
    of_all = origin()
    for case, variant, contender, metric, figure in all_rows(programs):
        change = {"variant": variant} if variant else {}
        print(json.dumps({"suite": "advise", "case": case, **change, "contender": contender, "threads": 1, "metric": metric,
                          **figure, **of_all}, separators=(",", ":")))
