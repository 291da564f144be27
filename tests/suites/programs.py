"""The programs whose tests run under plans, and where their tests come from.

The tests come from Debian packages, which are downloaded once, into a directory of the build, and are not
installed. NAME.txt lists the test files of each program.
"""
import glob
import os
import re
import shutil
import subprocess
from pathlib import Path

here = Path(__file__).resolve().parent


class Missing(Exception):
    """Raised when the tests of a program cannot run here. The message says why."""


def output_of(*command, **options):
    """Returns what a command prints."""
    try:
        return subprocess.run([str(word) for word in command], check=True, text=True, capture_output=True, **options).stdout
    except FileNotFoundError as error:
        raise Missing(f"there is no {error.filename}") from error
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout).strip().splitlines()
        raise Missing(f"{Path(str(command[0])).name}: {lines[-1] if lines else f'status {error.returncode}'}") from error


def listed(file):
    """Reads a list of tests. Returns all names, {name: reason} of the tests that are left out, and the names of the
    tests for which only the status is compared."""
    names, left_out, status_only = [], {}, set()
    for line in file.read_text().splitlines():
        words, _, comment = line.partition("#")
        if not words.strip():
            continue
        *how, name = words.split()
        if how == ["-"]:
            left_out[name] = comment.strip()
            continue
        names.append(name)
        if how == ["status"]:
            status_only.add(name)
    return names, left_out, status_only


def libraries_of(program):
    """Returns the libraries of a program, except for the C library and its parts."""
    found = re.findall(r"=> (/\S+)", output_of("ldd", program))
    return [os.path.realpath(path) for path in found if not re.search(r"/(libc|libm|libpthread|libdl)\.so", path)]


class Program:
    """A program and its tests. `file` is the executable for which a plan is made."""
    environment = {}
    short_run = ""  # the test that is recorded for the plan, unless `recording` returns another
    plugins = ()  # patterns of the files that the program loads while it runs

    def __init__(self, work):
        self.work = work / self.name
        self.tests, self.left_out, self.status_only = listed(here / f"{self.name}.txt")

    def get(self):
        """Downloads the tests and makes the directory in which they run, unless that is complete already."""
        mark = self.work / "complete"
        if not mark.exists():
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir(parents=True)
            self.prepare()
            mark.touch()
        self.locate()

    def libraries(self):
        """Returns the files with code for which a plan has ranges, except for the program itself."""
        plugins = {os.path.realpath(path) for pattern in self.plugins for path in glob.glob(pattern, recursive=True)}
        return [*libraries_of(self.file), *sorted(plugins)]

    def recording(self, place):
        """Returns the arguments of `mallard record` that record a short run."""
        return ["--", *self.command(self.short_run, place, 0)]

    def prepare_place(self, place):
        """Adds what a test needs to the directory of the test."""

    def directory(self, test, place):
        """Returns the working directory of a test."""
        return place

    def masked(self, text):
        """Returns the output of a test without the parts that differ from run to run."""
        return text

    # --- packages

    def packages(self, *names):
        """Unpacks binary packages in `self.work`."""
        output_of("apt-get", "download", *names, cwd=self.work)
        for package in self.work.glob("*.deb"):
            output_of("dpkg-deb", "-x", package, self.work)
            package.unlink()

    def source(self, package):
        """Unpacks the source of a package in `self.work`. Uses a separate list of apt sources, because many systems
        have none. Security updates are left out, because their archives lack files that the release has."""
        listed = output_of("apt-get", "indextargets", "Created-By: Packages", "--format",
                           "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)")
        lines = [line for line in listed.splitlines() if re.fullmatch(r"deb-src \S+/(debian|ubuntu)/? [a-z]+ main", line)]
        apt = self.work / "apt"
        for name in "lists", "cache":
            (apt / name / "partial").mkdir(parents=True)
        (apt / "sources.list").write_text("\n".join(lines) + "\n")
        options = [f"-o=Dir::Etc::sourcelist={apt}/sources.list", "-o=Dir::Etc::sourceparts=-",
                   f"-o=Dir::State::lists={apt}/lists", f"-o=Dir::Cache={apt}/cache"]
        output_of("apt-get", *options, "update")
        output_of("apt-get", *options, "source", "--download-only", "--tar-only", package, cwd=self.work)
        archive, = [path for path in self.work.glob("*.orig.tar.*")]
        (self.work / "source").mkdir()
        output_of("tar", "-xf", archive, "-C", self.work / "source", "--strip-components=1")
        shutil.rmtree(apt)


class CPython(Program):
    """Debian's CPython, with the tests of Debian's package of tests. PYTHONMALLOC makes each Python object a block
    of malloc."""
    name = "cpython"
    environment = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    short_run = "test_struct"

    def prepare(self):
        version = output_of("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
        self.packages(f"python{version}-minimal", *(f"libpython{version}-{part}" for part in ("minimal", "stdlib", "testsuite")))
        python, = self.work.glob("usr/bin/python3.*")
        subprocess.run([python, "-m", "compileall", "-q", *self.work.glob("usr/lib/python3.*")], capture_output=True)

    def locate(self):
        self.file, = map(str, self.work.glob("usr/bin/python3.*"))
        self.plugins = [f"{self.work}/usr/lib/python3.*/lib-dynload/*.so"]

    def command(self, test, place, job):
        return [self.file, "-m", "test", "-v", f"--tempdir={place}", test]

    def masked(self, text):
        text = re.sub(r"(?m)^(== CPU|== cwd|== encodings|0:\d\d:\d\d |test_\w+ passed in |Executing <Task ).*\n", "", text)
        return re.sub(r"(?m)^(Ran \d+ tests?|Total duration:?) .*", r"\1", text)


class Perl(Program):
    """Debian's perl, with the tests from its source. The tests find perl's own modules in `lib`, as they would in
    perl's build directory."""
    name = "perl"
    file = "/usr/bin/perl"
    environment = {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
    short_run = "t/op/sort.t"

    def prepare(self):
        self.source("perl")
        library = self.work / "source/lib"
        shutil.move(library, self.work / "source/lib_of_source")
        library.mkdir()
        for path in output_of(self.file, "-e", 'print join "\\n", @INC').splitlines():
            if re.search(r"/perl(-base|/5\.\d+)$", path):
                subprocess.run(["cp", "-rsn", f"{path}/.", library], capture_output=True)
        shutil.copy(self.work / "source/t/test.pl", self.work / "source/dist/threads/t")
        (self.work / "source/t/perl").symlink_to(self.file)

    def locate(self):
        self.plugins = [f"{self.work}/source/lib/auto/**/*.so"]

    def command(self, test, place, job):
        return [self.file, test.removeprefix("t/") if test.startswith("t/") else re.sub(r".*/(?=t/)", "", test)]

    def masked(self, text):
        for pattern, instead in (r"\b[0-9a-f]{12}\b", "ADDRESS"), (r"\btmp_?[A-Z]+_", "tmp_"), (r"\( *\d+ \?", "(PID ?"):
            text = re.sub(pattern, instead, text)
        return re.sub(r"(?m)^# Looping for.*\n", "", text)

    def directory(self, test, place):
        return self.work / "source" / ("t" if test.startswith("t/") else re.sub(r"/t/.*", "", test))


class Sqlite(Program):
    """SQLite's tests in Tcl, and the program that runs them. The source of Debian's package has both."""
    name = "sqlite"
    short_run = "select1.test"

    def prepare(self):
        self.source("sqlite3")
        (self.work / "build").mkdir()
        output_of(self.work / "source/configure", "CFLAGS=-O1", "--disable-shared", cwd=self.work / "build")
        output_of("make", "testfixture", cwd=self.work / "build")

    def locate(self):
        self.file = str(self.work / "build/testfixture")

    def command(self, test, place, job):
        return [self.file, self.work / "source/test" / test]

    def masked(self, text):
        # The bytes in use are sums of malloc_usable_size, and a pool has other block sizes than malloc. With
        # several threads, all counts depend on the order in which threads run.
        return re.sub(r"(?m)^((Memory used|Allocation count|Page-cache (used|overflow)|Scratch.*|Maximum memory usage|"
                      r"Current memory usage|Number of malloc\(\).*):).*", r"\1", text)


class Redis(Program):
    """Debian's redis-server, with the tests in Tcl from its source."""
    name = "redis"
    short_run = "unit/dump"

    def prepare(self):
        self.source("redis")

    def locate(self):
        self.file = "/usr/bin/redis-check-rdb"  # redis-server is a link to this program
        if not Path(self.file).exists():
            raise Missing("there is no redis-check-rdb, which is redis-server too")

    def prepare_place(self, place):
        """Makes directories as in the source of redis. The tests write next to their files, and expect the programs
        in src."""
        for name in ("src", "tests", "tests/tmp"):
            (place / name).mkdir()
        for path in (self.work / "source/tests").iterdir():
            if path.name != "tmp":
                (place / "tests" / path.name).symlink_to(path)
        for name in ("redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb"):
            (place / "src" / name).symlink_to(f"/usr/bin/{name}")
        for name in ("redis-server", "redis-sentinel"):
            (place / "src" / name).symlink_to(self.file)

    def masked(self, text):
        return re.sub(r"(?m)^(\[ready\]: |Waiting for process ).*\n", "", text)

    def recording(self, place):
        load = "redis-benchmark -s socket -q -n 2000 -r 1000"
        return ["--load", load, "--", "src/redis-server", "--port", "0", "--unixsocket", "socket", "--save", ""]

    def command(self, test, place, job):
        return ["tclsh", "tests/test_helper.tcl", "--single", test, "--clients", "1", "--baseport", str(21111 + 1000 * job),
                "--portcount", "900", "--timeout", "600"]


ALL = (CPython, Perl, Sqlite, Redis)
