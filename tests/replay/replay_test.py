#!/usr/bin/env python3
"""Tests what mallard-replay replays and reports. `replay_test.py [unittest arguments]`

harness.py lists the environment variables that the tests need.
"""
import ctypes.util
import json
import random
import unittest
from pathlib import Path

import op_stream
from harness import PlayerTest, big, crossing, logged, mallard, not_sanitized, spec
from op_stream import Stream, Target, arena, multipool, multipool_over_arena, size_max


def random_stream(seed, targets, instances=20, ops=200):
    """Returns a stream of one thread, with blocks in malloc and in local targets, which are opened
    and closed often."""
    choose = random.Random(seed)
    s = Stream(targets)
    t = s.thread()
    free, top, live = [], 0, {}  # live: {slot: (size, align, target)}
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


class Replay(PlayerTest):
    # --- the golden file ---

    def test_the_golden_op_stream_has_the_ops_in_the_format_documentation(self):
        self.assertEqual((spec / "replay_format.golden").read_bytes(), op_stream.golden().data())

    def test_the_golden_op_stream_can_be_replayed_in_every_mode(self):
        for options in ([], ["--no-op"], ["--hash"], ["--pace", "0.01"], ["--touch=none"], ["--touch", "all"],
                        ["--litter=0.4"]):
            result = self.play(spec / "replay_format.golden", *options)
            self.assertEqual((result["format"], result["ops"], result["calls"], result["threads"]),
                             (2, 46, 28, 2))
            self.assertEqual(result["failures"], 0)
        result = self.play(spec / "replay_format.golden", "--account")
        self.assertEqual(result["requested_peak_bytes"], 476)
        self.assertEqual([t["requested_peak_bytes"] for t in result["counted"]["targets"]], [40, 16, 128])

    # --- which calls are replayed ---

    @not_sanitized
    def test_every_kind_of_replayed_call_reaches_the_preloaded_malloc(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, big)
        t.calloc(1, big + 1)
        t.aligned(2, big + 64, 12)
        t.realloc(3, big + 2)
        t.resize(3, big + 2, big + 3)
        t.free(0, big)
        t.free(1, big + 1)
        t.free(2, big + 64, 12)
        t.free_null()
        t.free(3, big + 3)
        calls = [call[:3] for call in self.log(s, "--touch=none")]
        of_null = ("free", 2**64 - 1, 0)
        ours = [call for call in calls if call != of_null]
        self.assertEqual(ours, [
            ("malloc", big, 16), ("calloc", big + 1, 16), ("aligned_alloc", big + 64, 4096),
            ("realloc", big + 2, 16), ("realloc", big + 3, 16), ("realloc_from", big + 2, 16),
            ("free", big, 16), ("free", big + 1, 16), ("free", big + 64, 4096),
            ("free", big + 3, 16)])
        between = calls[calls.index(ours[-2]) + 1:calls.index(ours[-1])]
        self.assertEqual(between, [of_null])

    @not_sanitized
    def test_blocks_freed_by_operator_delete_are_allocated_by_operator_new(self):
        s = Stream()
        t = s.thread()
        for size, align, new, delete in ((big, 4, "new", "delete"), (big + 1, 4, "new", "free_sized"),
                                         (big + 64, 12, "new_aligned", "delete_aligned"),
                                         (big + 128, 12, "new_aligned", "free_aligned")):
            t.op(new, 0, size, align)
            t.op(delete, 0, size, align)
        self.assertEqual([call[:3] for call in self.log(s, "--touch=none")], [
            ("new", big, 16), ("delete", big, 16), ("new", big + 1, 16), ("free_sized", big + 1, 16),
            ("new_aligned", big + 64, 4096), ("delete_aligned", big + 64, 4096),
            ("new_aligned", big + 128, 4096), ("free_aligned", big + 128, 4096)])

    @not_sanitized
    def test_a_call_of_size_0_is_replayed(self):
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
        t.new_aligned(0, 100 * 4096, 12)
        t.free_aligned(0, 100 * 4096, 12)
        for touch, marked in (("none", 0), ("page", 100), ("all", 100 * 4096)):
            self.assertEqual([c[3] for c in self.log(s, "--touch", touch)], [0, marked])

    @not_sanitized
    def test_a_replayed_realloc_writes_the_grown_part_and_keeps_the_rest(self):
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
    def test_a_realloc_in_a_local_allocator_copies_the_block(self):
        s = Stream([Target(arena, first_chunk=2 * big)])
        t = s.thread()
        t.open(target=1)
        t.malloc(0, 1000, 4, 1)
        t.malloc(1, 1, 0, 1)
        t.resize(0, 1000, 3000, 4, 1)
        t.close(target=1)
        marked = [c[3] for c in self.log(s, "--touch=all") if c[0] == "delete_aligned"]
        self.assertEqual(len(marked), 1)
        # The chunk holds the old block, the small one and the new block, and has a header of 40
        # bytes.
        self.assertTrue(4001 <= marked[0] <= 4041, marked)

    @not_sanitized
    def test_the_no_op_replay_calls_no_allocator(self):
        s = random_stream(1, [Target(arena, first_chunk=big)])
        s.threads[0].malloc(1000, big)
        self.assertEqual(self.log(s, "--no-op"), [])

    # --- calls that fail ---

    @not_sanitized
    def test_a_call_that_fails_only_in_the_replay_is_counted_and_its_frees_are_skipped(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, big)
        t.resize(0, big, big + 1)
        t.free(0, big + 1)
        t.new(1, 2 * big)
        t.free_sized(1, 2 * big)
        t.malloc(2, 100)
        t.resize(2, 100, 3 * big)
        t.free(2, 3 * big)
        s.write(self.file)
        result = self.play(self.file, env={"LD_PRELOAD": logged, "FAIL_FROM": str(big)})
        self.assertEqual(result["failures"], 4)
        calls = self.log(s, FAIL_FROM=str(big))
        self.assertEqual({c[0] for c in calls if c[1] < 2**63}, {"malloc", "realloc", "new"})

    @not_sanitized
    def test_a_call_that_succeeds_only_in_the_replay_is_counted_and_its_block_is_freed(self):
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

    def test_a_call_that_fails_in_the_recording_and_the_replay_is_not_a_difference(self):
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

    def test_blocks_can_be_freed_by_other_threads_in_a_replay(self):
        for threads in (2, 4):
            self.assertEqual(self.play(crossing(threads, 2000))["failures"], 0)

    def test_a_thousand_short_lived_threads_are_replayed(self):
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

    def test_replayed_threads_can_start_threads(self):
        s = Stream()
        for i in range(50):
            t = s.thread()
            t.malloc(i, 1000)
            if i < 49:
                t.start(i + 1)
            t.free(i, 1000)
        self.assertEqual(self.play(s)["threads"], 50)

    def test_replayed_threads_can_share_an_allocator(self):
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

    def test_a_replay_at_the_recorded_pace_includes_the_recorded_pauses(self):
        s = Stream()
        t = s.thread()
        t.pause(size=200_000_000)
        for _ in range(100):
            t.malloc(0, 10, gap=1_000_000)
            t.free(0, 10)
        self.assertGreaterEqual(self.play(s, "--pace=real")["seconds"], 0.295)
        self.assertGreaterEqual(self.play(s, "--pace=0.5")["seconds"], 0.145)

    def test_a_missing_edge_between_threads_is_detected_in_some_order(self):
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

    def test_an_op_stream_whose_edges_imply_the_omitted_ones_is_valid(self):
        s = Stream()
        a, b, c = s.thread(), s.thread(), s.thread()
        a.malloc(0, 8)
        a.start(1)
        b.start(2)
        b.wait(0, 1)
        b.publish(size=1)
        c.wait(1, 1)
        c.free(0, 8)  # after b has started, and a allocates before it starts b
        a.publish(size=1)
        self.assertEqual(self.play(s, "--check")["orders"], 3)

    @not_sanitized
    def test_a_free_that_precedes_its_allocation_is_detected(self):
        s = Stream()
        a, b = s.thread(), s.thread()
        a.start(1)
        a.pause(size=100_000_000)
        a.malloc(0, 8, gap=100_000)
        b.free(0, 8)
        self.check_message(self.run_player("--check", s.write(self.file)), 3, "an edge is missing")
        self.check_message(self.run_player("--pace=real", self.file), 3, "came before its allocation 1 times")

    def test_an_op_stream_of_one_thread_has_exactly_one_order(self):
        self.assertEqual(self.play(random_stream(3, [Target(arena)]), "--check")["orders"], 1)
        self.assertEqual(self.play(spec / "replay_format.golden", "--check")["orders"], 2)

    # --- what is reported ---

    def test_the_account_option_counts_the_heap_memory_that_a_replay_uses(self):
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

    def test_the_account_option_sums_up_the_requested_bytes(self):
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

    def test_the_replay_hash_depends_on_the_calls_of_each_thread(self):
        s = crossing(3, 50)
        expected = []
        for t in s.threads:
            hash = 0
            for what, slot, _ in t.ops:
                if 1 <= what >> 46 & 31 <= 16:
                    hash = op_stream.mix(op_stream.mix(hash, what), slot)
            expected.append(f"{hash:016x}")
        s.write(self.file)
        for _ in range(2):
            self.assertEqual(self.play(self.file, "--hash")["hashes"], expected)

    @not_sanitized
    def test_memory_is_reported_separately_from_that_of_the_replayer(self):
        s = Stream()
        t = s.thread()
        t.malloc(0, 64 << 20)
        t.free(0, 64 << 20)
        result = self.play(s)
        grown = result["peak_rss_kib"] - result["start_rss_kib"]
        self.assertTrue(63 << 10 <= grown <= 65 << 10, result)  # the system counts 64 pages at a time
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
    def test_the_litter_option_leaves_a_fraction_of_the_peak_blocks_allocated(self):
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

    def test_the_cost_of_virtual_calls_is_measured_in_three_shapes(self):
        done = self.run_player("--virtual-call")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        for shape in ("one_target", "alternating", "cold"):
            self.assertGreater(result[shape]["direct_ns"], 0)
            self.assertGreater(result[shape]["virtual_ns"], 0)


if __name__ == "__main__":
    unittest.main()
