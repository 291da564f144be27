"""Starts the commands of a test run, reads their output, and ends all of their processes."""
import codecs
import ctypes
import os
import select
import signal
import subprocess
import threading
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
patience_for_output = 2  # how many seconds to wait for the output of a command after its exit

running = set()  # the process IDs of commands; separate threads collect their status
starting = threading.Lock()


def adopt_orphans():
    """Makes this process the parent of every descendant whose parent exits, so that this process can end them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def status_of_all():
    """Returns {process: (parent, session, state)} of all processes."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, _, session = (entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[:4]
            except (OSError, ValueError):
                continue  # the process has exited
            found[int(entry.name)] = (int(parent), int(session), state)
    return found


def descendants():
    """Returns the IDs of all descendants of this process that have not exited. Children come before grandchildren."""
    every = status_of_all()
    found = [os.getpid()]
    for process in found:
        found += [child for child, (parent, _, _) in every.items() if parent == process]
    return [process for process in found[1:] if every[process][2] not in "ZX"]


def end_all(patience=5):
    """Ends all descendants with SIGTERM, and after a few seconds with SIGKILL."""
    out_of_reach = set()  # processes of another user
    for number, limit in ((signal.SIGTERM, patience), (signal.SIGKILL, 30)):
        until, told = time.monotonic() + limit, set()
        while (alive := set(descendants()) - out_of_reach) and time.monotonic() < until:
            for process in alive - told:
                told.add(process)
                try:
                    os.kill(process, number)
                except ProcessLookupError:
                    pass
                except PermissionError:
                    out_of_reach.add(process)
            reap()
            time.sleep(0.02)
    reap()


def reap():
    """Collects the status of adopted processes that have exited, but not of commands, for which threads do that."""
    with starting:
        try:
            while exited := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if exited.si_pid in running:
                    return  # a thread collects this one, and the next call collects the others
                os.waitpid(exited.si_pid, os.WNOHANG)
        except ChildProcessError:
            pass  # there is no child


class Command:
    """A running command. Iterates over its output lines, and also writes them to a log."""

    def __init__(self, words, log, environment, directory):
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = open(log, "w", encoding="utf-8", errors="replace")
        self.started = time.monotonic()
        self.seconds = self.cpu = 0.0
        self.status = None
        self.left_running = False  # whether processes of the command still had its output open after its exit
        try:
            with starting:
                self.child = subprocess.Popen(words, cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
                running.add(self.child.pid)
        except (FileNotFoundError, PermissionError) as error:
            self.child, self.error = None, f"{words[0]}: {error.strerror}"

    def __iter__(self):
        if not self.child:
            self.status = 127
            self.log.write(f"{self.error}\n")
            yield self.error
        else:
            yield from self.lines()
            self.collect()
        self.log.close()

    def lines(self):
        """Reads until no process has the output open, or until a few seconds after the command has exited.

        Otherwise the run would wait forever for a process that the command has left in the background.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pending, deadline = "", None
        while True:
            if select.select([self.child.stdout], [], [], 0.2)[0]:
                piece = os.read(self.child.stdout.fileno(), 65536)
                text = pending + decoder.decode(piece, not piece).replace("\r\n", "\n").replace("\r", "\n")
                *lines, pending = text.split("\n")
                for line in lines:
                    self.log.write(f"{line}\n")
                    yield line
                self.log.flush()
                if not piece:
                    break
            if deadline is None and self.has_exited():
                deadline = time.monotonic() + patience_for_output
            if deadline and time.monotonic() > deadline:
                self.left_running = True
                self.end_session()
                break
        if pending:
            self.log.write(f"{pending}\n")
            yield pending
        self.child.stdout.close()

    def has_exited(self):
        return os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end_session(self):
        """Ends the processes that the command has left. Those in another session are ended after the whole run."""
        for process, (_, session, state) in status_of_all().items():
            if session == self.child.pid and state not in "ZX":
                try:
                    os.kill(process, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass

    def collect(self):
        _, status, usage = os.wait4(self.child.pid, 0)
        running.discard(self.child.pid)
        self.child.returncode = self.status = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - self.started
        self.cpu = usage.ru_utime + usage.ru_stime
