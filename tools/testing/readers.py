"""Finds the test cases in the output of build and test programs.

A reader receives each line of a command's output, and finally the command's status. Each time, it returns the cases
that it has found.
"""
import re
import xml.etree.ElementTree
from collections import deque
from dataclasses import dataclass

shown = 25  # lines of a failure that the summary prints


@dataclass(frozen=True)
class Case:
    name: str
    verdict: str        # passed, failed or skipped
    detail: str = ""    # the reason of a skip, or the last lines of a failure
    program: str = ""   # the ctest test that contains the case


# The first line of a failure report by a sanitizer, GoogleTest, Rust or Python.
report = re.compile(r"==\d+==ERROR: |WARNING: ThreadSanitizer|: runtime error: |: Failure$|\bpanicked at |^Traceback ")


def excerpt(text):
    """Returns the most useful lines of a failed test: those from the first report on, or else the last lines."""
    lines = text.strip("\n").splitlines()
    first = next((at for at, line in enumerate(lines) if report.search(line)), len(lines))
    at = max(0, min(first, len(lines) - shown))
    return "\n".join(lines[at:at + shown])


def last_line(text):
    return "".join(text.strip("\n").splitlines()[-1:]).removeprefix("skipped: ")


class Build:
    """Reads the output of ninja, cargo or cmake. A failure counts as one failed test."""

    def __init__(self, name):
        self.name, self.progress, self.lines = name, "", []

    def line(self, text):
        if step := re.match(r"\[(\d+)/(\d+)\]", text):
            self.progress = f"{step[1]} of {step[2]}"
        else:
            self.lines.append(text)
        return []

    def end(self, status):
        if status == 0:
            return []
        wanted = [line for line in self.lines if re.search(r"\berror\b|FAILED:|undefined reference", line)]
        return [Case(self.name, "failed", "\n".join(wanted[:shown]) or excerpt("\n".join(self.lines)))]


class Whole:
    """Reads a command that is one test. The status 77 means that this machine cannot run the test."""

    def __init__(self, name):
        self.name, self.progress, self.lines = name, "", []

    def line(self, text):
        self.lines.append(text)
        self.progress = text.strip()[:40]
        return []

    def end(self, status):
        text = "\n".join(self.lines)
        if status == 77:
            return [Case(self.name, "skipped", last_line(text) or "no reason", self.name)]
        return [Case(self.name, "failed" if status else "passed", excerpt(text) if status else "", self.name)]


result = re.compile(r"\[ *(RUN|OK|FAILED|SKIPPED) *\] ([^\s,]+)(?:,.*)?(?: \(\d+ ms\))?$")


class GoogleTest:
    """Reads the output of a GoogleTest program. A case that begins but does not end has failed."""

    def __init__(self, program, prefix=""):
        self.program, self.prefix, self.progress = program, prefix, ""
        self.running, self.output, self.names = None, [], set()
        self.failed = False

    def line(self, text):
        # A program may print text before the mark, without a line break.
        found = result.search(text)
        if not found:
            self.output.append(text)
            return []
        kind, name = found.groups()
        if kind == "RUN":
            self.running, self.output = name, []
            return []
        if name != self.running or name in self.names:
            return []  # the list of failures at the end
        self.running = None
        self.names.add(name)
        self.progress = str(len(self.names))
        return [self.case(name, {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[kind])]

    def case(self, name, verdict):
        detail = ""
        if verdict == "skipped":
            # The reason follows the line `FILE:LINE: Skipped`. The lines before are the output of
            # the case.
            marks = [at for at, line in enumerate(self.output) if line.endswith(": Skipped")]
            reason = self.output[marks[0] + 1:] if marks else self.output
            detail = next((line.strip() for line in reason if line.strip()), "no reason")
        elif verdict == "failed":
            self.failed = True
            detail = excerpt("\n".join(self.output))
        return Case(self.prefix + name, verdict, detail, self.program)

    def end(self, status):
        if self.running:
            self.output.append(f"the process terminated in this case, with status {status}; the cases after it did not run")
            return [self.case(self.running, "failed")]
        if status and not self.failed:
            return [Case(self.program, "failed", excerpt("\n".join(self.output)), self.program)]
        return []


class Ctest:
    """Reads the progress of ctest, and at the end the JUnit file that ctest has written."""

    def __init__(self, file, tests):
        self.file, self.tests, self.progress = file, tests, ""
        file.unlink(missing_ok=True)

    def line(self, text):
        if step := re.match(r" *(\d+)/(\d+) +Test +#\d+:", text):
            self.progress = f"{step[1]} of {step[2]}"
        return []

    def end(self, status):
        try:
            # Programs may print control characters, which XML does not allow.
            text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", self.file.read_text(errors="replace"))
            suite = xml.etree.ElementTree.fromstring(text)
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            return [Case("ctest", "failed", f"ctest exited with status {status} and left no results: {error}")]
        return [case for test in suite.iter("testcase") for case in self.cases_of(test)]

    def cases_of(self, test):
        name, output = test.get("name"), test.findtext("system-out") or ""
        status = test.get("status")
        if status == "disabled":
            return []
        prefix = self.tests[name].prefix if name in self.tests else None
        if prefix is not None and status in ("run", "fail"):
            cases = GoogleTest(name, prefix)
            found = [case for line in output.splitlines() for case in cases.line(line)]
            failure = test.find("failure")
            return found + cases.end(failure.get("message", "?") if failure is not None else 0)
        if status == "run":
            return [Case(name, "passed", "", name)]
        if test.find("skipped") is not None and "77" in test.find("skipped").get("message", ""):
            return [Case(name, "skipped", last_line(output) or "no reason", name)]
        reason = test.find("failure") if test.find("failure") is not None else test.find("skipped")
        message = reason.get("message", "") if reason is not None else ""
        return [Case(name, "failed", f"{excerpt(output)}\n{message}".strip(), name)]


class Cargo:
    """Reads the output of `cargo test`. `skips` is the file to which tests write the reason of a skip."""

    def __init__(self, skips):
        self.skips, self.progress, self.count = skips, "", 0
        self.program, self.open, self.failed = "", False, {}
        self.section, self.sections, self.errors = None, {}, []
        self.error_lines, self.tail = 0, deque(maxlen=shown)
        skips.unlink(missing_ok=True)

    def line(self, text):
        if running := re.match(r" +(?:Running (?:unittests )?\S+ \(.*/([\w-]+)-[0-9a-f]+\)|Doc-tests (\S+))$", text):
            ended = self.end_of_program()
            self.tail.clear()
            self.program, self.open = running[1] or f"{running[2]}, documentation", True
            return ended
        if text.startswith("test result:"):
            self.open, self.section = False, None
        elif header := re.fullmatch(r"---- (.+) stdout ----", text):
            self.section = self.sections.setdefault((self.program, header[1]), [])
        elif text == "failures:":
            self.section = None
        elif self.section is not None:
            self.section.append(text)  # this output may look like the result of a test
        elif test := re.search(r"test (\S.*?) \.\.\. (ok|FAILED|ignored)(?:, .*)?$", text):
            return self.test(*test.groups())  # a child process may have printed text before the result
        elif re.match(r"error(\[|:)|  (process didn't|Caused by)", text) or "(signal: " in text:
            self.errors.append(text)
            self.error_lines = 6
        elif compiling := re.match(r" +Compiling (\S+)", text):
            self.progress = compiling[1]
        elif self.error_lines and text.strip():  # the source location of a compiler error
            self.errors.append(text)
            self.error_lines -= 1
        else:
            self.error_lines = 0
            self.tail.append(text)
        return []

    def test(self, name, verdict):
        name = name.removesuffix(" - should panic")
        self.count += 1
        self.progress = str(self.count)
        if verdict == "ignored":
            return []  # of another tier, or not a test
        if verdict == "FAILED":
            self.failed[self.program, name] = True
            return []  # the output of the test comes at the end of the program
        return [Case(name, "passed", "", self.program)]

    def end_of_program(self):
        cases = [Case(name, "failed", excerpt("\n".join(self.sections.get((program, name), []))), program)
                 for program, name in self.failed if program == self.program]
        if self.open and self.program:
            said = excerpt("\n".join([*self.tail, *self.errors]))
            cases.append(Case(self.program, "failed", f"{said}\nthe test program terminated before its last test".strip(), self.program))
        self.open = False
        return cases

    def end(self, status):
        cases = self.end_of_program()
        if status and not self.failed and not cases:
            cases.append(Case("cargo test", "failed", excerpt("\n".join(self.errors)) or f"status {status}"))
        return cases

    def skipped(self):
        """Returns the tests that wrote why they could not run, with the reasons. The runner has counted them as passed."""
        if not self.skips.exists():
            return []
        return [Case(*line.split("\t", 1)[:1], "skipped", line.split("\t", 1)[-1])
                for line in dict.fromkeys(self.skips.read_text().splitlines()) if line]
