"""Runs mallard-replay for tests, and checks what it prints.

The environment variable PLAYER has the path of mallard-replay, LOGGED that of the malloc in preloads/logged.cpp, and
MALLARD that of libmallard.so, if it is built.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / "support")]
from op_stream import Stream  # noqa: E402
from preload import preloadable  # noqa: E402

player, logged = os.environ.get("PLAYER", ""), preloadable(os.environ.get("LOGGED", ""))
mallard = preloadable(os.environ.get("MALLARD", ""))
spec = Path(__file__).parents[2] / "spec"
has_tsan = b"__tsan_init" in Path(player).read_bytes()
sanitized = has_tsan or b"__asan_init" in Path(player).read_bytes()
environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:alloc_dealloc_mismatch=0:detect_leaks=0",
               "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1"}
big = 200_000  # no block of the process itself is as large
# The replayer starts once for each corrupted file. With a sanitizer every fifth change is tried.
every = 5 if sanitized else 1
without_threads = unittest.skipIf(has_tsan, "many starts of a player that has one thread")
not_sanitized = unittest.skipIf(sanitized, "a sanitizer brings its own malloc")


def crossing(threads, blocks):
    """Returns a stream in which each thread allocates blocks that the next thread frees, one by one. The slots move
    with the blocks: the thread that frees a block uses the slot for its next block."""
    s = Stream()
    all_threads = [s.thread() for _ in range(threads)]
    for i in range(1, threads):
        all_threads[0].start(i)
    for block in range(blocks):
        for i, t in enumerate(all_threads):
            t.malloc((i - block) % threads, 48)
            t.publish(size=block + 1)
            t.wait((i - 1) % threads, block + 1)
            t.free((i - 1 - block) % threads, 48)
    return s


class PlayerTest(unittest.TestCase):
    """A test with a temporary directory, which replays op streams."""
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = str(Path(self.folder.name) / "stream.ops")

    def run_player(self, *arguments, env=None, **options):
        done = subprocess.run([player, *map(str, arguments)], capture_output=True, text=True, timeout=250,
                              env={**environment, **(env or {})}, **options)
        # A sanitizer reports each request for too much memory, and the process continues.
        done.stderr = re.sub(r"^==\d+==WARNING: \w+ failed to allocate .*\n", "", done.stderr, flags=re.M)
        return done

    def play(self, stream, *options, env=None):
        if isinstance(stream, Stream):
            stream = stream.write(self.file)
        done = self.run_player(*options, stream, env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def check_message(self, done, status, text):
        lines = done.stderr.splitlines()
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(len(lines), 3, done.stderr)
        self.assertTrue(lines[0].startswith("mallard-replay: "), done.stderr)
        self.assertTrue(lines[2].startswith("  help: "), done.stderr)
        self.assertIn(text, lines[0])

    def refuse(self, stream, text):
        self.check_message(self.run_player("--account", stream.write(self.file)), 3, text)

    def log(self, stream, *options, **env):
        """Replays with the logging malloc. Returns (name, size, align, marked bytes) of each large call."""
        log = str(Path(self.folder.name) / "log")
        self.play(stream, *options, env={"LD_PRELOAD": logged, "LOG": log, "LOG_FROM": str(big), **env})
        return [(name, *map(int, rest)) for name, *rest in map(str.split, Path(log).read_text().splitlines())]
