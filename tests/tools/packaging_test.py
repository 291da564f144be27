import os
import shutil
import subprocess
import tempfile
import unittest

from tree import TreeTest, root

tool = "tools/check-packaging"


class CheckPackaging(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("Cargo.toml", 'version = "1.2.3"\nrepository = "https://duck.example/pond"\n')
        self.write("CMakeLists.txt", "project(mallard VERSION 1.2.3 LANGUAGES C)\n")
        self.write("packaging/debian/changelog", "mallard (1.2.3-1) unstable\n")
        self.write("packaging/vcpkg/mallard/vcpkg.json", '{ "version": "1.2.3" }\n')
        self.write("packaging/nix/default.nix", 'version = "1.2.3"; homepage = "https://duck.example/pond";\n')
        self.write("packaging/homebrew/mallard.rb", 'url "https://duck.example/pond/mallard-1.2.3.tar.gz"\n')

    def test_accepts_the_version_and_the_address_of_cargo(self):
        self.accepts(tool)

    def test_finds_another_version(self):
        self.write("packaging/debian/changelog", "mallard (1.2.4-1) unstable\n")
        self.finds(tool, "packaging/debian/changelog: the version is 1.2.4, and 1.2.3 in Cargo.toml")

    def test_finds_a_recipe_without_a_version(self):
        self.write("packaging/vcpkg/mallard/vcpkg.json", "{}\n")
        self.finds(tool, "packaging/vcpkg/mallard/vcpkg.json: the version is missing")

    def test_finds_another_address_of_the_repository(self):
        self.write("docs/install.md", "\nsee https://duck.example/ponds/x\n")
        self.finds(tool, "docs/install.md:2: https://duck.example/ponds/x is not https://duck.example/pond")

    def test_accepts_the_tree(self):
        self.assertEqual(self.run_python(tool), (0, ""))


@unittest.skipUnless(shutil.which("cargo"), "no cargo")
@unittest.skipUnless((root / ".git").exists(), "no clone")
class Release(unittest.TestCase):
    def release(self, *arguments, umask=0o022, **environment):
        return subprocess.run([root / "tools/release", *arguments], capture_output=True, text=True,
                              umask=umask, env={**os.environ, **environment})

    def test_gives_the_same_bytes_twice(self):
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

    def test_refuses_a_commit_that_is_not_there(self):
        run = self.release("--commit", "nothing")
        self.assertEqual((run.returncode, run.stderr), (1, (
            "release: there is no commit 'nothing' here\n  nothing was made\n  help: git log --oneline\n")))

    def test_refuses_a_second_folder(self):
        run = self.release("one", "two")
        self.assertEqual(run.returncode, 1)
        self.assertIn("  help: tools/release [--commit COMMIT] [FOLDER]", run.stderr)
