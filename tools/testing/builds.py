"""Finds the tests of a CMake build, and the dependencies between its files."""
import os
import re
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from table import root


def unescape(word):
    return re.sub(r"\$(.)", r"\1", word)


def quoted(text):
    """Returns the words in quotation marks in a line of CMake code."""
    return [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r'"((?:[^"\\]|\\.)*)"', text)]


@dataclass(frozen=True)
class Test:
    """A test of ctest."""
    name: str
    command: tuple
    labels: tuple = ()
    environment: dict = field(default_factory=dict)

    @property
    def prefix(self):
        """The prefix of the case names of a GoogleTest program, or None for other tests."""
        label = next((label[6:] for label in self.labels if label.startswith("cases:")), None)
        return f"{label}." if label else label


class Tree:
    """A configured build, build/PRESET."""

    def __init__(self, preset):
        self.preset, self.folder = preset, root / "build" / preset

    @cached_property
    def tests(self):
        """Returns the ctest tests as {name: Test}. `ctest --show-only` names no programs that are not built yet."""
        tests = {}
        for file in sorted(self.folder.rglob("CTestTestfile.cmake")):
            text = file.read_text()
            for name, words in re.findall(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", text, re.M):
                tests[name] = Test(name, tuple(quoted(words)))
            for name, words in re.findall(r"^set_tests_properties\(\[=\[(.*?)\]=\] PROPERTIES  (.*)\)$", text, re.M):
                values = dict(re.findall(r'(\w+) "((?:[^"\\]|\\.)*)"', words))
                lists = {key: [entry for entry in quoted(f'"{values.get(key, "")}"')[0].split(";") if entry]
                         for key in ("LABELS", "ENVIRONMENT")}
                tests[name] = Test(name, tests[name].command, tuple(lists["LABELS"]),
                                   dict(entry.split("=", 1) for entry in lists["ENVIRONMENT"]))
        return tests

    def paths(self, test):
        """Returns the files that the command and the environment of a test name. In a word, shell arguments may follow
        the file, and the path of the file may contain a blank."""
        environment = self.tests[test].environment
        words = [*self.tests[test].command, *environment.values()]
        if "LD_LIBRARY_PATH" in environment:
            words.append(f"{environment['LD_LIBRARY_PATH']}/{environment['LD_PRELOAD']}")
        found = re.findall(rf"{re.escape(str(root))}/[^;:\n]+", "\n".join(words))
        return {Path(word[:end]) for word in found for end in [*(blank.start() for blank in re.finditer(" ", word)), None]}

    @cached_property
    def sources(self):
        """Returns the sources of each GoogleTest program as {program: [path]}."""
        lines = (self.folder / "test_programs.txt").read_text().splitlines()
        return {line.split("\t")[0]: [Path(path) for path in line.split("\t")[1:]] for line in lines}

    def program(self, test):
        return Path(self.tests[test].command[0]).name

    # --- the graph of ninja

    @cached_property
    def users(self):
        """Returns which outputs depend directly on each file, as {path: {path}}."""
        users = {}
        text = (self.folder / "build.ninja").read_text().replace("$\n", "")
        for line in re.findall(r"^build (.*)$", text, re.M):
            outs, ins = re.split(r"(?<!\$): \S+", line, maxsplit=1)
            makes = [self.path(word) for word in re.split(r"(?<!\$) ", outs) if word not in ("", "|")]
            for word in re.split(r"(?<!\$) ", ins):
                if word not in ("", "|", "||"):
                    users.setdefault(self.path(word), set()).update(makes)
        deps = subprocess.run(["ninja", "-C", self.folder, "-t", "deps"], capture_output=True, text=True).stdout
        made = None
        for line in deps.splitlines():
            if line.startswith("    "):
                users.setdefault(self.path(line.strip()), set()).add(made)
            elif line:
                made = self.path(line.split(": #deps")[0])
        return users

    def path(self, word):
        return Path(os.path.normpath(self.folder / unescape(word)))

    @cached_property
    def outputs(self):
        return {made for makes in self.users.values() for made in makes}

    def made_from(self, files):
        """Returns all outputs that depend on the files, and the files themselves."""
        found, waiting = set(files), list(files)
        while waiting:
            for made in self.users.get(waiting.pop(), ()):
                if made not in found:
                    found.add(made)
                    waiting.append(made)
        return found

    def targets(self, tests):
        """Returns the targets that ninja must build for some tests."""
        made = set()
        for test in tests:
            made |= {path for path in self.paths(test) if path in self.outputs}
        # A program may open modules at run time. Its target in CMake depends on these modules.
        phony = {path.name for path in made if self.folder / path.name in self.outputs}
        return sorted({str(path.relative_to(self.folder)) for path in made} | phony)
