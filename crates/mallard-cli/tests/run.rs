//! Tests `mallard run` with real programs and with the tests' malloc (`programs/malloc.c`). Also
//! tests which malloc a program uses that is linked with a malloc.
//!
//! All tests need a C compiler, and some also need the recorder. `./x test` runs them.

use crate::support::{Folder, USABLE};
use serde_json::Value;
use std::path::Path;

/// Makes a directory with the tests' malloc as a library.
fn folder_with(library: &str, options: &[&str]) -> Folder {
    let folder = Folder::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/malloc.c");
    let begin = ["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE"];
    folder.compile_file(library, &file, &[&begin, options].concat());
    folder
}

/// Makes a program that is linked with the tests' malloc, as if that were jemalloc.
fn linked_with_a_malloc() -> Folder {
    let folder = folder_with("libjemalloc_test.so", &["-Wl,-soname,libjemalloc_test.so"]);
    let library = folder.path("libjemalloc_test.so");
    let rpath = format!("-Wl,-rpath,{}", folder.path("").display());
    let options = ["-Wl,--no-as-needed", library.to_str().unwrap(), &rpath];
    folder.compile("program", USABLE, &options);
    folder
}

/// A malloc library with C++ operators new and delete, which counts their calls.
const OPERATORS: &str = r#"
#include <cstdlib>
#include <new>
extern "C" void* __libc_malloc(std::size_t);
extern "C" void __libc_free(void*);
int calls = 0;
extern "C" void* malloc(std::size_t n) { return __libc_malloc(n); }
extern "C" void free(void* p) { __libc_free(p); }
void* operator new(std::size_t n) { ++calls; return malloc(n); }
void operator delete(void* p) noexcept { ++calls; free(p); }
void operator delete(void* p, std::size_t) noexcept { ++calls; free(p); }
"#;

/// A program that prints how many calls of operators the malloc library has counted.
const NEWS: &str = r#"
#include <cstdio>
extern int calls;
int* volatile block;
int main() { block = new int; delete block; std::printf("%d\n", calls); }
"#;

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_program_runs_under_the_requested_malloc() {
    let folder = folder_with("libmine.so", &[]);
    folder.compile("program", USABLE, &[]);
    let out = |arguments: &[&str]| folder.mallard(arguments).out();
    let own = out(&["run", "--allocator", "glibc", "--", "./program"]);
    assert_eq!(own, "first\n24\n");
    assert_eq!(out(&["run", "--allocator", "mine=./libmine.so", "--", "./program"]), "first\n20\n");
    let script = "echo $A $GLIBC_TUNABLES; exit 7";
    let ran = folder.mallard(&["run", "-a", "glibc:arenas=1,A=b", "--", "sh", "-c", script]);
    assert_eq!(ran.out(), "b glibc.malloc.arena_max=1\n");
    assert_eq!(ran.status(), 7);
    let killed = folder.mallard(&["run", "-a", "glibc", "--", "sh", "-c", "kill -9 $$"]);
    assert!(killed.0.status.code().is_none(), "mallard becomes the program");
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn glibc_can_override_the_malloc_that_a_program_is_linked_with() {
    let folder = linked_with_a_malloc();
    let own = folder.command("./program").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&own.stdout), "first\n20\n");
    for name in ["glibc", "glibc:trim=1GiB"] {
        assert_eq!(folder.mallard(&["run", "-a", name, "--", "./program"]).out(), "first\n24\n");
    }
}

#[test]
#[ignore = "needs a C++ compiler; ./x test runs it"]
fn the_new_and_delete_of_a_linked_malloc_are_not_mixed_with_another_malloc() {
    let folder = folder_with("libmine.so", &[]);
    let compile = |name: &str, source: &str, options: &[&str]| {
        let file = folder.path(&format!("{name}.cpp"));
        std::fs::write(&file, source).unwrap();
        folder.compile_file(name, &file, options)
    };
    let options = ["-shared", "-fPIC", "-Wl,-soname,libjemalloc_test.so"];
    let library = compile("libjemalloc_test.so", OPERATORS, &options);
    let rpath = format!("-Wl,-rpath,{}", folder.path("").display());
    compile("program", NEWS, &["-Wl,--no-as-needed", &library, &rpath]);
    let own = folder.command("./program").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&own.stdout), "2\n");
    for name in ["glibc", "mine=./libmine.so"] {
        assert_eq!(folder.mallard(&["run", "-a", name, "--", "./program"]).out(), "0\n", "{name}");
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_base_of_a_replay_is_the_malloc_that_the_program_was_linked_with() {
    let folder = linked_with_a_malloc();
    let ran = folder.mallard(&["record", "-o", "run", "--", "./program"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let ran = folder.mallard(&["replay", "run", "--json", "--budget", "1s", "-a", "glibc"]);
    let result: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.errors()));
    assert_eq!(result["base"]["name"], "libjemalloc_test.so", "{result}");
}
