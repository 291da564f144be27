//! Helpers of the tests of `mallard record`: a directory for each test, and the result of a run of
//! mallard.

pub mod proto;
pub mod replayed;
pub mod sql;

pub use crate::streams::run::{length, seeds, skip};

use mallard_trace::tables::schema::{EVENTS, PROCESSES};
use mallard_trace::Trace;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The time that each run counts in a budget (see `MALLARD_RUN_TAKES`).
pub const RUN_TAKES: &str = "60ms";

pub const MALLARD: &str = env!("CARGO_BIN_EXE_mallard");

/// A directory for the files of one test.
pub struct Folder(pub tempfile::TempDir);

/// A program that prints the usable size of a block of 20 bytes, which is 24 under glibc, and 20
/// under the tests' malloc.
pub const USABLE: &str = r#"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) { printf("first\n%zu\n", malloc_usable_size(malloc(20))); return 0; }
"#;

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if program == MALLARD {
            // Calls mallard as if it were found in PATH. A mallard that is called by its path
            // prints that path in the commands to type.
            command.arg0("mallard");
        }
        // A test may fetch debug information only from its own server.
        command.current_dir(self.0.path()).env_remove("DEBUGINFOD_URLS");
        // Tests search for whole sentences, which would be wrapped at 80 columns.
        command.env("COLUMNS", "2000");
        // Makes a budget a number of runs, which does not depend on the load of this machine.
        command.env("MALLARD_RUN_TAKES", RUN_TAKES);
        // With this variable, ccache returns an object that was compiled in another directory. Its debug
        // information names the .dwo file there, which llvm-symbolizer does not find.
        command.env_remove("CCACHE_NOHASHDIR");
        command
    }

    /// Runs mallard in the directory.
    pub fn mallard(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(MALLARD).args(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs mallard in the directory. Budgets are real times.
    pub fn mallard_in_time(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(MALLARD);
        command.env_remove("MALLARD_RUN_TAKES").args(arguments).stdin(Stdio::null());
        Ran(command.output().unwrap())
    }

    /// Compiles a C program.
    pub fn compile(&self, name: &str, source: &str, options: &[&str]) -> String {
        let file = self.path(&format!("{name}.c"));
        fs::write(&file, source).unwrap();
        self.compile_file(name, &file, options)
    }

    /// Compiles a file in C or C++.
    pub fn compile_file(&self, name: &str, file: &Path, options: &[&str]) -> String {
        let path = self.path(name);
        let is_c = file.extension().is_some_and(|extension| extension == "c");
        let compiled = self
            .command(if is_c { "cc" } else { "c++" })
            .arg(file)
            .args(["-g", "-fno-builtin", "-o"])
            .arg(&path)
            .args(options)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        path.to_str().unwrap().to_string()
    }

    /// Records a program, and reads the trace.
    pub fn record(&self, options: &[&str], program: &[&str]) -> Recording {
        let begin = ["record", "--force", "--no-symbols", "-o", "recorded"];
        let ran = self.mallard(&[&begin, options, &["--"], program].concat());
        let folder = self.path("recorded.mallard");
        let trace = Trace::open(&folder).unwrap_or_else(|e| panic!("{e}\n{}", ran.errors()));
        let events = trace.table(&EVENTS).unwrap();
        let column = |name| events.i64s(name).unwrap();
        let (ops, sizes) = (column("op"), column("size"));
        let (new, old) = (column("alloc"), column("old_alloc"));
        let mut blocks = HashMap::new();
        for (row, &op) in ops.iter().enumerate() {
            // Counts the calls that begin a block (see docs/decisions/0041-no-table-of-blocks.md).
            if op < 32 && new[row] >= 0 && new[row] != old[row] {
                *blocks.entry(sizes[row]).or_default() += 1;
            }
        }
        let processes = trace.table(&PROCESSES).unwrap().texts("begins").unwrap();
        Recording { ran, trace, blocks, processes }
    }

    pub fn manifest(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.path(name).join("manifest.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// The recording of a program.
pub struct Recording {
    pub ran: Ran,
    pub trace: Trace,
    /// The number of blocks of each size.
    pub blocks: HashMap<i64, u64>,
    /// How each process began, such as by fork or exec.
    pub processes: Vec<String>,
}

impl Recording {
    /// Checks the status of the program, and that no event is missing.
    pub fn is_whole(&self, status: i32) -> &Recording {
        let errors = self.ran.errors();
        assert_eq!(self.ran.status(), status, "{errors}");
        assert!(errors.contains("  lost: nothing\n"), "{errors}");
        let manifest = self.trace.manifest();
        let counts = &manifest.counts;
        assert_eq!(manifest.losses.all(), 0);
        assert_eq!(manifest.stream.ending, "complete");
        assert_eq!((counts.unknown_frees, counts.missed_frees, counts.broken_reallocs), (0, 0, 0));
        self
    }

    /// Returns the numbers of blocks of some sizes.
    pub fn of<const N: usize>(&self, sizes: [i64; N]) -> [u64; N] {
        sizes.map(|size| self.blocks.get(&size).copied().unwrap_or(0))
    }
}

pub struct Ran(pub Output);

impl Ran {
    pub fn status(&self) -> i32 {
        self.0.status.code().unwrap()
    }
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
    /// Checks the status and the three lines of an error.
    pub fn refuses(&self, status: i32, what: &str) {
        let errors = self.errors();
        assert_eq!(self.status(), status, "{errors}");
        assert!(errors.contains(what), "{what} is not in: {errors}");
        let error: Vec<&str> =
            errors.lines().skip_while(|line| !line.starts_with("mallard: ")).collect();
        assert!(error.len() >= 3 && error[2].starts_with("  help: "), "{errors}");
    }
}

/// Waits until `look` returns a value, which may take long on a busy machine.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(
                begin.elapsed() < Duration::from_secs(300),
                "{what}: it did not come in 5 minutes"
            ),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Makes a directory with the trace `orders.mallard` from the golden stream.
pub fn orders() -> Folder {
    let folder = Folder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/trace_format.golden");
    fs::copy(golden, folder.path("orders.stream")).unwrap();
    let ran = folder.mallard(&["import", "orders.stream"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    folder
}

/// A program that allocates 3 blocks in `make`, frees 2 of them, and leaves the third.
pub const THREE_BLOCKS: &str = r#"
#include <stdlib.h>
static void* volatile kept;
__attribute__((noinline)) static void* make(size_t n) { void* volatile p = malloc(n); return p; }
int main(void) {
    void* a = make(111);
    void* b = make(222);
    kept = make(333);
    free(a);
    free(b);
    return 7;
}
"#;
