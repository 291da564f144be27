"""Starts the commands of a test run, reads what they print, and ends all of their processes."""
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """Makes this process the parent of every descendant whose own parent exits, so that it can end them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """Returns the IDs of the child processes of all threads of this process."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except OSError:
            pass  # the thread has exited, or the kernel has no such file
    return found


def descendants():
    """Returns the IDs of all processes below this one, the nearest first."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                pass  # the process has exited
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def end_all(patience=5):
    """Ends all descendants: by SIGTERM, and after some seconds by SIGKILL. Returns how many there were."""
    first = descendants()
    for number, limit in ((signal.SIGTERM, patience), (signal.SIGKILL, 60)):
        until = time.monotonic() + limit
        while (alive := descendants()) and time.monotonic() < until:
            for process in alive:
                try:
                    os.kill(process, number)
                except ProcessLookupError:
                    pass
            reap()
            time.sleep(0.05)
    return len(first)


def reap():
    """Collects the exited processes that were adopted."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Command:
    """A command that runs: an iterator over its lines, which go into a log as well."""

    def __init__(self, words, log, environment, directory):
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = open(log, "w", errors="replace")
        self.started = time.monotonic()
        self.seconds = self.cpu = 0.0
        self.status = None
        self.child = subprocess.Popen(
            words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)

    def __iter__(self):
        for line in self.child.stdout:
            self.log.write(line)
            self.log.flush()
            yield line.rstrip("\n")
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = self.status = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - self.started
        self.cpu = usage.ru_utime + usage.ru_stime
        self.log.close()
