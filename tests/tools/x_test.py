import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from tree import root

stages = "asan dev tsan clang bench mutants cross fuzz rust lint page sql exports installed crates suites words known".split()
commands = "setup build test bench try demo docs lint fuzz soak mutate miri semver".split()
three_lines = re.compile(r"x: [^\n]+\n  [^\n]+\n  help: [^\n]+\n")
nobody = 65534
sizes = """case $* in *--assume-no*) echo 'The following packages will be REMOVED:
  rustc
  gcc
The following NEW packages will be installed:
  cargo-web
Need to get 93.6 MB/95 MB of archives.
After this operation, 429 MB of additional disk space will be used.
Abort.' ;; esac"""


def x(*arguments, where=root, **options):
    return subprocess.run([where / "x", *arguments], capture_output=True, text=True, **options)


class X(unittest.TestCase):
    def refuses(self, run, status, *words):
        """Checks that a command fails and prints exactly three lines, which contain these words."""
        said = "".join(line for line in run.stderr.splitlines(True)
                       if not line.startswith(("  needs: ", "    ", "  apt: ", "  install ", "  the whole log: ")))
        self.assertRegex(said, three_lines)
        self.assertEqual(said.count("\n"), 3, said)
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(run.returncode, status, said)

    def test_lists_each_command_with_one_line(self):
        lines = x().stdout.splitlines()[1:]
        self.assertEqual([line.split()[0] for line in lines], commands)
        for line in lines:
            self.assertRegex(line, r"^  [a-z]+ +[A-Z][^.]+\.$")
            self.assertLessEqual(len(line), 100)

    def test_explains_every_command(self):
        for command in commands:
            run = x(command, "--help")
            self.assertEqual(run.returncode, 0)
            self.assertTrue(run.stdout.startswith(f"./x {command}"), run.stdout)
            self.assertGreater(run.stdout.count("\n"), 2)

    def test_lists_the_commands_after_an_unknown_one(self):
        run = x("biuld")
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stderr, "x: no command 'biuld'\n"
                                     f"  there are: {' '.join(commands)}\n  help: ./x --help\n")

    def test_help_of_test_names_every_stage(self):
        said = x("test", "--help").stdout
        for stage in stages:
            self.assertRegex(said, rf"(?m)^.* {stage} +[^ ]")

    def test_rejects_a_stage_that_does_not_exist(self):
        for arguments in (["--stage", "prod"], ["--stage", "dev", "--stage", ""]):
            self.refuses(x("test", *arguments), 2, "there is no stage", " ".join(stages), "nothing was built")
        self.refuses(x("test", "--stage"), 2, "--stage", "nothing was built")

    def test_rejects_a_stage_of_the_larger_tier_without_the_option_all(self):
        self.refuses(x("test", "--stage", "clang"), 2, "'clang'", "nothing was built", "help: ./x test --all --stage clang")

    def test_continuous_integration_rejects_an_unknown_stage(self):
        run = subprocess.run([root / ".ci/run", "--stage", "prod"], capture_output=True, text=True)
        self.refuses(run, 2, "there is no stage 'prod'", "nothing was built")

    def test_rejects_unknown_arguments(self):
        for arguments in (["build", "dev", "asan"], ["test", "--fast"], ["test", "--quick"],
                          ["test", "--changed", "arena"], ["lint", "all"],
                          ["fuzz", "--seconds", "x"], ["fuzz", "nothing"], ["setup", "all"],
                          ["soak", "--minutes", "0"], ["bench", "pool", "--fast"],
                          ["demo", "--fast"], ["demo", "README.md"]):
            self.refuses(x(*arguments), 2, f"help: ./x {arguments[0]} --help")


class Bare(X):
    """Tests x in a copy of the tree that cannot be built, in an environment with few programs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree, self.path = Path(folder.name) / "tree", Path(folder.name) / "bin"
        for file in ("x", ".ci/run", "tools/packages", "tools/install", "tools/rust", "tools/run-tests",
                     *(f"tools/testing/{file.name}" for file in (root / "tools/testing").glob("*.py")), "tests/tiers.txt",
                     "tests/unit/arena.cpp", "tests/record/recorder_test.py", "tests/replay/replay_test.py",
                     "tests/replay/refused_test.py", "crates/mallard-cli/tests/sql/query.rs",
                     "tools/try", "tools/demo", "bench/main.cpp", "Cargo.toml",
                     "bench/pool/new.cpp", "bench/crates-malloc/run.py", "tests/known/lru_cache.cpp", "tests/known/lru_cache_advised.cpp", "tests/fuzz/new.cpp",
                     *(f"results/m/{suite}.jsonl" for suite in ("pool", "crates", "advise", "calibration"))):
            copy = self.tree / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            if (root / file).exists():
                shutil.copy(root / file, copy)
            elif file.endswith(".cpp"):
                copy.write_text('all.push_back({"new/" + size});\n')
            else:
                copy.write_text(f'{{"suite":"{copy.stem}","case":"pair/64B","contender":"a"}}\n')
        self.path.mkdir()
        for tool in ("bash sh env awk sed grep sort xargs cut head tail tr cat dirname mkdir nproc id "
                     "ls chmod rm cp echo kill sleep find nice python3").split():
            (self.path / tool).symlink_to(sys.executable if tool == "python3" else shutil.which(tool))
        self.asked = Path(folder.name) / "asked"
        self.asked.touch()
        for readable in (folder.name, self.asked):
            os.chmod(readable, 0o777)
        for copied in self.tree, *self.tree.rglob("*"), self.path:  # another user runs x, whatever the umask is
            copied.chmod(copied.stat().st_mode | (0o055 if copied.stat().st_mode & 0o100 else 0o044))
        self.has("dpkg-query", "echo unknown")
        self.has("id", "echo 0")
        self.policy = Path(folder.name) / "policy-rc.d"
        self.is_system("ID=debian\nVERSION_ID=12")
        installs = self.tree / "tools/install"
        text, count = re.subn(r"(?m)^policy=\S+", f"policy={self.policy}", installs.read_text())
        text, locks = re.subn(r"(?m)^lock_folder=\S+", f"lock_folder={folder.name}", text)
        self.assertEqual((count, locks), (1, 1))
        installs.write_text(text)

    def is_system(self, release):
        """Writes the names of a distribution where x looks for them."""
        system = self.path / "os-release"
        system.write_text(release)
        packages = self.tree / "tools/packages"
        packages.write_text(re.sub(r"(?m)^os_release=\S+", f"os_release={system}", packages.read_text()))

    def has(self, name, script):
        """Adds a program to the environment. The program runs `script` in bash."""
        file = self.path / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        file.chmod(0o755)

    def has_apt(self, script):
        self.has("apt-get", f'echo "$*" >>{self.asked}\n{script}')

    def has_compiler(self):
        for tool in ("g++", "cmake", "ninja"):
            self.has(tool, "exit 0")

    def x(self, *arguments, **options):
        return x(*arguments, where=self.tree, env={"PATH": str(self.path)}, **options)

    def packages_asked_for(self):
        lines = [line.split() for line in self.asked.read_text().splitlines()
                 if "install" in line and "--assume-no" not in line]
        return {word for line in lines for word in line if word != "install" and word[0] != "-"}

    def test_rejects_unknown_presets_suites_cases_and_files_before_anything_is_built(self):
        self.has_apt("exit 0")
        for arguments, words in (
                (["build", "prod"], ["'prod'", " dev release ", "nothing was built"]),
                (["bench"], ["no suite", " pool "]),
                (["bench", "pol"], ["'pol'", " pool ", "nothing was built"]),
                (["bench", "pool", "lakos6"], ["'lakos6'"]),
                (["bench", "show", "pol"], ["'pol'", "nothing was built"]),
                (["bench", "pool", "--case", "no such"], ["of pool", "'no such'", "nothing was built"]),
                (["bench", "pool", "--case=no such"], ["'no such'"]),
                (["bench", "crates", "--case", "no such"], ["of crates", "'no such'"]),
                (["bench", "pool", "--case", "("], ["'('"]),
                (["bench", "--list", "--case", "no such"], ["any suite"]),
                (["bench", "calibration", "--case", "no such"], ["of calibration", "'no such'"]),
                (["bench", "advise", "--case", "no such"], ["of advise", "'no such'"]),
                (["bench", "advise", "--case", "("], ["'('"]),
                (["bench", "crates-malloc", "--case=no such"], ["of crates-malloc", "'no such'"]),
                (["bench", "advise", "--case", "^lru_cache_advised$"], ["of advise"]),
                (["bench", "advise", "--rounds", "3"], ["'--rounds'", "nothing was done"]),
                (["bench", "advise", "--short"], ["'--short'", "nothing was done"]),
                (["bench", "calibration", "--runs", "3"], ["'--runs'", "nothing was done"]),
                (["demo", "--"], ["no program", "nothing was built"]),
                (["demo", "--", "no such program"], ["'no such program'", "nothing was built"]),
                (["try"], ["no program", "nothing was built"]),
                (["try", "--"], ["no program", "nothing was built"]),
                (["try", "--budget", "2m"], ["no program", "nothing was built"]),
                (["try", "--", "no such program"], ["'no such program'", "nothing was built"]),
                (["try", "no such program"], ["'no such program'", "nothing was built"]),
                (["try", "--quiet", "--", str(self.tree)], [f"'{self.tree}' is a directory", "nothing was built"])):
            self.refuses(self.x(*arguments), 2, *words)
        self.assertEqual(self.asked.read_text(), "")
        self.assertFalse((self.tree / "build").exists())

    def test_finds_benchmark_cases_in_results_and_new_cases_in_the_source(self):
        self.has_compiler()
        for arguments in (["pool", "--case", "^pair/"], ["pool", "--case=64B$"], ["--list", "--case", "64"],
                          ["pool", "arena", "--case", "pair"], ["crates", "--case", "pair"],
                          ["pool", "--case", "^new/"], ["heap", "--case", "of a suite without rows"],
                          ["advise", "--case", "^lru_cache$"], ["crates-malloc", "--case", "^parser$"],
                          ["advise", "--set", "measured", "--replay=5", "--case", "^lru_cache$"]):
            run = self.x("bench", *arguments)
            self.assertNotIn("no case", run.stderr, arguments)
            self.assertNotIn("does not take", run.stderr, arguments)

    def test_installs_only_a_compiler_and_cmake_if_only_these_are_missing(self):
        self.has_apt("exit 0")
        run = self.x("build", "release")
        self.refuses(run, 1, "not in PATH", "cmake g++ ninja-build", "nothing was built")
        self.assertEqual(self.packages_asked_for(), {"g++", "cmake", "ninja-build"})

    def test_reports_that_there_is_no_package_manager(self):
        run = self.x("build", "release")
        self.refuses(run, 1, "cmake g++ ninja-build", "nothing was built", "no apt-get")

    def test_reports_that_there_is_no_network_for_packages(self):
        self.has_apt('echo "Err:1 http://deb.example bookworm"\n'
                     'echo "E: Failed to fetch http://deb.example" >&2\necho "E: Unable to fetch some archives" >&2\nexit 100')
        run = self.x("build", "release")
        self.refuses(run, 1, "could not install cmake g++ ninja-build", "nothing was built",
                     "E: Failed to fetch http", "network")

    def test_reports_that_crates_cannot_be_downloaded(self):
        self.has("dpkg-query", "echo install ok installed")
        self.has("cargo", '[ "$1" = --version ] && echo cargo 9.0.0 && exit 0\n'
                 'echo "   Updating crates.io index" >&2\n'
                 'echo "error: failed to download from the registry" >&2\nexit 101')
        self.has_compiler()
        for arguments in (["bench", "report"], ["try", "--", "ls"]):
            run = self.x(*arguments)
            said = run.stderr[run.stderr.index("x: "):]
            self.assertRegex(said, three_lines)
            self.assertEqual(said.count("\n"), 3, said)
            self.assertIn("failed to download", said)
            self.assertEqual(run.returncode, 1)

    def test_prints_for_a_user_without_root_or_sudo_what_to_install(self):
        self.has_apt("exit 0")
        self.has("id", "echo 1000")
        run = self.x("build", "release")
        self.refuses(run, 1, "as this is not root and there is no sudo",
                     "help: as root, run: apt-get install cmake g++ ninja-build, then run the same command again")
        self.assertEqual(self.packages_asked_for(), set())

    def test_prints_for_a_user_who_may_not_use_sudo_what_to_install(self):
        self.has_apt("exit 0")
        self.has("id", "echo 1000")
        self.has("sudo", "echo 'sudo: a password is required' >&2; exit 1")
        run = self.x("build", "release")
        self.assertEqual(run.stderr.count("sudo: a password is required\n"), 1, run.stderr)
        run.stderr = run.stderr.replace("sudo: a password is required\n", "")
        self.refuses(run, 1, "as this is not root and sudo refused",
                     "help: as root, run: apt-get install cmake g++ ninja-build, then run the same command again")
        self.assertEqual(self.packages_asked_for(), set())

    def test_installs_through_sudo_if_only_some_sudo_rules_need_a_password(self):
        self.has_apt("exit 0")
        self.has("id", "echo 1000")
        self.has("sudo", 'case $1 in -v) exit 1 ;; -n) exit 0 ;; esac\nexec "$@"')
        self.x("build", "release")
        self.assertEqual(self.packages_asked_for(), {"g++", "cmake", "ninja-build"})

    def test_installs_nothing_if_a_compiler_and_cmake_exist_outside_of_packages(self):
        self.has_apt("exit 1")
        self.has_compiler()
        self.assertEqual(self.x("build", "release").returncode, 0)
        self.assertEqual(self.asked.read_text(), "")

    def test_reports_that_the_tree_is_not_writable(self):
        self.has_compiler()
        self.tree.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
        for folder in self.tree.rglob("*"):
            folder.chmod(folder.stat().st_mode | stat.S_IROTH | stat.S_IXOTH)
        # Runs x as nobody and without groups of root, because that group may not read the tree.
        options = {"user": nobody, "group": nobody, "extra_groups": []} if os.getuid() == 0 else {}
        run = self.x("build", "release", **options)
        self.refuses(run, 1, f"{self.tree}/build", "nothing was built", "cp -R")

    def test_reports_that_other_commands_cannot_write_either(self):
        self.has("dpkg-query", "echo install ok installed")
        self.has_compiler()
        for tool in ("cargo", "python3", "doxygen", "node", "npm", "clang-19", "clang++-19", "pkg-config"):
            self.has(tool, "echo cargo 9.0.0")
        (self.tree / "build").write_text("")
        for arguments in (["docs"], ["fuzz", "new"], ["demo"], ["test", "--stage", "dev"]):
            self.refuses(self.x(*arguments), 1, f"{self.tree}/build", "nothing was built")

    def test_rejects_a_filter_that_no_test_matches_before_anything_is_installed(self):
        self.has_apt("exit 0")
        for arguments in (["areno"], ["arena", "areno"]):
            self.refuses(self.x("test", *arguments), 2, "no test matches 'areno'", "the nearest names are", "nothing was built", "help: ./x test ")
        self.refuses(self.x("test", "arena("), 2, "'arena('", "nothing was built", "help: ./x test 'arena\\('")
        self.refuses(self.x("test", ""), 2, "it is empty", "nothing was built")
        self.assertEqual(self.asked.read_text(), "")
        self.assertFalse((self.tree / "build").exists())

    def test_reports_that_changes_cannot_be_determined_without_git(self):
        self.refuses(self.x("test", "--changed"), 2, "changed files are unknown", "nothing was built")

    @unittest.skipUnless(importlib.util.find_spec("ensurepip"), "this Python has no ensurepip: install python3-venv")
    def test_reports_that_packages_of_python_cannot_be_downloaded(self):
        self.has("dpkg-query", "echo install ok installed")
        self.has_compiler()
        self.has("doxygen", "exit 0")
        self.has("cargo", '[ "$1" != --version ] || echo cargo 9.0.0')
        run = x("docs", where=self.tree, env={"PATH": str(self.path), "PIP_NO_INDEX": "1"})
        self.refuses(run, 1, "could not download a file", "Could not find a version", "connect to a network")

    def test_installs_for_the_demo_only_its_build_dependencies(self):
        self.has_apt("exit 0")
        self.x("demo")
        self.assertEqual(self.packages_asked_for(), {
            "g++", "cmake", "ninja-build", "rustc-web", "cargo-web", "libjs-chart.js",
            "libcmark-gfm-dev", "libcmark-gfm-extensions-dev"})

    def test_installs_for_a_trial_two_compilers_and_the_mallocs_to_compare_with(self):
        self.has_apt("exit 0")
        build = {"g++", "cmake", "ninja-build", "rustc-web", "cargo-web"}
        self.x("try", "--no-install", "--", "ls")
        self.assertEqual(self.packages_asked_for(), build)
        for text, mallocs in (("ID=debian\nVERSION_ID=12", {"libmimalloc2.0", "libjemalloc2", "libtcmalloc-minimal4"}),
                              ("ID=debian\nVERSION_ID=13", {"libmimalloc3", "libjemalloc2", "libtcmalloc-minimal4t64"}),
                              ("ID=debian\nVERSION_ID=99", set())):
            self.is_system(text)
            self.asked.write_text("")
            self.x("try", "--", "ls")
            self.assertEqual(self.packages_asked_for() - build - {"rustc", "cargo"}, mallocs, text)

    def test_try_runs_without_other_mallocs_if_the_user_declines_and_asks_only_once(self):
        self.has_compiler()
        self.has_apt("exit 0")
        self.is_system("ID=debian\nVERSION_ID=12")
        self.has("cargo", '[ "$1" != --version ] || echo cargo 9.0.0')
        command = self.tree / "build/cargo/first/mallard-try"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!{shutil.which("bash")}\necho "tried $*"\n')
        command.chmod(0o755)
        said, status = self.on_a_terminal(b"n\n", "try", "--", "ls")
        self.assertEqual((self.packages_asked_for(), status), (set(), 0), said)
        self.assertNotIn("x: packages are missing", said)
        self.assertRegex(said, r"without libjemalloc2 libmimalloc2\.0 libtcmalloc-minimal4; \./x try --install ")
        self.assertIn("tried try --budget 30s -- ls", said)
        again = self.x("try", "--", "ls")
        self.assertEqual((self.packages_asked_for(), again.stdout), (set(), "tried try --budget 30s -- ls\n"))

    def test_installs_the_rust_package_that_each_distribution_has(self):
        self.has_apt("exit 0")
        for text, wanted in (("ID=debian\nVERSION_ID=12", {"rustc-web", "cargo-web"}),
                             ("ID=debian\nVERSION_ID=13", {"rustc", "cargo"}),
                             ("ID=ubuntu\nVERSION_ID=24.04", {"rustc-1.85", "cargo-1.85"}),
                             ("ID=mint\nID_LIKE='ubuntu debian'", {"rustc-1.85", "cargo-1.85"})):
            self.is_system(text)
            self.asked.write_text("")
            self.x("try", "--", "ls")
            mallocs = {name for name in self.packages_asked_for() if name.startswith("lib")}
            self.assertEqual(self.packages_asked_for() - mallocs, {"g++", "cmake", "ninja-build"} | wanted, text)

    def test_uses_the_newer_of_several_cargo_packages_of_ubuntu(self):
        self.has_compiler()
        self.has_apt("exit 1")
        self.has("cargo", "echo cargo 1.75.0")
        for program in ("rustc", "rustdoc"):
            self.has(f"{program}-1.85", "exit 0")
        self.has("cargo-1.85", f'echo cargo 1.85.1; echo "$*" >>{self.asked}')
        (self.path / "ln").symlink_to(shutil.which("ln"))
        said = self.x("try", "--", "ls")
        self.assertIn("build --locked --package mallard-measure", self.asked.read_text(), said.stderr)

    def test_try_runs_the_program_in_the_directory_of_the_user_with_the_given_options(self):
        self.has_compiler()
        self.has("cargo", '[ "$1" != --version ] || echo cargo 9.0.0')
        command = self.tree / "build/cargo/first/mallard-try"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!{shutil.which("bash")}\necho "$PWD: $*"\n')
        command.chmod(0o755)
        for arguments, wanted in ((["--", "ls", "--help"], "try --budget 30s -- ls --help"),
                                  (["ls", "-l"], "try --budget 30s -- ls -l"),
                                  (["--yes", "--budget", "5s", "-a", "jemalloc", "--", "ls", "--yes"],
                                   "try --budget 5s -a jemalloc -- ls --yes"),
                                  (["--list"], "try --budget 30s --list --")):
            run = self.x("try", *arguments, cwd=self.path)
            self.assertEqual(run.stdout.strip(), f"{self.path}: {wanted}", run.stderr)

    def test_lists_the_packages_to_install_with_their_purpose_and_size(self):
        self.has_apt(sizes)
        said = self.x("try", "--", "ls").stderr
        for line in ("  needs: packages that are not installed here", r"    g\+\+  .*compile the libraries, in C",
                     "    cargo-web  .*compile the command mallard",
                     "  apt: 93.6 MB to download, 429 MB on the disk, with what they depend on; removes rustc gcc"):
            self.assertRegex(said, f"(?m)^{line}")
        self.has_apt("exit 100")
        self.assertIn("not known before apt-get update", self.x("try", "--", "ls").stderr)

    def test_every_package_has_a_purpose(self):
        groups = re.findall(r"^    ([a-z]+)\)", (root / "tools/packages").read_text(), re.M)
        self.assertGreater(len(groups), 8)
        script = '. tools/packages; for g in "$@"; do for p in $(packages $g); do echo "$p: $(purpose_of $p)"; done; done'
        run = subprocess.run(["bash", "-c", script, "x", *groups], cwd=self.tree, capture_output=True, text=True,
                             env={"PATH": str(self.path)})
        self.assertGreater(run.stdout.count("\n"), 30, run.stderr)
        for line in run.stdout.splitlines():
            self.assertRegex(line, r"^[a-z0-9.+-]+: .+")

    def on_a_terminal(self, answer, *arguments):
        """Runs x in a terminal, types an answer, and returns the output and the status."""
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(self.tree / "x", ["x", *arguments], {"PATH": str(self.path)})
        said = b""
        try:
            while b"[Y/n] " not in said:
                said += os.read(terminal, 4096)
            os.write(terminal, answer)
            while piece := os.read(terminal, 4096):
                said += piece
        except OSError:  # the terminal is closed
            pass
        os.close(terminal)
        return said.decode().replace("\r", ""), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_asks_on_a_terminal_before_it_installs_packages(self):
        self.has_apt("exit 0")
        said, status = self.on_a_terminal(b"n\n", "build", "release")
        self.assertEqual((self.packages_asked_for(), status), (set(), 1), said)
        self.assertRegex(said, r"Install them\? \[Y/n\] n\nx: packages are missing: cmake g\+\+ ninja-build\n"
                               r"  nothing was installed or built, as the answer was no\n  help: (sudo )?apt-get install ")
        for answer in (b"y\n", b"\n"):
            self.asked.write_text("")
            said, _ = self.on_a_terminal(answer, "build", "release")
            self.assertEqual(self.packages_asked_for(), {"g++", "cmake", "ninja-build"}, said)

    def test_asks_nothing_with_the_option_yes(self):
        self.has_apt("exit 0")
        for arguments in (("--yes", "build", "release"), ("build", "release", "--yes")):
            self.asked.write_text("")
            said, _ = self.on_a_terminal(b"", *arguments)
            self.assertNotIn("[Y/n]", said)
            self.assertEqual(self.packages_asked_for(), {"g++", "cmake", "ninja-build"}, said)

    def test_forbids_services_to_start_while_packages_are_installed(self):
        self.has_apt(f'[ "$1" != install ] || {self.policy} >/dev/null; echo "policy $?" >>{self.asked}')
        self.x("build", "release")
        self.assertIn("policy 101", self.asked.read_text())
        self.assertFalse(self.policy.exists())
        self.policy.write_text("the policy of the machine")
        self.x("build", "release")
        self.assertEqual(self.policy.read_text(), "the policy of the machine")

    def test_suggests_rustup_if_the_distribution_has_no_recent_rust(self):
        self.has_apt("echo 'E: Unable to locate package cargo-web' >&2; exit 100")
        self.refuses(self.x("try", "--", "ls"), 1, "nothing was built", "Unable to locate", "https://rustup.rs")

    def test_demo_ends_with_a_sentence_for_each_program(self):
        advised = self.tree / "build/demo/advice"
        for name, sentence in (("git", 'Keep it: "git" gains nothing.'), ("cmark", "Under an arena it needs less.")):
            (advised / f"{name}.mallard").mkdir(parents=True)
            quoted = sentence.replace('"', '\\"')
            (advised / f"{name}.mallard/advice.json").write_text(
                f'{{"cards":[{{"title":"a"}}],"sentence":"{quoted}","sites":[],"version":1}}\n')
        (advised / "verified.txt").write_text("  note: card 1 of the advice predicts 26 %\n  note: b\n\nIt needs less.\n")
        said = subprocess.run(["bash", "-euc", "root=. && . tools/demo && summary"], cwd=self.tree,
                              capture_output=True, text=True)
        self.assertEqual(said.stdout, '  Keep it: "git" gains nothing.\n  Under an arena it needs less.\n'
                                      "    card 1 of the advice predicts 26 %\n    It needs less.\n", said.stderr)

    def test_installs_only_the_dependencies_of_the_requested_stage(self):
        self.has_apt("exit 0")
        for arguments, wanted, unwanted in (
                ("--stage tsan", "libgtest-dev", "clang-19"), ("--stage asan", "clang-19", "chromium"),
                ("--stage lint", "clang-tidy-19", "libgtest-dev"), ("--stage rust", "cargo-web", "clang-19"),
                ("--stage dev", "libgtest-dev", "spin"), ("--all --stage dev", "spin", "clang-19"),
                ("--all --stage lint", "chromium", "libgtest-dev"), ("--all --stage cross", "qemu-user", "clang-19"),
                ("--all --stage exports", "npm", "clang-19"), ("--all --stage sql", "default-jre-headless", "npm"),
                ("--all --stage page", "chromium", "npm"), ("arena", "clang-19", "cargo-web"), ("sql::query", "default-jre-headless", "npm")):
            self.asked.write_text("")
            self.x("test", *arguments.split())
            self.assertIn(wanted, self.packages_asked_for(), arguments)
            self.assertNotIn(unwanted, self.packages_asked_for(), arguments)

    def test_asks_once_for_the_packages_of_all_stages(self):
        self.has_apt("exit 0")
        said = self.x("test").stderr
        self.assertEqual(said.count("  needs: "), 1, said)
        wanted = self.packages_asked_for()
        self.assertGreaterEqual(wanted, {"clang-19", "cargo-web", "clang-tidy-19", "ccache", "libgtest-dev"})
        for package in wanted:  # those of benchmarks, browsers, Spark and exports belong to --all
            self.assertNotRegex(package, "^(chromium.*|npm|openjdk.*|libboost.*|golang.*|heaptrack|spin|doxygen|qemu.*)$")
        self.asked.write_text("")
        self.x("test", "--all")
        self.assertGreaterEqual(self.packages_asked_for(), wanted | {"chromium", "npm", "default-jre-headless", "libboost-dev", "spin"})

    def test_asks_only_once_even_if_the_table_of_tests_cannot_be_read_yet(self):
        self.has_apt("exit 0")
        self.x("test")
        wanted = self.packages_asked_for()
        (self.path / "python3").unlink()
        self.asked.write_text("")
        said = self.x("test").stderr
        self.assertEqual(said.count("  needs: "), 1, said)
        self.assertEqual(self.packages_asked_for(), wanted | {"python3"})

    def has_all_for_tests(self):
        self.has("dpkg-query", "echo install ok installed")
        self.has_compiler()
        for tool in ("pkg-config", "clang-19"):
            self.has(tool, "exit 0")
        results = self.tree / "build/dev/results.xml"
        results.parent.mkdir(parents=True)
        (results.parent / "test_programs.txt").touch()
        self.has("ctest", f"""echo '<testsuite><testcase name="a" status="run"/><testcase name="b" status="run"/>'"""
                          f""" '</testsuite>' >{results}""")
        self.has("cargo", '[ "$1" = --version ] && echo cargo 9.0.0 && exit 0\n'
                          'echo "     Running tests/all.rs (deps/all-0a1b)"\necho "test c ... ok"\necho "test result: ok."')

    def test_adds_up_the_tests_of_concurrent_stages(self):
        self.has_all_for_tests()
        run = self.x("test", "--stage", "dev", "--stage", "rust")
        self.assertEqual((run.stdout, run.returncode), ("3 passed, 0 failed\n", 0), run.stderr)
        for step in ("dev: build dev", "dev: test dev", "rust: test crates"):
            self.assertRegex(run.stderr, rf"{step} +ok, ")

    def test_counts_failures_in_a_concurrent_stage(self):
        self.has_all_for_tests()
        self.has("cargo", '[ "$1" = --version ] && echo cargo 9.0.0 && exit 0\necho "error: a test failed"; exit 101')
        run = self.x("test", "--stage", "dev", "--stage", "rust")
        self.assertEqual((run.stdout, run.returncode), ("2 passed, 1 failed\n", 1), run.stderr)
        self.assertRegex(run.stderr, r"rust: test crates +FAILED, \d+ s")
        self.assertIn("error: a test failed\n  alone: ./x test --stage rust\n", run.stderr)

    def test_reports_that_a_compiler_was_killed(self):
        self.has_all_for_tests()
        self.has("cmake", '[ "$1" != --build ] || { echo "g++: fatal error: Killed signal terminated program cc1plus"; exit 1; }')
        run = self.x("test", "--stage", "dev")
        self.assertEqual((run.stdout, run.returncode), ("0 passed, 1 failed\n", 1), run.stderr)
        self.assertIn("x: a compiler was killed", run.stderr)
        self.assertIn("MALLARD_JOBS=1 ./x test", run.stderr)

    def test_a_second_simultaneous_run_in_the_same_clone_is_rejected(self):
        self.has_all_for_tests()
        begun = self.tree / "begun"
        self.has("cmake", f"echo >{begun}; sleep 60")
        first = subprocess.Popen([self.tree / "x", "test", "--stage", "dev"], env={"PATH": str(self.path)},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not begun.exists():
            self.assertIsNone(first.poll())
            time.sleep(0.02)
        self.refuses(self.x("test", "--stage", "dev"), 1, "another ./x test runs in this clone", str(first.pid), "second clone")
        first.terminate()
        self.assertEqual(first.wait(), 143)

    def test_installs_nothing_that_starts_a_service(self):
        self.has_apt("exit 0")
        self.x("setup")
        self.assertIn("redis-tools", self.packages_asked_for())
        for package in self.packages_asked_for():
            self.assertNotRegex(package, r"-server$|^redis$")


if __name__ == "__main__":
    unittest.main()
