"""Tests what tools/check-words reads and finds, and that it reports a missing linter."""
import os
import shutil
import subprocess
from pathlib import Path

from tree import TreeTest, root

linter = Path(os.environ.get("MALLARD_WORDS_LINTER", root / "build/tools/words"))
has_linter = (linter / "bin/vale").exists() and (linter / "bin/python").exists()


class Words(TreeTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(root / "tools/words", self.tree / "tools/words", ignore=shutil.ignore_patterns("__pycache__"))
        for tool in ("tools/check-words", "tools/testing/changes.py", "tools/testing/table.py"):
            self.write(tool, "")
            shutil.copy(root / tool, self.tree / tool)
        self.write(".gitignore", "/tools/\n")
        self.git("init", "--quiet")
        self.commit("tree: add a directory")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.tree, check=True, capture_output=True)

    def commit(self, subject):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)

    def words(self, *arguments, where=linter):
        run = subprocess.run([self.tree / "tools/check-words", *arguments], cwd=self.tree, capture_output=True, text=True,
                             env={**os.environ, "MALLARD_WORDS_LINTER": str(where)})
        return run.returncode, run.stdout + run.stderr


class WithoutLinter(Words):
    def test_reports_a_missing_linter_and_how_to_install_it(self):
        for arguments in ([], ["--changed"], ["--figures"]):
            status, said = self.words(*arguments, where=self.tree / "nowhere")
            self.assertEqual(status, 77)
            self.assertIn("the linter for words, is not installed", said)
            self.assertIn("no words were checked; help: ./x test --all --stage words", said)

    def test_reports_another_version_of_the_linter(self):
        for name, text in (("vale", "#!/bin/sh\necho vale version 2.0.0\n"), ("python", "#!/bin/sh\n")):
            self.write(f"other/bin/{name}", text).chmod(0o755)
        status, said = self.words(where=self.tree / "other")
        self.assertEqual(status, 77)
        self.assertRegex(said, r"other/bin/vale is Vale 2\.0\.0, not \d.*no words were checked; help: ")


class WithLinter(Words):
    def setUp(self):
        if not has_linter:
            self.skipTest("the linter for words is not installed; help: ./x test --all --stage words")
        super().setUp()

    def finds(self, path, text, *places):
        """Checks the lines, and words of the message, of all errors in a file."""
        self.write(path, text)
        status, said = self.words(path)
        errors = [line for line in said.splitlines() if ": error: " in line]
        self.assertEqual(len(errors), len(places), said)
        for error, (line, *words) in zip(errors, places):
            self.assertTrue(error.startswith(f"{path}:{line}: "), said)
            for word in words:
                self.assertIn(word, error)
        self.assertEqual(status, 1 if places else 0, said)

    def test_names_each_line_of_a_comment_and_the_better_word(self):
        self.finds("src/a.cpp", "int a; // a folder\n\n/* A folder,\n * a folder\n * and two folders. */\nint b;\n",
                   (1, "directory"), (3, "directory"), (4, "directory"), (5, "directories"))

    def test_reads_comments_of_each_language(self):
        self.finds("crates/a/src/a.rs", '/// Makes a folder.\nfn a() {}\n//! The folder.\n', (1, "directory"), (3, "directory"))
        self.finds("tools2/a.py", '"""A folder."""\n\ndef f():\n    """Makes\n    a folder."""  # folder\n', (1,), (5,))
        self.finds("a.sh", "#!/bin/bash\necho folder # a folder\n", (2,))
        self.finds("a.js", "// a folder\nlet folder;\n", (1,))

    def test_reads_documents_names_and_messages(self):
        self.finds("docs/a.md", "# A folder\n\nA line, and\n- a folder\n\n| folder | b |\n|---|---|\n", (1,), (4,), (6,))
        self.finds("tests/a.cpp", "TEST(arena, makes_a_folder)\n{\n}\n", (1, "directory"))
        self.finds("crates/a/tests/a.rs", "#[test]\nfn makes_a_folder() {}\n", (2, "directory"))
        self.finds("crates/a/src/b.rs", 'fn a() { fail("the folder {} is not here") }\n', (1, "directory"))

    def test_skips_code(self):
        self.finds("src/a.cpp", '#include "folder/of/a.hpp"\n// Calls `folder()` in\n// ```\n// a folder\n// ```\nint folder;\n')
        self.finds("docs/a.md", "Use `folder`, [a](the/folder.md).\n\n```sh\ncd folder\n```\n")

    def test_finds_colons_chains_and_comments_that_begin_with_a_noun_phrase(self):
        self.write("src/a.cpp", "// The count of bytes of the first of the chunks: it is small.\nint count();\n"
                                "// Returns it.\nint of();\n")
        status, said = self.words("src")
        self.assertEqual(status, 0, said)
        for rule in ("colon", "ofchain", "nounphrase"):
            self.assertIn(f"src/a.cpp:1: warning: {rule}: ", said)
        self.assertNotIn("src/a.cpp:3", said)

    def test_reports_only_changed_lines(self):
        self.write("src/a.cpp", "// an old folder\nint a;\n")
        self.commit("tree: add a file")
        self.assertEqual(self.words("--changed", "HEAD"), (0, ""))
        self.write("src/a.cpp", "// an old folder\nint a;\n\n// a new folder\nint b;\n")
        self.write("src/b.cpp", "// a folder in a new file\n")
        status, said = self.words("--changed", "HEAD")
        self.assertEqual((status, said.count("directory")), (1, 2), said)
        self.assertIn("src/a.cpp:4: error: terms: ", said)
        self.assertIn("src/b.cpp:1: error: terms: ", said)

    def test_rejects_a_base_or_a_path_that_does_not_exist(self):
        for arguments, what in (["--changed", "nowhere"], "there is no commit nowhere"), (["nowhere"], "nowhere is not in this tree"):
            status, said = self.words(*arguments)
            self.assertEqual(status, 1)
            self.assertIn(what, said)
            self.assertIn("no words were checked", said)

    def test_checks_the_subjects_of_new_commits(self):
        for subject in ("Say more", "arena: mend a leak of folders", "arena: " + "long " * 20, "Fix a leak", "arena: reuse chunks"):
            self.commit(subject)
        status, said = self.words("--changed", "HEAD~5")
        self.assertEqual(status, 1)
        self.assertEqual(said.count(": form: "), 1, said)
        self.assertEqual(said.count(": length: "), 1, said)
        self.assertIn("error: terms: write 'fix', not 'mend'", said)
        self.assertEqual(len({line.split(":")[0] for line in said.splitlines()}), 3, said)

    def test_an_exception_needs_a_reason(self):
        self.finds("src/a.cpp", '// words-allow "folder": Windows calls it so\n// A folder.\nint a;\n')
        self.finds("docs/a.md", '<!-- words-allow-file "folder": a quotation -->\n\nA line.\n\nA folder.\n')
        self.finds("src/a.cpp", '// words-allow "folder"\n// A folder.\nint a;\n', (2, "directory"), (1, "has no reason"))
        self.finds("src/a.cpp", '// words-allow "folder": a reason\n// A line.\n\n// A folder.\n', (4, "directory"))

    def no_limits(self, *rows):
        self.write("tools/words/limits", "".join(f"{row}\n" for row in rows))

    def test_a_density_above_its_ceiling_fails(self):
        self.write("src/a.cpp", "// A folder is a directory.\n" * 10 + "// " + "word " * 50 + "\n")
        self.commit("tree: add a file")
        self.commit("tree: add none")
        self.no_limits("terms cpp 0.0 0.0 - - 0.5 99.0")
        status, said = self.words()
        self.assertEqual(status, 1)
        self.assertIn("terms in cpp: 100.00, more than the ceiling 99.0 (limit 0.5); help: tools/check-words include src", said)
        self.no_limits("terms cpp 0.0 0.0 - - 0.5 110.0")
        self.assertEqual(self.words(), (0, ""))

    def test_ceilings_are_lowered_and_never_below_the_limit(self):
        self.write("src/a.cpp", "// A folder is a directory.\n" * 10 + "// " + "word " * 50 + "\n")
        self.commit("tree: add a file")
        self.no_limits("terms cpp 0.0 0.0 - - 0.5 ?", "its cpp 0.0 0.0 - - 0.5 7.0", "of cpp 0.0 0.0 - - 0.5 0.4")
        self.assertEqual(self.words("--ratchet")[0], 0)
        ceilings = [line.split()[-1] for line in (self.tree / "tools/words/limits").read_text().splitlines()]
        self.assertEqual(ceilings, ["100.1", "0.5", "0.4"])

    def test_an_exception_that_nothing_needs_fails(self):
        self.write("src/a.cpp", '// words-allow "folder": a reason\n// A line.\n')
        self.commit("tree: add a file")
        self.no_limits()
        status, said = self.words()
        self.assertEqual(status, 1)
        self.assertIn('src/a.cpp:1: error: exception: nothing here says "folder"', said)

    def test_names_what_it_does_not_read(self):
        self.write("a.pml", "/* a folder */\n")
        self.write("docs/a.md", "<!-- Generated from rows -->\n\nA folder.\n")
        self.commit("tree: add files")
        self.no_limits()
        status, said = self.words()
        self.assertEqual(status, 0, said)
        self.assertIn("not read: docs/a.md: a program generates it", said)
        self.assertIn("no parser here: 1 *.pml", said)

    def test_measures_another_project(self):
        self.write("other/src/a.rs", "// A folder is a directory.\n" * 110 + "// " + "word " * 550 + "\n")
        self.no_limits("terms rust 0.0 0.0 - - 0.5 ?")
        status, said = self.words("--figures", self.tree / "other")
        self.assertEqual(status, 0)
        self.assertRegex(said, r"terms +rust +100\.0")

    def test_draws_the_same_items_for_the_same_seed(self):
        for number in range(60):
            self.write(f"src/a{number}.cpp", f"// Returns a value that is number {number}.\n")
        drawn = [subprocess.run([self.tree / "tools/words/sample", seed], capture_output=True, text=True,
                                env={**os.environ, "MALLARD_WORDS_LINTER": str(linter)}).stdout for seed in ("7", "7", "8")]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertEqual(drawn[0].count("Returns a value"), 50)
