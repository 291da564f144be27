"""Makes the advice and the regions of a made-up report: two recommendations, a matrix of changes, three regions."""
import random

RUN_NS = 4_200_000_000
CODE = {"cpp_mallard": "mallard::arena memory;\nrender_document(memory);", "cpp_pmr": "std::pmr::monotonic_buffer_resource memory;",
        "c": "mallard_arena memory;\nmallard_arena_open(&memory);", "rust": "let memory = Arena::new();"}


def part(saving, half=0.02, verdict="gain"):
    return {"saving": saving, "low": saving - half, "high": saving + half, "verdict": verdict}


def convert():
    """Returns a local allocator for a region, as a replay measured it."""
    return {
        "rule": "wink-out-arena", "action": "convert", "strategy": "AS4",
        "strategy_words": "arena, allocator as a type parameter, memory dropped as a whole",
        "region": {"function": "render_document(doc const&)", "shown": "render_document", "file": "render.cpp", "line": 40,
                   "module": "/usr/bin/words", "ends": "sure", "instances": 900, "threads": 3, "inputs": 90, "escapes": 0},
        "saving": {"allocator": part(0.22), "pages": part(0.03, 0.01, "no difference"), "total": part(0.25, 0.015),
                   "expected": {"low": 0.18, "high": 0.34}, "measured_by": "replay"},
        "memory": {"before_bytes": 412 << 20, "after_bytes": 430 << 20, "saving": -0.0437, "low": -0.05, "high": -0.03, "verdict": "loss"},
        "title": "Give each call of render_document an arena, and drop its memory as a whole",
        "sentence": "With a separate allocator for each call of render_document, words would need 18 to 34 % less CPU time.",
        "evidence": ["all 120,000 blocks of a call are freed before the call returns", "the calls of render_document take at most 24 % of the CPU time"],
        "hazards": ["that no block outlives its call was observed, not proven: another input may keep one longer"],
        "why_not": ["AS3 saves 19 % (17 to 21 %)", "mimalloc saves 12 % (11 to 13 %) and changes no code"],
        "destructors_skipped": 120_000, "freed_by": ["Node::~Node"], "code": CODE,
        "check": "mallard verify --before './words.before --index' --after './words --index'", "plan": "[[rule]]\nregion = \"render_document(doc const&)\"\n"}


def switch():
    """Returns another malloc, for which a replay predicted a saving, and which was measured in runs of the program."""
    return {"rule": "another-malloc", "action": "switch", "allocator": "mimalloc",
            "saving": {"allocator": part(0.1), "pages": part(0.01), "total": part(0.12, 0.01), "expected": {"low": 0.11, "high": 0.13}, "measured_by": "try"},
            "title": "Use mimalloc", "sentence": "With mimalloc as its malloc, words needs 11 to 13 % less CPU time.",
            "evidence": ["runs of the program show it"], "hazards": [], "why_not": [], "code": {},
            "how": "mallard run --allocator mimalloc -- ./words", "check": "mallard try --allocator mimalloc -- ./words"}


def row(name, kind, saving, memory, **more):
    before = 412 << 20
    return {"name": name, "label": f"{name} in render_document" if kind == "strategy" else name, "kind": kind, "measured_by": "replay",
            "saving": saving, "low": saving - 0.015, "high": saving + 0.015, "verdict": "gain" if saving > 0.02 else "no difference",
            "expected": {"low": saving * 0.8, "high": saving * 1.4}, "peak_bytes": int(before * (1 - memory)), "base_peak_bytes": before,
            "memory_saving": memory, "memory_low": memory - 0.02, "memory_high": memory + 0.02, "memory_verdict": "loss" if memory < -0.02 else "no difference",
            **({"region": "render_document"} if kind == "strategy" else {}), **more}


def matrix(rng):
    measured = [row(f"AS{n}", "strategy", round(0.3 - 0.02 * n, 3), round(-0.02 * (n % 5), 3)) for n in (3, 4, 7, 11, 12)]
    measured += [row("mimalloc", "malloc", 0.12, -0.08, measured_by="try", predicted={"low": 0.08, "high": 0.16}),
                 row("jemalloc", "malloc", 0.05, 0.04), row("tcmalloc", "malloc", 0.09, -0.3),
                 row("glibc:arenas=1", "variable", -0.01, 0.06), row("glibc:trim=1GiB", "variable", 0.004, -0.01)]
    dropped = [{"name": "AS4", "label": f"AS4 in {name}", "kind": "strategy", "region": name, "dropped": "malloc calls, page faults and frees at its end take at most 1.3 % of the CPU time"}
               for name in ("load_page", "merge_table")]
    dropped += [{"name": f"AS{n}", "label": f"AS{n} in render_document", "kind": "strategy", "region": "render_document",
                 "dropped": f"is the same as AS{n - 2}, but called through a virtual interface"} for n in (5, 6, 9, 13, 14)]
    return measured + dropped


def lanes(rng, threads, count, escapes):
    """Returns instances in the order of time. `escapes` is the share of the instances that have an escaping block."""
    begins = sorted(rng.randrange(RUN_NS * 9 // 10) for _ in range(count))
    blocks = [rng.randint(20, 400) for _ in begins]
    return {"thread": [4000 + rng.randrange(threads) for _ in begins], "t0": begins,
            "took": [int(rng.expovariate(1 / 3e6)) + 5000 for _ in begins], "blocks": blocks, "bytes": [n * 48 for n in blocks],
            "escapes": [rng.randint(1, 9) if rng.random() < escapes else 0 for _ in begins], "teardown": [n * 30 for n in blocks]}


def region(rng, name, threads, ends, escapes):
    drawn = lanes(rng, threads, 300, escapes)
    lost = sum(drawn["escapes"]) * 3
    return {"name": name, "file": "render.cpp", "line": 40, "ends": ends, "instances": 900, "unfinished": 0, "threads": threads, "inputs": 90,
            "blocks": 3 * sum(drawn["blocks"]), "bytes": 3 * sum(drawn["bytes"]), "call_ns": 9e7, "duration_p50": 2.1e6, "peak_p50": 9600, "peak_max": 19200,
            "escapes": lost, "escape_bytes": lost * 48, "foreign_frees": 0, "teardown_ns": 1e7,
            "escape_sites": [{"name": "intern_word", "blocks": lost, "bytes": lost * 48}] if lost else [], "lanes": drawn}


def regions():
    rng = random.Random(11)
    return [region(rng, "render_document", 3, "sure", 0), region(rng, "parse_unit", 4, "drained", 0.1), region(rng, "load_page", 1, "sure", 1)]


def advice():
    """Returns the advice in the form in which the report contains it."""
    return {"program": "./words --index", "verdict": "change", "sentence": convert()["sentence"], "min_gain": 0.02, "budget_s": 120, "took_s": 118.2,
            "interrupted": False, "noisy": False, "bound": {"share": 0.31, "calls": 0.24, "faults": 0.05, "teardown": 0.02},
            "cards": [convert(), switch()], "matrix": matrix(random.Random(5)),
            "verified": {"version": 1, "card": convert()["title"], "cpu": part(0.27, 0.01), "memory": part(-0.04, 0.01, "loss"),
                         "peak_rss_bytes": [412 << 20, 428 << 20], "runs": 40},
            "undecided": ["what jemalloc saves in the program itself: too few runs"], "validity": [], "notes": ["not installed: snmalloc"]}


def hostile(text):
    """Returns advice and regions in which every text tries to inject HTML."""
    def of(value, key=""):
        if isinstance(value, dict):
            return {k: of(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [of(v, key) for v in value]
        return text if isinstance(value, str) and key not in ("verdict", "kind", "measured_by") else value
    return of({**advice(), "forced": {"name": "AS4", "dangling": 3, "sites": [{"function": "f", "blocks": 3, "bytes": 9}]}}), of(regions())
