#!/usr/bin/env python3
"""Checks that a set-uid program ignores the options of the environment. `set_uid.py PROGRAM`

PROGRAM is linked with the library, since the loader ignores most preloads in a set-uid program. The
test makes a set-uid copy that belongs to another user. The copy must allocate more than
MALLARD_LIMIT allows, and must print nothing for MALLARD_STATS. Needs root.
"""
import os
import shutil
import subprocess
import sys
import tempfile

skipped, nobody = 77, 65534


def run(program):
    environment = {**os.environ, "MALLARD_LIMIT": "1M", "MALLARD_STATS": "text"}
    done = subprocess.run([program], env=environment, capture_output=True, text=True)
    return done.returncode == 0, bool(done.stderr)


def main(program):
    if os.getuid() != 0:
        print("not root: no program can be made set-uid")
        return skipped
    faults = []
    if run(program) != (False, True):
        faults.append(f"{program} does not listen to the environment at all")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(program)) as folder:
        copy = shutil.copy(program, folder)
        os.chmod(folder, 0o755)
        os.chown(copy, nobody, nobody)
        os.chmod(copy, 0o4755)
        if os.statvfs(copy).f_flag & os.ST_NOSUID:
            print("the file system does not know set-uid")
            return skipped
        taken, said = run(copy)
    faults += [] if taken else ["MALLARD_LIMIT is listened to"]
    faults += ["MALLARD_STATS is listened to"] if said else []
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
