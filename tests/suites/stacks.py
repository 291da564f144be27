"""Makes plans for about half of the call stacks of a program, at random."""
import gzip
import random
import struct
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plan"))
import plan_file  # noqa: E402

# How many frames distinguish the call stacks of a caller. A caller with at least `many_stacks` call stacks gets more.
few_frames, many_frames, many_stacks = (1, 2, 3, 4, 64), (4, 6, 8, 16, 64), 20
frames_max = 64    # frames of a stack in a plan
stacks_max = 4000  # a plan has at most a million frames, and each process reads all of them


def varint(data, at):
    """Returns a number of a protobuf message, and where the next field begins."""
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Yields (number, value) of each field of a protobuf message. A value is a number, or the bytes of a text, of a
    message or of packed numbers."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            at += value
            value = data[at - value:at]
        yield key >> 3, value


def numbers(packed):
    at, found = 0, []
    while at < len(packed):
        value, at = varint(packed, at)
        found.append(value)
    return found


def recorded(profile):
    """Reads what `mallard export --format pprof --full` wrote. Returns the call stacks as lists of places, the caller
    first. A place is the path of a file and the offset of a return address in the file."""
    samples, mappings, locations, texts = [], {}, {}, []
    for kind, value in fields(gzip.decompress(Path(profile).read_bytes())):
        if kind == 2:
            samples.append(next((numbers(part) for number, part in fields(value) if number == 1), []))
        elif kind == 3:
            entry = dict(fields(value))
            mappings[entry[1]] = entry
        elif kind == 4:
            entry = dict(fields(value))
            locations[entry[1]] = (entry.get(2, 0), entry.get(3, 0))
        elif kind == 6:
            texts.append(value.decode(errors="replace"))

    def place(location):
        mapping, address = locations[location]
        if not mapping:
            return None, 0
        of = mappings[mapping]
        return texts[of.get(5, 0)], address + 1 - of.get(2, 0) + of.get(4, 0)

    places = {location: place(location) for location in locations}
    return [[places[location] for location in sample[:frames_max]] for sample in samples]


def segments(path):
    """Returns (offset, bytes, address) of each segment from which a file is loaded, or nothing if it is not an ELF
    file."""
    data = Path(path).read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return []
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, at + i * size) for i in range(count)]
    return [(offset, in_file, address) for kind, _, offset, address, _, in_file, _, _ in headers if kind == 1]


class Modules:
    """The files of a plan. Converts places to addresses in these files."""

    def __init__(self, plan, paths):
        self.plan = plan
        self.number = {path: number for number, path in enumerate(paths)}
        self.segments = {path: segments(path) for path in paths}
        self.found = {}

    def address(self, place):
        """Returns the number of the file and the address of a place, or None if the plan cannot contain the place."""
        if place not in self.found:
            self.found[place] = self.look_up(*place)
        return self.found[place]

    def look_up(self, path, offset):
        if path is None or not Path(path).is_file() and path not in self.number:
            return None
        if path not in self.number:
            self.number[path] = self.plan.module(path)
            self.segments[path] = segments(path)
        for begin, size, address in self.segments[path]:
            if begin < offset <= begin + size:
                return self.number[path], offset - begin + address
        return None


def half_of(program, libraries, stacks, seed):
    """Returns a plan, the number of recorded call stacks that its rules serve, and the number of those in the plan.

    Half of the recorded call stacks have a rule, and malloc serves the others. Call stacks that were not recorded
    belong to random ranges of the code."""
    chance = random.Random(seed)
    plan = plan_file.half(program, seed, libraries)
    serving = range(len(plan.rules) - 1)  # the last one serves nothing
    modules = Modules(plan, [program, *libraries])
    of_caller = defaultdict(set)
    for stack in chance.sample(stacks, min(len(stacks), stacks_max)):
        places = [modules.address(place) for place in stack]
        known = places.index(None) if None in places else len(places)
        if known:
            of_caller[places[0]].add(tuple(places[:known]))
    served = count = 0
    for (module, address), of in sorted(of_caller.items()):
        frames = chance.choice(few_frames if len(of) < many_stacks else many_frames)
        own = sorted({stack[:frames] for stack in of})
        answers = [chance.choice(serving) if chance.random() < 0.5 else plan_file.MALLOC for _ in own]
        served += sum(answer != plan_file.MALLOC for answer in answers)
        count += len(own)
        if frames == 1:
            plan.caller(module, address, answers[0])
            continue
        plan.caller(module, address, plan_file.BY_STACK + frames)
        for stack, answer in zip(own, answers):
            plan.stack(answer, stack)
    return plan, served, count
