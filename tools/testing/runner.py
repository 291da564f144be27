"""Runs the commands of a stage one after the other, and adds the test cases that they find to the results."""
import os
import re

from process import Command
from readers import Cargo, Whole
from table import root

logs = root / "build/log"

# The output of a failed build if the cause is the machine, and not the source.
machine_faults = (
    (r"No space left on device|ENOSPC", "the disk is full",
     "free some space (`df -h .`; `rm -rf build` removes all builds), and run the same command again"),
    (r"Killed \(program|[Kk]illed signal|signal: 9, SIGKILL|signal 9", "a compiler was killed, most likely because memory ran out",
     "close other programs or use fewer jobs: MALLARD_JOBS=1 ./x test"),
    (r"virtual memory exhausted|out of memory|Cannot allocate memory", "a compiler had too little memory",
     "close other programs or use fewer jobs: MALLARD_JOBS=1 ./x test"),
    (r"failed to (download|fetch|get)|could not download|Could not find a version|No matching distribution|"
     r"npm (ERR!|error) (code E(AI_AGAIN|NOTFOUND|CONN|TIMEDOUT)|network)",
     "a package could not be downloaded", "connect to a network, and run the same command again"),
)


def machine_fault(text):
    """Returns (what happened, what helps) if a build failed because of the machine, or else None."""
    return next(((what, help_) for pattern, what, help_ in machine_faults if re.search(pattern, text)), None)


class Runner:
    def __init__(self, results, jobs, environment):
        self.results, self.jobs = results, str(jobs)
        self.environment = {**os.environ, **environment}
        self.stopped = False
        self.faults = []  # errors of the machine: (what, log, help)

    def run(self, stage, name, command, reader=None, kind="test", **environment):
        """Runs a command of a stage. Returns whether it succeeded. `kind` is build or test."""
        if self.stopped:
            return False
        state = self.results.stages[stage.name]
        reader = reader or Whole(name)
        log = logs / f"{re.sub(r'[^a-z0-9]+', '-', f'{stage.name} {name}'.lower())}.log"
        state.doing = name
        before = state.count("failed")
        child = Command(command, log, self.environment | stage.environment | environment, root)
        for line in child:
            self.results.add(stage.name, reader.line(line))
            state.doing = f"{name} {reader.progress}"
        if self.stopped:
            return False
        if child.left_running:
            self.results.say(f"  {stage.name}: {name} left processes running, which were stopped")
        self.results.add(stage.name, reader.end(child.status))
        if isinstance(reader, Cargo):
            self.results.add(stage.name, reader.skipped())
        state.seconds[kind] += child.seconds
        state.cpu[kind] += child.cpu
        failed = state.count("failed") - before
        verdict = "ok" if child.status == 0 else "skipped" if child.status == 77 and not failed else "FAILED"
        self.results.say(f"  {stage.name + ': ' + name:34} {verdict}, {child.seconds:.0f} s, {child.cpu:.0f} s of CPU time")
        builds = kind == "build" or isinstance(reader, Cargo) and not reader.count
        if builds and child.status and (fault := machine_fault(log.read_text(errors="replace"))):
            self.faults.append((fault[0], log, fault[1]))
        return child.status == 0
