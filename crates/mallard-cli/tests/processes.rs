//! Tests what `mallard record` reports about processes and threads that end while the recording
//! continues.
//!
//! The tests need `libmallard-record.so`, whose path is in MALLARD_RECORDER, and a C compiler. `./x
//! test` builds the recorder and runs them.

use crate::support::{skip, Folder, Ran, Recording, MALLARD};
use mallard_trace::tables::schema::{EVENTS, PROCESSES};
use mallard_trace::Trace;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MIB: i64 = 1 << 20;

/// A program that allocates as many MiB as its argument says, waits, and exits without a free.
const LEAK: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** words) {
    for (int i = 0; i < 1024 * atoi(words[count - 1]); ++i) memset(malloc(1024), 1, 1024);
    usleep(100000);
}
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn an_exited_process_counts_with_no_memory() {
    let folder = Folder::new();
    let leak = folder.compile("leak", LEAK, &[]);
    let script = format!("{leak} 10; {leak} 10; {leak} 10; true");
    let recording = folder.record(&["--follow", "fork,exec"], &["sh", "-c", &script]);
    recording.is_whole(0);
    let manifest = recording.trace.manifest();
    let peak = manifest.totals.sites.peak_bytes;
    assert!((10 * MIB..15 * MIB).contains(&peak), "{peak}");
    assert!(manifest.totals.sites.live_bytes >= 30 * MIB, "{manifest:?}");
    let processes = recording.trace.table(&PROCESSES).unwrap();
    let ends = processes.i64s("t1").unwrap();
    assert!(ends.len() >= 4 && ends.iter().all(|&end| end > 0), "{ends:?}");
    // The shell is a child of this command, and the programs are children of the shell.
    let statuses = processes.i64s("status").unwrap();
    assert_eq!((statuses[0], statuses[1]), (0, -1), "{statuses:?}");
    // The peak of the resident memory is that of the shell and of one program.
    let resident = manifest.memory.peak.parts.resident;
    assert!((10 * MIB..22 * MIB).contains(&resident), "{resident}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_memory_after_an_exec_is_that_of_the_new_program() {
    let folder = Folder::new();
    let leak = folder.compile("leak", LEAK, &[]);
    let recording = folder.record(&["--follow", "exec"], &["env", &leak, "20"]);
    recording.is_whole(0);
    let end = recording.trace.manifest().memory.end.parts;
    assert!(end.live >= 19 * MIB && end.resident < 30 * MIB, "{end:?}");
}

/// A program whose child allocates long after the program has ended. The child is made by a system
/// call that the recorder does not see, so the recorder knows it only from its first allocation on.
const DAEMON: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) != 0) _exit(0);
    usleep(200000);
    for (int i = 0; i < 5000; ++i) free(malloc(77));
}
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_daemon_is_recorded_although_it_begins_to_allocate_late() {
    let folder = Folder::new();
    let daemon = folder.compile("daemon", DAEMON, &[]);
    let recording = folder.record(&["--follow", "fork"], &[&daemon]);
    assert_eq!(recording.is_whole(0).of([77]), [5000]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_forked_process_that_is_not_recorded_is_reported() {
    let folder = Folder::new();
    let slow = DAEMON.replace("200000", "3000000");
    let daemon = folder.compile("daemon", &slow, &[]);
    let errors = folder.record(&[], &[&daemon]).ran.errors();
    assert!(errors.contains("a process that it forked ran on after it exited"), "{errors}");
    assert!(errors.contains("mallard record --follow fork -- "), "{errors}");
    assert!(!errors.contains("no allocator can save more"), "{errors}");
}

/// A program that uses CPU time in turns of about 50 ms. Depending on its first argument, it then
/// executes itself, or it has forked a child for each turn.
const WORK: &str = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void work(void) {
    clock_t end = clock() + CLOCKS_PER_SEC / 20;
    while (clock() < end) {
        for (volatile int i = 0; i < 10000; ++i) {}
        free(malloc(100));
    }
}
int main(int count, char** words) {
    char how = count > 1 ? words[1][0] : 0;
    for (int i = 0; i < 6; ++i) {
        int child = how == 'f' ? fork() : 0;
        if (child == 0) work();
        if (child == 0 && how == 'f') _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
    }
    if (how == 'e') execl("/proc/self/exe", words[0], NULL);
}
"#;

/// Returns the share of the CPU time that was not recorded, from the manifest.
fn unrecorded(recording: &Recording) -> f64 {
    let notes = &recording.trace.manifest().notes;
    notes.unrecorded_ns.unwrap() as f64 / notes.cpu_ns().unwrap()
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_program_that_executes_itself_is_reported_as_partially_recorded() {
    let folder = Folder::new();
    let work = folder.compile("work", WORK, &[]);
    let recording = folder.record(&[], &[&work, "e"]);
    let share = unrecorded(&recording);
    assert!((0.2..0.8).contains(&share), "{share}");
    let errors = recording.ran.errors();
    assert!(errors.contains("--follow fork,exec -- "), "{errors}");
    let share = unrecorded(&folder.record(&["--follow", "exec"], &[&work, "e"]));
    assert!(share < 0.02, "{share}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_cpu_time_of_an_unrecordable_child_program_is_reported() {
    let folder = Folder::new();
    let work = folder.compile("work", WORK, &[]);
    let script = format!("ulimit -v 40000; {work}; true");
    let program = ["sh", "-c", &script];
    for (follow, what) in
        [("exec", "--follow fork,exec -- "), ("fork,exec", "could not be recorded")]
    {
        let recording = folder.record(&["--follow", follow], &program);
        let (share, errors) = (unrecorded(&recording), recording.ran.errors());
        assert!(share > 0.9 && errors.contains(what), "{share} {errors}");
        assert!(!errors.contains("no allocator can save more"), "{errors}");
    }
}

/// A program that allocates 5,000 blocks of 77 bytes.
const BLOCKS_OF_77: &str = r#"
#include <stdlib.h>
int main(void) { for (int i = 0; i < 5000; ++i) free(malloc(77)); }
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_program_without_permission_to_open_the_ring_by_its_path_is_recorded() {
    let folder = Folder::new();
    let program = folder.compile("blocks", BLOCKS_OF_77, &[]);
    // Another user must be able to read the program and the recorder.
    let recorder = std::path::PathBuf::from(std::env::var_os("MALLARD_RECORDER").unwrap());
    let readable = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir();
    let readable = readable.unwrap();
    let copied = |from: &Path| {
        let to = readable.path().join(from.file_name().unwrap());
        std::fs::copy(from, &to).unwrap();
        to.into_os_string().into_string().unwrap()
    };
    let (program, recorder) = (copied(Path::new(&program)), copied(&recorder));
    let without_proc = format!("mount -t tmpfs none /proc && exec {program}");
    let cases: [&[&str]; 3] = [
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", &program],
        &["unshare", "--map-root-user", &program],
        &["unshare", "--map-root-user", "--mount", "sh", "-c", &without_proc],
    ];
    for case in cases {
        if !folder.command(case[0]).args(&case[1..]).status().is_ok_and(|status| status.success()) {
            skip(&format!("{} may not change the user or the namespace here", case[0]));
            continue;
        }
        let begin = ["record", "--force", "--follow", "exec", "-o", "recorded", "--"];
        let mut command = folder.command(MALLARD);
        command.args(begin).args(case).env("MALLARD_RECORDER", &recorder);
        let ran = Ran(command.output().unwrap());
        let trace = Trace::open(&folder.path("recorded.mallard")).unwrap();
        let paths = trace.table(&PROCESSES).unwrap().texts("path").unwrap();
        assert_eq!(paths.last(), Some(&program), "{case:?} {}", ran.errors());
        let sizes = trace.table(&EVENTS).unwrap().i64s("size").unwrap();
        assert!(sizes.into_iter().filter(|&size| size == 77).count() >= 5000, "{case:?}");
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn sequentially_started_children_are_not_counted_as_simultaneous() {
    let folder = Folder::new();
    let work = folder.compile("work", WORK, &[]);
    let recording = folder.record(&["--follow", "fork"], &[&work, "f"]);
    assert_eq!(recording.processes.len(), 7);
    let share = unrecorded(&recording);
    assert!(share < 0.02, "{share} {}", recording.ran.errors());
    let advice = folder.mallard(&["advise", "--json", "--no-try", "--budget", "1s", "recorded"]);
    let advice: serde_json::Value = serde_json::from_str(&advice.out()).unwrap();
    let at_once = advice["run"]["threads_at_once"].as_u64().unwrap();
    // The end of a process is known only to within the time between two passes of the command.
    assert!(at_once == 2 || at_once == 3, "{at_once}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_cpu_time_of_a_process_with_a_non_utf8_name_is_recorded() {
    let folder = Folder::new();
    // The name is cut in the middle of its last character, and its rest looks like the fields after
    // a name.
    let name = r#"prctl(PR_SET_NAME, "a) Z 1 \xff\xc3");"#;
    let named = WORK.replace("char how", &format!("{name} char how"));
    let work = folder.compile("work", &format!("#include <sys/prctl.h>\n{named}"), &[]);
    for how in ["", "f"] {
        let recording = folder.record(&["--follow", "fork"], &[&work, how]);
        let share = unrecorded(&recording);
        assert!(share < 0.02, "{share} {}", recording.ran.errors());
        let manifest = recording.trace.manifest();
        assert!(manifest.memory.peak.parts.resident > 0, "{manifest:?}");
        assert!(manifest.totals.cpu_ns.unwrap() > 250_000_000, "{:?}", manifest.totals.cpu_ns);
    }
}

/// A program whose threads end after about 4 ms of CPU time each.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static void* work(void* unused) {
    struct timespec now = {0};
    while (now.tv_sec == 0 && now.tv_nsec < 4000000) {
        for (int i = 0; i < 100; ++i) free(malloc(100));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
    return unused;
}
int main(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
}
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_cpu_time_of_threads_that_exit_early_counts() {
    let folder = Folder::new();
    let program = folder.compile("threads", THREADS, &["-pthread"]);
    assert_eq!(folder.mallard(&["record", "-o", "a", "--", &program]).status(), 0);
    let trace = Trace::open(&folder.path("a.mallard")).unwrap();
    let cpu_ns = trace.manifest().totals.cpu_ns.unwrap();
    assert!(cpu_ns > 32_000_000, "{cpu_ns}");
}
