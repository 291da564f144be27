//! Tests what `mallard record` says of processes and threads that end while the recording goes on.
//!
//! The tests need `libmallard-record.so`, whose path is in MALLARD_RECORDER, and a C compiler. `./x
//! test` builds the recorder and runs them.

mod support;

use mallard_trace::tables::schema::PROCESSES;
use mallard_trace::Trace;
use support::Folder;

const MIB: i64 = 1 << 20;

/// A program that allocates as many MiB as its argument says, waits, and ends without a free.
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
fn a_process_that_has_ended_has_no_memory_any_more() {
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
    // The resident memory is that of the shell and of one program.
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

/// A program whose child allocates when the program has long ended. The child is made by a system call
/// that the recorder does not see, so that it is known only from its first allocation on.
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
fn the_cpu_time_of_threads_that_end_early_counts() {
    let folder = Folder::new();
    let program = folder.compile("threads", THREADS, &["-pthread"]);
    assert_eq!(folder.mallard(&["record", "-o", "a", "--", &program]).status(), 0);
    let trace = Trace::open(&folder.path("a.mallard")).unwrap();
    let cpu_ns = trace.manifest().totals.cpu_ns.unwrap();
    assert!(cpu_ns > 32_000_000, "{cpu_ns}");
}
