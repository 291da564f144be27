"""Reads tests/tiers.txt, the table that lists which stage and which tier run which tests."""
from dataclasses import dataclass
from pathlib import Path

root = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    tests: str                # a directory or file of tests/, a crate or a module of it, or a command
    plain: tuple[str, ...]    # stages of `./x test`
    more: tuple[str, ...]     # stages that `./x test --all` adds
    on_change: bool           # whether plain stages run the tests only if one of `files` changed
    files: tuple[str, ...]    # paths of the repository that the tests depend on

    def stages(self, everything, changed=frozenset()):
        """Returns the stages that run the tests. `changed` contains the paths of the changed files."""
        if everything:
            return self.plain + self.more
        return () if self.on_change and not self.depends_on(changed) else self.plain

    def depends_on(self, changed):
        return any(path == file or path.startswith(f"{file}/") for path in changed for file in self.files)


def stages_of(word):
    return () if word == "-" else tuple(word.rstrip("?").split(","))


def read(file=root / "tests/tiers.txt"):
    """Returns the lines of the table."""
    rows = []
    for line in file.read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            tests, plain, more, *files = words
            rows.append(Row(tests, stages_of(plain), stages_of(more), plain.endswith("?"),
                            (f"tests/{tests}", f"crates/{tests}", *files)))
    return rows


def of_stage(rows, stage, everything, changed=frozenset()):
    """Returns the names of the tests that a stage runs."""
    return [row.tests for row in rows if stage in row.stages(everything, changed)]
