#!/usr/bin/env python3
"""Tests of mallard-replay. `replay_test.py [unittest arguments]`

The environment variable PLAYER names the player, LOGGED the malloc of preloads/logged.cpp, and MALLARD
libmallard.so, if there is one.
"""
import ctypes.util
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import op_stream  # noqa: E402
from op_stream import Stream, Target, arena, multipool, multipool_over_arena, size_max  # noqa: E402

player, logged = os.environ.get("PLAYER", ""), os.environ.get("LOGGED", "")
mallard = os.environ.get("MALLARD", "")
spec = Path(__file__).parents[2] / "spec"
has_tsan = b"__tsan_init" in Path(player).read_bytes()
sanitized = has_tsan or b"__asan_init" in Path(player).read_bytes()
environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:alloc_dealloc_mismatch=0:detect_leaks=0",
               "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1"}
big = 200_000  # no malloc of the process itself is as large
# The player starts once for each changed file. With a sanitizer every fifth change is tried.
every = 5 if sanitized else 1
without_threads = unittest.skipIf(has_tsan, "many starts of a player that has one thread")
not_sanitized = unittest.skipIf(sanitized, "a sanitizer brings its own malloc")


def random_stream(seed, targets, instances=20, ops=200):
    """A stream of one thread with blocks in local targets, which are opened and closed often, and in
    malloc."""
    choose = random.Random(seed)
    s = Stream(targets)
    t = s.thread()
    free, top, live = [], 0, {}  # live: slot: (size, align, target)
    for _ in range(instances):
        target = choose.randrange(len(targets) + 1)
        if target:
            t.open(target=target)
        for _ in range(choose.randrange(ops)):
            mine = [slot for slot in live if live[slot][2] == target]
            if mine and choose.random() < 0.4:
                slot = choose.choice(mine)
                size, align, _ = live.pop(slot)
                t.free(slot, size, align, target)
                free.append(slot)
            elif mine and choose.random() < 0.2:
                slot = choose.choice(mine)
                size, align, _ = live[slot]
                live[slot] = (choose.randrange(1, 5000), align, target)
                t.resize(slot, size, live[slot][0], align, target)
            else:
                slot = free.pop() if free else top
                top = max(top, slot + 1)
                live[slot] = (choose.choice([1, 24, 100, 1000, 50_000]), choose.randrange(0, 7), target)
                kind = t.aligned if live[slot][1] > 4 else choose.choice([t.malloc, t.calloc])
                kind(slot, *live[slot][:2], target)
        if target:
            t.close(target=target)
            for slot in [slot for slot in live if live[slot][2] == target]:
                del live[slot]
                free.append(slot)
    return s


def crossing(threads, blocks):
    """Each thread allocates blocks that the next thread frees, one by one. The slots move with the blocks: the thread that frees a block uses its slot again."""
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


class Replay(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = str(Path(self.folder.name) / "stream.ops")

    def run_player(self, *arguments, env=None, **options):
        done = subprocess.run([player, *map(str, arguments)], capture_output=True, text=True, timeout=250,
                              env={**environment, **(env or {})}, **options)
        # A sanitizer reports each call for too much memory, and goes on.
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
        """Plays with the logging malloc. Returns (name, size, align, marked bytes) of each large call."""
        log = str(Path(self.folder.name) / "log")
        self.play(stream, *options, env={"LD_PRELOAD": logged, "LOG": log, "LOG_FROM": str(big), **env})
        return [(name, *map(int, rest)) for name, *rest in map(str.split, Path(log).read_text().splitlines())]

    # --- the golden file ---

    def test_the_golden_file_has_the_ops_of_its_page(self):
        self.assertEqual((spec / "replay_format.golden").read_bytes(), op_stream.golden().data())

    def test_the_golden_file_can_be_played_in_every_mode(self):
        for options in ([], ["--no-op"], ["--hash"], ["--pace", "0.01"], ["--touch=none"], ["--touch", "all"],
                        ["--litter=0.4"]):
            result = self.play(spec / "replay_format.golden", *options)
            self.assertEqual((result["format"], result["ops"], result["calls"], result["threads"]),
                             (1, 38, 20, 2))
            self.assertEqual(result["failures"], 0)
        result = self.play(spec / "replay_format.golden", "--account")
        self.assertEqual(result["requested_peak_bytes"], 476)
        self.assertEqual([t["requested_peak_bytes"] for t in result["counted"]["targets"]], [40, 16, 128])

    # --- which calls are made ---

    @not_sanitized
    def test_every_kind_of_call_reaches_the_malloc_in_force(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, big)
        t.calloc(1, big + 1)
        t.aligned(2, big + 64, 12)
        t.realloc(3, big + 2)
        t.resize(3, big + 2, big + 3)
        t.free(0, big)
        t.free_sized(1, big + 1)
        t.free_aligned(2, big + 64, 12)
        t.free_null()
        t.free(3, big + 3)
        calls = [call[:3] for call in self.log(s, "--touch=none")]
        of_null = ("free", 2**64 - 1, 0)
        ours = [call for call in calls if call != of_null]
        self.assertEqual(ours, [
            ("malloc", big, 16), ("calloc", big + 1, 16), ("aligned_alloc", big + 64, 4096),
            ("realloc", big + 2, 16), ("realloc", big + 3, 16), ("realloc_from", big + 2, 16),
            ("free", big, 16), ("free_sized", big + 1, 16), ("free_aligned", big + 64, 4096),
            ("free", big + 3, 16)])
        between = calls[calls.index(ours[-2]) + 1:calls.index(ours[-1])]
        self.assertEqual(between, [of_null])

    @not_sanitized
    def test_a_call_of_size_0_is_made(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, 0)
        t.free(0, 0)
        t.calloc(0, 0)
        t.free(0, 0)
        self.assertEqual(self.play(s)["failures"], 0)

    @not_sanitized
    def test_a_byte_of_each_page_of_a_new_block_is_written(self):
        s = Stream()
        t = s.thread()
        t.aligned(0, 100 * 4096, 12)
        t.free_aligned(0, 100 * 4096, 12)
        for touch, marked in (("none", 0), ("page", 100), ("all", 100 * 4096)):
            self.assertEqual([c[3] for c in self.log(s, "--touch", touch)], [0, marked])

    @not_sanitized
    def test_the_grown_part_of_a_realloc_is_written_and_the_rest_kept(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, big)
        t.resize(0, big, 2 * big)
        t.resize(0, 2 * big, big)
        t.free(0, big)
        freed = [c for c in self.log(s, "--touch=all") if c[0] in ("realloc_from", "free") and c[1] < 2**63]
        self.assertEqual([c[3] for c in freed], [big, 2 * big, big])
        freed = [c for c in self.log(s, "--touch=none") if c[0] in ("realloc_from", "free") and c[1] < 2**63]
        self.assertEqual([c[3] for c in freed], [0, 0, 0])

    @not_sanitized
    def test_a_realloc_in_a_local_target_copies_the_block(self):
        s = Stream([Target(arena, first_chunk=2 * big)])
        t = s.thread()
        t.open(target=1)
        t.malloc(0, 1000, 4, 1)
        t.malloc(1, 1, 0, 1)
        t.resize(0, 1000, 3000, 4, 1)
        t.close(target=1)
        marked = [c[3] for c in self.log(s, "--touch=all") if c[0] == "free" and c[1] < 2**63]
        self.assertEqual(len(marked), 1)
        # The chunk has the old block, the small one and the new block, and a header of 40 bytes.
        self.assertTrue(4001 <= marked[0] <= 4041, marked)

    @not_sanitized
    def test_no_allocator_is_called_by_the_no_op_play(self):
        s = random_stream(1, [Target(arena, first_chunk=big)])
        s.threads[0].malloc(1000, big)
        self.assertEqual(self.log(s, "--no-op"), [])

    # --- calls that fail ---

    @not_sanitized
    def test_a_call_that_fails_only_now_is_counted_and_its_frees_are_not_made(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, big)
        t.resize(0, big, big + 1)
        t.free(0, big + 1)
        t.calloc(1, 2 * big)
        t.free_sized(1, 2 * big)
        t.malloc(2, 100)
        t.resize(2, 100, 3 * big)
        t.free(2, 3 * big)
        s.write(self.file)
        result = self.play(self.file, env={"LD_PRELOAD": logged, "FAIL_FROM": str(big)})
        self.assertEqual(result["failures"], 4)
        calls = self.log(s, FAIL_FROM=str(big))
        self.assertEqual({c[0] for c in calls if c[1] < 2**63}, {"malloc", "realloc", "calloc"})

    @not_sanitized
    def test_a_call_that_succeeds_only_now_is_counted_and_its_block_is_freed(self):
        s = Stream()
        t = s.thread()
        t.malloc_failed(0, big)
        t.calloc_failed(0, big)
        t.aligned_failed(0, big, 6)
        t.realloc_failed(0, big)
        t.malloc(0, big)
        t.realloc_from(0, big)
        t.realloc_failed(0, 2 * big)
        t.free(0, big)
        self.assertEqual(self.play(s)["successes"], 5)
        calls = [c[:2] for c in self.log(s) if c[1] < 2**63]
        self.assertEqual(sum(n in ("free", "realloc_from") for n, _ in calls), 6)

    def test_a_call_that_fails_again_is_no_difference(self):
        s = Stream([Target(kind) for kind in (arena, multipool, multipool_over_arena)])
        t = s.thread()
        t.malloc(0, 10)
        for target in (0, 1, 2, 3):
            if target:
                t.open(target=target)
            t.malloc_failed(0, size_max, 4, target)
        result = self.play(s)
        self.assertEqual(result["failures"], 0)

    # --- threads ---

    def test_blocks_cross_between_threads(self):
        for threads in (2, 4):
            self.assertEqual(self.play(crossing(threads, 2000))["failures"], 0)

    def test_a_thousand_short_threads_start_and_end(self):
        s = Stream()
        main = s.thread()
        for i in range(1000):
            t = s.thread()
            main.malloc(2 * i, 100)
            main.start(i + 1)
            t.free(2 * i, 100)
            t.malloc(2 * i + 1, 100)
            t.publish(size=1)
            if i >= 10:
                main.wait(i - 9, 1)
                main.free(2 * (i - 10) + 1, 100)
        result = self.play(s)
        self.assertEqual((result["threads"], result["failures"]), (1001, 0))

    def test_threads_start_threads(self):
        s = Stream()
        for i in range(50):
            t = s.thread()
            t.malloc(i, 1000)
            if i < 49:
                t.start(i + 1)
            t.free(i, 1000)
        self.assertEqual(self.play(s)["threads"], 50)

    def test_threads_share_a_target(self):
        for kind in (arena, multipool, multipool_over_arena):
            s = Stream([Target(kind, is_shared=1)])
            threads = [s.thread() for _ in range(4)]
            threads[0].open(target=1)
            for i in range(1, 4):
                threads[0].start(i)
            for i, t in enumerate(threads):
                for j in range(500):
                    t.malloc(4 * (j % 8) + i, 10 + j % 8, 3, 1)
                    if j % 8 == 7:
                        for k in range(8):
                            t.free(4 * k + i, 10 + k, 3, 1)
            for i in range(1, 4):
                threads[i].publish(size=1)
                threads[0].wait(i, 1)
            threads[0].close(target=1)
            result = self.play(s)
            self.assertEqual((result["failures"], result["counted"]["bytes"]), (0, 0))

    def test_pauses_are_waited_for_at_the_recorded_pace(self):
        s = Stream()
        t = s.thread()
        t.pause(size=200_000_000)
        for _ in range(100):
            t.malloc(0, 10, gap=1_000_000)
            t.free(0, 10)
        self.assertGreaterEqual(self.play(s, "--pace=real")["seconds"], 0.295)
        self.assertGreaterEqual(self.play(s, "--pace=0.5")["seconds"], 0.145)

    def test_a_missing_edge_is_found_in_some_order_of_the_threads(self):
        for threads in (2, 3):
            s = crossing(threads, 6)
            self.assertEqual(self.play(s, "--check")["orders"], threads)
            edges = [(t, i) for t in range(threads) for i, op in enumerate(s.threads[t].ops)
                     if op[0] >> 46 & 31 == op_stream.kinds["wait"]]
            self.assertEqual(len(edges), 6 * threads)
            for t, i in edges:
                s = crossing(threads, 6)
                del s.threads[t].ops[i]
                done = self.run_player("--check", s.write(self.file))
                self.assertRegex(done.stderr, "an edge is missing|not in slot")
                self.check_message(done, 3, "")

    def test_a_stream_whose_edges_imply_each_other_is_whole(self):
        s = Stream()
        a, b, c = s.thread(), s.thread(), s.thread()
        a.malloc(0, 8)
        a.start(1)
        b.start(2)
        b.wait(0, 1)
        b.publish(size=1)
        c.wait(1, 1)
        c.free(0, 8)  # after the start of b, which is after the allocation
        a.publish(size=1)
        self.assertEqual(self.play(s, "--check")["orders"], 3)

    @not_sanitized
    def test_a_free_that_comes_before_its_allocation_is_noticed(self):
        s = Stream()
        a, b = s.thread(), s.thread()
        a.start(1)
        a.pause(size=100_000_000)
        a.malloc(0, 8, gap=100_000)
        b.free(0, 8)
        self.check_message(self.run_player("--check", s.write(self.file)), 3, "an edge is missing")
        self.check_message(self.run_player("--pace=real", self.file), 3, "came before its allocation 1 times")

    def test_a_stream_of_one_thread_has_one_order(self):
        self.assertEqual(self.play(random_stream(3, [Target(arena)]), "--check")["orders"], 1)
        self.assertEqual(self.play(spec / "replay_format.golden", "--check")["orders"], 2)

    # --- what is reported ---

    def test_the_account_counts_what_a_play_takes_from_the_heap(self):
        for seed in range(12):
            targets = [Target(kind, 0, first, rule) for rule, kind in enumerate((arena, multipool,
                       multipool_over_arena), 1) for first in (0, 3000, 1 << 20)]
            s = random_stream(seed, targets)
            s.write(self.file)
            account = self.play(self.file, "--account")["counted"]
            played = self.play(self.file)["counted"]
            for target in account["targets"]:
                del target["requested_peak_bytes"], target["requested_bytes"]
            self.assertEqual(account, played)
            self.assertGreater(account["peak_bytes"], 0)

    def test_the_account_adds_up_what_was_requested(self):
        s = Stream([Target(arena)])
        t = s.thread()
        t.malloc(0, 100)
        t.open(target=1)
        t.malloc(1, 1000, 4, 1)
        t.resize(1, 1000, 50, 4, 1)
        t.malloc(2, 60, 4, 1)
        t.close(target=1)
        t.resize(0, 100, 10)
        result = self.play(s, "--account")
        self.assertEqual((result["requested_peak_bytes"], result["requested_bytes"]), (1100, 10))
        target = result["counted"]["targets"][0]
        self.assertEqual((target["requested_peak_bytes"], target["requested_bytes"]), (1000, 0))

    def test_the_hash_is_that_of_the_calls_of_each_thread(self):
        s = crossing(3, 50)
        expected = []
        for t in s.threads:
            hash = 0
            for what, slot, _ in t.ops:
                if 1 <= what >> 46 & 31 <= 12:
                    hash = op_stream.mix(op_stream.mix(hash, what), slot)
            expected.append(f"{hash:016x}")
        s.write(self.file)
        for _ in range(2):
            self.assertEqual(self.play(self.file, "--hash")["hashes"], expected)

    @not_sanitized
    def test_memory_is_reported_beside_that_of_the_player(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, 64 << 20)
        t.free(0, 64 << 20)
        result = self.play(s)
        grown = result["peak_rss_kib"] - result["start_rss_kib"]
        self.assertTrue(63 << 10 <= grown <= 65 << 10, result)  # the system counts in steps of 64 pages
        self.assertLess(result["after_rss_kib"], result["peak_rss_kib"] - (60 << 10))
        self.assertGreaterEqual(result["minor_faults"], 30)
        self.assertLess(self.play(self.file, "--touch=none")["peak_rss_kib"], result["start_rss_kib"] + 1024)

    @not_sanitized
    def test_a_preloaded_malloc_is_named(self):
        found = [ctypes.util.find_library(name) for name in ("jemalloc", "mimalloc", "tcmalloc_minimal")]
        for library in [logged, mallard, *found]:
            if library and (library == Path(library).name or Path(library).exists()):
                result = self.play(crossing(2, 100), env={"LD_PRELOAD": library})
                self.assertIn(Path(library).name.split(".so")[0], result["allocator"])
        self.assertIn("libc", self.play(crossing(2, 100))["allocator"])

    @not_sanitized
    def test_litter_leaves_a_share_of_the_blocks_of_the_peak(self):
        s = Stream()
        t = s.thread()
        for i in range(100):
            t.malloc(i, big + i)
        s.peaks = (0, 80)
        first = self.log(s, "--litter=0.4", "--touch=none")
        self.assertEqual(sum(c[0] == "malloc" for c in first), 180)
        self.assertEqual(sum(c[0] == "free" and c[1] < 2**63 for c in first), 48)
        self.assertTrue({c[1] for c in first if c[1] < 2**63} <= set(range(big, big + 100)))
        self.assertEqual(first, self.log(s, "--litter=0.4", "--touch=none"))
        self.assertEqual(self.play(s, "--litter=0.4")["litter"]["left"], 32)

    def test_virtual_calls_are_measured_in_three_shapes(self):
        done = self.run_player("--virtual-call")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        for shape in ("one_target", "alternating", "cold"):
            self.assertGreater(result[shape]["direct_ns"], 0)
            self.assertGreater(result[shape]["virtual_ns"], 0)

    # --- bad input ---

    def test_a_wrong_command_line_is_refused(self):
        for arguments, text in (([], "no op stream"), (["a", "b"], "two files"), (["--what", "a"], "--what"),
                                (["--touch", "some", "a"], "some"), (["--pace=-1", "a"], "-1"),
                                (["--pace=fast", "a"], "fast"), (["--litter=1.5", "a"], "1.5"),
                                (["--litter", "x", "a"], "x"), (["--touch"], "no value"),
                                (["--no-op", "--hash", "a"], "exclude"), (["--virtual-call", "a"], "no file")):
            self.check_message(self.run_player(*arguments), 2, text)
        self.assertIn("usage", self.run_player("--help").stdout)

    def test_a_file_that_is_no_op_stream_is_refused(self):
        self.check_message(self.run_player(self.file), 3, "cannot open")
        self.check_message(self.run_player(self.folder.name), 3, "is not a file")
        for data in (b"", b"x" * 79, b"x" * 200):
            Path(self.file).write_bytes(data)
            self.check_message(self.run_player(self.file), 3, "op stream")

    @without_threads
    def test_a_changed_byte_is_found(self):
        data = op_stream.golden().data()
        for i in range(0, len(data), every):
            changed = bytearray(data)
            changed[i] ^= 1 << i % 8
            Path(self.file).write_bytes(changed)
            self.check_message(self.run_player(self.file), 3, "not a whole op stream")

    @without_threads
    def test_a_file_cut_at_any_length_is_found(self):
        data = op_stream.golden().data()
        for length in range(0, len(data), every):
            Path(self.file).write_bytes(data[:length])
            self.check_message(self.run_player(self.file), 3, "not a whole op stream")

    @without_threads
    def test_a_wrong_file_with_a_right_checksum_is_refused_or_played(self):
        data = op_stream.golden().data()
        for i in list(range(12, 72)) + list(range(80, len(data), every)):
            changed = bytearray(data)
            changed[i] ^= 1 << (i * 5 + 3) % 8
            Path(self.file).write_bytes(op_stream.sealed(bytes(changed)))
            done = self.run_player("--account", self.file)
            if done.returncode == 0:
                json.loads(done.stdout)
            else:
                self.check_message(done, 3, "not a whole op stream")

    def test_an_op_that_cannot_be_done_is_named(self):
        def stream(add, **options):
            s = Stream([Target(arena, **options)])
            add(s.thread())
            return s

        def twice(t):
            t.malloc(0, 8)
            t.malloc(0, 8)

        def freed_twice(t):
            t.malloc(0, 8)
            t.free(0, 8)
            t.free(0, 8)

        def other_size(t):
            t.malloc(0, 8)
            t.free(0, 9)

        def from_alone(t):
            t.malloc(0, 8)
            t.realloc_from(0, 8)
            t.free(0, 8)

        def other_block(t):
            t.malloc(0, 8)
            t.malloc(1, 8)
            t.realloc_from(0, 8)
            t.realloc(1, 16)

        def to_nothing(t):
            t.malloc(0, 8)
            t.resize(0, 8, 0)

        def after_close(t):
            t.open(target=1)
            t.malloc(0, 8, 4, 1)
            t.close(target=1)
            t.open(target=1)
            t.free(0, 8, 4, 1)

        def opened_twice(t):
            t.open(target=1)
            t.open(target=1)

        def back(t):
            t.publish(size=2)
            t.publish(size=2)

        for add, text in ((twice, "in use"), (freed_twice, "not in slot 0"), (other_size, "not in slot 0"),
                          (from_alone, "no realloc after"), (other_block, "another block"),
                          (to_nothing, "size 0"), (after_close, "not in slot 0"),
                          (opened_twice, "cannot be opened"), (back, "position"),
                          (lambda t: t.malloc(0, size_max), "cut"), (lambda t: t.malloc(0, 8, 4, 1), "not open"),
                          (lambda t: t.malloc(0, 8, 4, 2), "does not exist"),
                          (lambda t: t.malloc(0, 8, 31), "alignment"), (lambda t: t.op(13), "unknown kind"),
                          (lambda t: t.op(31), "unknown kind"), (lambda t: t.close(target=0), "cannot be closed"),
                          (lambda t: t.start(5), "does not exist"), (lambda t: t.start(0), "was started"),
                          (lambda t: t.wait(7, 1), "waits for thread 7")):
            self.refuse(stream(add), text)

    def test_a_target_that_is_not_shared_has_one_thread(self):
        s = Stream([Target(arena)])
        a, b = s.thread(), s.thread()
        a.open(target=1)
        a.start(1)
        b.malloc(0, 8, 4, 1)
        self.refuse(s, "another thread has opened")

    def test_a_stream_that_would_wait_for_ever_is_refused(self):
        s = Stream()
        a, b = s.thread(), s.thread()
        a.start(1)
        a.wait(1, 1)
        a.publish(size=1)
        b.wait(0, 1)
        b.publish(size=1)
        self.refuse(s, "which never comes")

    def test_a_thread_that_nobody_starts_is_named(self):
        s = Stream()
        s.thread()
        s.thread()
        self.refuse(s, "no op starts thread 1")

    def test_ops_behind_the_end_of_a_thread_are_found(self):
        s = Stream()
        t = s.thread()
        t.end()
        t.malloc(0, 8)
        self.refuse(s, "after its `end`")

    def test_a_header_with_other_counts_is_refused(self):
        for field, text in (("calls", "calls"), ("ops", "ops"), ("slots", "slots"), ("targets", "not a whole"),
                            ("threads", "not a whole"), ("blocks", "blocks")):
            s = crossing(2, 10)
            s.write(self.file, **{field: 10**9})
            self.check_message(self.run_player(self.file), 3, text)

    @not_sanitized
    def test_a_process_without_memory_says_so(self):
        def limited(file, bytes):
            return self.run_player("--touch=none", file, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (bytes, bytes)))
        enough = next(mib for mib in range(4, 200) if limited(spec / "replay_format.golden", mib << 20).returncode == 0)
        s = Stream()
        t = s.thread()
        t.ops = [(8 | 4 << 40 | 1 << 46, slot, 0) for slot in range(400_000)]
        self.check_message(limited(s.write(self.file), enough << 20), 125, "the system refused")


if __name__ == "__main__":
    unittest.main()
