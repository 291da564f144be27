#!/usr/bin/env python3
"""Checks that the start of malloc maps little address space. `address_space.py PRELOAD PROGRAM`

QEMU before 8.0 keeps a record of each page that was ever mapped, even if the page uses no memory.
If `qemu-x86_64` is installed, the script also checks the memory of the emulator.
"""
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

mapped_max = 64 << 10
emulator_max = 30 << 10


def peak(preload):
    environment = {**os.environ, "LD_PRELOAD": preload}
    status = subprocess.run(["cat", "/proc/self/status"], env=environment, check=True, capture_output=True,
                            text=True).stdout
    return int(status.partition("VmPeak:")[2].split()[0])


def main(preload, program):
    preload = preloadable(preload)
    more = peak(preload) - peak("")
    print(f"maps at most {more} KiB more than glibc's malloc")
    emulator = shutil.which(f"qemu-{os.uname().machine}")
    if emulator is None:
        return more > mapped_max
    subprocess.run([emulator, "-E", f"LD_PRELOAD={preload}", program], check=True)
    resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{emulator} has at most {resident} KiB resident")
    return more > mapped_max or resident > emulator_max


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
