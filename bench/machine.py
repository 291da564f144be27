"""Describes this machine, for the results of suites that Python measures."""
import os
import platform
import re
import subprocess
from pathlib import Path

CACHES = (("L1d", "LEVEL1_DCACHE"), ("L2", "LEVEL2_CACHE"), ("L3", "LEVEL3_CACHE"))


def text_of(*command, folder=None):
    """Returns the output of a command, or an empty text if there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout.strip()
    except FileNotFoundError:
        return ""


def machine(compiler):
    """Returns the description in the form of `mallard-bench`: processor, caches, kernel and compiler."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    caches = "".join(f", {name} {int(text_of('getconf', key + '_SIZE') or 0) >> 10} KiB" for name, key in CACHES)
    return (f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} CPUs{caches}, "
            f"Linux {platform.release()} {platform.machine()}, {compiler}")
