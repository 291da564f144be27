import subprocess
import unittest

from tree import root

commands = "setup build test bench demo lint fuzz soak miri semver".split()


def x(*arguments):
    return subprocess.run([root / "x", *arguments], capture_output=True, text=True)


class X(unittest.TestCase):
    def test_lists_every_command(self):
        for command in commands:
            self.assertRegex(x().stdout, rf"(?m)^  {command}\b")

    def test_explains_every_command(self):
        for command in commands:
            run = x(command, "--help")
            self.assertEqual(run.returncode, 0)
            self.assertTrue(run.stdout.startswith(f"./x {command}"), run.stdout)
            self.assertGreater(run.stdout.count("\n"), 2)

    def test_answers_an_unknown_command_with_the_list(self):
        run = x("biuld")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, "x: no command 'biuld'\n"
                                     f"  there are: {' '.join(commands)}\n  help: ./x --help\n")

    def test_refuses_what_a_command_does_not_take(self):
        for arguments in (["build", "prod"], ["test", "--fast"], ["lint", "all"],
                          ["fuzz", "--seconds", "x"], ["fuzz", "nothing"], ["setup", "all"],
                          ["soak", "--minutes", "0"]):
            run = x(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn(f"help: ./x {arguments[0]} --help", run.stderr)
