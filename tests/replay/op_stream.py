"""Writes op streams (spec/replay_format.md), without the project's own code for them.

    s = Stream(targets=[Target(arena)])
    main = s.thread()
    main.malloc(0, 24)
    main.free(0, 24)
    s.write(path)
"""
import re
import struct
from dataclasses import dataclass
from pathlib import Path

kinds = {"end": 0, "malloc": 1, "calloc": 2, "aligned": 3, "realloc": 4, "new": 5, "new_aligned": 6,
         "free": 7, "delete": 8, "delete_aligned": 9, "free_sized": 10, "free_aligned": 11, "free_null": 12,
         "malloc_failed": 13, "calloc_failed": 14, "aligned_failed": 15, "realloc_failed": 16, "open": 18,
         "close": 19, "publish": 20, "wait": 21, "start": 22, "pause": 23, "realloc_from": 24}
size_max = (1 << 40) - 1
malloc, arena, multipool, multipool_over_arena = range(4)
mask = (1 << 64) - 1


def mix(checksum, word):
    product = (checksum ^ word) * 0x9e3779b97f4a7c15 & mask
    return product ^ product >> 32


def sealed(data):
    """Returns a file's bytes with the right checksum."""
    words = struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])
    checksum = 0
    for word in words[10:] + words[:9]:
        checksum = mix(checksum, word)
    return data[:72] + struct.pack("<Q", checksum) + data[80:]


@dataclass
class Target:
    allocator: int
    is_shared: int = 0
    first_chunk: int = 0
    rule: int = 1


class Thread:
    """The ops of one thread. There is a method for each kind of op, except for those about
    threads."""

    def __init__(self, recorded, start_ns):
        self.recorded, self.start_ns = recorded, start_ns
        self.ops = []

    def op(self, kind, slot=0, size=0, align=0, target=0, gap=0):
        number = kinds[kind] if isinstance(kind, str) else kind
        self.ops.append((size | align << 40 | number << 46 | target << 51, slot, gap))

    def __getattr__(self, kind):
        if kind not in kinds:
            raise AttributeError(kind)
        align = 0 if kind in ("end", "publish", "wait", "start", "pause", "open", "close", "free_null") else 4

        def add(slot=0, size=0, align=align, target=0, gap=0):
            self.op(kind, slot, size, align, target, gap)
        return add

    def resize(self, slot, before, after, align=4, target=0):
        self.op("realloc_from", slot, before, align, target)
        self.op("realloc", slot, after, align, target)

    def calls(self):
        return sum(1 <= what >> 46 & 31 <= 16 for what, _, _ in self.ops)


class Stream:
    def __init__(self, targets=()):
        self.targets = [Target(malloc, rule=0), *targets]
        self.threads = []
        self.peaks = None  # (live_peak, blocks_peak)

    def thread(self, recorded=None, start_ns=0):
        self.threads.append(Thread(len(self.threads) + 1 if recorded is None else recorded, start_ns))
        return self.threads[-1]

    def data(self, **header):
        for thread in self.threads:
            if not thread.ops or thread.ops[-1][0] >> 46 & 31:
                thread.end()
        slots = 1 + max((slot for t in self.threads for what, slot, _ in t.ops
                         if (what >> 46 & 31) in (*range(1, 12), 16, 24)), default=-1)
        live, blocks = self.peaks or (0, slots)
        fields = {"threads": len(self.threads), "targets": len(self.targets), "slots": slots,
                  "ops": sum(len(t.ops) for t in self.threads), "live": live, "blocks": blocks,
                  "calls": sum(t.calls() for t in self.threads), **header}
        out = bytearray(struct.pack("<8sIIIIIIQQQQQQ", b"\x89MREPLY\n", 0x01020304, 2, 80, 16,
                                    fields["threads"], fields["targets"], fields["slots"], fields["ops"],
                                    fields["live"], fields["blocks"], fields["calls"], 0))
        offset = 80 + 32 * len(self.threads) + 24 * len(self.targets)
        for t in self.threads:
            out += struct.pack("<QQQQ", offset, len(t.ops), t.recorded, t.start_ns)
            offset += 16 * len(t.ops)
        for t in self.targets:
            out += struct.pack("<IIQII", t.allocator, t.is_shared, t.first_chunk, t.rule, 0)
        for t in self.threads:
            out += b"".join(struct.pack("<QII", *op) for op in t.ops)
        return sealed(bytes(out))

    def write(self, path, **header):
        Path(path).write_bytes(self.data(**header))
        return str(path)


def golden():
    """Returns the stream of spec/replay_format.golden, read from the table in
    spec/replay_format.md."""
    page = (Path(__file__).parents[2] / "spec/replay_format.md").read_text()
    s = Stream([Target(arena, 0, 4096, 1), Target(multipool, 1, 0, 2), Target(multipool_over_arena, 0, 0, 3)])
    s.thread(1, 0)
    s.thread(2, 1000)
    s.peaks = (476, 5)
    for row in re.findall(r"^\| ([01]) \| (\w+) \|((?:[^|]*\|){5})$", page, re.M):
        size, align, target, slot, gap = (size_max if cell.strip() == "max" else int(cell.strip() or 0)
                                          for cell in row[2][:-1].split("|"))
        s.threads[int(row[0])].op(row[1], slot, size, align, target, gap)
    return s


if __name__ == "__main__":
    golden().write(Path(__file__).parents[2] / "spec/replay_format.golden")
