#!/usr/bin/env python3
"""Compiles each public header as C++17, and expects the same three errors from each header.

    older.py INCLUDE_FOLDER COMPILER
"""
import re
import subprocess
import sys
from pathlib import Path

lines = (r"mallard: these headers need C\+\+20, .*",
         r"  nothing of Mallard was read",
         r"  help: pass -std=c\+\+20, .*")


def main(folder, compiler):
    headers = sorted(path.relative_to(folder) for path in Path(folder).rglob("*.hpp"))
    faults = [] if headers else [f"{folder}: has no headers"]
    for header in headers:
        source = f"#include <{header}>\nint main() {{}}\n"
        run = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", f"-I{folder}", "-xc++", "-"],
                             input=source, capture_output=True, text=True)
        errors = re.findall(r" error: (?:#error )?(.*)", run.stderr)
        said = [error.strip('"') for error in errors[:-1]] # only the last error stops the compiler
        if len(said) != len(lines) or not all(map(re.fullmatch, lines, said)):
            faults.append(f"{header}: {run.stderr}")
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
