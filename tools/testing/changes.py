"""Finds the files that changed, and the tests that they can affect."""
import shutil
import subprocess
import tomllib
from pathlib import Path

from table import root


def git(*words):
    """Returns the lines that git prints, or None if it fails, is not installed, or knows no repository here."""
    if not shutil.which("git"):
        return None
    run = subprocess.run(["git", "-C", root, "-c", "safe.directory=*", "-c", "core.quotePath=off", *words],
                         capture_output=True, encoding="utf-8", errors="surrogateescape")
    return run.stdout.splitlines() if run.returncode == 0 else None


def base():
    """Returns the commit with which the tree is compared: where its branch left the branch that it tracks, or else
    the commit before the last one. None without git or a history."""
    if (git("rev-parse", "--show-prefix") or [None])[0] != "":
        return None  # no repository, or a folder of another one
    tracked = (git("merge-base", "HEAD", "@{upstream}") or [None])[0]
    head = (git("rev-parse", "HEAD") or [None])[0]
    if tracked and tracked != head:
        return tracked
    if git("status", "--porcelain", "--untracked-files=normal"):
        return head
    return (git("rev-parse", "--verify", "--quiet", "HEAD~1") or [None])[0]


def changed_files():
    """Returns the paths, relative to the root, of files that differ from `base`. None if that is not known."""
    since = base()
    if not since:
        return None
    listed = git("diff", "--name-only", "--no-renames", since)
    new = git("ls-files", "--others", "--exclude-standard")
    return None if listed is None or new is None else {*listed, *new}


def affected(tree, files):
    """Returns the tests of a build that files of the repository can affect, the nearest first."""
    paths = {root / file for file in files}
    made = tree.made_from(paths)
    # Files that no compiler reads, such as scripts, belong to the tests of their directory.
    folders = {path.parent for path in paths if path not in tree.users and root / "tests" in path.parents}
    found = [test for test in tree.tests
             if any(path in made or path.parent in folders for path in tree.paths(test))]
    words = {path.stem for path in paths}
    return sorted(found, key=lambda test: not is_near(tree, test, words))


def is_near(tree, test, words):
    """Whether a test program has a source file that is named like a changed file."""
    names = [source.stem for source in tree.sources.get(tree.program(test), [])] + [test.split(".")[-1]]
    return any(name.startswith(word) for name in names for word in words)


def crates_affected(rows, files):
    """Returns the crates whose tests files can affect: by the paths that the table names for each, and by the crates
    on which each depends."""
    found = {row.tests for row in rows if "rust" in row.plain and row.depends_on(files)}
    users = {manifest.parent.name: {Path(of["path"]).name for kind in ("dependencies", "dev-dependencies")
                                    for of in tomllib.loads(manifest.read_text()).get(kind, {}).values() if "path" in of}
             for manifest in (root / "crates").glob("*/Cargo.toml")}
    while more := {crate for crate, used in users.items() if used & found} - found:
        found |= more
    return [row.tests for row in rows if row.tests in found]
