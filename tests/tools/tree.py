"""The base class of tests that run a tool on a small tree in a temporary directory."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

root = Path(__file__).resolve().parents[2]


class TreeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)

    def write(self, path, text):
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run_python(self, tool, *arguments):
        """Runs a tool and returns its status and its output."""
        run = subprocess.run([sys.executable, root / tool, *arguments],
                             capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def accepts(self, tool):
        self.assertEqual(self.run_python(tool, self.tree), (0, ""))

    def finds(self, tool, fault):
        status, text = self.run_python(tool, self.tree)
        self.assertIn(fault, text)
        self.assertEqual(status, 1)
