#!/usr/bin/env python3
"""Changes one line of code at a time, and checks that a test fails.

`run.py [--random COUNT] [--seed N] [--jobs N] [WORDS]`
`run.py --check` only checks that each listed line is in its file once.

Works in a copy of the tree, build/mutants/tree. Later runs reuse the build in this copy.

    named     each [[mutant]] of mutants.toml: a line that once could be changed without a failing
              test, or that a comment calls necessary. Its tests have to fail. WORDS choose some of them.
    random    COUNT changes of one operator or constant in headers that mutants.toml lists under
              [tests]. Survivors are printed for a person to judge. They do not make the
              status 1, because many change nothing that a caller can see.

A mutant is killed when it does not compile, or when one of its tests fails or does not end.
"""
import argparse
import random
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

here = Path(__file__).resolve().parent
root = here.parent.parent
tree = root / "build/mutants/tree"
seconds = 120 # time limit for the tests of one mutant

# Random changes: one occurrence of a pattern is replaced by the other text.
operators = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
    (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "),
    (r" \* ", " / "), (r" / ", " * "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r" \+= ", " -= "), (r" -= ", " += "),
    (r"\b1\b", "2"), (r"\b0\b", "1"), (r"memory_order_(acquire|release|acq_rel|seq_cst)", "memory_order_relaxed"),
    (r"^(\s+)(\w[\w.>-]*\(.*\);)$", r"\1(void)0;"), # removes a call that is a statement
]
not_code = re.compile(r"^\s*(//|#|\*|static_assert|template|using|namespace|requires|friend)")


def run(*command, limit=600):
    """Runs a command and returns (status, output). The status is 124 if it does not end in time."""
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=limit)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return 124, "does not end"


def copy_tree():
    """Copies the files that git knows into the tree. Unchanged files keep their time."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True, check=True).stdout.split("\n")
    kept = [name for name in listed if name and not name.startswith(("results/", "crates/"))]
    for name in kept:
        source, target = root / name, tree / name
        if not source.is_file():
            continue
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    status, output = run("cmake", "--preset", "dev", "-DMALLARD_UNITE=1")
    if status != 0:
        sys.exit(f"mutants: the tree cannot be configured\n  nothing was changed\n  help: {output}")


class survivors:
    """Counts the killed mutants and lists the survivors."""

    def __init__(self, jobs):
        self.jobs, self.killed, self.alive = jobs, 0, []

    def outcome(self, programs, filter_):
        status, output = run("cmake", "--build", "build/dev", "--parallel", self.jobs,
                             "--target", *programs)
        if status != 0:
            return "does not compile"
        for program in programs:
            folder = program.split("-")[0]
            path = f"build/dev/tests/{'c/' if folder == 'c' else ''}{program}"
            status, output = run(path, f"--gtest_filter={filter_}", limit=seconds)
            if status != 0:
                failed = re.search(r"\[  FAILED  \] (\S+)", output)
                return f"{program}: {failed[1] if failed else f'status {status}'}"
        return None

    def try_(self, name, path, before, after, programs, filter_="*"):
        file = tree / path
        original = file.read_text()
        if original.count(before) != 1:
            self.alive.append(name)
            print(f"  {name}: {path} has this line {original.count(before)} times: {before}")
            return
        file.write_text(original.replace(before, after))
        try:
            killer = self.outcome(programs, filter_)
        finally:
            file.write_text(original)
        if killer:
            self.killed += 1
        else:
            self.alive.append(name)
        print(f"  {'killed  ' if killer else 'SURVIVED'} {name}: {killer or path}", flush=True)


def random_mutants(tests, count, seed):
    """Chooses `count` of all possible changes: (name, path, text before, text after, programs)."""
    choose = random.Random(seed)
    found = []
    for pattern, programs in tests.items():
        for file in sorted(tree.glob(pattern)):
            text = file.read_text()
            lines = text.split("\n")
            for number, line in enumerate(lines):
                if not_code.match(line):
                    continue
                code = line.split(" // ")[0]
                for old, new in operators:
                    for match in re.finditer(old, code):
                        changed = line[:match.start()] + match.expand(new) + line[match.end():]
                        after = "\n".join([*lines[:number], changed, *lines[number + 1:]])
                        path = str(file.relative_to(tree))
                        name = f"{path}:{number + 1}: {line.strip()}  ->  {changed.strip()}"
                        found.append((name, path, text, after, programs))
    return choose.sample(found, min(count, len(found)))


def check(mutants):
    """Returns 1, and says which lines are stale, if a listed line is not in its file exactly once."""
    counts = [(mutant, (root / mutant["file"]).read_text().count(mutant["line"])) for mutant in mutants]
    for mutant, count in counts:
        if count != 1:
            print(f"tests/mutants/mutants.toml: '{mutant['name']}': {mutant['file']} has its line {count} times")
    return int(any(count != 1 for _, count in counts))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("words", nargs="*")
    options.add_argument("--random", type=int, default=0, metavar="COUNT")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", default="2")
    options.add_argument("--check", action="store_true")
    options = options.parse_args()
    listed = tomllib.loads((here / "mutants.toml").read_text())
    if options.check:
        return check(listed["mutant"])
    copy_tree()
    named, chance = survivors(options.jobs), survivors(options.jobs)
    for mutant in listed["mutant"]:
        if all(word in mutant["name"] or word in mutant["file"] for word in options.words):
            named.try_(mutant["name"], mutant["file"], mutant["line"], mutant["becomes"],
                       mutant["tests"], mutant.get("filter", "*"))
    if not named.killed and not named.alive:
        sys.exit(f"mutants: none has the words {' '.join(options.words)}\n  nothing was changed\n"
                 "  help: tests/mutants/mutants.toml has their names")
    for name, path, before, after, programs in random_mutants(listed["tests"], options.random,
                                                              options.seed):
        chance.try_(name, path, before, after, programs)
    print(f"{named.killed} of {named.killed + len(named.alive)} named mutants killed")
    if options.random:
        print(f"{chance.killed} of {chance.killed + len(chance.alive)} random mutants killed; "
              "survivors:\n" + "".join(f"  {name}\n" for name in chance.alive), end="")
    return 1 if named.alive else 0


if __name__ == "__main__":
    sys.exit(main())
