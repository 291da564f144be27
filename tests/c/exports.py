#!/usr/bin/env python3
"""Compares the symbols that a library exports with the functions that a header declares.

    exports.py shared LIBRARY.so HEADER    expects these functions, with a version, and nothing else
    exports.py static LIBRARY.a HEADER     expects that only these functions are global, and that the
                                           library needs only the C library
"""
import re
import subprocess
import sys
from pathlib import Path

version = "MALLARD_0.1"


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    return set(re.findall(r"\b(mallard_\w+)\([^;]*\);", text)) - set(re.findall(r"typedef[^;]*?\b(mallard_\w+)\)\(", text))


def names(*command):
    """Returns (kind, name) of each symbol."""
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.findall(r"^[0-9a-f ]{16} (\w) (\S+)$", out, re.M)


def main(kind, library, header):
    wanted, faults = declared(Path(header)), []
    if kind == "shared":
        shown = [name for k, name in names("nm", "-D", "--defined-only", library)
                 if name != version]
        faults += [f"{name}: is not in {version}" for name in shown
                   if not name.endswith(f"@@{version}")]
        shown = {name.split("@")[0] for name in shown}
        missing = names("nm", "-D", "-u", library)
    else:
        shown = {name for k, name in names("nm", "--defined-only", library)
                 if k.isupper() or k == "u"}
        missing = names("nm", "-u", library)
    faults += [f"{name}: is exported and not declared" for name in shown - wanted]
    faults += [f"{name}: is declared and not exported" for name in wanted - shown]
    runtime = re.compile(r"_Z|__cxa_(?!atexit|finalize|thread_atexit_impl)|__gxx_|_Unwind_")
    faults += [f"{name}: needs a C++ runtime" for _, name in missing if runtime.match(name)]
    print("\n".join(sorted(faults)), end="\n" if faults else "")
    return bool(faults) or not wanted


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
