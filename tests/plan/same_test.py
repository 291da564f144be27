#!/usr/bin/env python3
"""Tests that programs do the same under any plan. `same_test.py DIRECTORY [unittest arguments]`

Each program runs without a plan, under a plan for all of its code, under one for half of its call stacks, and then
under plans for random parts of its code. Its output and its status must be the same. MALLARD_SEEDS is the number
of plans for each program; `./x test` uses a few.
"""
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import plan_file  # noqa: E402
import plan_test  # noqa: E402
from plan_test import Case, Result, allocators, built  # noqa: E402

seeds = int(os.environ.get("MALLARD_SEEDS", "2"))


def libraries_of(path):
    """Returns the C++ runtime and other libraries of a program, but not the C library."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    found = [line.split("=> ")[1].split()[0] for line in listed.splitlines() if "=> /" in line]
    return [library for library in found if not re.search(r"/(libc|ld-linux[^/]*|libm|libpthread|libdl)\.so", library)]


def plans(path, count, block_bytes=16384):
    """Yields (description, plan): for all code, for half of all call stacks with rules of all kinds, and for
    random parts of the code with each allocator in turn."""
    others = libraries_of(path)
    for seed, allocator in zip(range(count), itertools.cycle([2, None, 3, 4, 1])):
        if allocator is None:
            yield f"{Path(path).name}: half, seed {seed}", plan_file.half(path, seed, others, peak_bytes=0 if seed == 1 else 100_000)
            continue
        chance = random.Random(seed)
        share = (lambda address: True) if seed == 0 else (lambda address: chance.random() < 0.5)
        bytes_max = 128 if allocator == 1 and block_bytes > 128 else block_bytes
        peak = 0 if seed % 3 < 2 else 100_000
        plan = plan_file.whole(path, allocator, share, others, block_bytes=bytes_max, peak_bytes=peak)
        yield f"{Path(path).name}: {allocators[allocator]}, seed {seed}", plan


class Same(Case):
    def check(self, path, *words, count=seeds, clean=lambda out: out, serves=True, **options):
        path = shutil.which(path) or path
        bare = Result([path, *words], **options)
        for name, plan in plans(os.path.realpath(path), count):
            with self.subTest(name, words=words):
                result = Result([path, *words], plan=plan, **{**options, "preload": [plan_test.library, *options.get("preload", [])]})
                for status, out, err in filter(None, (result.all(), result.uncounted)):
                    self.assertEqual((status, clean(out), clean(err)), (bare.status, clean(bare.out), clean(bare.err)))
                if serves:
                    self.assertGreater(sum(rule["blocks"] for report in result.reports for rule in report["rules"]), 0)

    def google_test(self, name, leave_out=""):
        path = built(f"../malloc/malloc-{name}")
        if not Path(path).exists():
            self.skipTest("tests/malloc is not built")
        self.check(path, f"--gtest_filter=-{leave_out}", "--gtest_print_time=0",
                   env={"MALLARD_TEST_LENGTH": os.environ.get("MALLARD_TEST_LENGTH", "10")}, clean=lambda out: re.sub(r"\d+ ms", "", out))

    def test_alignment(self):
        # Before version 2.38, the C library rounds the alignment up instead of failing.
        self.google_test("alignment", "*aligned_alloc_fails_for_an_invalid_alignment")

    def test_fork(self):
        # The C library's malloc hangs in this test.
        self.google_test("fork", "*works_in_a_signal_handler_while_threads_allocate")

    def test_limits(self):
        self.google_test("limit")

    def test_operators(self):
        # The aligned operators of libstdc++ 12 round a very large size up to 0.
        self.google_test("operators", "*throws_or_returns_null_for_too_many_bytes")

    def test_random_calls(self):
        self.google_test("random")

    def test_realloc(self):
        self.google_test("realloc")

    def test_sizes(self):
        self.google_test("sizes")

    def test_threads(self):
        self.google_test("threads")

    def test_programs_of_malloc(self):
        directory = built("../malloc")
        for name, *words in (("bad_alloc",), ("resolver",), ("early_and_late",), ("no_keys_left",), ("mappings",), ("lock_all",),
                             ("late_runtime", f"{directory}/libmalloc-plugin-use_new.so"),
                             ("many_plugins", f"{directory}/libmalloc-plugin-use_plugin.so"),
                             ("deep_plugin", "libmalloc-plugin-exchange_blocks.so"), ("survive", "all")):
            path = f"{directory}/malloc-{name}"
            if Path(path).exists():
                self.check(path, *words, serves=False)

    def test_programs_of_the_recorder(self):
        directory = built("../record")
        acts, plugin = f"{directory}/record-acts", f"{directory}/librecord-plugin.so"
        for name in ("family", "operators", "early", "resolver", "marks"):
            self.check(f"{directory}/record-{name}", serves=False)
        self.check(f"{directory}/record-early", serves=False, env={"PLUGIN": plugin})
        self.check(f"{directory}/record-news", "100", "4000", serves=False)
        for words in (("fork",), ("clone",), ("vfork",), ("exec",), ("spawn",), ("quick_exit",), ("bomb", "6"),
                      ("fork_of_threads",), ("close_all",), ("live_threads", "300"), ("short_threads", "2000"),
                      ("late_frees",), ("threads", "4"), ("plugin", plugin), ("deep", "20000"), ("errno",),
                      ("many", "120000")):
            self.check(acts, *words, serves=False, count=max(1, seeds // 2))
        self.check(acts, "forks_in_calls", serves=False, preload=[f"{directory}/librecord-forks.so"])
        self.check(acts, "signals", serves=False, preload=[f"{directory}/librecord-handler_memory.so"],
                   clean=lambda out: re.sub(r"\d+", "", out))

    def real(self, program, *words, **options):
        if not shutil.which(program):
            self.skipTest(f"there is no {program}")
        self.check(program, *words, env={"LC_ALL": "C"}, **options)

    def test_perl(self):
        self.real("perl", "-e", """
            my %h; $h{$_ * 7919 % 30007} .= 'x' x ($_ % 100) for 1 .. 60000;
            my $n = 0; $n += length $h{$_} for keys %h; print "$n\\n";
            print join(',', (sort { $a <=> $b } keys %h)[0 .. 99]), "\\n";
            my $t = join ' ', map { "word$_" } 1 .. 20000; my @f = $t =~ /(\\w+7\\b)/g; print scalar(@f), "\\n";""")

    def test_python(self):
        script = """if True:
            import collections, hashlib, json, re, threading
            rows = [{'a': i, 'b': str(i * 7919 % 1000) * (i % 20), 'c': [i] * (i % 9)} for i in range(10000)]
            text = json.dumps(rows)
            assert json.loads(text) == rows
            print(hashlib.sha256(text.encode()).hexdigest(), len(re.findall(r'7+', text)))
            print(collections.Counter(text).most_common(5))
            threads = [threading.Thread(target=lambda: [dict.fromkeys(range(500)) for _ in range(100)]) for _ in range(8)]
            [t.start() for t in threads]; [t.join() for t in threads]
            try:
                [0] * (1 << 60)
            except MemoryError:
                print('no memory')"""
        if not Path("/usr/bin/python3").exists():
            self.skipTest("there is no /usr/bin/python3")
        for malloc in ("malloc", "pymalloc"):
            self.check("/usr/bin/python3", "-c", script, env={"PYTHONMALLOC": malloc, "PYTHONHASHSEED": "0"}, count=max(1, seeds // 2))

    def test_sqlite(self):
        self.real("sqlite3", ":memory:", said="""
            create table t(a integer primary key, b text, c real);
            with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)
                insert into t select i, 'row ' || (i * 7919 % 30000), i / 3.0 from n;
            create index tb on t(b);
            select count(*), sum(length(b)), round(sum(c)) from t where b like 'row 1%';
            delete from t where a % 3 = 0;
            select b, count(*) from t group by substr(b, 1, 6) order by 2 desc, 1 limit 20;
            update t set b = b || b; vacuum; pragma integrity_check;
            select group_concat(b) from (select b from t order by b limit 2000);""")

    def test_bash(self):
        self.real("bash", "-c", """
            declare -A a; for i in {1..5000}; do a[$((i * 7919 % 1000))]+="x$i"; done; n=0
            for k in "${!a[@]}"; do n=$((n + ${#a[$k]})); done; echo $n
            (for i in {1..200}; do echo "$i"; done) | sort -n | while read l; do s=$s$l; echo ${#s}; done | tail -1
            ulimit -v 1000000; echo $(echo inner); f() { local x=$1; [ $x -gt 0 ] && f $((x - 1)); }; f 200; echo $?
            exec /bin/echo the end""")

    def test_git(self):
        if not shutil.which("git"):
            self.skipTest("there is no git")
        with tempfile.TemporaryDirectory() as place:
            script = f"""set -e; cd {place}; rm -rf a b; git init -q a; cd a
                export GIT_AUTHOR_DATE='1 Jan 2020 00:00 +0000' GIT_COMMITTER_DATE='1 Jan 2020 00:00 +0000'
                export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
                for i in 1 2 3 4 5; do seq $i 3000 >f$i; seq 1 $((i * 700)) >g; git add .; git commit -qm $i; done
                git repack -adfq --threads=2; git fsck --full 2>/dev/null; cd ..; git clone -q --no-local a b; cd b
                git log -p --stat | sha256sum; git rev-parse HEAD"""
            path = os.path.realpath(shutil.which("git"))
            bare = Result(["sh", "-c", script])
            for name, plan in plans(path, seeds):
                with self.subTest(name):
                    result = Result(["sh", "-c", script], plan=plan)
                    self.assertEqual(result.all(), bare.all())
                    self.assertGreater(len(result.reports), 15)


if __name__ == "__main__":
    plan_test.folder = Path(sys.argv.pop(1)).resolve()
    plan_test.main()
