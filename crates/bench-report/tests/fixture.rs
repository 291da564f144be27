//! Makes results like those of the suites, which are published figures plus noise. Also makes a
//! directory with the layout of Mallard's tree, in which the command runs.

use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A missing figure, because the process ran out of memory.
const FAIL: f64 = f64::NAN;

/// A generator of noise that is the same in every run.
pub struct Noise(u64);

impl Noise {
    pub fn new() -> Noise {
        Noise(12345)
    }
    /// Returns a random factor from 0.95 to 1.05.
    fn factor(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        0.95 + (self.0 >> 40) as f64 / (1u64 << 24) as f64 / 10.0
    }
}

/// Makes one result. A NaN figure becomes a FAIL.
pub fn row(suite: &str, case: &str, contender: &str, metric: &str, figure: f64) -> Value {
    let mut row = json!({"suite": suite, "case": case, "contender": contender, "threads": 1,
        "metric": metric, "median": figure, "low": figure * 0.98, "high": figure * 1.02,
        "runs": 9, "commit": "1234567", "machine": "Test CPU, 4 CPUs, L1d 32 KiB",
        "command": format!("./x bench {suite} --json")});
    if figure.is_nan() {
        row["median"] = Value::Null;
        row["runs"] = json!(0);
        row["why"] = json!("FAIL: out of memory");
    }
    row
}

fn of_variant(mut row: Value, variant: &str) -> Value {
    row["variant"] = json!(variant);
    row
}

fn of_threads(mut row: Value, threads: u32) -> Value {
    row["threads"] = json!(threads);
    row
}

pub fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/published")
}

fn records(file: &str) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(published().join(file)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

fn figure(text: &str) -> f64 {
    if text == "FAIL" {
        FAIL
    } else {
        text.parse().unwrap()
    }
}

fn ours(strategy: u32) -> String {
    if strategy <= 2 {
        format!("glibc-2.36/AS{strategy}")
    } else {
        format!("mallard/AS{strategy}")
    }
}

/// Makes the results of one allocator in one case: time, and the metrics measured with it.
fn costs(out: &mut Vec<Value>, suite: &str, case: &str, contender: &str, ns: f64, variant: &str) {
    out.push(of_variant(row(suite, case, contender, "ns_per_op", ns), variant));
    let kib = 4000.0 * (1.0 + ns.log2().abs() / 8.0);
    out.push(of_variant(row(suite, case, contender, "peak_rss_kib", kib.round()), variant));
}

/// Makes the results of lakos1. AS1 needs 1 / `faster` of the time in Lakos's talk, so gains are
/// smaller.
pub fn lakos1(out: &mut Vec<Value>, noise: &mut Noise) {
    for r in records("lakos_benchmark1.csv") {
        let case = format!("{}/2^{}", r["data_structure"], r["log2_size"]);
        for variant in ["faithful", "corrected"] {
            let ns = |n: u32| figure(&r[&format!("AS{n}_s")]) * 1e9 / (1u64 << 27) as f64;
            for n in 1..=14 {
                let today = if n <= 2 { 0.2 } else { 0.4 };
                costs(out, "lakos1", &case, &ours(n), ns(n) * today * noise.factor(), variant);
            }
            for (peer, figure) in [
                ("mallard/malloc/AS1", ns(1) * 0.19),
                ("mimalloc-2.0.9/AS1", ns(1) * 0.21),
                ("jemalloc-5.3.0/AS1", ns(1) * 0.25),
                ("libstdc++-pmr-12/AS5", ns(5) * 0.42),
                ("libstdc++-pmr-12/AS9", ns(9) * 0.6),
                ("boost-container-1.74/AS5", ns(5) * 0.35),
                ("foonathan-0.7.3/AS3", ns(3) * 0.45),
            ] {
                costs(out, "lakos1", &case, peer, figure * noise.factor(), variant);
            }
        }
    }
}

pub fn lakos2(out: &mut Vec<Value>, noise: &mut Noise) {
    for r in records("lakos_benchmark2.csv") {
        if r["local_allocators"] == "ratio" {
            continue;
        }
        let without = r["local_allocators"] == "without";
        for i in 0..=8 {
            let case = format!("2^{}/S=2^{}/I=2^{i}", r["log2_G"], r["log2_S"]);
            let talk = figure(&r[&format!("I_2^{i}")]);
            let contenders: &[&str] = if without {
                &["glibc-2.36/AS1", "mimalloc-2.0.9/AS1"]
            } else {
                &["mallard/AS7", "mallard/AS11", "libstdc++-pmr-12/AS9"]
            };
            for contender in contenders {
                let value = talk * 0.8 * noise.factor();
                for variant in ["faithful", "corrected"] {
                    let degradation = row("lakos2", &case, contender, "degradation", value);
                    out.push(of_variant(degradation, variant));
                }
                let access = row("lakos2", &case, contender, "ns_per_op", value * 2.0);
                out.push(of_variant(access, "corrected"));
            }
        }
    }
    for r in records("lakos_benchmark2_diffusion.csv") {
        for n in 0..=9 {
            let case = format!("diffusion/S=10^{}/shuffles={n}", r["log10_S"]);
            let value = figure(&r[&format!("shuffles_{n}")]) * noise.factor();
            let diffusion = row("lakos2", &case, "glibc-2.36/AS1", "degradation", value);
            out.push(of_variant(diffusion, "faithful"));
        }
    }
}

pub fn lakos34(out: &mut Vec<Value>, noise: &mut Noise) {
    for (suite, file) in [("lakos3", "lakos_benchmark3.csv"), ("lakos4", "lakos_benchmark4.csv")] {
        for r in records(file) {
            let names: &[&str] = if suite == "lakos3" { &["T", "M", "S"] } else { &["I", "S"] };
            let powers = names.iter().map(|n| format!("{n}=2^{}", r[&format!("log2_{n}")]));
            let mut case = powers.collect::<Vec<_>>().join("/");
            let threads = r.get("W").map_or(1, |w| w.parse().unwrap());
            if suite == "lakos4" {
                case += &format!("/W={threads}");
            }
            let base = figure(&r["AS1_s"]) * 0.5;
            for (variant, metric, unit) in
                [("faithful", "seconds", 1.0), ("corrected", "ns_per_op", 40.0)]
            {
                let mut put = |contender: &str, value: f64| {
                    let made = row(suite, &case, contender, metric, value * unit * noise.factor());
                    out.push(of_threads(of_variant(made, variant), threads));
                };
                put("glibc-2.36/AS1", base);
                put("mimalloc-2.0.9/AS1", base * 0.8);
                put("mallard/malloc/AS1", base * 0.7);
                put("libstdc++-pmr-12/AS9", base * 0.9);
                for n in [2, 3, 5, 7, 9, 11, 13] {
                    let share = figure(&r[&format!("AS{n}_pct_of_AS1")]) / 100.0;
                    put(&ours(n), base * share);
                }
                if suite == "lakos3" && variant == "corrected" {
                    put("mallard/AS3+reset", base * 0.2);
                }
            }
        }
    }
    for kind in ["shared", "remote"] {
        for threads in [1, 2, 4] {
            for (contender, ns) in
                [("glibc-2.36/AS1", 50.0), ("mallard/AS7", 20.0), ("libstdc++-pmr-12/AS9", 90.0)]
            {
                let case = format!("{kind}/S=2^6/W={threads}");
                let made = row("lakos4", &case, contender, "ns_per_op", ns * f64::from(threads));
                out.push(of_threads(of_variant(made, "corrected"), threads));
            }
        }
    }
}

pub fn lakos5(out: &mut Vec<Value>, noise: &mut Noise) {
    for part in ["DS1", "DS2", "DS7"] {
        for (index, condition) in
            ["clean", "freed=1/1", "freed=1/2", "freed=1/4", "freed=1/8"].iter().enumerate()
        {
            for (contender, ns) in
                [("glibc-2.36/AS1", 40.0), ("mallard/AS3", 9.0), ("mallard/AS7", 12.0)]
            {
                let case = format!("{part}/2^10/{condition}");
                let worse =
                    if contender.starts_with("glibc") { 1.0 + index as f64 / 5.0 } else { 1.0 };
                costs(out, "lakos5", &case, contender, ns * worse * noise.factor(), "corrected");
            }
        }
    }
}

/// Makes the results of a suite with threads, a bound, and losses.
pub fn others(out: &mut Vec<Value>, noise: &mut Noise) {
    for threads in [1, 2, 4, 8] {
        for (contender, ns, kib) in [
            ("glibc-2.36", 30.0, 900.0),
            ("mimalloc-2.0.9", 14.0, 2000.0),
            ("mallard/malloc", 11.0, 700.0),
        ] {
            let case = format!("pair/64B/T{threads}");
            let value = ns * f64::from(threads) * noise.factor();
            out.push(of_threads(row("malloc", &case, contender, "ns_per_op", value), threads));
            out.push(of_threads(row("malloc", &case, contender, "peak_rss_kib", kib), threads));
        }
    }
    for (contender, ns) in [
        ("glibc-2.36", 15.0),
        ("boost-pool-1.74", 3.0),
        ("limit/inline-list", 0.5),
        ("mallard/none/lifo", 1.0),
    ] {
        out.push(row("pool", "pair/64B", contender, "ns_per_op", ns));
        // Mallard loses in this case, because it needs twice as long as boost.
        let lost = if contender.starts_with("mallard") { 6.0 } else { ns };
        out.push(row("pool", "lost/64B", contender, "ns_per_op", lost));
    }
    for (contender, ns) in [("glibc-2.36/Box", 9.0), ("mallard/ObjectPool", 3.0)] {
        let made = row("crates", "fastalloc/i32/1000", contender, "ns_per_op", ns);
        out.push(of_variant(made, "faithful"));
    }
    for (contender, ns) in [("glibc-2.36", 18.0), ("mallard/pool/none", 2.0)] {
        let made = row("seeds", "pbr-0.2.0/bulk/alloc", contender, "ns_per_op", ns);
        out.push(of_variant(made, "faithful"));
    }
}

pub fn everything() -> Vec<Value> {
    let (mut out, mut noise) = (Vec::new(), Noise::new());
    lakos1(&mut out, &mut noise);
    lakos2(&mut out, &mut noise);
    lakos34(&mut out, &mut noise);
    lakos5(&mut out, &mut noise);
    others(&mut out, &mut noise);
    out
}

/// Makes results of every suite with few sizes, for tests of the layout.
pub fn a_part() -> Vec<Value> {
    let skipped = |case: &str| {
        let size = case.rsplit("/2^").next().and_then(|s| s.parse::<u32>().ok());
        let subsystem =
            case.split("/S=2^").nth(1).and_then(|s| s.split('/').next()?.parse::<u32>().ok());
        case.starts_with("DS") && size.is_some_and(|s| s % 5 != 1)
            || case.contains("/I=2^") && subsystem.is_some_and(|s| s % 4 != 1)
    };
    everything().into_iter().filter(|r| !skipped(r["case"].as_str().unwrap())).collect()
}

/// Copies the results for another machine.
pub fn elsewhere(rows: &[Value]) -> Vec<Value> {
    let moved = |r: &Value| {
        let mut r = r.clone();
        r["machine"] = json!("Other CPU, 2 CPUs, L1d 48 KiB");
        r
    };
    rows.iter().map(moved).collect()
}

pub fn lines(rows: &[Value]) -> String {
    rows.iter().map(|r| format!("{r}\n")).collect()
}

/// A directory with bench/published and with the given files in results/.
pub struct Tree {
    pub folder: tempfile::TempDir,
}

impl Tree {
    pub fn new() -> Tree {
        let tree = Tree { folder: tempfile::tempdir().unwrap() };
        let to = tree.folder.path().join("bench/published");
        fs::create_dir_all(&to).unwrap();
        fs::create_dir_all(tree.folder.path().join("docs")).unwrap();
        for entry in fs::read_dir(published()).unwrap() {
            let from = entry.unwrap().path();
            fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
        }
        let seeds = "suite,case,contender,metric,value,unit,source\n\
            seeds,pbr-0.2.0/bulk/alloc,pbr-0.2.0/pool,ns_per_op,6.857,ns,pbr v0.2.0 report\n\
            seeds,pbr-0.2.0/bulk/alloc,pbr/malloc,ns_per_op,75.529,ns,pbr v0.2.0 report\n";
        fs::write(to.join("seeds.csv"), seeds).unwrap();
        tree
    }

    pub fn with(rows: &[Value]) -> Tree {
        let tree = Tree::new();
        tree.write("results/test/rows.jsonl", &lines(rows));
        tree
    }

    /// Makes a tree with the results and the published figures of the repository. Returns `None` if
    /// the results do not exist, as in a release.
    pub fn of_repository() -> Option<Tree> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let tree = Tree::new();
        fs::copy(published().join("seeds.csv"), tree.path("bench/published/seeds.csv")).unwrap();
        std::os::unix::fs::symlink(root.join("results"), tree.path("results")).unwrap();
        tree.path("results").exists().then_some(tree)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the HTML page, with its packed parts unpacked.
    pub fn html(&self) -> String {
        use base64::Engine;
        use std::io::Read;
        let html = self.read("build/performance.html");
        let mut parts = html.split("<script class=\"packed\" type=\"text/plain\">");
        let mut whole = parts.next().unwrap().to_string();
        for part in parts {
            let (packed, rest) = part.split_once("</script>").unwrap();
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed).unwrap();
            flate2::read::DeflateDecoder::new(&bytes[..]).read_to_string(&mut whole).unwrap();
            whole += rest;
        }
        whole
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_in("2000", arguments)
    }

    /// Runs the command in a terminal with this number of columns.
    pub fn run_in(&self, columns: &str, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench-report"));
        command.env("COLUMNS", columns).args(arguments).current_dir(self.folder.path());
        Ran(command.output().unwrap())
    }
}

/// The output of a command, and its exit status.
pub struct Ran(Output);

impl Ran {
    pub fn status(&self) -> i32 {
        self.0.status.code().unwrap()
    }
    pub fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }
    pub fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }
    pub fn ok(self) -> String {
        assert_eq!(self.status(), 0, "{}", self.err());
        self.out()
    }
    /// Checks that the command failed with status 2 and an error of three lines.
    pub fn fails(&self, what: &str) {
        let text = self.err();
        assert_eq!(self.status(), 2, "{text}");
        assert!(text.contains(what), "'{what}' is not in: {text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("mallard: ") && lines[2].starts_with("  help: "), "{text}");
    }
}

/// The file to which `./x bench report` writes all answers as text.
pub const PAGE: &str = "build/performance.md";

/// The short page.
pub const SHORT: &str = "docs/performance.md";

/// Returns the Markdown page of some results, and the tree in which it was made.
pub fn report(rows: &[Value]) -> (Tree, String) {
    let tree = Tree::with(rows);
    tree.run(&["report"]).ok();
    let text = tree.read(PAGE);
    (tree, text)
}

/// The pages of `./x bench report`: all answers as text, and the HTML page.
pub struct Pages {
    pub text: String,
    pub html: String,
}

impl Pages {
    fn of(rows: &[Value]) -> Pages {
        let (tree, text) = report(rows);
        Pages { text, html: tree.html() }
    }

    /// Returns the pages of [`everything`], which are made once for all tests.
    pub fn of_everything() -> &'static Pages {
        static PAGES: OnceLock<Pages> = OnceLock::new();
        PAGES.get_or_init(|| Pages::of(&everything()))
    }

    /// Returns the pages of [`a_part`], which are made once for all tests.
    pub fn of_a_part() -> &'static Pages {
        static PAGES: OnceLock<Pages> = OnceLock::new();
        PAGES.get_or_init(|| Pages::of(&a_part()))
    }
}

/// Returns the lines of a section.
pub fn section<'a>(text: &'a str, title: &str) -> &'a str {
    let start =
        text.find(&format!("\n### {title}\n")).unwrap_or_else(|| panic!("no {title}: {text}"));
    let rest = &text[start + 1..];
    &rest[..rest[4..].find("\n##").map_or(rest.len(), |end| end + 4)]
}

/// Returns the first line that begins with a text.
pub fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|l| l.starts_with(start)).unwrap_or_else(|| panic!("no {start}: {text}"))
}
