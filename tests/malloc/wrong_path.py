#!/usr/bin/env python3
"""Checks that for a wrong path in LD_PRELOAD the loader prints the message that docs/guide/malloc.md
quotes, and that the program runs anyway."""
import re
import subprocess
import sys
from pathlib import Path

guide = Path(__file__).resolve().parents[2] / "docs/guide/malloc.md"
quoted = re.search(r"^ERROR: ld\.so: object '(.*)' from LD_PRELOAD .*$", guide.read_text(), re.M)
run = subprocess.run(["echo", "it runs"], env={"LD_PRELOAD": quoted[1], "PATH": "/usr/bin:/bin"},
                     capture_output=True, text=True)
if (run.stdout, run.stderr, run.returncode) != ("it runs\n", quoted[0] + "\n", 0):
    sys.exit(f"the guide has: {quoted[0]}\nthe loader says: {run.stderr}and the program: {run.stdout}")
