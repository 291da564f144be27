"""Writes compiled plans for the tests of libmallard-plan.so: see spec/plan_format.md."""
import functools
import random
import re
import struct
import subprocess
from pathlib import Path

POOL, MULTIPOOL, ARENA, MULTIPOOL_OVER_ARENA = 1, 2, 3, 4
MALLOC = 0x7FFFFFFF
BY_STACK = 0x40000000
WORD = (1 << 64) - 1


def mix(checksum, word):
    product = (checksum ^ word) * 0x9E3779B97F4A7C15 & WORD
    return product ^ product >> 32


def words(data):
    data += bytes(-len(data) % 8)
    return struct.unpack(f"<{len(data) // 8}Q", data)


def checksum(header, rest):
    total = 0
    for word in words(rest) + words(header):
        total = mix(total, word)
    return total


def build_id(path):
    """Returns the build-id of a file as bytes, or no bytes if the file has none."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    found = [line.split()[-1] for line in notes.splitlines() if "Build ID" in line]
    return bytes.fromhex(found[0]) if found else b""


def key(path):
    """Returns the number by which a plan identifies a file without a build-id."""
    data = Path(path).read_bytes()
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = data[at : at + size * count]
    total = 0
    for word in words(headers):
        total = mix(total, word)
    for i in range(count):
        kind, _, offset, _, _, _, bytes_in_memory, _ = struct.unpack_from("<IIQQQQQQ", headers, i * size)
        if kind == 0x6474E550:  # PT_GNU_EH_FRAME
            for word in words(data[offset : offset + bytes_in_memory]):
                total = mix(total, word)
    return total


def code_ends(path):
    """Returns the first and the last address of the code of a file."""
    listed = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
    code = [line.split() for line in listed.splitlines() if line.strip().startswith("LOAD") and " E " in line.replace("R E", " E ")]
    begins = [int(words[2], 16) for words in code]
    ends = [int(words[2], 16) + int(words[5], 16) for words in code]
    return min(begins), max(ends)


class Plan:
    """A plan that tests build piece by piece. `bytes()` is the file."""

    def __init__(self):
        self.modules, self.rules, self.callers, self.stacks, self.frames, self.ranges = [], [], [], [], [], []
        self.text = b""

    def add_text(self, text):
        text = text if isinstance(text, bytes) else text.encode()
        at = len(self.text)
        self.text += text
        return struct.pack("<II", at, len(text))

    def module(self, path, is_program=False, identity=None):
        identity = build_id(path) if identity is None else identity
        name = self.add_text(Path(path).name)
        self.modules.append(
            name + struct.pack("<IIQ", len(identity), is_program, 0 if identity else key(path)) + identity.ljust(32, b"\0")
        )
        return len(self.modules) - 1

    def rule(self, name, allocator, block_bytes=16384, peak_bytes=0):
        self.rules.append(self.add_text(name) + struct.pack("<IIQQ", allocator, block_bytes, peak_bytes, 0))
        return len(self.rules) - 1

    def caller(self, module, address, answer):
        self.callers.append((module, address, answer))

    def stack(self, answer, places):
        self.stacks.append(struct.pack("<IIII", len(self.frames), len(places), answer, 0))
        self.frames += [struct.pack("<QII", address, module, 0) for module, address in places]

    def range(self, module, begin, end, rule):
        self.ranges.append((module, begin, -end, rule))

    def bytes(self):
        text = self.text + bytes(-len(self.text) % 8)
        callers = [struct.pack("<QII", address, module, answer) for module, address, answer in sorted(self.callers)]
        ranges = [struct.pack("<QQII", begin, -end, module, rule) for module, begin, end, rule in sorted(self.ranges)]
        rest = b"".join(self.modules + self.rules + callers + self.stacks + self.frames + ranges) + text
        counts = [len(part) for part in (self.modules, self.rules, callers, self.stacks, self.frames, ranges)]
        header = b"\x89MPLAN\r\n" + struct.pack("<II6II12x", 0x01020304, 1, *counts, len(text))
        return header + struct.pack("<Q", checksum(header, rest)) + rest


def whole(path, allocator, share=lambda address: True, others=(), step=256, block_bytes=16384, peak_bytes=0):
    """Returns a plan with one rule for all code of a program, and of the other modules if `share` is true."""
    plan = Plan()
    rule = plan.rule("all", allocator, block_bytes, peak_bytes)
    for at, file in enumerate([path, *others]):
        module = plan.module(file, is_program=at == 0)
        begin, end = code_ends(file)
        for address in range(begin, end, step):
            if share(address):
                plan.range(module, address, min(address + step, end), rule)
    return plan


def half(path, seed, others=(), step=64, peak_bytes=0):
    """Returns a plan for about half of the call stacks, at random, with rules of all kinds. The first frame of a
    stack that is in a range decides. So half of the ranges serve no block. Code that calls malloc itself has no
    range, because a function through which all allocations of the program pass would otherwise decide about
    all."""
    chance, plan = random.Random(seed), Plan()
    kinds = [(POOL, 32), (POOL, 64), (POOL, 512), (MULTIPOOL, 1024), (MULTIPOOL, 16384), (ARENA, 256), (ARENA, 16384),
             (MULTIPOOL_OVER_ARENA, 512), (MULTIPOOL_OVER_ARENA, 16384)]
    serving = [plan.rule(f"{allocator} of {most}", allocator, most, peak_bytes) for allocator, most in kinds]
    nothing = plan.rule("nothing", POOL, 1)
    for at, file in enumerate([path, *others]):
        module = plan.module(file, is_program=at == 0)
        begin, end = code_ends(file)
        calls = {(address - begin) // step for address in call_sites(file)}
        for piece, address in enumerate(range(begin, end, step)):
            if piece not in calls:
                plan.range(module, address, min(address + step, end), chance.choice(serving) if chance.random() < 0.5 else nothing)
    return plan


@functools.cache
def call_sites(path):
    """Returns the return addresses of the calls of malloc, calloc, realloc and operator new in a file."""
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
    found, is_after_call = [], False
    for line in listed.splitlines():
        address, _, code = line.strip().partition(":")
        if not code.strip() or " " in address:
            continue
        if is_after_call:
            found.append(int(address, 16))
        called = code.split("<")[-1].split("@")[0].rstrip(">")
        is_after_call = "call" in code and called in ("malloc", "calloc", "realloc", "_Znwm", "_Znam")
    return found


def all_callers(path, allocator, block_bytes=16384, peak_bytes=0):
    """Returns a plan with one rule, to which all callers in a program belong."""
    plan = Plan()
    rule = plan.rule("all", allocator, block_bytes, peak_bytes)
    module = plan.module(path, is_program=True)
    for address in call_sites(path):
        plan.caller(module, address, rule)
    return plan


def code_of(path):
    """Returns the functions of a file: {name: (begin, end)}."""
    listed = subprocess.run(["nm", "-S", "--defined-only", path], capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return {row[3]: (int(row[0], 16), int(row[0], 16) + int(row[1], 16))
            for row in rows if len(row) == 4 and row[2] in "tTwW"}


def calls_in(path, function, called):
    """Returns the return addresses of the calls of `called` in a function."""
    begin, end = code_of(path)[function]
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={begin}",
                             f"--stop-address={end}", path], capture_output=True, text=True).stdout
    found, is_after_call = [], False
    for line in listed.splitlines():
        address, _, code = line.strip().partition(":")
        if not code.strip() or " " in address:
            continue
        if is_after_call:
            found.append(int(address, 16))
        is_after_call = "call" in code and code.split("<")[-1].split("@")[0].rstrip(">") == called
    return found


def indirect_calls_in(path, function):
    """Returns the return addresses of the calls through pointers in a function."""
    begin, end = code_of(path)[function]
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={begin}",
                             f"--stop-address={end}", path], capture_output=True, text=True).stdout
    rows = [line.strip().partition(":") for line in listed.splitlines() if line.startswith(" ")]
    return [int(after[0], 16) for row, after in zip(rows, rows[1:]) if re.search(r"call\w* +\*", row[2])]
