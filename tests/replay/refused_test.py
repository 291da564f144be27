#!/usr/bin/env python3
"""Tests what mallard-replay rejects: invalid options, corrupt files and op streams that cannot be
replayed. `refused_test.py [unittest arguments]`

harness.py lists the environment variables that the tests need.
"""
import json
import resource
import unittest
from pathlib import Path

import op_stream
from harness import PlayerTest, crossing, every, not_sanitized, spec, without_threads
from op_stream import Stream, Target, arena, size_max


class Refused(PlayerTest):
    def test_an_invalid_command_line_is_rejected(self):
        for arguments, text in (([], "no op stream"), (["a", "b"], "two files"), (["--what", "a"], "--what"),
                                (["--touch", "some", "a"], "some"), (["--pace=-1", "a"], "-1"),
                                (["--pace=fast", "a"], "fast"), (["--litter=1.5", "a"], "1.5"),
                                (["--litter", "x", "a"], "x"), (["--touch"], "no value"),
                                (["--no-op", "--hash", "a"], "exclude"), (["--virtual-call", "a"], "no file")):
            self.check_message(self.run_player(*arguments), 2, text)
        self.assertIn("usage", self.run_player("--help").stdout)

    def test_a_file_that_is_not_an_op_stream_is_rejected(self):
        self.check_message(self.run_player(self.file), 3, "cannot open")
        self.check_message(self.run_player(self.folder.name), 3, "is not a file")
        for data in (b"", b"x" * 79, b"x" * 200):
            Path(self.file).write_bytes(data)
            self.check_message(self.run_player(self.file), 3, "op stream")

    @without_threads
    def test_a_changed_byte_in_an_op_stream_is_detected(self):
        data = op_stream.golden().data()
        for i in range(0, len(data), every):
            changed = bytearray(data)
            changed[i] ^= 1 << i % 8
            Path(self.file).write_bytes(changed)
            self.check_message(self.run_player(self.file), 3, "not a valid op stream")

    @without_threads
    def test_an_op_stream_truncated_to_any_length_is_detected(self):
        data = op_stream.golden().data()
        for length in range(0, len(data), every):
            Path(self.file).write_bytes(data[:length])
            self.check_message(self.run_player(self.file), 3, "not a valid op stream")

    @without_threads
    def test_an_invalid_op_stream_with_a_valid_checksum_is_rejected_or_replayed_safely(self):
        data = op_stream.golden().data()
        for i in list(range(12, 72)) + list(range(80, len(data), every)):
            changed = bytearray(data)
            changed[i] ^= 1 << (i * 5 + 3) % 8
            Path(self.file).write_bytes(op_stream.sealed(bytes(changed)))
            done = self.run_player("--account", self.file)
            if done.returncode == 0:
                json.loads(done.stdout)
            else:
                self.check_message(done, 3, "not a valid op stream")

    def test_an_op_that_cannot_be_executed_is_named(self):
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

        def deleted(t):
            t.malloc(0, 8)
            t.free_sized(0, 8)

        def not_deleted(t):
            t.new(0, 8)
            t.free(0, 8)

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
                          (deleted, "operator delete"), (not_deleted, "operator delete"),
                          (from_alone, "no realloc after"), (other_block, "another block"),
                          (to_nothing, "size 0"), (after_close, "not in slot 0"),
                          (opened_twice, "cannot be opened"), (back, "position"),
                          (lambda t: t.malloc(0, size_max), "too large for the format"), (lambda t: t.malloc(0, 8, 4, 1), "not open"),
                          (lambda t: t.malloc(0, 8, 4, 2), "does not exist"),
                          (lambda t: t.malloc(0, 8, 31), "alignment"), (lambda t: t.op(17), "unknown kind"),
                          (lambda t: t.op(31), "unknown kind"), (lambda t: t.close(target=0), "cannot be closed"),
                          (lambda t: t.start(5), "does not exist"), (lambda t: t.start(0), "was started"),
                          (lambda t: t.wait(7, 1), "waits for thread 7")):
            self.refuse(stream(add), text)

    def test_a_target_that_is_not_shared_may_be_used_by_one_thread_only(self):
        s = Stream([Target(arena)])
        a, b = s.thread(), s.thread()
        a.open(target=1)
        a.start(1)
        b.malloc(0, 8, 4, 1)
        self.refuse(s, "another thread has opened")

    def test_an_op_stream_that_would_deadlock_is_rejected(self):
        s = Stream()
        a, b = s.thread(), s.thread()
        a.start(1)
        a.wait(1, 1)
        a.publish(size=1)
        b.wait(0, 1)
        b.publish(size=1)
        self.refuse(s, "which never comes")

    def test_a_thread_that_no_op_starts_is_named(self):
        s = Stream()
        s.thread()
        s.thread()
        self.refuse(s, "no op starts thread 1")

    def test_ops_after_the_end_of_a_thread_are_detected(self):
        s = Stream()
        t = s.thread()
        t.end()
        t.malloc(0, 8)
        self.refuse(s, "after its `end`")

    def test_an_op_stream_header_with_inconsistent_counts_is_rejected(self):
        for field, text in (("calls", "calls"), ("ops", "ops"), ("slots", "slots"), ("targets", "not a valid"),
                            ("threads", "not a valid"), ("blocks", "blocks")):
            s = crossing(2, 10)
            s.write(self.file, **{field: 10**9})
            self.check_message(self.run_player(self.file), 3, text)

    @not_sanitized
    def test_a_replayer_that_runs_out_of_memory_reports_it(self):
        def limited(file, bytes):
            return self.run_player("--touch=none", file, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (bytes, bytes)))
        enough = next(mib for mib in range(4, 200) if limited(spec / "replay_format.golden", mib << 20).returncode == 0)
        s = Stream()
        t = s.thread()
        t.ops = [(8 | 4 << 40 | 1 << 46, slot, 0) for slot in range(400_000)]
        self.check_message(limited(s.write(self.file), enough << 20), 125, "the system could not allocate")


if __name__ == "__main__":
    unittest.main()
