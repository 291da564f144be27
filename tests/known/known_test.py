#!/usr/bin/env python3
"""Checks that `mallard advise` gives the known answer for each program of this directory.

    known_test.py [--runs N] [--budget SECONDS] [--case REGEX] [--set NAME] [--verify SECONDS] [--replay SECONDS]
                  [--json] [--keep FOLDER]
    known_test.py --same FOLDER NAME

The first line of a program is its answer, `// expected advice: ACTION [STRATEGY] [in FUNCTION]`. Further right answers
follow after `or`. NAME_advised.cpp is the program that followed the advice.

Once (--runs 1, the default), this is a test: the status is 1 if an action is wrong twice, the second time with twice
the budget. An advice is a measurement, so noise alone makes about one in twenty wrong. A test on a machine that is too
noisy to decide passes. With more runs, the script prints in how many runs the first recommendation is right, also in
its strategy and function, and in how many runs a change is advised although nothing can be gained. --verify also
measures each advised program, and compares the saving with the interval that was predicted for the change in its first
line, `// follows the advice: ACTION STRATEGY [in FUNCTION]`. --replay also asks for an advice without runs of the
program, whose intervals are from replays alone. --json prints results of the suite `advise`, with the seconds of each
stage and the peak memory until its end, and writes the table to stderr. --keep saves the JSON of each advice in a
directory.

--set measured asks about the programs of measured/ instead, and --set held_out about those of held_out/, which
measure_truth.py builds. Use --set held_out only to judge finished code of `mallard advise`, and not while that code
is changed.

--same only checks that a program and its advised form print the same text.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import answers
import rows # also finds the modules of bench/
import cases

here = Path(__file__).resolve().parent
root = here.parents[1]


def fail(what, state, help):
    sys.exit(f"known_test.py: {what}\n  {state}\n  help: {help}")


def say(text):
    print(text, file=sys.stderr, flush=True)


def check_same(folder, name):
    """Fails unless a program and the variant that follows the advice print the same text."""
    forms = [str(Path(folder) / f"known-{form}") for form in (name, f"{name}_advised")]
    printed = [subprocess.run([form, "2"], check=True, capture_output=True, text=True).stdout for form in forms]
    if printed[0] != printed[1] or not printed[0]:
        sys.exit(f"known_test.py: {name} prints {printed[0]!r}, but {name}_advised {printed[1]!r}")


class Failed(Exception):
    """Raised when `mallard` gives no answer. The message contains the reason."""


def json_of(command, folder):
    """Runs a command, and returns its JSON object with the CPU seconds and the peak memory."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaints:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=complaints, cwd=folder)
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        complaints.seek(0)
        text = out.read().decode(errors="replace")
        # The output of the recorded program comes before the object.
        begin = text.find('{"version"')
        if running.returncode not in (0, 1) or (begin < 0 and not text.lstrip().startswith("{")):
            lines = complaints.read().decode(errors="replace").strip().splitlines() or ["no output"]
            raise Failed(f"{command[1]} ended with {running.returncode}: {lines[0]}")
        return json.loads(text[max(begin, text.find("{") if begin < 0 else begin):]), used


class Known:
    """A program with its right answer, and what `mallard` printed about it."""

    def __init__(self, name, command, expected, advised=None, followed=None):
        self.name, self.command, self.expected = name, command, expected
        self.advised, self.followed = advised, followed # the changed program, and the change
        self.advices = []
        self.used = []
        self.verified = None
        self.replayed = None # the advice from replays alone, without runs of the program

    def advise(self, mallard, budget, folder):
        command = [mallard, "advise", "--json", "--quiet", "--budget", f"{budget}s", "--", *self.command]
        advice, used = json_of(command, folder)
        self.advices.append(advice)
        self.used.append(used)
        return advice

    def verify(self, mallard, budget, folder):
        command = [mallard, "verify", "--json", "--quiet", "--budget", f"{budget}s",
                   "--before", " ".join(self.command), "--after", " ".join(self.advised)]
        self.verified = json_of(command, folder)[0]["candidates"][0]["cpu"]

    def ask_replay(self, mallard, budget, folder):
        command = [mallard, "advise", "--json", "--quiet", "--no-try", "--budget", f"{budget}s", "--", *self.command]
        self.replayed = json_of(command, folder)[0]

    def predicted(self):
        """Returns the interval that the last advice predicted for the change, or (None, None)."""
        return answers.predicted(self.followed, self.advices[-1])


def programs_of(folder, wanted):
    """Returns the programs of a set with known answers. `folder` has the compiled programs."""
    found = []
    sources, prefix = (here.glob("*.cpp"), "known-") if wanted == "known" else ((here / wanted).iterdir(), "")
    for source in sorted(sources):
        name = source.stem
        first = source.open().readline().strip()
        if name.endswith(("_advised", "_second")):
            continue
        expected = answers.parse(first)
        if expected is None:
            fail(f"{source.name} begins with '{first}'", "nothing was checked",
                 "write its answer there, for example: // expected advice: convert AS4 in parse")
        known = Known(name, [f"{folder}/{prefix}{name}"], expected)
        advised = source.with_stem(f"{name}_advised")
        if advised.exists():
            known.advised = [f"{folder}/{prefix}{name}_advised"]
            known.followed = answers.parse(advised.open().readline().strip(), "// follows the advice: ")
        found.append(known)
    if wanted == "known":
        found.append(Known("cmake", ["cmake", "--help-full"], answers.parse("// expected advice: leave")))
    return found


def summary(known):
    """Returns the line of the table for a program: right answers, changes, and the prediction."""
    judged = [answers.judge(known.expected, advice) for advice in known.advices]
    right = sum(one.is_right for one in judged)
    undecided = sum(one.is_undecided for one in judged)
    last = answers.shown(known.advices[-1])
    line = f"{known.name:15} {right} of {len(judged)} right"
    line += f", {undecided} undecided" if undecided else ""
    line += f"   expected {known.expected}; said {last}"
    if known.verified:
        low, high = known.predicted()
        inside = answers.is_inside(known.verified, low, high)
        line += (f"\n{'':15} predicted {answers.percent(low)} to {answers.percent(high)}, measured "
                 f"{answers.percent(known.verified['saving'])} ({answers.percent(known.verified['low'])} to "
                 f"{answers.percent(known.verified['high'])}): "
                 f"{'the last advice has not measured this change' if low is None else 'inside' if inside else 'outside'}")
    return line


def totals(programs):
    """Returns the lines below the table."""
    pairs = [(known, advice) for known in programs for advice in known.advices]
    right = sum(answers.judge(known.expected, advice).is_right for known, advice in pairs)
    yield f"first recommendation right: {right} of {len(pairs)}"
    left = [advice for known, advice in pairs if known.expected.is_leave]
    if left:
        alone = sum(advice["verdict"] != "change" for advice in left)
        yield f"nothing to gain: no change advised in {alone} of {len(left)} runs"
    verified = [known for known in programs if known.verified and known.predicted()[0] is not None]
    if verified:
        inside = sum(answers.is_inside(known.verified, *known.predicted()) for known in verified)
        yield f"measured saving in the predicted interval: {inside} of {len(verified)}"
    mallocs = [inside for _, advice in pairs for inside in answers.of_mallocs(advice)]
    if mallocs:
        yield f"mallocs that gain, with a saving in the interval of their replay: {sum(mallocs)} of {len(mallocs)}"


def check_once(known, options, budget, folder):
    """Runs `mallard advise` once on a program. Returns why the advice is wrong, or an empty text."""
    advice = known.advise(options.mallard, budget, folder)
    keep(known, options.keep)
    judged = answers.judge(known.expected, advice)
    return "" if judged.is_undecided or judged.is_action_right else judged.why


def check(known, options, folder):
    """Returns why the advice about a program is wrong, or an empty text. A test runs `mallard advise` again after a
    wrong answer."""
    wrong = check_once(known, options, options.budget, folder)
    if wrong and options.runs == 1:
        say(f"known_test.py: {known.name}: {wrong}; asked again with twice the budget")
        wrong = check_once(known, options, 2 * options.budget, folder)
    return wrong


def keep(known, folder):
    """Saves the last advice in a directory, if one is given."""
    if folder:
        path = Path(folder) / f"{known.name}-{len(known.advices)}.json"
        path.write_text(json.dumps(known.advices[-1], indent=1))


def run(programs, options, folder):
    """Checks all programs. Returns 1 if a program has no answer, or if in a test an answer is wrong."""
    status = 0
    for number in range(options.runs):
        for known in programs:
            try:
                wrong = check(known, options, folder)
                if number == 0 and known.advised and options.verify:
                    known.verify(options.mallard, options.verify, folder)
                if number == 0 and known.advised and options.replay:
                    known.ask_replay(options.mallard, options.replay, folder)
            except Failed as reason:
                wrong = str(reason)
                status = 1
            if wrong:
                say(f"known_test.py: {known.name}: {wrong}\n  expected {known.expected}\n"
                    f"  help: mallard advise -- {' '.join(known.command)}")
                status |= options.runs == 1
    return status


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1, help="how often each program is asked about")
    parser.add_argument("--budget", type=int, default=20, metavar="SECONDS", help="of each run of mallard advise")
    parser.add_argument("--verify", type=int, metavar="SECONDS", help="also measure the advised programs, for so long each")
    parser.add_argument("--replay", type=int, metavar="SECONDS",
                        help="also ask what replays alone say of the advised programs, with this budget")
    parser.add_argument("--case", default="", metavar="REGEX", help="only the programs whose names match")
    parser.add_argument("--json", action="store_true", help="rows of the suite advise")
    parser.add_argument("--keep", metavar="FOLDER", help="save the JSON of each advice there")
    parser.add_argument("--list", action="store_true", help="name the programs and their answers")
    parser.add_argument("--same", nargs=2, metavar=("FOLDER", "NAME"))
    parser.add_argument("--mallard", default=str(root / "build/cargo/release/mallard"), metavar="COMMAND")
    parser.add_argument("--set", default="known", choices=("known", "measured", "held_out"))
    parser.add_argument("--programs", metavar="FOLDER", help="where they are built")
    options = parser.parse_args()
    built = "build/dev/tests/known" if options.set == "known" else "build/truth"
    options.programs = options.programs or str(root / built)
    return options


def main():
    options = parsed()
    if options.same:
        return check_same(*options.same)
    programs = {known.name: known for known in programs_of(Path(options.programs).resolve(), options.set)}
    programs = [programs[name] for name in cases.matching(options.case, programs, "advise")]
    if options.list:
        return print("\n".join(f"{known.name:15} {known.expected}" for known in programs))
    options.mallard = str(Path(options.mallard).resolve())
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    for program in (options.mallard, *(known.command[0] for known in programs if "/" in known.command[0])):
        if not os.access(program, os.X_OK):
            fail(f"there is no {program}", "nothing was checked",
                 "./x build dev && ./x bench advise" if options.set == "known" else "tests/known/measure_truth.py --runs 0")
    with tempfile.TemporaryDirectory(prefix="mallard-known-") as folder:
        status = run(programs, options, folder)
    programs = [known for known in programs if known.advices]
    if options.json:
        rows.print_all(programs)
    print("\n".join([*map(summary, programs), *totals(programs)]), file=sys.stderr if options.json else sys.stdout)
    sys.exit(status)


if __name__ == "__main__":
    main()
