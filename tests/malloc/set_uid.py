#!/usr/bin/env python3
"""Checks that a set-uid program ignores the options of the environment. `set_uid.py PROGRAM`

PROGRAM is linked with the malloc, because the loader ignores most preloads in a set-uid program. The
test makes a set-uid copy that belongs to another user, in a directory that this user may enter. The
copy must allocate more than MALLARD_LIMIT allows, and must print nothing for MALLARD_STATS. Needs
root.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

skipped, nobody = 77, 65534


def run(program):
    environment = {**os.environ, "MALLARD_LIMIT": "1M", "MALLARD_STATS": "text"}
    done = subprocess.run([program], env=environment, capture_output=True, text=True)
    return done.returncode == 0, bool(done.stderr)


def gains_no_privileges():
    """Returns whether programs cannot gain privileges here, as in some containers."""
    return "NoNewPrivs:\t1" in Path("/proc/self/status").read_text()


def knows_set_uid(folder):
    """Returns whether all users may enter a directory, and a set-uid program in it runs as the
    program's owner."""
    path = Path(folder).resolve()
    refusals = os.ST_NOSUID | os.ST_NOEXEC
    return (os.access(path, os.W_OK) and all(place.stat().st_mode & 0o001 for place in (path, *path.parents))
            and not os.statvfs(path).f_flag & refusals)


def main(program):
    if os.getuid() != 0:
        print("skipped: this is not root, who alone can make a program that belongs to another user")
        return skipped
    if gains_no_privileges():
        print("skipped: no program may gain privileges here (NoNewPrivs)")
        return skipped
    places = [tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", "/run"]
    place = next(filter(knows_set_uid, filter(os.path.isdir, places)), None)
    if place is None:
        print(f"skipped: no set-uid program runs, for all users, in any of {' '.join(places)}")
        return skipped
    faults = []
    if run(program) != (False, True):
        faults.append(f"{program} does not listen to the environment at all")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        copy = shutil.copy(program, folder)
        os.chmod(folder, 0o755)
        try:
            os.chown(copy, nobody, nobody)
        except OSError as error:
            print(f"skipped: there is no other user: {error}")
            return skipped
        os.chmod(copy, 0o4755)
        taken, said = run(copy)
    faults += [] if taken else ["MALLARD_LIMIT is listened to"]
    faults += ["MALLARD_STATS is listened to"] if said else []
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
