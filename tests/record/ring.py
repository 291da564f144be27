"""Records a program as `mallard record` does: makes the ring, starts the program with the recorder,
drains the ring while the program runs, and decodes the records.

    recording = ring.record([program, argument], stacks=ring.unwound)
    for event in recording.events: ...
"""
import ctypes
import mmap
import os
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from preload import preloadable  # noqa: E402

record_bytes, segment_bytes, table_offset = 32, 16384, 4096
segment_records = segment_bytes // record_bytes
free, in_use, sealed = 0, 1, 2
no_stacks, caller, frame_pointers, unwound = 0, 1, 2, 3
patience = 250  # seconds; ctest waits for 300
follow_fork, follow_exec = 1, 2
clock_monotonic, clock_tsc = 1, 2

ops = {16: "malloc", 17: "calloc", 18: "aligned_alloc", 19: "memalign", 20: "posix_memalign",
       21: "valloc", 22: "pvalloc", 24: "realloc_from", 25: "realloc_to",
       32: "free", 33: "free_sized", 34: "free_aligned_sized",
       48: "module", 49: "process", 51: "thread_start", 52: "thread_end",
       56: "region_begin", 57: "region_end", 58: "region_name"}
with_text = {"module", "process", "thread_start"}
allocations = {"malloc", "calloc", "aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc",
               "realloc_to"}
frees = {"free", "free_sized", "free_aligned_sized", "realloc_from"}
from_new, array, nothrow, sized, aligned, stack_cut, stack_gap = 4, 8, 16, 32, 64, 128, 256


@dataclass
class Event:
    op: str
    t: int
    addr: int
    size: int
    align: int   # the exponent
    flags: int
    thread: int
    process: int
    dur: int
    number: int  # the member `stack` of the record
    text: str = ""
    kept: int = 0
    frames: list = field(default_factory=list)  # frames that differ from the last stack, outermost first


def has_constant_tsc():
    with open("/proc/cpuinfo") as file:
        return os.uname().machine == "x86_64" and "nonstop_tsc" in file.read()


class Ring:
    """The shared memory. The methods of this class do the same as the command `mallard record`."""

    def __init__(self, segments=1024, on_full=0, stacks=no_stacks, free_stacks=1, follow=0, sample=0,
                 time_calls=1, recording=1, clock=None,
                 clock_ticks=0):
        self.segments = segments
        self.data_offset = table_offset + (segments * 64 + 4095) // 4096 * 4096
        size = self.data_offset + segments * segment_bytes
        self.file = os.memfd_create("ring", os.MFD_CLOEXEC)
        os.ftruncate(self.file, size)
        self.memory = mmap.mmap(self.file, size)
        self.words = memoryview(self.memory).cast("I")
        self.longs = memoryview(self.memory).cast("Q")
        header = struct.pack("<8sIIQIIIIQII", b"\x89MRING\r\n", 3, segments, self.data_offset,
                             on_full, stacks, free_stacks, follow, sample, time_calls, recording)
        self.memory[:len(header)] = header
        if clock is None:
            clock = clock_tsc if has_constant_tsc() else clock_monotonic
        self.words[152 // 4] = clock
        self.words[156 // 4] = clock_ticks
        # Python has no atomic compare-exchange, so the library `helper` does it at this address.
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for segment in reversed(range(segments)):
            self.push(segment)
        self.read = [0] * segments        # records of each segment that have been read
        self.pieces = {}                  # (process, thread): list of (sequence, bytes)

    path = property(lambda self: f"/proc/{os.getpid()}/fd/{self.file}")
    lost_full = property(lambda self: self.longs[128 // 8])
    lost_nested = property(lambda self: self.longs[136 // 8])
    waits = property(lambda self: self.longs[144 // 8])
    processes = property(lambda self: self.words[160 // 4])
    threads = property(lambda self: self.words[164 // 4])
    attached = property(lambda self: self.words[168 // 4])
    refused = property(lambda self: self.words[172 // 4])
    free_ticks = property(lambda self: self.longs[192 // 8])
    timed_frees = property(lambda self: self.longs[200 // 8])

    def set_recording(self, on):
        self.words[52 // 4] = on

    def word(self, segment, index):
        return (table_offset + segment * 64) // 4 + index

    def push(self, segment):
        head = self.longs[64 // 8]
        while True:
            self.words[self.word(segment, 2)] = head & 0xffffffff
            wanted = ((head >> 32) + 1 & 0xffffffff) << 32 | segment + 1
            seen = compare_exchange(self.address + 64, head, wanted)
            if seen == head:
                return
            head = seen

    def drain(self, is_over=False):
        """Reads the new records. With `is_over`, also reads the segments that are not sealed."""
        for segment in range(self.segments):
            state = self.words[self.word(segment, 1)]
            if state == free:
                continue
            count = self.words[self.word(segment, 0)]
            if count > self.read[segment]:
                self.copy(segment, count)
            if state == sealed or is_over:
                self.read[segment] = 0
                self.words[self.word(segment, 0)] = 0
                self.words[self.word(segment, 1)] = free
                self.push(segment)

    def copy(self, segment, count):
        thread, process, sequence = (self.words[self.word(segment, i)] for i in (3, 4, 5))
        start = self.data_offset + segment * segment_bytes
        part = self.memory[start + self.read[segment] * record_bytes:start + count * record_bytes]
        self.pieces.setdefault((process, thread), []).append((sequence, part))
        self.read[segment] = count

    def events(self):
        """Decodes all records. Yields the events of each thread in order, one thread after another."""
        for (process, thread), pieces in sorted(self.pieces.items()):
            # The segments of a thread are read in any order, so they are sorted first.
            pieces.sort(key=lambda piece: piece[0])
            found = sorted({sequence for sequence, _ in pieces})
            assert found == list(range(len(found))), f"thread {thread} has the segments {found}"
            yield from decode(b"".join(part for _, part in pieces), process, thread)


class Unreadable(Exception):
    pass


def decode(data, process, thread):
    at = 0
    while at < len(data):
        t, addr, what, stack, dur = struct.unpack_from("<QQQII", data, at)
        at += record_bytes
        number = what >> 46 & 63
        if number not in ops:
            raise Unreadable(f"op {number} in thread {thread}")
        event = Event(ops[number], t, addr, what & (1 << 40) - 1, what >> 40 & 63, what >> 52,
                      thread, process, dur, stack)
        if event.op in with_text:
            more = (event.size + record_bytes - 1) // record_bytes * record_bytes
            event.text = data[at:at + event.size].decode()
            at += more
        elif number >= 56:
            # Each record has 16 characters of the name.
            name = struct.pack("<QII", addr, stack, dur)
            while len(name) < event.size:
                addr, what, stack, dur = struct.unpack_from("<8xQQII", data, at)
                assert ops[what >> 46 & 63] == "region_name"
                name += struct.pack("<QII", addr, stack, dur)
                at += record_bytes
            event.text = name[:event.size].decode()
        elif number < 48:
            event.kept, fresh = stack >> 16, stack & 0xffff
            event.frames = list(struct.unpack_from(f"<{fresh}Q", data, at))
            at += (fresh + 3) // 4 * record_bytes
        if at > len(data):
            raise Unreadable(f"the last record of thread {thread} is cut")
        yield event


libc = ctypes.CDLL(None)
helper = None


def compare_exchange(address, expected, wanted):
    """Performs an atomic compare-exchange of 64 bits. Returns the value before."""
    word = ctypes.c_uint64(expected)
    helper.record_test_compare_exchange(ctypes.c_void_p(address), ctypes.byref(word),
                                        ctypes.c_uint64(wanted))
    return word.value


@dataclass
class Recording:
    events: list
    status: int
    output: str
    ring: Ring

    def of(self, *names):
        return [e for e in self.events if e.op in names]


def start(command, ring, library, preload=(), env=None, **options):
    environment = {**os.environ, **(env or {}), "MALLARD_RING": ring.path + ":" + "0" * 10 + ":" + "0" * 10,
                   "LD_PRELOAD": ":".join(map(preloadable, [library, *preload]))}
    return subprocess.Popen(command, env=environment, **options)


def wait_until(event, has_come, meanwhile=lambda: None):
    """Waits for an event, even on a busy machine. Fails with the event's name if it does not come."""
    end = time.monotonic() + patience
    while not has_come():
        meanwhile()
        if time.monotonic() > end:
            raise TimeoutError(f"within {patience} s this has not come: {event}")
        time.sleep(0.001)


def record(command, library, preload=(), env=None, poll=0.01, drained_after=None, **options):
    """Runs the program to its end, and returns the recording. Reads nothing until `drained_after(ring)` is
    true."""
    ring = Ring(**options)
    process = start(command, ring, library, preload, env, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT)
    output = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()))
    reader.start()
    end = time.monotonic() + patience
    while reader.is_alive() or process.poll() is None:
        if drained_after is None or drained_after(ring):
            drained_after = None
            ring.drain()
        time.sleep(poll)
        if time.monotonic() > end:
            process.kill()
            raise TimeoutError(f"after {patience} s these have not ended: {' '.join(map(str, command))}")
    reader.join()
    ring.drain()
    ring.drain(is_over=True)
    return Recording(list(ring.events()), process.returncode, output[0].decode(errors="replace"), ring)
