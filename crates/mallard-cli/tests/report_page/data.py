"""Makes report data for the browser test of the page, in the form that `mallard report --json` prints.

The data are made up, but the same in each run. The figures are consistent: the sites add up to the
totals, and the details of a site add up to the site.
"""
import base64
import math
import random

import advice_data

MODULES = ["words", "libstdc++.so.6", "libc.so.6", "libtokens.so", "libindex.so"]
FILES = ["", "main.cpp", "parser.cpp", "index.cpp", "cache.cpp", "stl_vector.h"]
VERBS = ["parse", "read", "index", "insert", "intern", "split", "merge", "render", "load", "grow", "copy", "fold"]
NOUNS = ["unit", "line", "token", "word", "table", "entry", "page", "buffer", "node", "document", "cache", "key"]
SIZES = [f"{2 ** i} B" for i in range(4, 10)] + [f"{2 ** i} KiB" for i in range(0, 10)] + ["1 MiB", "larger"]
LIVES = ["< 1 us", "< 10 us", "< 100 us", "< 1 ms", "< 10 ms", "< 100 ms", "< 1 s", "< 10 s", "never freed"]
WEIGHTS = ["bytes", "count", "peak", "short", "never", "cross"]
WORDS = {
    "d": ("density", "calls/ms", "Calls for each millisecond of CPU time. A high value means that speed matters. n counts calls."),
    "v": ("variation", "bits", "How much the sizes differ. 0 if all are of one size class. n counts blocks."),
    "l": ("locality", "ratio", "Which share of the pages that the blocks touch is theirs. 1 is best. n counts blocks."),
    "u": ("utilisation", "ratio", "The maximum of bytes in use, divided by all bytes. An arena would need 1/U times the memory. n counts blocks."),
    "c": ("contention", "ratio", "How many other threads were inside a call. 0 with one thread. n counts calls."),
    "f": ("fragmentability", "ratio", "Which share of the pages is not filled. Near 1 if each block is alone. n counts blocks."),
}
RUN_NS = 4_200_000_000


class Strings:
    """The table of texts. `of` returns the index of a text."""

    def __init__(self):
        self.all, self.places = [], {}

    def of(self, text):
        if text not in self.places:
            self.places[text] = len(self.all)
            self.all.append(text)
        return self.places[text]


class Stacks:
    """The tree of call stacks in preorder, and its frames."""

    def __init__(self, strings):
        self.strings, self.up, self.frame = strings, [0], [-1]
        self.frames = {"func": [], "module": [], "file": [], "line": [], "passes": []}
        self.known = {}

    def frame_of(self, func, module, file="", line=-1, passes=0):
        key = (func, module, file, line)
        if key not in self.known:
            self.known[key] = len(self.known)
            columns = (self.strings.of(func) if func else -1, self.strings.of(module),
                       self.strings.of(file) if file else -1, line, passes)
            for name, value in zip(self.frames, columns):
                self.frames[name].append(value)
        return self.known[key]

    def add(self, parent, frame):
        self.frame.append(frame)
        self.up.append(len(self.frame) - 1 - parent)
        return len(self.frame) - 1


def grow(stacks, rng, count, depth_most):
    """Grows a tree, and returns the nodes that allocate. Each ends in a function that only passes the allocation on."""
    new = stacks.frame_of("operator new(unsigned long)", "libstdc++.so.6", passes=1)
    start = stacks.add(0, stacks.frame_of("_start", "words"))
    main = stacks.add(start, stacks.frame_of("main", "words", "main.cpp", 20))
    functions = [f"{v}_{n}" for v in VERBS for n in NOUNS]
    functions += [f"std::vector<{n}, std::allocator<{n}>>::_M_realloc_insert" for n in NOUNS]
    ends, path = [], [main]
    while len(ends) < count:
        del path[rng.randint(max(1, len(path) - 4), len(path)):]
        for _ in range(rng.randint(1, 4)):
            if len(path) < depth_most:
                place = min(len(functions) - 1, int(rng.expovariate(0.03)))
                frame = stacks.frame_of(functions[place], MODULES[place % 5], FILES[place % 6], 10 + len(ends) * 7 % 900)
                path.append(stacks.add(path[-1], frame))
        ends.append(stacks.add(path[-1], new))
    return ends


def sizes_and_lives(rng):
    """Returns where in the heat map the blocks of a site are, as a few neighbouring cells with shares."""
    size, life = min(17, int(rng.expovariate(0.25))), min(8, int(abs(rng.gauss(2, 2.2))))
    cells = {}
    for _ in range(4):
        cell = min(8, max(0, life + rng.randint(-1, 1))) * len(SIZES) + min(17, max(0, size + rng.randint(-1, 1)))
        cells[cell] = cells.get(cell, 0) + rng.random() + 0.05
    return cells


def shared(total, parts):
    """Divides an integer among parts in proportion, so that the sum is exact."""
    whole = sum(parts)
    out = [int(total * part / whole) for part in parts]
    out[0] += total - sum(out)
    return out


def one_site(rng, site, threads):
    count = max(1, int(2_000_000 / (site + 1) ** 0.9 * (0.5 + rng.random())))
    cells = sizes_and_lives(rng)
    heat = dict(zip(cells, shared(count, list(cells.values()))))
    size = sum(n * 2 ** (4 + cell % len(SIZES)) for cell, n in heat.items()) // count
    never = sum(n for cell, n in heat.items() if cell // len(SIZES) == 8)
    short = sum(n for cell, n in heat.items() if cell // len(SIZES) == 0)
    cross = int((count - never) * rng.choice([0, 0, 0, 0.1, 0.6])) if threads > 1 else 0
    return {"heat": heat, "bytes": size * count, "count": count, "peak": size * (never + count // 90), "short": short,
            "never": never * size, "cross": cross, "frees": count - never, "reallocs": count // 20,
            "call_ns": count * 40, "size_p50": size, "size_max": size * 8,
            "life_p50": -1 if never * 2 > count else int(10 ** (2.5 + sum(c // len(SIZES) for c in cells) / len(cells)))}


def measure_columns(rng, sites):
    measured = [i for i, site in enumerate(sites) if site["count"] >= 20_000]
    out = {"measured": measured}
    for letter in WORDS:
        scale = {"d": 3000, "v": 4, "c": 30}.get(letter, 1)
        value = [float(f"{rng.random() * scale:.4g}") for _ in measured]
        out[letter] = value
        out[letter + "_lo"] = [float(f"{v * 0.93:.4g}") for v in value]
        out[letter + "_hi"] = [float(f"{v * 1.06:.4g}") for v in value]
        out[letter + "_n"] = [sites[i]["count"] for i in measured]
    return out


def over_time(peak):
    t = [RUN_NS * i // 799 for i in range(800)]
    live = [int(peak * (0.2 + 0.8 * math.sin(math.pi * min(1, x / RUN_NS * 1.25)) ** 0.7 + 0.03 * math.sin(x / 9e7)) / 1.03)
            if x else 0 for x in t]
    live[live.index(max(live))] = peak
    high, parts = 0, {name: [] for name in ("live", "rounding", "fragmented", "kept", "code", "stacks")}
    for i, bytes_ in enumerate(live):
        high = max(high * 0.999, bytes_ * 1.3)
        rounding, gaps = bytes_ * 0.11, bytes_ * (0.05 + 0.12 * i / 800)
        for name, value in zip(parts, (bytes_, rounding, gaps, max(0, high - bytes_ - rounding - gaps), peak * 0.06, peak * 0.025)):
            parts[name].append(int(value))
    resident = [sum(p[i] for p in parts.values()) for i in range(800)]
    resident[5] = None
    return {"t_ns": t, "live": live, "resident": resident, "split": parts}


def address_map(rng, cells=1400):
    moments, fill = [RUN_NS * i // 39 for i in range(40)], []
    base = [rng.random() ** 0.4 for _ in range(cells)]
    for i in range(40):
        reach = cells * (0.25 + 0.75 * math.sin(math.pi * i / 42))
        rows = bytes(int(255 * base[c] * (1 if c < reach * 0.7 else 0.35)) if c < reach else 0 for c in range(cells))
        fill.append(base64.b64encode(rows).decode())
    step = 1 << 15
    ranges = [[f"{0x5581_0000_0000:x}", f"{0x5581_0000_0000 + 900 * step:x}"], [f"{0x7f10_0000_0000:x}", f"{0x7f10_0000_0000 + (cells - 900) * step:x}"]]
    return {"moments": moments, "cells": cells, "bytes_per_cell": step, "ranges": ranges, "fill": fill, "peak": 20}


def pairs_of_cells(rng, cells=1400):
    """Returns run-length pairs of a site's addresses, which form two ranges."""
    out, left = [], cells
    for value in (0, rng.randint(40, 255), 0, rng.randint(40, 255), 0):
        run = rng.randint(20, 250)
        while run > 0 and left > 0:
            step = min(255, run, left)
            out += [step, value]
            run, left = run - step, left - step
    while left > 0:
        out += [min(255, left), 0]
        left -= min(255, left)
    return base64.b64encode(bytes(out)).decode()


def details(rng, sites, threads):
    chosen = range(min(300, len(sites)))
    live_t = [RUN_NS * i // 99 for i in range(100)]
    rise = [math.sin(math.pi * min(1, i / 80)) for i in range(100)]
    frees = []
    for i in chosen:
        own, other = i % threads, (i + 1) % threads
        frees.append([own, own, sites[i]["frees"] - sites[i]["cross"]] + ([own, other, sites[i]["cross"]] if sites[i]["cross"] else []))
    return {"sites": list(chosen), "live_t": live_t, "live": [[int(sites[i]["peak"] * r) for r in rise] for i in chosen],
            "heat": [[x for pair in sorted(sites[i]["heat"].items()) for x in pair] for i in chosen],
            "frees": frees, "map": [pairs_of_cells(rng) for _ in chosen]}


def whole_heat(sites):
    counts, sums = [0] * (len(SIZES) * len(LIVES)), [0] * (len(SIZES) * len(LIVES))
    for site in sites:
        for cell, n in site["heat"].items():
            counts[cell] += n
            sums[cell] += n * 2 ** (4 + cell % len(SIZES))
    return {"sizes": SIZES, "lives": LIVES, "all": counts, "bytes": sums}


def report(count=400, threads=6, depth=24, seed=7):
    """Returns the data of a program with this number of sites."""
    rng, strings = random.Random(seed), Strings()
    stacks = Stacks(strings)
    ends = grow(stacks, rng, count, depth)
    rng.shuffle(ends)
    sites = [one_site(rng, i, threads) for i in range(count)]
    total = {key: sum(site[key] for site in sites) for key in WEIGHTS + ["frees", "reallocs"]}
    columns = {key: [site[key] for site in sites] for key in sites[0] if key != "heat"}
    frees = {}
    for i, site in enumerate(sites):
        for to, n in ((i % threads, site["frees"] - site["cross"]), ((i + 1) % threads, site["cross"])):
            frees[i % threads, to] = frees.get((i % threads, to), 0) + n
    names = [strings.of(name) for name in ["main", "reader", "indexer 1", "indexer 2", "writer", "cache"][:threads]]
    return {
        "version": 1, "name": "words", "strings": strings.all,
        "program": {"command": "./words --index /srv/texts/english --threads 4 --out words.idx --minimum 3 --stop-words /srv/texts/stop.txt --verbose",
                    "started": "2026-11-24T09:12:44Z", "duration_ns": RUN_NS, "status": "0", "host": "build-7", "cpu": "an 8-core processor",
                    "kernel": "Linux 6.1", "libc": "glibc 2.36", "allocator": "glibc 2.36", "threads": threads, "processes": 1},
        "sentences": [
            "In 4.2 s the program allocated 1.9 GiB in 8.4 million blocks, half of them at most 48 B.",
            "At most 412 MiB were in use at the same time, after 2.1 s; `parse_unit` held 31 % of that.",
            "61 % of the blocks were freed before their thread allocated another.",
            "2 % of the blocks were never freed: 11 MiB, mostly from `intern_word`."],
        "bound": "malloc, free and page faults took at most 6.1 % of the CPU: no allocator can save more, except by better locality.",
        "totals": {"events": total["count"] + total["frees"] + total["reallocs"], "allocs": total["count"], "bytes": total["bytes"],
                   "frees": total["frees"], "reallocs": total["reallocs"], "peak_bytes": total["peak"], "peak_t": RUN_NS // 2,
                   "live_bytes": total["never"], "live_allocs": total["count"] - total["frees"], "peak_rss": int(total["peak"] * 1.4)},
        "time": over_time(total["peak"]),
        "stacks": {"up": stacks.up, "frame": stacks.frame}, "frames": stacks.frames, "weights": WEIGHTS,
        "sites": {"node": ends, "rest": -1, **columns, **measure_columns(rng, sites)},
        "detail": details(rng, sites, threads), "heat": whole_heat(sites),
        "threads": {"name": names, "tid": list(range(4000, 4000 + threads)), "allocs": [0] * threads, "frees": [0] * threads},
        "frees": [x for (a, b), n in frees.items() if n for x in (a, b, n)],
        "map": address_map(rng),
        "measures": [{"key": key, "name": name, "unit": unit, "words": words} for key, (name, unit, words) in WORDS.items()],
        "method": {"mallard": "0.1.0", "format": 1, "losses": [], "sampled_bytes": 0, "own_cost": "1.4 times the CPU time",
                   "notes": ["The times of calls are those of the recorded run."]},
        "next": "mallard replay words --allocator mallard", "advice": advice_data.advice(), "regions": advice_data.regions(),
    }


def no_events():
    """Returns a trace in which nothing was recorded, so every column is empty."""
    return {"version": 1, "name": "nothing", "strings": [], "program": {"command": "true", "status": "0"},
            "sentences": ["The program allocated nothing."], "bound": "", "totals": {}, "time": {"t_ns": [], "live": [], "resident": [], "split": {}},
            "stacks": {"up": [0], "frame": [-1]}, "frames": {}, "sites": {}, "detail": {}, "heat": {"sizes": SIZES, "lives": LIVES, "all": [], "bytes": []},
            "threads": {}, "frees": [], "map": {}, "measures": [], "method": {"losses": ["12 events of a thread that was killed"]}, "next": "mallard record"}


def one_event():
    """Returns a trace with one block of 24 bytes that is never freed, without symbols and without samples of memory."""
    data = report(count=1, threads=1)
    cells = [0] * (len(SIZES) * len(LIVES))
    cells[8 * len(SIZES) + 1] = 1
    return {**data, "name": "one", "strings": ["", "/bin/one"], "time": {"t_ns": [5000], "live": [24], "resident": [None], "split": {}},
            "stacks": {"up": [0, 1], "frame": [-1, 0]}, "frames": {"func": [-1], "module": [1], "file": [-1], "line": [-1], "passes": [0]},
            "sites": {"node": [1], "rest": -1, "measured": [], "bytes": [24], "count": [1], "peak": [24], "short": [0], "never": [24], "cross": [0],
                      "frees": [0], "size_p50": [24], "size_max": [24], "life_p50": [-1]},
            "totals": {"events": 1, "allocs": 1, "bytes": 24, "frees": 0, "peak_bytes": 24, "peak_t": 5000, "live_bytes": 24, "live_allocs": 1},
            "detail": {"sites": [0], "live_t": [5000], "live": [[24]], "heat": [[8 * len(SIZES) + 1, 1]], "frees": [[]], "map": [""]},
            "heat": {"sizes": SIZES, "lives": LIVES, "all": cells, "bytes": [24 * c for c in cells]}, "frees": [],
            "threads": {"name": [-1], "tid": [77], "allocs": [1], "frees": [0]}, "map": {}}


def hostile(text):
    """Returns data in which every text tries to inject HTML."""
    data = report(count=30, threads=2)
    data["strings"] = [f"{text}{i}" for i, _ in enumerate(data["strings"])]
    data["program"] = {key: text for key in data["program"]} | {"threads": 2, "processes": 1, "duration_ns": 5}
    data["sentences"] = [text] * 4
    data["name"] = data["bound"] = data["next"] = text
    data["method"]["notes"], data["method"]["losses"] = [text], [text]
    data["measures"] = [{**measure, "name": text, "words": text} for measure in data["measures"]]
    return data
