"""Records which stages have passed, so that another run with an unchanged tree does not repeat them."""
import hashlib
import json
import os
import time
from pathlib import Path

from changes import git
from readers import Case
from table import root

file = root / "build/test-passed.json"
system = "/var/lib/dpkg/status"  # changes whenever a package is installed
linter = root / "build/tools/words/bin/vale"  # without it, lint checks no words


def state():
    """Returns a hash of the system and of all files in the tree, by size and time of change. None without git."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard")
    if listed is None:
        return None
    lines = [os.uname().release, os.environ.get("MALLARD_TEST_LENGTH", ""), os.environ.get("CXX", ""), str(os.getuid())]
    for path in [*sorted(set(listed)), system, linter]:
        try:
            found = (root / path).lstat()
            lines.append(f"{path} {found.st_size} {found.st_mtime_ns}")
        except OSError:
            lines.append(f"{path} is not there")
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def read():
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return {}


def cases(tier, stage, now):
    """Returns (time, cases) of a stage that has passed in this state of the tree, or None."""
    found = read().get(f"{tier} {stage}")
    if not now or not found or found["state"] != now:
        return None
    return time.strftime("%H:%M", time.localtime(found["time"])), [Case(*case) for case in found["cases"]]


def remember(tier, stage, now, passed):
    """Records that a stage has passed, unless the tree has changed in the meantime."""
    if not now or not passed or any(case.verdict == "failed" for case in passed) or state() != now:
        return
    known = read() | {f"{tier} {stage}": {"state": now, "time": time.time(), "cases": [
        (case.name, case.verdict, case.detail, case.program) for case in passed]}}
    new = Path(f"{file}.new")
    new.write_text(json.dumps(known))
    new.replace(file)
