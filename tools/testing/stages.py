"""Defines the stages of a test run, with the commands that each stage runs.

A stage is a function of a plan and a runner. Stages of one chain run one after the other. Chains run in parallel,
because tests often leave a core idle, which a compiler of the other chain can use. A stage that measures programs
runs alone, after the others.
"""
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from builds import Tree
from changes import affected, crates_affected, is_near
from names import module_of_tests, rows_of, rust_test
from readers import Build, Cargo, Ctest, GoogleTest
from table import Row, of_stage, root

x = str(root / "x")


@dataclass(frozen=True)
class Plan:
    """The request for a test run."""
    rows: list[Row]
    everything: bool = False               # --all
    filter: str = ""                       # a regular expression for the names of tests
    matches: tuple = ()                    # the names in the source that match the filter
    seen: tuple = ()                       # (stage, program, case) of earlier runs that match the filter
    changed: frozenset = frozenset()       # changed paths
    only_changed: bool = False             # --changed

    def tests(self, stage):
        return of_stage(self.rows, stage, self.everything, self.changed)

    def wants(self, command):
        """Returns whether a command of the table runs, because there is no filter, or because the filter names it."""
        return not self.filter or any(name.kind == "command" and name.text == command for name in self.matches)


@dataclass(frozen=True)
class Stage:
    name: str
    run: object                                  # a function of (stage, plan, runner)
    groups: tuple[str, ...]                      # package groups (see tools/packages)
    seconds: int                                 # duration in `./x test`, or in `./x test --all`, on 2 cores
    environment: dict = field(default_factory=dict)
    alone: bool = False                          # whether it measures programs, and so waits for the other chain


# --- C++ and C

def cxx(stage, plan, runner, preset=None):
    """Builds a preset, and runs its tests."""
    preset = preset or stage.name
    tree = Tree(preset)
    named = {row.tests for name in plan.matches for row in rows_of(name, plan.rows)}
    changed = [row.tests for row in plan.rows if row.on_change and (row.tests in named or row.depends_on(plan.changed))]
    tier = "all" if plan.everything else "plain"
    if not runner.run(stage, f"configure {preset}", ["cmake", "--preset", preset, f"-DMALLARD_TIER={tier}",
                      f"-DMALLARD_CHANGED={';'.join(changed)}"], Build(f"configure {preset}"), "build"):
        return
    if plan.only_changed:
        files = affected(tree, plan.changed)
        words = {Path(file).stem for file in plan.changed}
        near = [test for test in files if is_near(tree, test, words)]
        for tests in near, [test for test in files if test not in near]:
            if tests:
                build_and_test(stage, tree, runner, tests)
    elif plan.filter:
        run_matches(stage, tree, plan, runner)
    else:
        build_and_test(stage, tree, runner)


def build(stage, tree, runner, targets=None):
    """Builds some targets, or all targets. Returns whether that succeeded."""
    if targets is not None and not targets:
        return True
    # Run the C++ compilers with lower priority, because the Rust chain takes longer and uses a core
    # less well.
    words = ["nice", "-n", "5", "cmake", "--build", str(tree.folder), "--parallel", runner.jobs]
    words += ["--target", *targets] if targets else []
    return runner.run(stage, f"build {tree.preset}", words, Build(f"build {tree.preset}"), "build")


def build_and_test(stage, tree, runner, tests=None):
    """Builds and runs some ctest tests, or all of them."""
    if build(stage, tree, runner, None if tests is None else tree.targets(tests)):
        run_ctest(stage, tree, runner, tests)


def run_ctest(stage, tree, runner, tests=None):
    file = tree.folder / "results.xml"
    words = ["ctest", "--test-dir", str(tree.folder), "--parallel", runner.jobs, "--output-junit", str(file),
             "--test-output-size-passed", "4000000", "--test-output-size-failed", "4000000", "--output-on-failure"]
    if tree.preset != "dev":
        words += ["--label-exclude", "^once$"]
    chosen = "" if tests is None else f"^({'|'.join(map(re.escape, tests))})$"
    if 0 < len(chosen) < 60_000:  # ctest accepts no longer expression; such an expression would select nearly all tests
        words += ["--tests-regex", chosen]
    runner.run(stage, f"test {tree.preset}", words, Ctest(file, tree.tests))


def run_matches(stage, tree, plan, runner):
    """Builds and runs the tests that a filter matches, which are cases of GoogleTest programs and other ctest tests."""
    others = {test.name for test in tree.tests.values() if test.prefix is None and re.search(plan.filter, test.name)}
    cases = {}  # {ctest test: GoogleTest patterns}
    for test in tree.tests.values():
        if test.prefix is None:
            continue
        sources = set(tree.sources.get(tree.program(test.name), []))
        patterns = {name.pattern for name in plan.matches
                    if name.kind == "gtest" and name.file in sources and name.prefix == test.prefix}
        if not patterns:
            patterns = {case.removeprefix(test.prefix) for where, program, case in plan.seen
                        if where == stage.name and program == test.name}
        if re.search(plan.filter, test.name) and not patterns:
            patterns = {"*"}
        if patterns:
            cases[test.name] = patterns
    if not cases and not others or not build(stage, tree, runner, tree.targets([*cases, *others])):
        return
    for test, patterns in cases.items():
        what = tree.tests[test]
        runner.run(stage, test, ["timeout", "900", *what.command, f"--gtest_filter={':'.join(sorted(patterns))}"],
                   GoogleTest(test, what.prefix), **what.environment)
    if others:
        run_ctest(stage, tree, runner, sorted(others))


def bench(stage, plan, runner):
    tree = Tree("bench")
    if runner.run(stage, "configure bench", ["cmake", "--preset", "bench"], Build("configure bench"), "build") and \
            build(stage, tree, runner, ["bench/all"]):
        run_ctest(stage, tree, runner, [test for test in tree.tests if re.search(plan.filter, test)] if plan.filter else None)


# --- Rust

RELEASE = {"MALLARD_RECORDER": root / "build/release/src/record/libmallard-record.so",
           "MALLARD_REPLAY": root / "build/release/src/replay/mallard-replay",
           "MALLARD_PLAN_LIBRARY": root / "build/release/src/plan/libmallard-plan.so"}
RELEASE = {name: str(path) for name, path in RELEASE.items()}


def release(stage, runner, *targets):
    """Builds the recorder, the replayer, the library for plans and the malloc as they are installed."""
    return runner.run(stage, "configure release", ["cmake", "--preset", "release"], Build("configure release"), "build") and \
        build(stage, Tree("release"), runner, targets)


def cargo(stage, plan, runner, packages, modules=(), skipped=()):
    """Runs `cargo test` on packages, either only the tests of `modules`, or all tests except those of `skipped`."""
    chosen = [f"{module}::" for module in modules]
    if plan.filter:
        chosen = sorted({name.pattern for name in plan.matches if name.kind in ("rust", "documentation")}
                        | {case for where, _, case in plan.seen if where == stage.name})
        if not chosen:
            return
    test = ["cargo", "test", "--locked", "--no-fail-fast"]
    words = [*test, *(f"--package={package}" for package in packages), *(["--test=all"] if modules else ["--tests", "--examples"]),
             "--", "--include-ignored", *chosen, *(word for test in tests_in(skipped) for word in ("--skip", test))]
    skips = root / "build/log" / f"{stage.name}-skips.txt"
    runner.run(stage, "test crates", words, Cargo(skips), MALLARD_SKIPS=str(skips), **compiling_once())
    if not modules and any((root / f"crates/{package}/src/lib.rs").exists() for package in packages):
        # Use the same packages, because with other packages, the features of libraries would
        # differ, and cargo would compile the libraries again. In doc tests, an ignored test is text
        # that does not compile.
        words = [*test, "--doc", *(f"--package={package}" for package in packages), "--", *chosen]
        runner.run(stage, "test examples in comments", words, Cargo(skips), **compiling_once())


def tests_in(modules):
    """Returns the names of the tests in modules of a crate's tests, such as `mallard-cli/query`. The name of a module
    alone would also select tests in the crate's source."""
    return [f"{module_of_tests(file.relative_to(root / 'crates'))}::{test}"
            for module in modules for crate, _, stem in [module.partition("/")]
            for file in [*root.glob(f"crates/{crate}/tests/{stem}.rs"), *root.glob(f"crates/{crate}/tests/{stem}/**/*.rs")]
            for test in rust_test.findall(file.read_text())]


def compiling_once():
    """Returns the environment variables with which the build scripts of crates compile C++ through ccache."""
    return {"PATH": f"/usr/lib/ccache:{os.environ['PATH']}", "CCACHE_BASEDIR": str(root), "CCACHE_NOHASHDIR": "1"}


def rust(stage, plan, runner):
    crates = [tests for tests in plan.tests("rust") if "/" not in tests]
    if plan.only_changed:
        crates = [crate for crate in crates if crate in crates_affected(plan.rows, plan.changed)]
    elsewhere = [row.tests for row in plan.rows if row.tests.count("/") == 1
                 and row.tests.split("/")[0] in crates and "rust" not in row.plain]
    if crates and release(stage, runner, "mallard-record", "mallard-plan", "mallard-replay", "mallard-malloc"):
        cargo(stage, plan, runner, crates, skipped=elsewhere)


def crates_of(plan, stage):
    return sorted({tests.split("/")[0] for tests in plan.tests(stage.name)})


def modules_of(plan, stage):
    return [tests.split("/")[1] for tests in plan.tests(stage.name)]


def pypi(stage, runner, module, package, *more):
    """Installs packages from PyPI in build/tools/MODULE."""
    return runner.run(stage, f"install {module}", [x, "do", "pypi", f"build/tools/{module}", module if module != "duckdb" else
                      "duckdb_cli", package, *more], Build(f"install {module}"), "build")


def sql(stage, plan, runner):
    if pypi(stage, runner, "duckdb", "duckdb-cli==1.5.6") and pypi(stage, runner, "pyspark", "pyspark==4.3.0") and \
            release(stage, runner, "mallard-record"):
        cargo(stage, plan, runner, crates_of(plan, stage), modules_of(plan, stage))


def exports(stage, plan, runner):
    if runner.run(stage, "install speedscope", [x, "do", "install_speedscope"], Build("install speedscope"), "build") and \
            pypi(stage, runner, "perfetto", "perfetto==0.59.1") and pypi(stage, runner, "pyarrow", "pyarrow==26.0.1") and \
            release(stage, runner, "mallard-record", "mallard-plan", "mallard-replay"):
        cargo(stage, plan, runner, crates_of(plan, stage), modules_of(plan, stage))


def page(stage, plan, runner):
    if release(stage, runner, "mallard-record", "mallard-replay"):
        cargo(stage, plan, runner, crates_of(plan, stage), modules_of(plan, stage))


def crates(stage, plan, runner):
    commands = {"features": [x, "do", "rust_features"], "packages": [x, "do", "rust_packages"],
                "loom": [x, "do", "rust_models"], "oldest": [x, "do", "oldest_rust"],
                "bench-crates": [x, "do", "in_crates", "test"]}
    for name in filter(plan.wants, plan.tests(stage.name)):
        runner.run(stage, name, commands[name], **compiling_once())


def installed(stage, plan, runner):
    if plan.wants("installed") and release(stage, runner, "src/malloc/all", "src/record/all", "src/plan/all", "src/replay/all") and \
            runner.run(stage, "build mallard", ["cargo", "build", "--locked", "--package", "mallard-cli"], Build("build mallard"), "build"):
        runner.run(stage, "installed", ["tests/consumer/command", "build/consumer", "build/release", "build/cargo/debug/mallard"])


def known(stage, plan, runner):
    if plan.wants("advice") and release(stage, runner, "mallard-record", "mallard-plan", "mallard-replay", "mallard-malloc") and \
            runner.run(stage, "configure dev", ["cmake", "--preset", "dev", "-DMALLARD_TIER=all"], Build("configure dev"), "build") and \
            build(stage, Tree("dev"), runner, ["known-programs"]) and \
            runner.run(stage, "build mallard", ["cargo", "build", "--release", "--locked", "--package", "mallard-cli"],
                       Build("build mallard"), "build"):
        runner.run(stage, "advice", [x, "do", "known_programs", "--mallard", "build/cargo/release/mallard", "--budget", "60"])


def suites(stage, plan, runner):
    """Runs the tests of other projects with plans. The names of these tests are known only from earlier runs."""
    chosen = [case for where, _, case in plan.seen if where == stage.name]
    if (plan.wants("suites") or chosen) and release(stage, runner, "mallard-record", "mallard-plan") and \
            runner.run(stage, "build mallard", ["cargo", "build", "--locked", "--package", "mallard-cli"], Build("build mallard"), "build"):
        runner.run(stage, "suites", ["tests/suites/run.py", "--jobs", runner.jobs, *chosen], GoogleTest("suites"))


# --- the rest

def cross(stage, plan, runner):
    commands = {"compilers": "tests/consumer/matrix", "musl": "tests/consumer/musl", "aarch64": "tests/consumer/aarch64"}
    for name in filter(plan.wants, plan.tests(stage.name)):
        runner.run(stage, name, [commands[name]])


def mutants(stage, plan, runner):
    if plan.wants("mutants"):
        runner.run(stage, "mutants", ["tests/mutants/run.py", "--jobs", runner.jobs])


def fuzz(stage, plan, runner):
    if plan.wants("fuzz-targets"):
        runner.run(stage, "fuzz-targets", [x, "fuzz", "--seconds", "5"])


def words(stage, plan, runner):
    """Installs the linter for words, and checks them."""
    if plan.wants("words") and runner.run(stage, "install vale", [x, "do", "words_linter"], Build("install vale"), "build"):
        runner.run(stage, "words", ["tools/check-words"])
        runner.run(stage, "words_test", ["python3", "-B", "-m", "unittest", "discover", "-s", "tests/tools", "-p", "words_test.py"])


def lint(stage, plan, runner):
    """Checks the source. In `./x test`, the slow checks read only changed files, unless a filter names these checks."""
    every = plan.everything or bool(plan.filter)
    changed = sorted(file for file in plan.changed if (root / file).exists())
    headers = [] if every else [file for file in changed if re.fullmatch(r"include/.*\.hpp", file)]
    folders = [] if every else sorted({str(Path(file).parent) for file in changed
                                       if re.fullmatch(r"(src|tests/compile)/.*\.[ch]pp", file)})
    commands = {
        "layers": ["tools/check-layers"], "style": ["tools/check-style"], "tiers": ["tools/check-tiers"],
        "words": ["tools/check-words", *([] if every else ["--changed"])], "documents": ["tools/check-docs"], "figures": ["tools/check-figures"],
        "stale-mutants": ["tests/mutants/run.py", "--check"], "format": [x, "do", "cxx_format"],
        "headers": [x, "do", "headers_stand_alone", *headers] if every or headers else None,
        "clang-tidy": ["tools/tidy", "--jobs", runner.jobs, *folders] if every or folders else None,
        "rust-format": [x, "do", "rust_format"],
        "clippy": [x, "do", "with_cargo", "clippy", "--locked", "--all-targets", "--", "-D", "warnings"],
        "clippy-bench": [x, "do", "in_crates", "clippy", "--all-targets", "--", "-D", "warnings"],
        "site": [x, "docs"]}
    for name in filter(plan.wants, plan.tests("lint")):
        if commands[name]:
            runner.run(stage, name, commands[name], **(compiling_once() if name.startswith("clippy") else {}))


CHAINS = (
    (Stage("asan", cxx, ("test", "clang", "cache"), 300), Stage("dev", cxx, ("test", "cache"), 240),
     Stage("tsan", cxx, ("test", "cache"), 200), Stage("clang", cxx, ("test", "clang", "cache"), 500),
     Stage("bench", bench, ("bench",), 700), Stage("mutants", mutants, ("test",), 900), Stage("cross", cross, ("test", "cross"), 600),
     Stage("fuzz", fuzz, ("build", "clang", "rust"), 300)),
    (Stage("rust", rust, ("rust", "build", "cache"), 500, RELEASE), Stage("lint", lint, ("lint", "rust"), 120),
     Stage("page", page, ("rust", "browser"), 60, RELEASE),
     Stage("sql", sql, ("rust", "sql"), 200, RELEASE | {"MALLARD_DUCKDB": str(root / "build/tools/duckdb/bin/duckdb"),
                                                        "MALLARD_PYSPARK": str(root / "build/tools/pyspark/bin/python")}),
     Stage("exports", exports, ("rust", "exports", "browser"), 200,
           RELEASE | {"MALLARD_SPEEDSCOPE": str(root / "build/tools/speedscope/dist/release"),
                      "MALLARD_PERFETTO": str(root / "build/tools/perfetto/bin/python"),
                      "MALLARD_PYARROW": str(root / "build/tools/pyarrow/bin/python")}),
     Stage("installed", installed, ("rust", "build"), 60), Stage("crates", crates, ("rust", "cache"), 500),
     Stage("suites", suites, ("rust", "build", "suites"), 600, RELEASE), Stage("words", words, ("words",), 300),
     Stage("known", known, ("rust", "test", "programs"), 1200, alone=True)),
)
GROUPS_OF_ALL = {"lint": ("docs", "browser"), "dev": ("models", "programs"), "clang": ("programs",)}
STAGES = {stage.name: stage for chain in CHAINS for stage in chain}


def needs(names, everything):
    """Returns the package groups that stages need."""
    groups = [group for name in names for group in STAGES[name].groups + (GROUPS_OF_ALL.get(name, ()) if everything else ())]
    return list(dict.fromkeys(groups))


def stages_of(matches, seen, rows, chosen, everything):
    """Returns the stages that run the tests which a filter matches, and whether these stages belong to `--all`. If the
    tests belong to both tiers, the stages of `./x test` run.

    `chosen` and `everything` are the options of the user: the stages of --stage, and whether --all is set.
    """
    found = [row for name in matches for row in rows_of(name, rows)]
    if chosen:
        named = rows if any(stage in chosen for stage, _, _ in seen) else found or rows
        return chosen, everything or not any(set(chosen) & set(row.plain) for row in named)
    tier = everything or not any(row.plain for row in found or rows)
    if not tier:  # the slow stages of `--all` run only tests that no stage of `./x test` contains
        found = [row for row in found if row.plain]
    first = {stage for row in found for stage in (row.stages(True) if everything else (row.plain or row.more)[:1])}
    if not first:  # cases whose names are not in the source, such as those of macros
        first = {stage for stage, _, _ in seen}
        tier = everything or not any(first & set(row.plain) for row in rows)
    return [name for name in STAGES if name in first], tier
