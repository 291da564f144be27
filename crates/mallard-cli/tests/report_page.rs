//! Tests the page of `mallard report` in a real browser. Runs the checks of report_page/run.py with
//! generated data, and with the report of a program that the test records.
//!
//! The test needs `libmallard-record.so`, whose path is in MALLARD_RECORDER, and a C compiler.

use crate::in_browser::in_browser;
use crate::support::{Folder, MALLARD};
use std::path::Path;

/// A program that allocates blocks of many sizes in two threads. Most are freed in the other thread.
const TWO_THREADS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
enum { BLOCKS = 20000 };
static void* blocks[BLOCKS];
__attribute__((noinline)) static void* make(size_t n) { return memset(malloc(n), 1, n); }
static void* fill(void* unused) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = make(16 + i * 7 % 3000);
    return unused;
}
int main(void) {
    pthread_t thread;
    for (int round = 0; round < 3; round++) {
        pthread_create(&thread, NULL, fill, NULL);
        pthread_join(thread, NULL);
        for (int i = round; i < BLOCKS; i += 2) free(blocks[i]);
        for (int i = 0; i < 5000; i++) free(make(40));
    }
    return 0;
}
"#;

#[test]
#[ignore = "needs the recorder, chromium, chromium-driver and python3-selenium; ./x test has them"]
fn the_report_works_in_a_browser() {
    let folder = Folder::new();
    let program = folder.compile("threads", TWO_THREADS, &["-pthread"]);
    let recorded = folder.mallard(&["record", "--", &program]);
    assert_eq!(recorded.status(), 0, "{}", recorded.errors());
    let reported = folder.mallard(&["report", "threads"]);
    assert_eq!(reported.status(), 0, "{}", reported.errors());

    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = here.join("../../build/report-pages");
    let words = [Path::new(MALLARD), &pages, &folder.path("threads.html")];
    let Some(said) = in_browser("report_page/run.py", &words) else { return };
    assert!(said.matches("ok    ").count() >= 45, "{said}");
}
