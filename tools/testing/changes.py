"""Finds the changed files, and the tests that they can affect."""
import shutil
import subprocess
import tomllib
from pathlib import Path

from table import root


def git(*words):
    """Returns the lines that git prints, or None if git fails or is not installed, or if this is not a repository."""
    if not shutil.which("git"):
        return None
    run = subprocess.run(["git", "-C", root, "-c", "safe.directory=*", "-c", "core.quotePath=off", *words],
                         capture_output=True, encoding="utf-8", errors="surrogateescape")
    return run.stdout.splitlines() if run.returncode == 0 else None


def base():
    """Returns the commit with which the tree is compared. This is the merge base with the tracked branch, or else the
    commit before the last commit. Returns None without git or without a history."""
    if (git("rev-parse", "--show-prefix") or [None])[0] != "":
        return None  # not a repository, or a directory in another repository
    tracked = (git("merge-base", "HEAD", "@{upstream}") or [None])[0]
    head = (git("rev-parse", "HEAD") or [None])[0]
    if tracked and tracked != head:
        return tracked
    if git("status", "--porcelain", "--untracked-files=normal"):
        return head
    return (git("rev-parse", "--verify", "--quiet", "HEAD~1") or [None])[0]


def changed_files():
    """Returns the paths, relative to the root, of files that differ from `base`, or None if `base` is not known."""
    since = base()
    if not since:
        return None
    listed = git("diff", "--name-only", "--no-renames", since)
    new = git("ls-files", "--others", "--exclude-standard")
    return None if listed is None or new is None else {*listed, *new}


def affected(tree, files):
    """Returns the tests of a build that files of the repository can affect, the most closely related first."""
    paths = {root / file for file in files}
    made = tree.made_from(paths)
    # Files that no compiler reads, such as scripts, affect the tests in their directory.
    folders = {path.parent for path in paths if path not in tree.users and root / "tests" in path.parents}
    found = [test for test in tree.tests
             if any(path in made or path.parent in folders for path in tree.paths(test))]
    words = {path.stem for path in paths}
    return sorted(found, key=lambda test: not is_near(tree, test, words))


def is_near(tree, test, words):
    """Returns whether a test program has a source file with the name of a changed file."""
    names = [source.stem for source in tree.sources.get(tree.program(test), [])] + [test.split(".")[-1]]
    return any(name.startswith(word) for name in names for word in words)


def crates_affected(rows, files):
    """Returns the crates whose tests the files can affect, according to the paths in the table of tests, and to the
    dependencies between crates."""
    found = {row.tests for row in rows if "rust" in row.plain and row.depends_on(files)}
    users = {manifest.parent.name: {Path(of["path"]).name for kind in ("dependencies", "dev-dependencies")
                                    for of in tomllib.loads(manifest.read_text()).get(kind, {}).values() if "path" in of}
             for manifest in (root / "crates").glob("*/Cargo.toml")}
    while more := {crate for crate, used in users.items() if used & found} - found:
        found |= more
    return [row.tests for row in rows if row.tests in found]
