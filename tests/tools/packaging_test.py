import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tree import TreeTest, root

tool = "tools/check-packaging"


class CheckPackaging(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("Cargo.toml", 'version = "1.2.3"\nrepository = "https://duck.example/pond"\n')
        self.write("CMakeLists.txt", "project(mallard VERSION 1.2.3 LANGUAGES C)\noption(MALLARD_BUILD_C ON)\n")
        self.write("CHANGELOG.md", "# Changes\n\n## 1.2.3, unreleased\n\n## 1.2.2\n")
        self.write("docs/install.md", "GIT_TAG v1.2.3)\n")
        self.write("packaging/debian/changelog", "mallard (1.2.3-1) unstable\n")
        self.write("packaging/debian/control", "Source: mallard\nHomepage: https://duck.example/pond\n")
        self.write("packaging/debian/copyright", "Source: https://duck.example/pond\n")
        self.write("packaging/vcpkg/mallard/vcpkg.json",
                   '{ "version": "1.2.3",\n"homepage": "https://duck.example/pond"\n}\n')
        self.write("packaging/vcpkg/mallard/portfile.cmake", "    URL https://duck.example/pond\n")
        self.write("packaging/nix/default.nix", 'version = "1.2.3"; homepage = "https://duck.example/pond";\n')
        self.write("packaging/conan/conanfile.py", 'url = homepage = "https://duck.example/pond"\n')
        self.write("packaging/homebrew/mallard.rb", 'homepage "https://duck.example/pond"\n'
                                                    'url "https://duck.example/pond/releases/mallard-1.2.3.tar.gz"\n')

    def test_accepts_the_version_and_the_address_of_cargo(self):
        self.accepts(tool)

    def test_finds_a_package_with_another_version(self):
        self.write("packaging/debian/changelog", "mallard (1.2.4-1) unstable\n")
        self.finds(tool, "packaging/debian/changelog: the version is 1.2.4, and 1.2.3 in Cargo.toml")

    def test_finds_another_version_in_user_documentation(self):
        self.write("CHANGELOG.md", "# Changes\n\n## 1.2.2\n")
        self.write("docs/install.md", "GIT_TAG v1.2.0)\n")
        self.finds(tool, "CHANGELOG.md: the version is 1.2.2, and 1.2.3 in Cargo.toml\n"
                         "docs/install.md: the version is 1.2.0, and 1.2.3 in Cargo.toml\n")

    def test_finds_a_recipe_without_a_version(self):
        self.write("packaging/vcpkg/mallard/vcpkg.json", "{}\n")
        self.finds(tool, "packaging/vcpkg/mallard/vcpkg.json: the version is missing")

    def test_finds_a_package_with_another_repository_address(self):
        self.write("docs/install.md", "\nsee https://duck.example/ponds/x\n")
        self.finds(tool, "docs/install.md:2: https://duck.example/ponds/x is not https://duck.example/pond")

    def test_reports_a_recipe_whose_homepage_is_not_that_of_the_project(self):
        self.write("packaging/debian/control", "Source: mallard\nHomepage: https://goose.example/pond\n")
        self.finds(tool, "packaging/debian/control: the home is https://goose.example/pond, and https://duck.example/pond")

    def test_reports_a_recipe_without_a_homepage(self):
        self.write("packaging/conan/conanfile.py", "import conan\n")
        self.finds(tool, "packaging/conan/conanfile.py: the home is missing, and https://duck.example/pond")

    def test_finds_an_option_that_cmake_does_not_have(self):
        self.write("packaging/docker/Dockerfile", "RUN cmake -DMALLARD_BUILD_C=ON -DMALLARD_BUILD_TOOLS=ON\n")
        self.finds(tool, "packaging/docker/Dockerfile: MALLARD_BUILD_TOOLS is not an option in CMakeLists.txt\n")

    def test_accepts_the_packages_in_this_repository(self):
        self.assertEqual(self.run_python(tool), (0, ""))


# Commands of vcpkg that do nothing, so that CMake alone can run the port. The options end in a file.
port_in_cmake = """cmake_minimum_required(VERSION 3.22)
set(VERSION 1.2.3)
set(PORT mallard)
set(SOURCE_PATH "{root}")
set(CURRENT_PACKAGES_DIR "{folder}/packages")
macro(vcpkg_check_features)
    cmake_parse_arguments(checked "" OUT_FEATURE_OPTIONS FEATURES ${{ARGN}})
    set(${{checked_OUT_FEATURE_OPTIONS}} "")
    while(checked_FEATURES)
        list(POP_FRONT checked_FEATURES name option)
        file(APPEND "{folder}/features" "${{name}};")
        if(name IN_LIST FEATURES)
            list(APPEND ${{checked_OUT_FEATURE_OPTIONS}} -D${{option}}=ON)
        endif()
    endwhile()
endmacro()
macro(vcpkg_cmake_configure)
    cmake_parse_arguments(configured "" SOURCE_PATH OPTIONS ${{ARGN}})
    file(WRITE "{folder}/options" "${{configured_OPTIONS}}")
endmacro()
macro(vcpkg_install_copyright)
    cmake_parse_arguments(licence "" "" FILE_LIST ${{ARGN}})
    foreach(file ${{licence_FILE_LIST}})
        file(SIZE "${{file}}" bytes)
    endforeach()
endmacro()
foreach(name vcpkg_from_git vcpkg_cmake_install vcpkg_cmake_config_fixup vcpkg_fixup_pkgconfig)
    cmake_language(EVAL CODE "macro(${{name}})\nendmacro()")
endforeach()
include("{root}/packaging/vcpkg/mallard/portfile.cmake")
"""


class Recipes(unittest.TestCase):
    """Reads each packaging recipe with the program that will use the recipe, or else with one that
    knows the recipe's language."""

    def program(self, *command):
        """Runs a program, which must succeed, and returns its output."""
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        run = subprocess.run(command, capture_output=True, text=True, cwd=root)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def test_the_homebrew_formula_is_valid_ruby_without_warnings(self):
        self.assertEqual(self.program("ruby", "-wc", "packaging/homebrew/mallard.rb"), "Syntax OK\n")

    def test_the_nix_expression_can_be_parsed(self):
        recipe = root / "packaging/nix/default.nix"
        if shutil.which("nix-instantiate"):
            self.program("nix-instantiate", "--parse", recipe)
            return
        try:
            from pygments.lexers import NixLexer
            from pygments.token import Error, Punctuation
        except ImportError:
            self.skipTest("no nix-instantiate, and no pygments")
        expected = [] # the ends of the brackets that are open
        for place, kind, text in NixLexer().get_tokens_unprocessed(recipe.read_text()):
            here = recipe.read_text()[:place + len(text)][-60:]
            self.assertIsNot(kind, Error, here)
            if kind is Punctuation and text in "{[(":
                expected.append("}])"["{[(".index(text)])
            elif kind is Punctuation and text in "}])":
                self.assertEqual([text], expected[-1:], here)
                expected.pop()
        self.assertEqual(expected, [])

    def test_the_rules_of_debian_build_with_and_without_the_command(self):
        for profile, command in (("", "ON"), ("pkg.mallard.nocommand", "OFF")):
            rules = ["make", "--dry-run", "-f", "packaging/debian/rules", f"DEB_BUILD_PROFILES={profile}"]
            self.assertIn("dh binary --buildsystem=cmake", self.program(*rules, "clean", "build", "binary"))
            self.assertIn(f"-DMALLARD_BUILD_COMMAND={command}\n", self.program(*rules, "override_dh_auto_configure"))

    @unittest.skipUnless(Path("/etc/debian_version").exists(), "not Debian")
    def test_the_zsh_completion_is_installed_where_debian_searches_for_it(self):
        folder = re.search(r"/_mallard (\S+)", (root / "packaging/debian/mallard.install").read_text())[1]
        self.assertIn(f"/{folder}", self.program("zsh", "-fc", "print -l $fpath").splitlines())

    def test_the_conan_recipes_are_valid_python(self):
        for name in ("conanfile.py", "test_package/conanfile.py"):
            compile((root / "packaging/conan" / name).read_text(), name, "exec")

    def test_the_vcpkg_port_runs_in_cmake_and_has_the_features_in_its_manifest(self):
        features = set(json.loads((root / "packaging/vcpkg/mallard/vcpkg.json").read_text())["features"])
        for chosen, wanted in (("", "-DMALLARD_BUILD_COMMAND=OFF"),
                               ("malloc", "-DMALLARD_BUILD_C=ON;-DMALLARD_BUILD_COMMAND=OFF")):
            with tempfile.TemporaryDirectory() as folder:
                script = Path(folder) / "port.cmake"
                script.write_text(port_in_cmake.format(root=root, folder=folder))
                self.program("cmake", f"-DFEATURES={chosen}", "-P", script)
                self.assertEqual((Path(folder) / "options").read_text(), wanted)
                self.assertEqual(set((Path(folder) / "features").read_text().split(";")) - {""}, features)
                self.assertTrue((Path(folder) / "packages/share/mallard/usage").exists())

    def test_the_packaging_scripts_are_valid_bash(self):
        scripts = [file for folder in ("packaging", "tests/consumer", "tools", ".ci") for file in (root / folder).rglob("*")
                   if file.is_file() and re.match(rb"#!.*\b(ba)?sh\n", file.read_bytes()[:40])]
        self.assertIn(root / "packaging/build-debian", scripts)
        for script in scripts:
            self.program("bash", "-n", script)


class Dockerfile(unittest.TestCase):
    """Compares the Dockerfile with the tree, because few machines on which tests run have docker."""

    def setUp(self):
        self.text = (root / "packaging/docker/Dockerfile").read_text()
        lines = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", self.text)).splitlines()
        self.steps = [line.split() for line in lines if line]

    def test_the_container_image_has_the_system_used_in_continuous_integration(self):
        bases = {step[1] for step in self.steps if step[0] == "FROM"}
        self.assertEqual(len(bases), 1, bases)
        system = re.search(r"container: (debian:\w+)", (root / ".github/workflows/test.yml").read_text())[1]
        self.assertTrue(bases.pop().startswith(system), system)
        self.assertIn({"debian:bookworm": "on Debian 12", "debian:trixie": "on Debian 13"}[system], self.text)

    def test_the_container_file_copies_only_existing_files(self):
        stages = {step[3] for step in self.steps if step[0] == "FROM" and "AS" in step}
        for words in (step[1:] for step in self.steps if step[0] == "COPY"):
            stage = [word.removeprefix("--from=") for word in words if word.startswith("--from=")]
            self.assertLessEqual(set(stage), stages)
            sources = [word for word in words if not word.startswith("--")][:-1]
            self.assertTrue(sources, words)
            for source in sources if not stage else ():
                self.assertTrue((root / source).exists(), source)

    def test_the_container_file_installs_the_same_packages_as_x(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "os-release").write_text("ID=debian\nVERSION_ID=12\n")
            wanted = subprocess.run(
                ["bash", "-euc", ". tools/packages; os_release=$1/os-release; packages build; cargo_packages", "bash", folder],
                capture_output=True, text=True, cwd=root, check=True).stdout.split()
        install = next(step for step in self.steps if "install" in step)
        self.assertLessEqual({*wanted, "libjs-chart.js"}, set(install))


class Workflows(unittest.TestCase):
    """Checks the workflow files, because GitHub reports an error in them only after a push."""

    def load(self, pattern):
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML")
        found = {file: yaml.safe_load(file.read_text()) for file in sorted((root / ".github").glob(pattern))}
        self.assertTrue(found, pattern)
        return found

    def test_each_workflow_step_is_a_script_or_an_action(self):
        for file, workflow in self.load("workflows/*.yml").items():
            for name, job in workflow["jobs"].items():
                self.assertLessEqual({"runs-on", "steps", "timeout-minutes"}, set(job), (file.name, name))
                for step in job["steps"]:
                    self.assertEqual(len({"run", "uses"} & set(step)), 1, step)
                    self.script(step.get("run", ""))

    def script(self, text):
        """Checks that a script is valid bash, and that the programs of the tree that the script runs
        exist."""
        run = subprocess.run(["bash", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", text), capture_output=True, text=True)
        self.assertEqual(run.stderr, "", text)
        for program in re.findall(r"(?:^|&& |\n)((?:\.ci|tests|tools|packaging)/\S+)", text):
            self.assertTrue(os.access(root / program, os.X_OK), program)

    def test_every_matrix_variable_in_a_workflow_is_defined(self):
        for file, workflow in self.load("workflows/*.yml").items():
            for job in workflow["jobs"].values():
                matrix = job.get("strategy", {}).get("matrix", {})
                names = set(matrix) - {"include"}
                names |= set().union(*matrix.get("include", []))
                self.assertEqual(set(re.findall(r"matrix\.(\w+)", str(job))), names, file.name)

    def test_issue_forms_have_the_fields_that_github_requires(self):
        for file, form in self.load("ISSUE_TEMPLATE/*.yml").items():
            if file.name == "config.yml":
                self.assertIs(type(form["blank_issues_enabled"]), bool)
                continue
            self.assertLessEqual(set(form), {"name", "description", "title", "labels", "body"}, file.name)
            self.assertTrue(form["name"] and form["description"] and form["body"], file.name)
            labels = [part["attributes"]["label"] for part in form["body"]]
            self.assertEqual(len(labels), len(set(labels)), file.name)
            for part in form["body"]:
                self.assertIn(part["type"], ("input", "textarea", "dropdown", "checkboxes"), file.name)
                self.assertLessEqual(set(part), {"type", "id", "attributes", "validations"}, file.name)


@unittest.skipUnless(shutil.which("cargo"), "no cargo")
@unittest.skipUnless((root / ".git").exists(), "no clone")
class Release(unittest.TestCase):
    def release(self, *arguments, umask=0o022, **environment):
        return subprocess.run([root / "tools/release", *arguments], capture_output=True, text=True,
                              umask=umask, env={**os.environ, **environment})

    def test_a_release_archive_is_reproducible(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            runs = [self.release(one), self.release(two, umask=0o077, TZ="Asia/Tokyo", LC_ALL="C.UTF-8")]
            self.assertEqual([run.returncode for run in runs], [0, 0], runs)
            names = sorted(os.listdir(one))
            self.assertEqual([name.split("-0")[0] for name in names],
                             ["SHA256SUMS", "mallard", "mallard-alloc", "mallard-malloc"])
            for name in names:
                with open(f"{one}/{name}", "rb") as a, open(f"{two}/{name}", "rb") as b:
                    self.assertTrue(a.read() == b.read(), f"{name} differs")
            checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=one)
            self.assertEqual(checked.returncode, 0)

    def test_a_release_of_a_missing_commit_is_rejected(self):
        run = self.release("--commit", "nothing")
        self.assertEqual((run.returncode, run.stderr), (1, (
            "release: there is no commit 'nothing' here\n  nothing was made\n  help: git log --oneline\n")))

    def test_a_second_directory_argument_is_rejected(self):
        run = self.release("one", "two")
        self.assertEqual(run.returncode, 1)
        self.assertIn("  help: tools/release [--commit COMMIT] [FOLDER]", run.stderr)
