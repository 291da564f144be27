//! Tests `mallard record`, `doctor` and `import` with programs, directories and files that they
//! cannot use.
//!
//! The tests need the recorder (MALLARD_RECORDER has its path) and a C compiler. `./x test` builds the
//! recorder and runs them.

use crate::support::{skip, Folder, Ran, MALLARD, THREE_BLOCKS};
use mallard_trace::tables::schema::THREADS;
use mallard_trace::Trace;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_missing_program_gives_status_127_and_an_unrecordable_one_126() {
    let folder = Folder::new();
    folder.mallard(&["record", "--", "no-such-program"]).refuses(127, "there is no program");
    folder.mallard(&["record", "--", "/no/such/program"]).refuses(127, "there is no program");
    folder.mallard(&["record", "--quite", "--", "true"]).refuses(2, "there is no option '--quite'");
    folder.mallard(&["record", "--", "/"]).refuses(126, "/ is a directory");
    fs::write(folder.path("text"), "just text").unwrap();
    folder.mallard(&["record", "--", "./text"]).refuses(126, "is not executable");
    let set_mode = |name: &str, mode| {
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode("text", 0o755);
    folder.mallard(&["record", "--", "./text"]).refuses(126, "neither an ELF program nor a script");
    folder.mallard(&["record", "--", "text"]).refuses(127, "mallard record -- ./text");
    fs::write(folder.path("text"), "#!/no/interpreter\n").unwrap();
    folder.mallard(&["record", "--", "./text"]).refuses(126, "/no/interpreter does not exist");
    let cut = fs::read(folder.compile("three", THREE_BLOCKS, &[])).unwrap();
    fs::write(folder.path("text"), &cut[..cut.len() / 2]).unwrap();
    folder.mallard(&["record", "--", "./text"]).refuses(126, "corrupt or truncated");

    let fixed = folder.compile("fixed", THREE_BLOCKS, &["-static"]);
    folder.mallard(&["record", "--", &fixed]).refuses(126, "linked statically");
    let pie = folder.compile("static_pie", THREE_BLOCKS, &["-static-pie"]);
    folder.mallard(&["record", "--", &pie]).refuses(126, "linked statically");
    let asan = folder.compile("asan", THREE_BLOCKS, &["-fsanitize=address"]);
    folder.mallard(&["record", "--", &asan]).refuses(126, "sanitizer");
    let own = "#include <stddef.h>\nvoid* malloc(size_t n) { (void)n; return 0; }\nint main(void) { return 0; }";
    let own = folder.compile("own", own, &[]);
    folder.mallard(&["record", "--", &own]).refuses(126, "its own malloc");

    // A note that Go's compiler writes into the file identifies a Go program.
    fs::write(folder.path("note"), "id").unwrap();
    let note = ["--add-section", ".note.go.buildid=note", "fixed", "go"];
    assert!(folder.command("objcopy").args(note).status().unwrap().success());
    folder.mallard(&["record", "--", "./go"]).refuses(126, "Go");
    let doctor = folder.mallard(&["doctor", "./go"]);
    assert_eq!(doctor.status(), 126);
    assert!(doctor.out().contains("no        ./go"), "{}", doctor.out());
    assert_eq!(folder.mallard(&["doctor", "sh"]).status(), 0);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn record_and_doctor_warn_about_scripts_that_start_other_programs() {
    let folder = Folder::new();
    for (line, what) in [
        ("#!/bin/sh", "it is a script of sh, and what it starts is not recorded"),
        ("#!/usr/bin/env -S perl -w", "it is a script of perl, and what env starts is not"),
    ] {
        fs::write(folder.path("script"), format!("{line}\nexit\n")).unwrap();
        fs::set_permissions(folder.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
        let doctor = folder.mallard(&["doctor", "./script"]);
        assert!(doctor.status() == 0 && doctor.out().contains(what), "{}", doctor.out());
        let help = "help: mallard record --follow fork,exec -- ./script";
        assert!(doctor.out().contains(help), "{}", doctor.out());
        let ran = folder.mallard(&["record", "--", "./script"]);
        assert!(ran.status() == 0 && ran.errors().contains(what), "{}", ran.errors());
        let followed = folder.mallard(&["record", "--follow", "fork,exec", "--", "./script"]);
        assert!(!followed.errors().contains(what), "{}", followed.errors());
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_set_user_id_program_is_rejected() {
    let folder = Folder::new();
    let program = folder.compile("three", THREE_BLOCKS, &[]);
    let somebody = nix::unistd::Uid::from_raw(nix::unistd::getuid().as_raw() + 1);
    if nix::unistd::chown(Path::new(&program), Some(somebody), None).is_err() {
        return skip("only root may give files away");
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    folder.mallard(&["record", "--", &program]).refuses(126, "set-user-ID");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn record_overwrites_no_file_without_force() {
    let folder = Folder::new();
    for expected in ["true.mallard", "true.2.mallard", "true.3.mallard"] {
        assert_eq!(folder.mallard(&["record", "--", "true"]).status(), 0);
        assert!(folder.path(expected).is_dir(), "{expected}");
    }
    folder.mallard(&["record", "-o", "true", "--", "true"]).refuses(125, "exists already");
    assert_eq!(folder.mallard(&["record", "--force", "-o", "true", "--", "true"]).status(), 0);
    // Even --force does not overwrite a directory that is not a trace.
    fs::create_dir(folder.path("mine.mallard")).unwrap();
    folder
        .mallard(&["record", "--force", "-o", "mine", "--", "touch", "started"])
        .refuses(125, "is not a trace");
    assert!(!folder.path("started").exists());
    folder.mallard(&["record", "-o", "no/such/folder", "--", "true"]).refuses(125, "cannot write");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_recording_that_cannot_start_leaves_no_event_log_and_names_the_limit() {
    // How many file descriptors mallard itself needs depends on those that it inherits.
    let refused = (4..12).filter(|files| {
        let folder = Folder::new();
        let script = format!("ulimit -n {files}; exec '{MALLARD}' record -q -o few -- true");
        let ran = Ran(folder.command("sh").args(["-c", &script]).output().unwrap());
        let errors = ran.errors();
        let is_refused = errors.contains("not started") || errors.contains("did not run");
        if is_refused {
            ran.refuses(125, "too many open files");
            assert!(errors.contains("help: ulimit -n"), "{errors}");
            assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0, "{errors}");
        }
        is_refused
    });
    assert!(refused.count() >= 2);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_full_disk_stops_the_recording_but_not_the_program() {
    let folder = Folder::new();
    fs::create_dir(folder.path("small")).unwrap();
    // The script mounts a file system of 256 KiB in a mount namespace.
    let script = format!(
        "mount -t tmpfs -o size=256k tmpfs small || exit 77; cd small; '{MALLARD}' record -- \
         perl -e 'my %h; $h{{$_ % 5000}} .= $_ for 1..300000; print scalar(%h)'"
    );
    let unshared = folder.command("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap();
    let ran = Ran(unshared);
    if ran.out().is_empty()
        && (ran.errors().contains("mount:") || ran.errors().contains("unshare:"))
    {
        return skip("no mount namespace");
    }
    assert_eq!(ran.out(), "5000", "{}", ran.errors());
    let errors = ran.errors();
    assert!(
        errors.contains("could not be written") || errors.contains("no trace was written"),
        "{errors}"
    );
    assert!(errors.contains("help: ") || errors.contains("next: "), "{errors}");
    // The stream file contains only the first events.
    assert!(!errors.contains("mallard: the events were recorded"), "{errors}");
}

/// A program that limits its address space to 200 MiB, and allocates 5 blocks that are too large
/// for every malloc.
const LIMITED: &str = r#"
#include <stdlib.h>
#include <sys/resource.h>
int main(void) {
    struct rlimit limit = {200 << 20, 200 << 20};
    setrlimit(RLIMIT_AS, &limit);
    int failed = 0;
    for (int i = 0; i < 5; ++i) failed += malloc((size_t)1 << 62) == NULL;
    return failed;
}
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn failed_allocations_and_a_limit_that_may_cause_them_are_reported() {
    let folder = Folder::new();
    let program = folder.compile("limited", LIMITED, &[]);
    let ran = folder.mallard(&["record", "--", &program]);
    assert_eq!(ran.status(), 5, "{}", ran.errors());
    assert!(ran.errors().contains("  5 allocations failed"), "{}", ran.errors());
    let limit = "the program may use 200 MiB of address space, of which the recorder takes 257 MiB";
    assert!(ran.errors().contains(limit), "{}", ran.errors());
    let stats = folder.mallard(&["stats", "limited"]).out();
    assert!(stats.contains("5 allocations failed"), "{stats}");

    // If a limit is known when the program starts, the ring is made smaller.
    let script = format!("ulimit -v 800000; exec '{MALLARD}' record -o small -- {program}");
    let ran = Ran(folder.command("sh").args(["-c", &script]).output().unwrap());
    assert!(ran.errors().contains("of which the recorder takes 98 MiB"), "{}", ran.errors());
}

#[test]
fn files_that_are_not_a_trace_or_event_log_are_rejected() {
    let folder = Folder::new();
    folder.mallard(&["stats", "nothing"]).refuses(3, "there is no trace nothing.mallard");
    fs::create_dir(folder.path("empty.mallard")).unwrap();
    folder.mallard(&["sites", "empty"]).refuses(3, "is not a trace");
    fs::write(folder.path("file"), "text").unwrap();
    folder.mallard(&["stats", "file"]).refuses(3, "is a file, but a trace is a directory");
    folder.mallard(&["import", "file"]).refuses(3, "is not an event log");
    folder.mallard(&["import", "missing"]).refuses(3, "cannot open missing");
    folder.mallard(&["import", "empty.mallard"]).refuses(3, "is a directory, not an event log");
    folder.mallard(&["sites"]).refuses(2, "no trace was named");
    folder
        .mallard(&["sites", "empty", "--filter", "("])
        .refuses(2, "not a valid regular expression");
    folder.mallard(&["record"]).refuses(2, "");
    folder.mallard(&["record", "--sample", "much", "--", "true"]).refuses(2, "the size");
    folder.mallard(&["record", "--window", "9s..1s", "--", "true"]).refuses(2, "the window");
}

#[test]
fn a_directory_with_the_name_of_a_trace_does_not_hide_the_trace() {
    let folder = Folder::new();
    fs::create_dir(folder.path("app")).unwrap(); // such as the sources of the program `app`
    folder.mallard(&["record", "-q", "-o", "app", "--", "true"]).out();
    assert!(folder.mallard(&["stats", "app"]).out().contains("program         true"));
    folder.mallard(&["diff", "app", "app"]).out();
    fs::remove_dir_all(folder.path("app.mallard")).unwrap();
    folder.mallard(&["stats", "app"]).refuses(3, "app is not a trace");
}

/// A program that names its thread, allocates, prints its arguments, and adds a letter to a file `runs`.
const PRINTS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
static void* work(void* name) {
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < 500; ++i) free(malloc(70001));
    return NULL;
}
int main(int count, char** words) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, "vierzehn byte\xc3\xa4");
    pthread_join(thread, NULL);
    for (int i = 1; i < count; ++i) printf("[%s]\n", words[i]);
    FILE* runs = fopen("runs", "a");
    fputc('r', runs);
    return fclose(runs);
}
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn paths_arguments_and_names_of_any_bytes_are_kept_and_can_be_pasted() {
    let folder = Folder::new();
    let program = folder.compile("prints", PRINTS, &["-O1", "-pthread"]);
    let odd = folder.0.path().join(OsStr::from_bytes(b"d\xff it's\nx"));
    fs::create_dir(&odd).unwrap();
    let path = odd.join(OsStr::from_bytes(b"pr \xfe(og"));
    fs::rename(&program, &path).unwrap();
    let words: [&[u8]; 3] = [b"a\xffb", b"it's\nme", b"$x `y` \""];
    let words = words.map(OsStr::from_bytes);
    let mut command = folder.command(MALLARD);
    command.args(["record", "-o", "t", "--"]).arg(&path).args(words);
    let ran = Ran(command.output().unwrap());
    assert_eq!(ran.status(), 0, "{}", ran.errors());

    // The path in the trace leads to the file with the names of functions.
    let sites = folder.mallard(&["sites", "t", "--top", "1"]).out();
    assert!(sites.contains("work  prints.c:"), "{sites}");
    let threads = Trace::open(&folder.path("t.mallard")).unwrap().table(&THREADS).unwrap();
    // The kernel has cut the name in the middle of the last character or after it.
    let names = threads.texts("name").unwrap();
    assert!(names.iter().any(|name| name.starts_with("vierzehn byte")), "{names:?}");

    // If the user pastes the line of `stats`, a shell runs the program with the same arguments.
    let stats = folder.mallard(&["stats", "t"]).out();
    let line = stats.lines().next().unwrap().strip_prefix("program").unwrap();
    let pasted = folder.command("bash").args(["-c", line.trim()]).output().unwrap();
    let mut own = std::process::Command::new(&path);
    let own = own.args(words).current_dir(folder.0.path()).output().unwrap();
    assert_eq!(pasted.stdout, own.stdout, "{line}");

    // The trace contains how to run the program again.
    let runs = || fs::metadata(folder.path("runs")).unwrap().len();
    let before = runs();
    let advice = folder.mallard(&["advise", "--budget", "10s", "t"]);
    assert!(runs() > before, "{}", advice.out());
}
