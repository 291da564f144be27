"""Finds the names of tests in the source, so that a filter is checked before anything is built."""
import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from results import names_file
from table import root

case = re.compile(r"^ *(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\((\w+),\s*(\w+)\)", re.M)
rust_test = re.compile(r"#\[test\]\s*(?:(?:#\[[^\n]*\]|//[^\n]*)\s*)*(?:pub )?fn (\w+)")
cmake_test = re.compile(r"add(?:_\w+)?_test\((?:NAME )?([\w.]+(?:\$\{\w+\}[\w.]*)*)")
python_test = re.compile(r"^    def test_(\w+)", re.M)


@dataclass(frozen=True)
class Name:
    text: str      # what a filter is compared with
    file: Path     # the source
    kind: str      # gtest, ctest or rust
    pattern: str   # what chooses the test: a filter of GoogleTest, or a word in the name


def patterns_of(macro, suite, test):
    return {"TEST_P": f"*{suite}.{test}/*", "TYPED_TEST": f"{suite}/*.{test}",
            "TYPED_TEST_P": f"*{suite}/*.{test}"}.get(macro, f"{suite}.{test}")


def of_googletest():
    for file in sorted((root / "tests").rglob("*.[ch]pp")):
        for macro, suite, test in case.findall(file.read_text()):
            prefixes = ("malloc.", "glibc.", "checked_malloc.") if file.parent.name == "malloc" else ("",)
            for prefix in prefixes:
                yield Name(f"{prefix}{suite}.{test}", file, "gtest", patterns_of(macro, suite, test))


def of_ctest():
    for folder, prefix, suffix in (("misuse", "misuse.", ".cpp"), ("nocompile", "nocompile.", ".cpp"), ("fuzz", "fuzz.", ".cpp"),
                                   ("models", "model.", ".pml"), ("tools", "tools.", "_test.py")):
        for file in sorted((root / "tests" / folder).glob(f"*{suffix}")):
            name = prefix + (file.stem if prefix != "fuzz." else file.stem)
            yield Name(name, file, "ctest", name)
    for file in sorted((root / "tests/malloc/misuse").glob("*.cpp")):
        for prefix in "malloc", "checked_malloc":
            yield Name(f"{prefix}.misuse.{file.stem}", file, "ctest", f"{prefix}.misuse.{file.stem}")
    for file, prefix in (("tests/record/recorder_test.py", "record."), ("tests/replay/replay_test.py", "replay."),
                         ("tests/replay/refused_test.py", "replay.")):
        for name in python_test.findall((root / file).read_text()):
            yield Name(prefix + name, root / file, "ctest", prefix + name)
    for file in [*(root / "tests").rglob("CMakeLists.txt"), *(root / "docs/examples").glob("CMakeLists.txt")]:
        for name in cmake_test.findall(file.read_text()):
            yield Name(re.sub(r"\$\{\w+\}", "", name), file, "ctest", name)
    for file in sorted((root / "docs/examples").glob("*.c*")):
        if file.suffix in (".c", ".cpp"):
            name = f"example.{'c.' if file.suffix == '.c' else ''}{file.stem}"
            yield Name(name, file, "ctest", name)


def of_rust():
    for file in sorted((root / "crates").rglob("*.rs")):
        crate = file.relative_to(root / "crates").parts[0]
        for name in rust_test.findall(file.read_text()):
            module = file.parent.name if file.stem == "mod" else file.stem
            yield Name(f"{crate}::{module}::{name}", file, "rust", name)


def of_all(rows):
    """Returns the names of all tests, those of the rows that are commands included."""
    commands = [Name(row.tests, root / "tests/tiers.txt", "command", row.tests) for row in rows]
    return [*of_googletest(), *of_ctest(), *of_rust(), *commands]


def seen():
    """Returns (stage, program, case) of the cases that earlier runs printed."""
    if not names_file.exists():
        return []
    return [tuple(line.split("\t")) for line in names_file.read_text().splitlines() if line.count("\t") == 2]


def nearest(word, names, count=3):
    """Returns the names that are most like a filter that matches none."""
    last = {name.text.split(".")[-1].split("::")[-1]: name.text for name in names}
    last |= {name.text: name.text for name in names}
    close = difflib.get_close_matches(word, last, n=count, cutoff=0.4)
    return list(dict.fromkeys(last[name] for name in close))
