#!/usr/bin/env python3
"""Tests of libmallard-record.so. `recorder_test.py FOLDER [unittest arguments]`

FOLDER is where CMake builds the programs and libraries of this directory. The environment variable
RECORDER has the path of the recorder.
"""
import collections
import contextlib
import ctypes
import itertools
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import ring  # noqa: E402
from preload import preloadable  # noqa: E402

library = os.environ.get("RECORDER", "")
folder = Path(".")
kills = int(os.environ.get("MALLARD_KILLS", "10"))


def built(name):
    return str(folder / name)


def acts(*arguments, **options):
    return ring.record([built("record-acts"), *map(str, arguments)], library, **options)


@contextlib.contextmanager
def counter():
    """Returns a file in which a program counts."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(8))
        file.flush()
        yield file


def number_in(file):
    return struct.unpack("<Q", Path(file.name).read_bytes())[0]


def sizes(events):
    return collections.Counter(e.size for e in events)


class Recorder(unittest.TestCase):
    def check_blocks(self, recording):
        """Checks that a block is freed only while it is in use, and allocated only while it is not. The
        events must be of one thread, or of threads that do not share blocks."""
        in_use, pending = set(), {}
        for e in recording.events:
            key = (e.process, e.thread)
            if e.op == "realloc_from":
                self.assertNotIn(key, pending)
                pending[key] = e.addr
                in_use.discard(e.addr)
            elif e.op == "realloc_to":
                before = pending.pop(key)
                if e.addr or e.size:
                    in_use.add(e.addr or before)
            elif e.op in ring.allocations:
                if e.addr:
                    self.assertNotIn(e.addr, in_use, e)
                    in_use.add(e.addr)
            elif e.op in ring.frees:
                in_use.discard(e.addr)
        self.assertFalse(pending)

    def check_whole(self, recording, status=0):
        self.assertEqual(recording.status, status, recording.output)
        self.assertEqual((recording.ring.lost_full, recording.ring.lost_nested), (0, 0))
        self.assertEqual(recording.ring.refused, 0)

    # --- what is recorded ---

    def test_marks_of_regions_are_recorded_in_their_order(self):
        recording = ring.record([built("record-marks")], library)
        marks = [(e.op, e.text) for e in recording.of("region_begin", "region_end")]
        inner = "a part of the document with a long name"
        document = [("region_begin", "convert"), ("region_begin", inner), ("region_end", inner),
                    ("region_end", "convert")]
        expected = [("region_end", "convert"), *document * 40, ("region_begin", ""), ("region_end", "")]
        self.assertEqual(marks, expected)
        # The block of each document is between the marks of the document.
        blocks = range(70_000, 70_040)
        events = [e for e in recording.events if e.text == "convert" or
                  e.op == "malloc" and e.size in blocks][1:]
        self.assertEqual([e.op for e in events], ["region_begin", "malloc", "region_end"] * 40)

    def test_records_every_function_of_c(self):
        recording = ring.record([built("record-family")], library)
        self.check_whole(recording)
        self.check_blocks(recording)
        mine = [(e.op, e.size, e.align) for e in recording.events
                if e.op in ring.allocations and e.size >= 70000]
        huge = (1 << 40) - 1
        self.assertEqual(mine, [
            ("malloc", 70001, 0), ("calloc", 70007, 0), ("realloc_to", 70003, 0),
            ("realloc_to", 70004, 0), ("realloc_to", 70005, 0), ("aligned_alloc", 70016, 6),
            ("memalign", 70007, 7), ("posix_memalign", 70008, 8), ("valloc", 70009, 12),
            ("pvalloc", 70010, 12), ("malloc", 70011, 0), ("aligned_alloc", 70016, 5),
            ("malloc", 70013, 0), ("malloc", huge, 0), ("calloc", huge, 0), ("malloc", 70014, 0),
            ("realloc_to", huge, 0), ("realloc_to", huge, 0)])
        self.assertEqual({e.flags & 1 for e in recording.events if e.size == huge}, {1})
        self.assertEqual({e.addr for e in recording.events if e.size == huge}, {0})
        self.assertEqual([(e.size, e.align) for e in recording.of("free_sized", "free_aligned_sized")],
                         [(70011, 0), (70016, 5)])
        # Each block with one of these sizes is freed. The last one is freed by realloc.
        for e in recording.events:
            if 70000 <= e.size < huge and e.op != "realloc_from" and e.op in ring.allocations:
                after = recording.events[recording.events.index(e) + 1:]
                self.assertIn(e.addr, [f.addr for f in after if f.op in ring.frees], e)
        for e in recording.of("malloc"):
            self.assertGreater(e.dur, 0)
        self.assertFalse([e for e in recording.of("free", "realloc_from") if e.dur])

    def test_records_every_operator_of_cxx(self):
        recording = ring.record([built("record-operators")], library, stacks=ring.unwound)
        self.check_whole(recording)
        self.check_blocks(recording)
        own = [range(m.addr, int(m.text.split()[0], 16)) for m in recording.of("module")
               if "libmallard-record" in m.text]
        self.assertTrue(own)
        self.assertFalse([e for e in recording.events for frame in e.frames
                          if any(frame in module for module in own)])
        self.assertEqual(recording.output, "done\n")
        new, events = ring.from_new, []
        for e in recording.events:
            if e.op in ring.allocations and 80000 <= e.size < 90000:
                f = next(f for f in recording.events[recording.events.index(e):]
                         if f.op == "free" and f.addr == e.addr)
                # libstdc++ up to version 13 rounds the size of an aligned block up to its alignment.
                events.append((-(-e.size >> e.align) << e.align, e.align, e.flags, f.size, f.align, f.flags))
        a, n, s, l = ring.array, ring.nothrow, ring.sized, ring.aligned
        expected = [
            (80000, 0, new, 0, 0, new), (80001, 0, new | a, 0, 0, new | a),
            (80002, 0, new | n, 0, 0, new | n), (80003, 0, new | a | n, 0, 0, new | a | n),
            (81920, 10, new | l, 0, 10, new | l), (81920, 10, new | a | l, 0, 10, new | a | l),
            (81920, 10, new | n | l, 0, 10, new | n | l),
            (81920, 10, new | a | n | l, 0, 10, new | a | n | l),
            (80010, 0, new, 80010, 0, new | s), (80011, 0, new | a, 80011, 0, new | a | s),
            (83968, 11, new | l, 82048, 11, new | s | l),
            (83968, 11, new | a | l, 82048, 11, new | a | s | l),
            (80020, 0, 0, 0, 0, 0)]
        self.assertEqual(events, expected)

    def test_records_new_and_delete_operators_of_another_allocator(self):
        recording = ring.record([built("record-operators")], library,
                                preload=[built("librecord-own_operators.so")])
        self.check_whole(recording)
        new = recording.of("malloc")
        self.assertIn((80000, ring.from_new), [(e.size, e.flags) for e in new])
        block = next(e.addr for e in new if e.size == 80000)
        self.assertIn((block, ring.from_new), [(e.addr, e.flags) for e in recording.of("free")])

    def test_times_new_and_delete_operators_of_another_allocator(self):
        for preload in ("own_operators", "malloc_operators"):
            recording = self.news(preload, 48, 3200, time_calls=16)
            new = [e for e in recording.of(*ring.allocations) if e.size == 48]
            timed = [e for e in new if e.dur]
            self.assertEqual({(e.op, e.flags) for e in new}, {("malloc", ring.from_new)})
            self.assertEqual(len(new), 3200)
            self.assertAlmostEqual(len(timed) / len(new), 1 / 16, places=2)
            every = recording.of(*ring.allocations)  # including those that end in bad_alloc
            self.assertEqual(len([e for e in every if e.dur]), len(every) // 16)
            frees = recording.of("free", "free_sized", "free_aligned_sized")
            self.assertEqual(recording.ring.timed_frees, len(frees) // 64)
            self.assertGreater(recording.ring.free_ticks, 0)

    def test_the_recorded_time_of_an_operator_is_that_of_its_inner_call(self):
        recording = self.news("own_operators", 4321, 128, clock=ring.clock_monotonic)
        took = [e.dur for e in recording.of("malloc") if e.size == 4321]
        self.assertEqual(len(took), 128)
        self.assertGreaterEqual(min(took), 1_000_000)
        # Four in five frees are such calls of delete, and two or three of them are timed.
        self.assertGreaterEqual(recording.ring.free_ticks, 1_000_000)

    def test_the_cost_of_reading_the_clock_is_subtracted_from_call_times(self):
        # The shortest of these calls takes between one and two milliseconds. The time of the clock is
        # subtracted.
        slow = self.news("own_operators", 4321, 128, clock=ring.clock_monotonic, clock_ticks=999_000)
        self.assertLess(min(e.dur for e in slow.of("malloc") if e.size == 4321), 1_000_000)
        none = self.news("malloc_operators", 48, 3200, clock_ticks=1 << 31)
        self.assertEqual({e.dur for e in none.of("malloc")}, {1})
        self.assertEqual(none.ring.free_ticks, none.ring.timed_frees)

    def test_a_child_may_return_from_an_operator_of_another_allocator(self):
        for follow in (0, ring.follow_fork):
            recording = self.news("own_operators", 70007, 70, follow=follow)
            self.assertGreaterEqual(sizes(recording.of("malloc"))[70007], 70)

    def news(self, preload, bytes, count, **options):
        """Records operators new and delete of a preloaded library."""
        recording = ring.record([built("record-news"), str(bytes), str(count)], library,
                                preload=[built(f"librecord-{preload}.so")], **options)
        self.check_whole(recording)
        self.check_blocks(recording)
        return recording

    def test_samples_new_and_delete_operators_of_another_allocator(self):
        # The mean sampling distance is so large that no block is sampled.
        recording = ring.record([built("record-operators")], library,
                                preload=[built("librecord-own_operators.so")], sample=1 << 50)
        self.check_whole(recording)
        self.assertEqual(recording.of(*ring.allocations, *ring.frees), [])

    def test_names_the_process_its_thread_and_its_modules(self):
        recording = acts("once")
        self.check_whole(recording)
        process, = recording.of("process")
        self.assertEqual((process.number, process.text), (1, f"start {built('record-acts')}"))
        thread, = recording.of("thread_start")
        self.assertEqual((thread.number, thread.dur, thread.addr, thread.text),
                         (1, 1, process.addr, "record-acts"))
        modules = [re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+|-) (.+)", m.text)
                   for m in recording.of("module")]
        self.assertTrue(all(modules))
        names = [m[4] for m in modules]
        self.assertIn(built("record-acts"), names)
        self.assertTrue(any("libc.so.6" in name for name in names), names)
        notes = subprocess.run(["readelf", "-nlW", built("record-acts")], capture_output=True, text=True)
        for m, e in zip(modules, recording.of("module")):
            self.assertEqual(e.number, 1)
            self.assertGreater(int(m[1], 16), e.addr)
            if m[4] == built("record-acts"):
                self.assertIn(f"Build ID: {m[3]}", notes.stdout)
                code = re.search(r"LOAD +0x(\w+) .* R E ", notes.stdout)
                self.assertEqual(int(m[2], 16), int(code[1], 16) & -4096) # whole pages are mapped

    def test_recorded_counts_equal_those_of_a_counting_preload_library(self):
        cxx = shutil.which("g++")
        compiler = cxx and subprocess.run([cxx, "-print-prog-name=cc1plus"], capture_output=True,
                                          text=True).stdout.strip()
        programs = {
            "perl": ["perl", "-e", "my %h; $h{$_} = 'v' x ($_ % 50) for 1..20000; print scalar %h"],
            "git": ["git", "-c", "safe.directory=*", "-C", str(Path(__file__).parent), "log", "--stat", "-5"],
            "cmake": ["cmake", "--help-full"],
            "python": ["/usr/bin/python3", "-c", "print(len([[i] for i in range(50000)]))"],
            "sqlite3": ["sqlite3", ":memory:", "create table t(a); insert into t values(1); "
                        "select count(*) from t, t, t"],
            "cc1plus": [compiler or "cc1plus", "-quiet", "-fsyntax-only", "/dev/stdin", "-o", "/dev/null"],
        }
        has_history = shutil.which("git") and not subprocess.run(programs["git"], capture_output=True).returncode
        tested = 0
        for name, command in programs.items():
            if not shutil.which(command[0]) or name == "git" and not has_history:
                continue
            with self.subTest(name), tempfile.NamedTemporaryFile() as file:
                file.write(bytes(32))
                file.flush()
                recording = ring.record(command, library, preload=[built("librecord-counts.so")],
                                        env={"COUNTS": file.name, "PYTHONMALLOC": "malloc",
                                             "GIT_PAGER": "cat"})
                self.check_whole(recording)
                counted = struct.unpack("<3Q", Path(file.name).read_bytes()[:24])
                recorded = (len([e for e in recording.events if e.op in ring.allocations
                                 and e.op != "realloc_to"]),
                            len(recording.of("realloc_to")),
                            len(recording.of("free", "free_sized", "free_aligned_sized")))
                self.assertEqual(recorded, counted)
                self.check_blocks(recording)
                tested += 1
        self.assertGreater(tested, 2)

    def test_time_stamps_increase_in_each_thread(self):
        for clock in (ring.clock_monotonic, ring.clock_tsc):
            if clock == ring.clock_tsc and not ring.has_constant_tsc():
                continue
            before = time.monotonic_ns()
            recording = acts("threads", 2, clock=clock)
            self.check_whole(recording)
            for _, events in itertools.groupby(recording.events, lambda e: e.thread):
                stamps = [e.t for e in events]
                self.assertEqual(stamps, sorted(stamps))
            if clock == ring.clock_monotonic:
                self.assertTrue(before <= recording.events[0].t <= time.monotonic_ns())

    def test_times_one_call_in_sixteen_on_request(self):
        recording = acts("threads", 1, time_calls=16)
        timed = [e for e in recording.of("malloc") if e.dur]
        self.assertAlmostEqual(len(timed) / len(recording.of("malloc")), 1 / 16, places=2)

    def test_times_one_free_in_sixty_four(self):
        recording = acts("threads", 1)
        frees = collections.Counter(e.thread for e in recording.of("free"))
        self.assertEqual(recording.ring.timed_frees, sum(n // 64 for n in frees.values()))
        self.assertGreater(recording.ring.free_ticks, 0)

    def test_both_records_of_a_realloc_have_the_same_stack(self):
        for stacks in (ring.caller, ring.frame_pointers, ring.unwound):
            recording = ring.record([built("record-family")], library, stacks=stacks)
            self.check_whole(recording)
            depth, pairs = 0, 0
            for e in recording.events:
                if e.op not in ring.allocations | ring.frees:
                    continue
                if e.op == "realloc_to":
                    self.assertEqual((e.kept, e.frames), (depth, []))
                    pairs += 1
                depth = e.kept + len(e.frames)
            self.assertGreater(pairs, 3)

    def test_recorded_call_stacks_are_those_of_the_callers(self):
        for stacks in (ring.caller, ring.frame_pointers, ring.unwound):
            for free_stacks in (0, 1):
                recording = acts("deep", 50, stacks=stacks, free_stacks=free_stacks)
                self.check_whole(recording)
                program, = [m for m in recording.of("module") if m.text.endswith("record-acts")][:1]
                end = int(program.text.split()[0], 16)
                stack, pairs, depths = [], 0, []
                for e in recording.events:
                    if e.op not in ring.allocations | ring.frees:
                        continue
                    if e.kept or e.frames:
                        self.assertLessEqual(e.kept, len(stack))
                        stack[e.kept:] = e.frames
                    elif e.op in ring.allocations or free_stacks:
                        self.fail(f"{e} has no stack")
                    if e.size == 70001:
                        pairs += 1
                        depths.append(len(stack))
                        self.assertTrue(program.addr <= stack[-1] < end, hex(stack[-1]))
                self.assertEqual(pairs, 51)
                if stacks == ring.unwound:
                    self.assertEqual(depths, list(range(depths[0], depths[0] + 51)))
                if stacks == ring.caller:
                    self.assertEqual(set(depths), {1})

    def test_samples_each_byte_with_the_same_probability(self):
        mean = 5000
        recording = acts("many", 120000, sample=mean)
        self.check_whole(recording)
        chance = {s: 1 - 2.718281828459045 ** (-s / mean) for s in (10, 100, 1000, 64)}
        found = sizes(recording.of("malloc", "realloc_to"))
        for size, count in ((10, 40000), (100, 40000), (1000, 40000), (64, 60000)):
            expected = count * chance[size]
            self.assertLess(abs(found[size] - expected), 6 * expected ** 0.5 + 1, size)
        # The recorded frees are exactly those of the sampled blocks.
        in_use = collections.Counter()
        for e in recording.events:
            if e.op in ring.allocations and e.addr and e.size in (10, 100, 1000, 64):
                in_use[e.addr] += 1
                self.assertEqual(in_use[e.addr], 1, e)
            elif e.op in ring.frees and in_use[e.addr]:
                in_use[e.addr] -= 1
            elif e.op in ring.frees:
                self.assertGreater(len([f for f in recording.events if f.addr == e.addr]), 1, e)
        self.assertEqual(sum(in_use.values()), 0)

    def test_records_nothing_outside_of_the_window(self):
        r = ring.Ring(recording=0)
        with counter() as file:
            process = ring.start([built("record-acts"), "window", file.name], r, library)

            def wait_for_pairs(count):
                there = number_in(file) + count
                ring.wait_until(f"the program frees {count} more blocks", lambda: number_in(file) >= there)

            wait_for_pairs(50)
            r.drain()
            self.assertEqual({e.op for e in r.events()}, {"process", "module", "thread_start"})
            r.set_recording(1)
            wait_for_pairs(50)
            r.set_recording(0)
            wait_for_pairs(2)  # the first of the two may have begun before
            r.drain()
            inside = len(list(r.events()))
            wait_for_pairs(50)
            process.kill()
            process.wait()
        r.drain(is_over=True)
        self.assertGreater(inside, 50)
        self.assertEqual(len(list(r.events())), inside)

    # --- what the program must not notice ---

    def test_removes_itself_from_the_environment(self):
        recording = acts("environment", env={"LIKE": "LD_PRELOAD"})
        self.check_whole(recording)
        self.assertNotIn("MALLARD_RING", recording.output)
        self.assertNotIn("LD_PRELOAD=", recording.output)
        self.assertIn("LIKE=LD_PRELOAD", recording.output)
        other = built("librecord-counts.so")
        recording = acts("environment", preload=[other])
        self.assertEqual(recording.output.count(f"LD_PRELOAD={preloadable(other)}\n"), 2)
        self.assertFalse(re.findall("LD_PRELOAD=.*libmallard-record", recording.output))

    def test_preserves_errno_and_dlerror(self):
        self.check_whole(acts("errno", segments=8))

    def test_without_a_ring_buffer_the_program_runs_unchanged(self):
        for path in (None, "", "/nonexistent", "/dev/null", __file__):
            env = {**os.environ, "LD_PRELOAD": preloadable(library)}
            if path is not None:
                env["MALLARD_RING"] = path
            for program in ("record-family", "record-operators"):
                done = subprocess.run([built(program)], env=env, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_the_recorder_depends_only_on_libc(self):
        read = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True).stdout
        needed = re.findall(r"NEEDED.*\[(.*)\]", read)
        self.assertTrue(all(re.match(r"libc\.so|ld-linux|libpthread|libdl", n) for n in needed), needed)

    # --- processes ---

    def test_children_are_not_recorded_unless_followed(self):
        for act in ("fork", "clone"):
            recording = acts(act)
            self.check_whole(recording)
            self.assertEqual(len(recording.of("process")), 1)
            found = sizes(recording.of("malloc"))
            self.assertGreater(found[70003], 0)
            self.assertEqual(found[70002], 0)

    def test_a_child_may_return_from_a_call_of_its_parent(self):
        for follow in (0, ring.follow_fork):
            recording = ring.record([built("record-acts"), "forks_in_calls"], library,
                                    preload=[built("librecord-forks.so")], follow=follow)
            self.check_whole(recording)
            self.assertGreaterEqual(sizes(recording.of("malloc"))[70007], 64)

    def test_children_that_are_followed_are_recorded_as_separate_processes(self):
        for act, times in (("fork", 1000), ("clone", 1)):
            recording = acts(act, follow=ring.follow_fork)
            self.check_whole(recording)
            parent, child = recording.of("process")
            self.assertEqual(child.text, f"fork {parent.number} {built('record-acts')}")
            self.assertNotEqual(parent.addr, child.addr)
            for number, size in ((parent.number, 70003), (child.number, 70002)):
                blocks = [e for e in recording.of("malloc") if e.size == size]
                self.assertEqual(len(blocks), times)
                self.assertEqual({e.process for e in blocks}, {number})
            self.assertEqual(len({e.thread for e in recording.of("malloc")}), 2)
            self.assertEqual({m.process for m in recording.of("module")}, {parent.number})

    def test_vfork_and_posix_spawn_lose_no_events(self):
        recording = acts("vfork", follow=ring.follow_fork)
        self.check_whole(recording)
        self.assertEqual((sizes(recording.of("malloc"))[70001], sizes(recording.of("malloc"))[70003]),
                         (1, 1))
        self.assertEqual(len(recording.of("process")), 1)

    def test_a_program_that_is_executed_is_recorded_if_followed(self):
        for act, how in (("exec", "exec"), ("spawn", "fork")):
            self.assertEqual(sizes(acts(act).of("malloc"))[70005], 0)
            recording = acts(act, follow=ring.follow_exec)
            self.check_whole(recording)
            first, second = recording.of("process")
            self.assertEqual(second.text, f"{how} {first.number} {built('record-acts')}")
            self.assertEqual(first.addr == second.addr, act == "exec")
            block, = [e for e in recording.of("malloc") if e.size == 70005]
            self.assertEqual(block.process, second.number)
            self.assertEqual({m.process for m in recording.of("module")}, {1, 2})

    def test_quick_exit_loses_no_events(self):
        recording = acts("quick_exit")
        self.check_whole(recording, status=7)
        self.assertEqual(sizes(recording.of("malloc"))[70001], 1)

    def test_a_killed_program_loses_no_events(self):
        chance = random.Random(1)
        for pairs in [0, *(chance.randrange(20_000) for _ in range(kills - 1))]:
            with counter() as file:
                r = ring.Ring(segments=256)
                process = ring.start([built("record-acts"), "count", file.name], r, library)
                ring.wait_until(f"the program frees {pairs} blocks", lambda: number_in(file) >= pairs, r.drain)
                process.kill()
                process.wait()
                r.drain()
                r.drain(is_over=True)
                done = number_in(file)
                pairs = [e for e in r.events() if e.size == 70001]
                self.assertLessEqual(done, len(pairs))
                self.assertLessEqual(len(pairs), done + 1)

    def test_closing_all_descriptors_loses_no_events(self):
        recording = acts("close_all")
        self.check_whole(recording)
        self.assertEqual(sizes(recording.of("malloc"))[70001], 100000)

    def test_two_processes_write_events_concurrently(self):
        recording = acts("fork_of_threads", follow=ring.follow_fork)
        self.check_whole(recording)
        found = sizes(recording.of("malloc"))
        self.assertEqual((found[70002], found[70003]), (40, 20000))
        self.assertEqual(len(recording.of("process")), 41)
        self.assertEqual(len({e.process for e in recording.of("malloc") if e.size == 70002}), 40)

    def test_a_fork_bomb_is_recorded(self):
        recording = acts("bomb", 7, follow=ring.follow_fork)
        self.check_whole(recording)
        self.assertEqual(len(recording.of("process")), 128)
        self.assertEqual(sizes(recording.of("malloc"))[70001], 128)

    # --- threads ---

    def test_a_thousand_simultaneous_threads_are_recorded(self):
        recording = acts("live_threads", 1000, segments=1100)
        self.check_whole(recording)
        found = sizes(recording.of("malloc"))
        self.assertEqual((found[70001], found[70002]), (1000, 1000))
        self.assertEqual(len(recording.of("thread_start")), 1001)
        self.assertEqual(len(recording.of("thread_end")), 1000)

    def test_ten_thousand_short_lived_threads_are_recorded(self):
        recording = acts("short_threads", 10000, segments=256)
        self.check_whole(recording)
        self.assertEqual(sizes(recording.of("malloc"))[70001], 10000)
        self.assertEqual(len(recording.of("thread_end")), 10000)

    def test_frees_in_thread_local_destructors_are_recorded_for_that_thread(self):
        recording = acts("late_frees")
        self.check_whole(recording)
        self.check_blocks(recording)
        self.assertEqual(recording.ring.threads, 21)
        found = sizes(recording.of("malloc"))
        self.assertEqual((found[70001], found[70002], found[70003]), (20, 60, 80))
        for thread in {e.thread for e in recording.of("malloc") if e.size == 70001}:
            of_thread = [e for e in recording.events if e.thread == thread and e.size >= 70000]
            self.assertEqual(len(of_thread), 8)

    def test_events_before_main_and_after_main_are_recorded(self):
        recording = ring.record([built("record-early")], library,
                                env={"PLUGIN": built("librecord-plugin.so")})
        self.check_whole(recording)
        found = sizes(recording.of("malloc"))
        for size in (70001, 70002, 70003, 70011, 70012):
            self.assertEqual(found[size], 1, size)

    def test_calls_in_the_resolver_of_an_indirect_function_are_not_recorded(self):
        recording = ring.record([built("record-resolver")], library)
        self.check_whole(recording)
        self.check_blocks(recording)
        found = sizes(e for e in recording.events if 70000 < e.size < 70100)
        self.assertEqual(found, {70011: 1, 70012: 1})

    # --- signals, the dynamic linker, a full ring ---

    def test_signal_handlers_may_allocate(self):
        recording = acts("signals", preload=[built("librecord-handler_memory.so")], stacks=ring.unwound)
        self.assertEqual(recording.status, 0, recording.output)
        handled = int(recording.output)
        recorded = [e for e in recording.of("malloc") if e.size == 12345679]
        # If a signal interrupts `append`, the event of the handler is counted as lost. An event inside
        # of the real malloc is not counted.
        self.assertLessEqual(len(recorded), handled)
        self.assertGreater(len(recorded) + recording.ring.lost_nested, 0)
        pairs = sizes(recording.of("malloc"))[70001]
        self.assertGreater(pairs, 1000)

    def test_plugins_allocate_when_they_are_loaded_and_unloaded(self):
        recording = acts("plugin", built("librecord-plugin.so"))
        self.check_whole(recording)
        found = sizes(recording.of("malloc"))
        # The second of three loads uses RTLD_DEEPBIND. The recorder's dlopen clears that flag, because
        # otherwise libc would be first in the scope of the plugin.
        self.assertEqual(found[70009], 1)
        self.assertEqual((found[70011], found[70012], found[70013]), (3, 3, 3))

    def test_a_full_ring_makes_the_program_wait(self):
        recording = acts("threads", 4, segments=8, drained_after=lambda r: r.waits > 0)
        self.check_whole(recording)
        self.assertGreater(recording.ring.waits, 0)
        self.assertEqual(sizes(recording.of("malloc"))[70001], 80000)

    def test_a_full_ring_drops_events_on_request(self):
        r = acts("threads", 4, segments=8, on_full=1, drained_after=lambda r: r.lost_full > 0)
        self.assertEqual(r.status, 0)
        self.assertGreater(r.ring.lost_full, 0)
        self.assertLess(r.ring.waits, 20)  # some, for the records of processes and threads
        events = len([e for e in r.of("malloc", "free")])
        all_events = 2 * 80000
        self.assertGreater(events + r.ring.lost_full, all_events)
        self.assertLess(events + r.ring.lost_full, all_events + 200)

    def test_the_program_continues_when_the_mallard_command_dies(self):
        code = ("import os, subprocess, sys; sys.path.insert(0, sys.argv[1]); import ring, ctypes;"
                "ring.helper = ctypes.CDLL(sys.argv[4]); r = ring.Ring(segments=4);"
                "started = ring.start([sys.argv[3], 'threads', '2'], r, sys.argv[2], stdout=subprocess.DEVNULL);"
                "print(started.pid, flush=True); os._exit(0)")
        command = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent), library,
                                  built("record-acts"), built("librecord-compare_exchange.so")],
                                 check=True, stdout=subprocess.PIPE, text=True)
        ring.wait_until("the program ends after its command", lambda: not is_running(int(command.stdout), "record-acts"))

    def test_recursion_a_hundred_thousand_deep_is_recorded(self):
        # With all frames, each event would have hundreds of frames, and this harness would take
        # minutes.
        for stacks, depth in ((ring.no_stacks, 100000), (ring.caller, 100000), (ring.unwound, 15000)):
            recording = acts("deep", depth, stacks=stacks, segments=4096)
            self.check_whole(recording)
            self.assertEqual(sizes(recording.of("malloc"))[70001], depth + 1)


def is_running(process, name):
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    return f"Name:\t{name}\n" in status and "State:\tZ" not in status


if __name__ == "__main__":
    folder = Path(sys.argv.pop(1)).resolve()
    ring.helper = ctypes.CDLL(built("librecord-compare_exchange.so"))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main()
