"""Finds the names of tests in the source code, so that a filter can be checked before anything is built."""
import difflib
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

from results import names_file
from table import root

case = re.compile(r"^ *(?:GTEST_)?(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+),\s*(\w+)\)", re.M)
registered = re.compile(r"\bRegisterTest\(\s*\"(\w+)\"")  # cases whose names are known only at run time
attribute = r'(?:#\[[^\n]*\]|#\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]|//[^\n]*)\s*'
rust_test = re.compile(rf"#\[test\]\s*(?:{attribute})*(?:pub(?:\(\w+\))? )?(?:const |unsafe |async )*fn (\w+)")
macro_of_rust_tests = re.compile(r"macro_rules! (\w+) \{(?:(?!\n\}).)*#\[test\](?:(?!\n\}).)*fn \$\w+", re.S)
cmake_command = re.compile(r"^ *(set|foreach|endforeach|function|endfunction|add(?:_\w+)?_test)\(([^)]*)\)?", re.M)
python_test = re.compile(r"^    def test_(\w+)", re.M)


@dataclass(frozen=True)
class Name:
    text: str      # the name to compare with a filter; `*` for parts that only CMake knows
    file: Path     # the source
    kind: str      # gtest, ctest, rust, documentation or command
    pattern: str   # what selects the test: a GoogleTest filter, or a word in the name

    @property
    def prefix(self):
        """The part before the suite in the name of a GoogleTest case, such as `malloc.`."""
        return "".join(f"{part}." for part in self.text.split(".")[:-2]) if self.kind == "gtest" else ""

    def is_of(self, word):
        """Returns whether `word` is the whole name of a case of this test, as a summary prints it."""
        if self.kind == "gtest":
            return fnmatchcase(word, self.prefix + self.pattern)
        if self.kind == "rust":
            *_, module, test = self.text.split("::")
            *modules, last = word.split("::")
            return last == test and (not modules or module in modules or module in ("lib", "main", "tests"))
        if self.kind == "documentation":
            return word.startswith(f"{self.text} - ")
        return "*" in self.text and fnmatchcase(word, self.text)


def matching(compiled, word, known):
    """Returns the names that a filter matches. If the filter is the name of one case of a test with parameters, their
    pattern selects only that case."""
    found = [name for name in known if compiled.search(name.text)]
    if found:
        return found
    literal = re.sub(r"\\(.)", r"\1", word.removeprefix("^").removesuffix("$"))
    return [replace(name, pattern=literal.removeprefix(name.prefix)) if name.kind in ("gtest", "documentation") else name
            for name in known if name.is_of(literal)]


def patterns_of(macro, suite, test):
    return {"TEST_P": f"*{suite}.{test}/*", "TYPED_TEST": f"{suite}/*.{test}",
            "TYPED_TEST_P": f"*{suite}/*.{test}"}.get(macro, f"{suite}.{test}")


def of_googletest():
    for file in sorted((root / "tests").rglob("*.[ch]pp")):
        text = file.read_text()
        cases = [(f"{suite}.{test}", patterns_of(macro, suite, test)) for macro, suite, test in case.findall(text)]
        cases += [(f"{suite}.*", f"{suite}.*") for suite in dict.fromkeys(registered.findall(text))]
        for prefix in ("malloc.", "glibc.", "checked_malloc.") if file.parent.name == "malloc" else ("",):
            for name, pattern in cases:
                yield Name(prefix + name, file, "gtest", pattern)


def of_ctest():
    for folder, prefix, suffix in (("misuse", "misuse.", ".cpp"), ("nocompile", "nocompile.", ".cpp"), ("fuzz", "fuzz.", ".cpp"),
                                   ("models", "model.", ".pml"), ("tools", "tools.", "_test.py"), ("c", "c.", ".c"),
                                   ("c", "c_static.", ".c"), ("malloc/misuse", "malloc.misuse.", ".cpp"),
                                   ("malloc/misuse", "checked_malloc.misuse.", ".cpp"),
                                   ("../docs/examples", "example.", ".cpp"), ("../docs/examples", "example.c.", ".c")):
        for file in sorted((root / "tests" / folder).resolve().glob(f"*{suffix}")):
            yield Name(prefix + file.stem, file, "ctest", prefix + file.stem)
    for file, prefix in (("tests/record/recorder_test.py", "record."), ("tests/replay/replay_test.py", "replay."),
                         ("tests/replay/refused_test.py", "replay.")):
        for name in python_test.findall((root / file).read_text()):
            yield Name(prefix + name, root / file, "ctest", prefix + name)
    for folder in "tests", "docs/examples", "bench":
        for file in sorted((root / folder).rglob("CMakeLists.txt")):
            for name in dict.fromkeys(of_cmake(file.read_text())):
                if not re.match(r"(\w+\.)?(misuse\.|c\.)?\*$", name):  # a loop over files, whose names were added above
                    yield Name(name, file, "ctest", name)


def of_cmake(text):
    """Returns the names of tests that a CMakeLists.txt adds, also by loops over words and by functions.

    `*` stands for the value of a variable that only CMake knows.
    """
    values, loops, functions, inside = {}, [], {}, None
    for command, words in cmake_command.findall(text):
        words = re.sub(r"#.*", "", words).split()
        if command == "function":
            inside = functions.setdefault(words[0], (words[1:], []))[1]
        elif command == "endfunction":
            inside = None
        elif command == "set" and len(words) == 2:
            values[words[0]] = expanded(words[1], values)
        elif command == "foreach":
            variable, *words = [word for word in words if word not in ("IN", "ITEMS")]
            values[variable] = ["*"] if re.search(r'[$"]|\bLISTS\b', " ".join(words)) else words
            loops.append(variable)
        elif command == "endforeach":
            values.pop(loops.pop(), None)
        elif command == "add_test" and inside is not None:
            inside.append(words[1])
        elif command == "add_test":
            yield from expanded(words[1], values)
        elif command in functions:
            parameters, templates = functions[command]
            arguments = {parameter: expanded(word, values) for parameter, word in zip(parameters, words)}
            for template in templates:
                yield from expanded(template, arguments)


def expanded(template, values):
    """Returns a CMake text for each value of its variables."""
    variables = list(dict.fromkeys(re.findall(r"\$\{(\w+)\}", template)))
    names = []
    for chosen in product(*(values.get(variable, ["*"]) for variable in variables)):
        of_variable = dict(zip(variables, chosen))
        names.append(re.sub(r"\$\{(\w+)\}", lambda found: of_variable[found[1]], template))
    return names


def of_rust():
    for file in sorted((root / "crates").rglob("*.rs")):
        path = file.relative_to(root / "crates")
        text = file.read_text()
        module = module_of_tests(path) if path.parts[1] == "tests" else file.parent.name if file.stem == "mod" else file.stem
        for name in rust_test.findall(text) + of_rust_macros(text):
            yield Name(f"{path.parts[0]}::{module}::{name}", file, "rust", name)
        if re.search(r"^ *//[/!] *```", text, re.M):
            yield Name(f"crates/{path}", file, "documentation", f"crates/{path}")


def module_of_tests(path):
    """Returns the module of a file of CRATE/tests, for example `sql::query`."""
    return "::".join(part for part in path.with_suffix("").parts[2:] if part not in ("mod", "main"))


def of_rust_macros(text):
    """Returns the words in the calls of macros that define tests. The names of the tests are among these words."""
    return [word for macro in macro_of_rust_tests.findall(text)
            for body in re.findall(rf"^{macro}! \{{(.*?)^\}}", text, re.M | re.S)
            for word in re.findall(r"\b[a-z_]\w*", re.sub(r"#\[[^\n]*?\]|//.*|\"[^\"]*\"", "", body))]


def of_all(rows):
    """Returns the names of all tests, including those lines of the table that are commands."""
    commands = [Name(row.tests, root / "tests/tiers.txt", "command", row.tests) for row in rows]
    return [*of_googletest(), *of_ctest(), *of_rust(), *commands]


def rows_of(name, rows):
    """Returns the lines of the table that contain a test. If a Rust module has its own line, that line replaces
    the line of its crate."""
    if name.kind == "command":
        keys = [{name.text}]
    elif name.kind in ("rust", "documentation"):
        crate, folder, *inside = name.file.relative_to(root / "crates").with_suffix("").parts
        keys = [{f"{crate}/{inside[0]}"}] if folder == "tests" else []
        keys.append({crate})
    else:
        parts = name.file.relative_to(root).with_suffix("").parts
        folder = "examples" if parts[:2] == ("docs", "examples") else parts[0] if parts[0] == "bench" else parts[1]
        folder = name.text.split(".")[0] if folder == "CMakeLists" else folder
        # A file that only a larger run has belongs to its own line (see consumer/install).
        keys = [{folder, f"{folder}/{parts[-1]}", f"{folder}/{name.text.split('.')[-1]}"}]
    return next((found for wanted in keys if (found := [row for row in rows if row.tests in wanted])), [])


def seen():
    """Returns (stage, program, case) of the cases that earlier runs have printed."""
    if not names_file.exists():
        return []
    return [tuple(line.split("\t")) for line in names_file.read_text().splitlines() if line.count("\t") == 2]


def nearest(word, names, count=3):
    """Returns the names that are most similar to a filter which matches no name."""
    last = {name.text.split(".")[-1].split("::")[-1]: name.text for name in names}
    last |= {name.text: name.text for name in names}
    close = difflib.get_close_matches(word, last, n=count, cutoff=0.4)
    return list(dict.fromkeys(last[name] for name in close))
