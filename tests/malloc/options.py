#!/usr/bin/env python3
"""Checks that a malloc applies the options of the environment, and reports invalid values in one
line.

    options.py common|checked|unchecked [LIBRARY] PROGRAM [ARGUMENT...]

LIBRARY is preloaded into PROGRAM. Without LIBRARY, PROGRAM contains the malloc.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

told = "one line that says why, and what to type"
nothing, report, json = "nothing", "a report", "a report in JSON"
looks_like = {
    told: r"mallard: {name}={value} is [^;\n]+; [^;\n]+; help: [A-Z_]+=[^\n]+\n",
    nothing: r"",
    report: r"mallard: \d+ blocks, .*(\n .*)*\n",
    json: r"\{{\"blocks_live\":.*\}}\n",
}
common = [
    *(("MALLARD_LIMIT", v, told) for v in (
        "-1", "+1", " 1", "0", "much", "1.5G", "512MB", "512m", "1K", "1T", "K", "0x100000",
        "99999999999999999999", "17179869184G", "64M\n", "\033[2J")),
    *(("MALLARD_LIMIT", v, nothing) for v in ("", "67108864", "65536K", "64M", "17179869183G")),
    *(("MALLARD_HUGEPAGES", v, told) for v in ("yes", "true", "2", "-1", "1 ", "01")),
    *(("MALLARD_HUGEPAGES", v, nothing) for v in ("", "0", "1")),
    *(("MALLARD_STATS", v, told) for v in ("xml", "JSON", "1", "yes", "text,json", "x" * 1000)),
    *(("MALLARD_STATS", v, nothing) for v in ("", "0")),
    ("MALLARD_STATS", "text", report), ("MALLARD_STATS", "json", json),
]
cases = {
    "common": common,
    "unchecked": [*common, ("MALLARD_CALLS", "1", told), ("MALLARD_CALLS", "yes", told),
                  ("MALLARD_CALLS", "0", nothing), ("MALLARD_MIXED", "0", told),
                  ("MALLARD_MIXED", "yes", told), ("MALLARD_MIXED", "1", nothing)],
    "checked": [*common, *((name, value, said) for name in ("MALLARD_CALLS", "MALLARD_MIXED")
                           for value, said in (("yes", told), ("2", told), ("0", nothing),
                                               ("1", nothing), ("", nothing)))],
}


def shown(value):
    """Returns the value as the malloc prints it: at most 40 characters, all printable."""
    text = re.sub(r"[^ -~]", "?", value)
    return re.escape(text if len(text) <= 40 else text[:40] + "...")


def main(which, *command):
    library = [f"LD_PRELOAD={preloadable(command[0])}"] if ".so" in command[0] else []
    program = command[len(library):]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MALLARD_")}
    faults = []
    for name, value, said in cases[which]:
        run = subprocess.run(["env", f"{name}={value}", *library, *program], env=clean,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
        if not re.fullmatch(looks_like[said].format(name=name, value=shown(value)), run.stderr):
            faults.append(f"{name}={value!r}: expected {said}, and it says: {run.stderr!r}")
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
