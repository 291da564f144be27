#!/usr/bin/env python3
"""run.py SUITE --compiler PATH --library FILE --work FOLDER [--jobs N] [--every N] [PART...]

Runs the tests that GNU and LLVM wrote for their C++ libraries with Mallard in the place of
the library's own classes. SUITE is libstdcxx-resources, libcxx-resources or
libstdcxx-containers. PARTs choose the cases whose path contains a PART; --every N runs each
Nth case, and all cases that differences.txt lists.

The tests come from packages of Debian, which are downloaded into FOLDER and stay there; this
repository contains no part of them. The adapters beside this file only rename Mallard's classes to
the names of the library's classes. A case that fails must fail with the library's own class as well,
or differences.txt has a line that says how the case ends, and which clause of the standard leaves
that open. A case that ends better than its line says is a failure, too.

The status is 77 if a package cannot be downloaded."""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

here = Path(__file__).resolve().parent
include = here.parents[1] / "include"
skipped = 77

# Maps each source package to its files that contain the tests of a suite.
gnu = "gcc-12-source"
llvm = "llvm-toolchain-16"
unpacked = {gnu: "*/libstdc++-v3/testsuite/*", llvm: "*/libcxx/test/*"}

# The containers that take an allocator, and the headers that name the default allocator.
containers = ["vector", "deque", "list", "forward_list", "map", "multimap", "set", "multiset",
              "unordered_map", "unordered_set", "unordered_multimap", "unordered_multiset",
              "stack", "queue", "priority_queue"]
headers_of_containers = ["stl_vector.h", "stl_deque.h", "stl_list.h", "forward_list.h",
                         "stl_map.h", "stl_multimap.h", "stl_set.h", "stl_multiset.h",
                         "unordered_map.h", "unordered_set.h"]
# The headers that the cases for containers include instead of <bits/stdc++.h>. GNU's <bits/stdc++.h> has
# more headers, such as <regex> and <filesystem>, and takes 0.3 s more processor time in each case. g++
# instantiates the templates of inline functions in a precompiled header again for each case, even if the
# case does not call these functions.
included_by_cases = """
    algorithm array cassert cstddef cstdlib deque forward_list functional iostream iterator limits list
    map memory memory_resource numeric queue scoped_allocator set sstream stack stdexcept string
    string_view tuple type_traits unordered_map unordered_set utility vector""".split()
seconds = 10  # limit of the CPU time of one test case


class NoPackage(Exception):
    pass


def quiet(*command, **options):
    return subprocess.run(command, check=True, text=True, capture_output=True, **options).stdout


# --- the packages -----------------------------------------------------------


def tests_of(package, work):
    """Returns the directory of a package's tests. Downloads the package if necessary."""
    folder = work / package
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            (fetch_gnu if package == gnu else fetch_llvm)(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            raise NoPackage(f"{package}: {reason[-1] if reason else error}") from error
        (folder / "complete").touch()
    return folder


def fetch_gnu(folder):
    quiet("apt-get", "download", gnu, cwd=folder)
    package = next(folder.glob("*.deb"))
    quiet("dpkg-deb", "-x", package, folder / "deb")
    unpack(next((folder / "deb").glob("usr/src/gcc-*/gcc-*.tar.xz")), gnu, folder)
    shutil.rmtree(folder / "deb")
    package.unlink()


def fetch_llvm(folder):
    """Downloads a package from apt's sources. The list of sources is in the same directory, so that the
    system's list does not change."""
    sources = quiet("apt-get", "indextargets", "Origin: Debian", "Created-By: Packages", "--format",
                    "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)")
    (folder / "sources.list").write_text(sources)
    for name in "lists", "cache":
        (folder / "apt" / name / "partial").mkdir(parents=True)
    options = [f"-o=Dir::Etc::sourcelist={folder}/sources.list", "-o=Dir::Etc::sourceparts=-",
               f"-o=Dir::State::lists={folder}/apt/lists", f"-o=Dir::Cache={folder}/apt/cache"]
    quiet("apt-get", *options, "update")
    quiet("apt-get", *options, "source", "--download-only", "--tar-only", llvm, cwd=folder)
    archive = next(folder.glob("*.orig.tar.*"))
    unpack(archive, llvm, folder)
    archive.unlink()


def unpack(archive, package, folder):
    quiet("tar", "-xf", archive, "-C", folder, "--wildcards", unpacked[package])


# --- the suites -------------------------------------------------------------


class Suite:
    """A suite of tests. The flags `ours` replace the library's classes by Mallard's. Programs are linked
    with `link`."""

    def __init__(self, arguments):
        self.name = arguments.suite
        self.compiler = arguments.compiler
        self.packages = arguments.work
        self.work = arguments.work / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.link = []
        self.flags = ["-std=gnu++20", "-O0", "-w", f"-I{include}"]
        self.prepare(arguments)

    def compile(self, *arguments):
        return subprocess.run([self.compiler, *self.flags, *arguments],
                              capture_output=True, text=True, check=False)

    def use(self, header, *flags):
        """Precompiles `header` with these flags, and includes it in each case that uses Mallard."""
        self.ours = [*flags, "-include", str(header)]
        made = self.compile(*flags, "-x", "c++-header", str(header), "-o", f"{header}.gch")
        if made.returncode:
            sys.exit(f"{made.stderr}\n{header} does not compile\n  no case was run")

    def names(self):
        found = [case for folder in self.folders for case in (self.root / folder).rglob(self.kind)]
        return sorted(str(case.relative_to(self.root)) for case in found if self.is_for_us(case))

    def is_for_us(self, case):
        return True


class Resources(Suite):
    names_of_ours = {"monotonic_buffer_resource": "mallard_arena",
                     "unsynchronized_pool_resource": "mallard_multipool",
                     "synchronized_pool_resource": "mallard_shared_multipool"}

    def put_in_place(self, library):
        self.link.append(str(library))
        header = self.work / "ours.hpp"
        header.write_text(f'#include "{here}/resources.hpp"\n' + "".join(
            f"#define {theirs} {ours}\n" for theirs, ours in self.names_of_ours.items()))
        self.flags.append("-pthread")
        self.use(header)

    def flags_of(self, case):
        return []


class GnuResources(Resources):
    kind = "*.cc"
    folders = ["20_util/monotonic_buffer_resource", "20_util/synchronized_pool_resource",
               "20_util/unsynchronized_pool_resource"]

    def prepare(self, arguments):
        prepare_gnu(self)
        self.put_in_place(arguments.library)


class LlvmResources(Resources):
    """LLVM's tests, run with GNU's library. Two cases are about LLVM's library, and fail with GNU's own."""

    kind = "*.pass.cpp"
    folders = [f"{room}/utilities/utility/mem.res/{part}" for room in ("std", "libcxx")
               for part in ("mem.res.monotonic.buffer", "mem.res.pool")]

    def prepare(self, arguments):
        self.root = next(tests_of(llvm, self.packages).glob("*/libcxx/test"))
        self.flags.append(f"-I{self.root}/support")
        self.put_in_place(arguments.library)


class GnuContainers(Suite):
    """GNU's container tests. The headers are copied, with another name for the default allocator."""

    kind = "*.cc"
    folders = ["23_containers/" + name for name in containers]

    def prepare(self, arguments):
        prepare_gnu(self)
        headers = self.work / "headers"
        (headers / "bits").mkdir(parents=True, exist_ok=True)
        for name in headers_of_containers:
            (headers / "bits" / name).write_text(
                f'#include "{here}/default_allocator.hpp"\n#define allocator mallard_default\n'
                f"#include_next <bits/{name}>\n#undef allocator\n")
        (headers / "bits" / "stdc++.h").write_text(
            "#pragma once\n" + "".join(f"#include <{name}>\n" for name in included_by_cases))
        ours = self.work / "ours.hpp"
        ours.write_text(f'#include "{here}/allocator.hpp"\n#include <bits/stdc++.h>\n'
                        "#define allocator mallard_default\n"
                        "#include <testsuite_hooks.h>\n#include <testsuite_allocator.h>\n")
        self.use(ours, "-I", str(headers), "-DTESTS_HAVE_THREADS=0")

    def is_for_us(self, case):
        """Returns whether a case is used. Excludes cases that must fail, and cases about older C++ or other
        containers."""
        return not re.search(r"dg-error|dg-prune|xfail|c\+\+98_only|gnu\+\+(98|11)|GLIBCXX_DEBUG"
                             r"|debug-mode|<debug/|dg-do preprocess|testsuite_shared",
                             case.read_text(errors="replace"))

    def flags_of(self, case):
        text = case.read_text(errors="replace")
        wanted = " ".join(re.findall(r'dg-(?:additional-)?options\s+"([^"]*)"', text)).split()
        return ([flag for flag in wanted if not flag.startswith(("-std", "-O", "-W", "-g"))] +
                (["-DTESTS_HAVE_THREADS=1"] if "-pthread" in wanted else []) +
                (["-c"] if "dg-do compile" in text or not has_main(text) else []))


def prepare_gnu(suite):
    """Compiles the files of GNU's library that its tests are linked with."""
    suite.root = next(tests_of(gnu, suite.packages).glob("*/libstdc++-v3/testsuite"))
    suite.flags.append(f"-I{suite.root}/util")
    for name in "testsuite_hooks", "testsuite_allocator":
        suite.link.append(str(suite.work / f"{name}.o"))
        made = suite.compile("-c", str(suite.root / "util" / f"{name}.cc"), "-o", suite.link[-1])
        if made.returncode:
            sys.exit(f"{made.stderr}\n{name}.cc does not compile\n  no case was run")


def has_main(text):
    return re.search(r"\bmain\s*\(", text)


suites = {"libstdcxx-resources": GnuResources, "libcxx-resources": LlvmResources,
          "libstdcxx-containers": GnuContainers}


# --- one case ---------------------------------------------------------------


@dataclasses.dataclass
class Verdict:
    """The verdict on a case. `word` is pass, differs, failed, or own, which means that the library's own
    class fails too."""

    name: str
    word: str
    reason: str = ""
    words: str = ""


def outcome(suite, case, flags, with_ours):
    """Returns `pass`, or the step at which the case fails (`compile` or `run`), and the output."""
    program = suite.work / ("ours" if with_ours else "own") / re.sub(
        r"\W", "_", str(case.relative_to(suite.root)))
    program.parent.mkdir(exist_ok=True)
    is_run = "-c" not in flags and has_main(case.read_text(errors="replace"))
    try:
        made = suite.compile(*(suite.ours if with_ours else []), *flags, str(case), "-o",
                             str(program), *(suite.link if is_run else ["-c"]))
        if made.returncode:
            return "compile", made.stderr
        if not is_run:
            return "pass", ""
        ran = subprocess.run([program], capture_output=True, text=True, errors="replace",
                             check=False, cwd=program.parent, timeout=30 * seconds,
                             preexec_fn=within_limits)
        return "run" if ran.returncode else "pass", ran.stdout + ran.stderr
    except subprocess.TimeoutExpired:
        return "run", "does not end"
    finally:
        program.unlink(missing_ok=True)


def within_limits():
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def judge(suite, name, listed):
    """Returns the Verdict on a case."""
    case = suite.root / name
    flags = suite.flags_of(case)
    found, words = outcome(suite, case, flags, True)
    if found == listed:
        return Verdict(name, "differs" if listed != "pass" else "pass")
    if listed != "pass":
        return Verdict(name, "failed", f"differences.txt says {listed}, it ends with {found}", words)
    if outcome(suite, case, flags, False)[0] != "pass":
        return Verdict(name, "own")
    return Verdict(name, "failed", f"ends with {found}, and passes with the library's own", words)


# --- all cases --------------------------------------------------------------


def differences():
    """Returns the outcome of each listed case. A line is `OUTCOME CASE: [CLAUSE] WHY`."""
    listed = {}
    for number, line in enumerate((here / "differences.txt").read_text().splitlines(), 1):
        if line.startswith("#") or not line:
            continue
        if not (parts := re.fullmatch(r"(compile|run) ([\w./-]+): \[[\w.]+\] \S.*", line)):
            sys.exit(f"differences.txt:{number}: is not OUTCOME CASE: [CLAUSE] WHY\n"
                     f"  no case was run\n  help: write the line as those above it")
        listed[parts[2]] = parts[1]
    return listed


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("suite", choices=suites)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_intermixed_args()
    arguments.work = arguments.work.resolve()
    try:
        suite = suites[arguments.suite](arguments)
    except NoPackage as error:
        print(f"skipped: the tests of the library cannot be had ({error})")
        return skipped
    listed = differences()
    names = [name for number, name in enumerate(suite.names())
             if (number % arguments.every == 0 or name in listed)
             and (not arguments.parts or any(part in name for part in arguments.parts))]
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        verdicts = list(pool.map(lambda n: judge(suite, n, listed.get(n, "pass")), names))
    for verdict in verdicts:
        if verdict.word == "failed":
            print(f"{verdict.name}: {verdict.reason}")
            print("".join(f"    {line}\n" for line in telling(verdict.words)), end="")
    count = collections.Counter(verdict.word for verdict in verdicts)
    print(f"{suite.name}: {len(verdicts)} cases in {time.monotonic() - started:.0f} s: "
          f"{count['pass']} pass, {count['differs']} end as differences.txt says, "
          f"{count['failed']} fail; {count['own']} more fail with the library's own class too")
    return 1 if count["failed"] or not verdicts else 0


def telling(words):
    lines = words.splitlines()
    return ([line for line in lines if "error: " in line] or lines)[:4]


if __name__ == "__main__":
    sys.exit(main())
