#!/usr/bin/env python3
"""Follows the help line in the message about a double free, and expects a more detailed report.

    help.py SHARED STATIC CHECKED

SHARED is linked/free_twice.c, linked with the shared malloc. STATIC is the same program with the
static malloc, which no preloaded library can replace. CHECKED is libmallard-checked.so.
"""
import os
import re
import subprocess
import sys


def stderr_of(*program, **environment):
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("MALLARD_")}
    return subprocess.run(program, env={**clean, **environment}, capture_output=True, text=True).stderr


def main(shared, static, checked):
    faults = []

    def expect(condition, what, text):
        if not condition:
            faults.append(f"expected {what}:\n{text}")

    said = stderr_of(shared)
    if re.search("[ :]", checked): # such a path cannot stand in LD_PRELOAD
        print(said)
        return "LD_PRELOAD" in said or "double free" not in said
    path = re.search(r"LD_PRELOAD=(\S*libmallard-checked\.so) ", said)
    if not path:
        faults.append(f"expected a help that names the checked malloc:\n{said}")
    else:
        expect(os.path.samefile(path[1], checked), "the path of the checked malloc", said)
        found = stderr_of(shared, LD_PRELOAD=path[1], MALLARD_CALLS="1")
        expect(found.startswith("mallard: double free of") and " allocated by " in found,
               "a report of the checked malloc, and no line before it", found)
    said = stderr_of(shared, MALLARD_CALLS="1")
    expect(path and f"; help: LD_PRELOAD={path[1]}\n" in said, "the same path in the line about MALLARD_CALLS", said)
    # Both libraries contain a malloc. Only the first, which the program uses, reads the options.
    said = stderr_of(shared, LD_PRELOAD=checked, MALLARD_HUGEPAGES="2")
    expect(said.count("MALLARD_HUGEPAGES=2") == 1, "one line about a wrong option", said)
    for said in (stderr_of(static), stderr_of(static, MALLARD_CALLS="1"), stderr_of(shared, "heap"),
                 stderr_of(static, "heap"), stderr_of(shared, "heap", LD_PRELOAD=checked)):
        expect("LD_PRELOAD" not in said and "double free" in said, "no help by a library that cannot help", said)
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
