#!/usr/bin/env python3
"""Compiles one file that must not compile, and expects the error that its first line names.

    // error: REGEX     matches the output of the compiler

REGEX should match words of Mallard, such as the text of a static_assert or the name of a concept,
because every compiler prints these words.
"""
import re
import subprocess
import sys


def main(source, *compiler):
    with open(source) as file:
        match = re.fullmatch(r"// error: (\S.*)\n", file.readline())
    if not match:
        sys.exit(f"{source}:1: expected `// error: REGEX`")
    run = subprocess.run([*compiler, "-fsyntax-only", source], capture_output=True, text=True)
    if run.returncode == 0:
        print(f"{source}: it compiles")
        return 1
    if not re.search(match[1], run.stderr):
        print(f"{source}: expected an error that matches: {match[1]}\nthe compiler says:\n{run.stderr}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
