//! Tests `mallard record`, `stats`, `sites`, `import` and `doctor` with real programs.
//!
//! The tests need `libmallard-record.so`, whose path is in MALLARD_RECORDER, and a C compiler.
//! `./x test` builds the recorder and runs them.

use crate::support::{until, Folder, Ran, MALLARD, THREE_BLOCKS};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_recording_has_every_block_with_its_call_stack() {
    let folder = Folder::new();
    let program = folder.compile("three", THREE_BLOCKS, &[]);
    let ran = folder.mallard(&["record", "--", &program, "an argument"]);
    assert_eq!(ran.status(), 7, "{}", ran.errors());
    assert!(ran.errors().contains("lost: nothing"), "{}", ran.errors());
    assert!(ran.errors().contains("next: mallard sites three.mallard"), "{}", ran.errors());
    let manifest = folder.manifest("three.mallard");
    assert_eq!(manifest["counts"]["allocations"], 3, "{manifest}");
    assert_eq!(manifest["counts"]["frees"], 2);
    assert_eq!(manifest["totals"]["sites"]["live_bytes"], 333);
    assert_eq!(manifest["notes"]["arguments"][1], "an argument");
    assert!(!folder.path("three.stream").exists());

    let sites = folder.mallard(&["sites", "three", "--json", "--sort", "leaked"]).out();
    let first: Value = serde_json::from_str(sites.lines().next().unwrap()).unwrap();
    assert_eq!(first["bytes"], 333, "{first}");
    assert_eq!(first["functions"][0]["function"], "make");
    assert_eq!(first["functions"][1]["function"], "main");
    assert!(first["functions"][1]["file"].as_str().unwrap().ends_with("three.c"), "{first}");

    let table = folder.mallard(&["sites", "three.mallard", "--filter", "make", "--top", "2"]).out();
    assert!(table.starts_with("2 of 3 call stacks"), "{table}");
    assert!(table.contains("three.c:4") && table.contains("next: "), "{table}");
    let stats = folder.mallard(&["stats", "three.mallard", "--explain"]).out();
    assert!(stats.contains("never freed     333 B in 1 block\n"), "{stats}");
    assert!(stats.contains("too few observations") && stats.contains("fragmentability"), "{stats}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_status_and_the_output_of_the_program_are_passed_on() {
    let folder = Folder::new();
    let ran = folder.mallard(&[
        "record",
        "-q",
        "-o",
        "a",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 42",
    ]);
    assert_eq!((ran.status(), ran.out(), ran.errors()), (42, "out\n".into(), "err\n".into()));
    let killed = folder.mallard(&["record", "-o", "b", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status(), 128 + 9, "{}", killed.errors());
    assert!(killed.errors().contains("ended by signal 9"), "{}", killed.errors());
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_summary_in_json_has_the_bound_and_the_losses() {
    let folder = Folder::new();
    // The long loop makes the share of the allocations small, so that it is known even where
    // recording slows calls down.
    let work = "my ($s, %h); $h{$_} = $_ for 1..20000; $s += $_ for 1..3e6";
    let ran = folder.mallard(&["record", "--json", "--", "perl", "-e", work]);
    let summary: Value = serde_json::from_str(&ran.errors()).unwrap();
    assert!(summary["events"].as_u64().unwrap() > 10_000, "{summary}");
    assert_eq!(summary["events_lost"], 0);
    let bound = summary["bound"].as_f64().unwrap();
    assert!(bound > 0.0 && bound < 0.5, "{summary}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_program_with_its_own_operator_new_causes_a_warning() {
    let folder = Folder::new();
    let source = r#"
        #include <string>
        static char pool[1 << 20];
        static size_t used;
        void* operator new(size_t n) { return pool + (used += (n + 15) / 16 * 16); }
        void operator delete(void*) noexcept {}
        void operator delete(void*, size_t) noexcept {}
        int main(int count, char**) { return std::string(100 * count, 'a').size() == 0; }
    "#;
    fs::write(folder.path("own.cpp"), source).unwrap();
    let warns = |name: &str| {
        let program = folder.compile_file(name, &folder.path(&format!("{name}.cpp")), &[]);
        let doctor = folder.mallard(&["doctor", &program]);
        assert!(doctor.out().contains("can be recorded"), "{}", doctor.out());
        let recorded = folder.mallard(&["record", "--", &program]);
        assert_eq!(recorded.status(), 0, "{}", recorded.errors());
        let warning = "its own operator new";
        [doctor.out().contains(warning), recorded.errors().contains(warning)]
    };
    assert_eq!(warns("own"), [true, true]);
    let usual: Vec<&str> = source.lines().filter(|line| !line.contains("operator")).collect();
    fs::write(folder.path("usual.cpp"), usual.join("\n")).unwrap();
    assert_eq!(warns("usual"), [false, false]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn new_and_delete_operators_of_a_malloc_library_are_timed() {
    let folder = Folder::new();
    let library = r#"
        #include <cstddef>
        static char pool[1 << 20];
        void* operator new(std::size_t n) { static std::size_t used; return pool + (used += (n + 15) / 16 * 16); }
        void operator delete(void*) noexcept {}
        void operator delete(void*, std::size_t) noexcept {}
    "#;
    let program = "int main() { for (int i = 0; i < 32000; ++i) delete new int(i); }";
    fs::write(folder.path("library.cpp"), library).unwrap();
    fs::write(folder.path("program.cpp"), program).unwrap();
    let library = folder.path("liboperators.so");
    folder.compile_file("liboperators.so", &folder.path("library.cpp"), &["-shared", "-fPIC"]);
    let flags = ["-O0", library.to_str().unwrap()];
    let program = folder.compile_file("program", &folder.path("program.cpp"), &flags);
    let recorded = folder.mallard(&["record", "--", &program]);
    assert_eq!(recorded.status(), 0, "{}", recorded.errors());
    assert!(!recorded.errors().contains("were timed"), "{}", recorded.errors());
    let manifest = folder.manifest("program.mallard");
    let all = &manifest["totals"]["sites"];
    let (allocations, timed) =
        (all["allocs"].as_i64().unwrap(), all["timed_calls"].as_i64().unwrap());
    assert!(allocations >= 32_000 && timed.abs_diff(allocations / 16) <= 2, "{manifest}");
    assert!(manifest["notes"]["ns_per_free"].as_f64() > Some(0.0), "{manifest}");
    assert!(folder.mallard(&["stats", "program"]).out().contains("an allocation takes"));
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn recordings_that_begin_at_the_same_time_have_different_names() {
    let folder = Folder::new();
    let start = || folder.command(MALLARD).args(["record", "-q", "--", "true"]).spawn().unwrap();
    let running: Vec<_> = (0..5).map(|_| start()).collect();
    for mut mallard in running {
        assert!(mallard.wait().unwrap().success());
    }
    let mut names: Vec<String> = fs::read_dir(folder.path("")).unwrap().map(name_of).collect();
    names.sort();
    let expected = ["true.2", "true.3", "true.4", "true.5", "true"].map(|n| format!("{n}.mallard"));
    assert_eq!(names, expected);
}

fn name_of(entry: std::io::Result<fs::DirEntry>) -> String {
    entry.unwrap().file_name().into_string().unwrap()
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn signals_sent_to_mallard_are_forwarded_to_the_program() {
    let folder = Folder::new();
    let script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut mallard = folder
        .command(MALLARD)
        .args(["record", "-o", "a", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(mallard.stdout.take().unwrap());
    assert_eq!(line_of(&mut out), "ready");
    let process = nix::unistd::Pid::from_raw(mallard.id() as i32);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(line_of(&mut out), "caught");
    let ran = Ran(mallard.wait_with_output().unwrap());
    assert_eq!(ran.status(), 9, "{}", ran.errors());
}

/// Returns the next line that a program prints.
fn line_of(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim_end().to_string()
}

/// A program that allocates and frees forever, and prints its process id after 10,000 blocks.
const BUSY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    for (long i = 1;; ++i) {
        void* volatile p = malloc(i % 500 + 1);
        free(p);
        if (i == 10000) { printf("%d\n", getpid()); fflush(stdout); }
    }
}
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_program_that_is_killed_at_any_moment_leaves_a_complete_trace() {
    let folder = Folder::new();
    let program = folder.compile("busy", BUSY, &[]);
    for moment in 0..10u64 {
        let script = format!(
            "{program} & sleep 0.0{}; kill -9 $!; wait $! 2>/dev/null; exit 0",
            moment * 8 + 10
        );
        let ran = folder.mallard(&[
            "record",
            "--force",
            "-o",
            "a",
            "--follow",
            "fork,exec",
            "--",
            "sh",
            "-c",
            &script,
        ]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        let manifest = folder.manifest("a.mallard");
        assert_eq!(manifest["counts"]["unknown_frees"], 0, "{manifest}");
        assert_eq!(manifest["counts"]["missed_frees"], 0, "{manifest}");
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn if_mallard_is_killed_the_event_log_remains_and_the_program_continues() {
    let folder = Folder::new();
    let program = folder.compile("busy", BUSY, &[]);
    let mut mallard = folder
        .command(MALLARD)
        .args(["record", "-o", "a", "--", &program])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let program = line_of(&mut BufReader::new(mallard.stdout.take().unwrap())).parse().unwrap();
    let stream = folder.path("a.stream");
    let is_written = || fs::metadata(&stream).ok().filter(|file| file.len() > 1 << 16);
    until("events in the stream", is_written);
    mallard.kill().unwrap();
    mallard.wait().unwrap();
    let program = nix::unistd::Pid::from_raw(program);
    nix::sys::signal::kill(program, nix::sys::signal::Signal::SIGKILL).expect("it ran on");
    let imported = folder.mallard(&["import", "a.stream", "--no-symbols"]);
    assert_eq!(imported.status(), 0, "{}", imported.errors());
    let stats = folder.mallard(&["stats", "a"]);
    assert!(stats.out().contains("lost            all later events"), "{}", stats.out());
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn forks_and_execs_are_recorded_on_request() {
    let folder = Folder::new();
    let script = "perl -e 'my @a = (1..2000)' & perl -e 'my @a = (1..2000)'; wait";
    let processes = |follow: &[&str]| {
        let arguments =
            [&["record", "--force", "-o", "a"], follow, &["--", "sh", "-c", script]].concat();
        assert_eq!(folder.mallard(&arguments).status(), 0);
        folder.manifest("a.mallard")["totals"]["processes"].as_u64().unwrap()
    };
    assert_eq!(processes(&[]), 1);
    assert!(processes(&["--follow", "fork,exec"]) >= 3);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn no_bound_is_reported_if_some_programs_were_not_recorded() {
    let folder = Folder::new();
    let work = "perl -e 'my %h; $h{$_} = $_ for 1..20000'";
    fs::write(folder.path("work.sh"), work).unwrap();
    fs::write(folder.path("script"), "#!/usr/bin/env perl\nmy %h; $h{$_} = $_ for 1..20000")
        .unwrap();
    fs::set_permissions(folder.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let child = ["sh", "-c", &format!("{work}; true")];
    for program in [&child[..], &["env", "sh", "work.sh"], &["./script"]] {
        let record = |options: &[&str]| {
            let begin = ["record", "--force", "-o", "a"];
            folder.mallard(&[&begin, options, &["--"], program].concat()).errors()
        };
        let errors = record(&[]);
        assert!(errors.contains("% of the CPU time was used by programs that it runs"), "{errors}");
        assert!(errors.contains("--follow fork,exec -- ") && !errors.contains("no allocator can"));
        let stats = folder.mallard(&["stats", "a"]).out();
        assert!(stats.contains("only a part") && stats.contains("--follow fork,exec"), "{stats}");
        // On a busy machine, the CPU time of a process that has ended may be unknown, or the timed
        // calls may seem to take more than the whole CPU time. So the test checks by the
        // allocations whether the process was recorded.
        let errors = record(&["--follow", "fork,exec"]);
        let manifest = folder.manifest("a.mallard");
        assert!(manifest["counts"]["allocations"].as_u64().unwrap() > 20_000, "{manifest}");
        assert!(!errors.contains("--follow"), "{errors}");
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_time_window_records_a_part_and_sampling_estimates_the_whole() {
    let folder = Folder::new();
    let ran = folder.mallard(&[
        "record",
        "-o",
        "late",
        "--window",
        "100s..",
        "--",
        "perl",
        "-e",
        "my @a = (1..9999)",
    ]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert_eq!(folder.manifest("late.mallard")["counts"]["events"], 0);
    assert_eq!(folder.manifest("late.mallard")["notes"]["window"], "100s..");
    assert!(ran.errors().contains("is unknown: only 100s.. of the run"), "{}", ran.errors());
    let work = ["--", "perl", "-e", "my @a = map { 'x' x 100 } 1..50000"];
    assert_eq!(folder.mallard(&[&["record", "-o", "all"], &work[..]].concat()).status(), 0);
    assert_eq!(
        folder
            .mallard(&[&["record", "-o", "some", "--sample", "16KiB"], &work[..]].concat())
            .status(),
        0
    );
    let bytes = |name: &str| folder.manifest(name)["totals"]["sites"]["bytes"].as_f64().unwrap();
    let events = |name: &str| folder.manifest(name)["counts"]["events"].as_u64().unwrap();
    assert!(events("some.mallard") * 10 < events("all.mallard"));
    let ratio = bytes("some.mallard") / bytes("all.mallard");
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_program_that_closes_all_file_descriptors_is_recorded() {
    let folder = Folder::new();
    let script =
        "import os\nos.closerange(3, 1000)\nx = [str(i) * 50 for i in range(20000)]\nos._exit(3)";
    let ran = folder.mallard(&[
        "record",
        "-o",
        "a",
        "--follow",
        "exec",
        "--",
        "env",
        "PYTHONMALLOC=malloc",
        "python3",
        "-c",
        script,
    ]);
    assert_eq!(ran.status(), 3, "{}", ran.errors());
    assert!(folder.manifest("a.mallard")["counts"]["allocations"].as_u64().unwrap() > 10_000);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_recording_that_reaches_its_size_limit_reports_its_size() {
    let folder = Folder::new();
    let program =
        "my %h; for my $i (1..200) { $h{$_} = $i for 1..500; select(undef, undef, undef, 0.002) }";
    let ran =
        folder.mallard(&["record", "-o", "a", "--max-size", "20KiB", "--", "perl", "-e", program]);
    let lost = "all events after the event log had ";
    assert!(ran.errors().contains(&format!("  lost: {lost}")), "{}", ran.errors());
    assert!(ran.errors().contains("more than the 20 KiB of --max-size"), "{}", ran.errors());
    let stats = folder.mallard(&["stats", "a"]).out();
    assert!(stats.contains(&format!("lost            {lost}")), "{stats}");
}

/// Returns a program whose functions have long names that do not compress. It has 8,000 functions,
/// each of which allocates once.
fn long_names() -> String {
    let name = |number: u64| {
        let digits =
            (1..5).map(|n| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15 << n | n)));
        format!("f_{}", digits.collect::<String>())
    };
    let names: Vec<String> = (1..=8000).map(name).collect();
    let functions =
        names.iter().map(|name| format!("void {name}(void) {{ p = malloc(9); free(p); }}\n"));
    let calls = names.iter().map(|name| format!("{name}();\n"));
    format!(
        "#include <stdlib.h>\nstatic void* volatile p;\n{}int main(void) {{\n{}return 0; }}\n",
        functions.collect::<String>(),
        calls.collect::<String>()
    )
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_trace_exceeds_the_size_limit_by_at_most_a_tenth() {
    let folder = Folder::new();
    let events = "#include <stdlib.h>
        int main(void) {
            static void* blocks[4096];
            for (unsigned i = 0, random = 1; i < 3000000; ++i) {
                random = random * 1664525u + 1013904223u;
                free(blocks[random >> 20]);
                blocks[random >> 20] = malloc((random >> 8) % 2000 + 1);
            }
            return 0;
        }";
    // Each path of calls through f and g is a different call stack.
    let stacks = "#include <stdlib.h>
        static void* volatile p;
        void f(unsigned, int), g(unsigned, int);
        void next(unsigned path, int depth) {
            if (depth == 0) { p = malloc(path % 100 + 1); free(p); return; }
            (path & 1 ? f : g)(path >> 1, depth - 1);
            __asm__ volatile(\"\");
        }
        void f(unsigned path, int depth) { next(path, depth); __asm__ volatile(\"\"); }
        void g(unsigned path, int depth) { next(path, depth); __asm__ volatile(\"\"); }
        int main(void) {
            for (unsigned i = 0, random = 1; i < 500000; ++i) {
                random = random * 1664525u + 1013904223u;
                next(random >> 7, 24);
            }
            return 0;
        }";
    // Every second mapping of the file is unmapped, so that no two are adjacent.
    let mappings = "#include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        int main(int count, char** words) {
            int const file = open(words[0], O_RDONLY);
            for (int i = 0; i < 20000; ++i) {
                char* two = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
                if (i % 8) munmap(two, 4096);
                for (int k = 0; k < 100; ++k) { void* volatile p = malloc(k + i % 5000); free(p); }
            }
            return 0;
        }";
    let size_of = |name: &str| {
        let files = walk(&folder.path(name));
        files.iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>()
    };
    for (name, source) in
        [("events", events), ("stacks", stacks), ("mappings", mappings), ("names", &long_names())]
    {
        let program = folder.compile(name, source, &["-fno-optimize-sibling-calls"]);
        for (text, size) in [("300KiB", 300 << 10), ("1MiB", 1 << 20)] {
            let options = ["record", "--force", "-o", "a", "--max-size", text, "--", &program];
            let ran = folder.mallard(&options);
            assert_eq!(ran.status(), 0, "{}", ran.errors());
            let (is, manifest) = (size_of("a.mallard"), folder.manifest("a.mallard"));
            println!("{name}: {is} of {size}, {} events", manifest["counts"]["events"]);
            assert!(is * 10 <= size * 11, "{name}: {is} bytes, more than {text}");
            assert!(manifest["counts"]["events"].as_u64().unwrap() > 1000, "{name}: {manifest}");
            if manifest["notes"]["stopped"].is_string() {
                let lost = "  lost: all events after the ";
                assert!(ran.errors().contains(lost), "{}", ran.errors());
                assert!(ran.errors().contains(" of --max-size"), "{}", ran.errors());
            } else {
                assert_eq!(name, "names", "{manifest}");
            }
        }
    }
}

/// Returns all files in a directory, including subdirectories.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn the_golden_event_log_is_imported() {
    let folder = Folder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/trace_format.golden");
    let mut file = fs::File::create(folder.path("orders.stream")).unwrap();
    file.write_all(&fs::read(golden).unwrap()).unwrap();
    let ran = folder.mallard(&["import", "orders.stream"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.errors().contains("next: mallard stats orders.mallard"), "{}", ran.errors());
    let table = folder.mallard(&["sites", "orders", "--full"]).out();
    assert!(table.contains("orders of the day, and of the night"), "{table}");
    folder.mallard(&["import", "orders.stream"]).refuses(3, "exist");
}

#[test]
fn man_pages_and_completions_are_written() {
    let folder = Folder::new();
    assert_eq!(folder.mallard(&["pages", "share"]).status(), 0);
    let page = fs::read_to_string(folder.path("share/man/man1/mallard-record.1")).unwrap();
    assert!(page.contains("max\\-size"), "{page}");
    assert!(folder.path("share/bash-completion/completions/mallard").exists());
    for shell in ["bash", "zsh", "fish"] {
        assert!(folder.mallard(&["completions", shell]).out().contains("record"));
    }
    let help = folder.mallard(&["record", "--help"]).out();
    assert!(help.contains("--follow") && help.contains("PROG"), "{help}");
}

/// libstdc++ allocates while the dynamic linker calls the constructors of libraries.
#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn call_stacks_of_library_constructors_are_complete() {
    let folder = Folder::new();
    let file = folder.path("text.cpp");
    let source = "#include <string>\nint main() { return std::string(100, 'x').size() != 100; }";
    fs::write(&file, source).unwrap();
    let program = folder.compile_file("text", &file, &[]);
    let recorded = folder.record(&[], &[&program]);
    assert!(recorded.is_whole(0).blocks.values().sum::<u64>() >= 2);
    assert_eq!(recorded.trace.manifest().repairs.cut_stacks, 0);
}
