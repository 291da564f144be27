//! Tests which names `mallard record` finds for functions, when debug information is in several files or
//! missing, and when a function has several names.
//!
//! The tests need the recorder (MALLARD_RECORDER has its path), a C++ compiler and binutils.

use crate::support::{skip, Folder, MALLARD};
use mallard_trace::Trace;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

/// A program in which `leaf` allocates, through two functions that are inlined.
const INLINED: &str = r#"
#include <cstdlib>
namespace app {
inline __attribute__((always_inline)) void* inner(int n) { return malloc(n); }
inline __attribute__((always_inline)) void* outer(int n) { return inner(n + 1); }
__attribute__((noinline)) void* leaf(int n) { void* p = outer(n); *(volatile char*)p = 1; return p; }
}
int main() { for (int i = 0; i < 10; i++) free(app::leaf(100)); }
"#;

/// Writes the program `a.cpp`, and runs a script that builds it. Returns the directory; `None` if
/// the script fails. Disables the compiler cache, which would return a program whose split debug
/// information is in another directory.
fn built(source: &str, script: &str) -> Option<Folder> {
    let folder = Folder::new();
    std::fs::write(folder.path("a.cpp"), source).unwrap();
    let ran = folder.command("sh").args(["-ec", script]).env("CCACHE_DISABLE", "1").output();
    let ran = ran.unwrap();
    ran.status.success().then_some(folder)
}

/// Records `./a`. Returns the functions and lines of the call stack that allocates most often, from the
/// innermost to `main`.
fn recorded(folder: &Folder) -> Vec<(String, Option<u32>)> {
    let ran = folder.mallard(&["record", "--force", "-o", "recorded", "--", "./a"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let trace = Trace::open(&folder.path("recorded.mallard")).unwrap();
    let site = trace.sites().unwrap().into_iter().max_by_key(|site| site.allocs).unwrap();
    let stacks = trace.stacks().unwrap();
    let functions = stacks.functions(site.stack);
    let end = functions.iter().position(|function| function.function == "main").unwrap();
    functions[..=end].iter().map(|f| (f.function.to_string(), f.line)).collect()
}

/// Makes a call stack in the form that [`recorded`] returns.
fn stack(functions: &[(&str, u32)]) -> Vec<(String, Option<u32>)> {
    functions
        .iter()
        .map(|&(name, line)| (name.to_string(), Some(line).filter(|&n| n > 0)))
        .collect()
}

fn whole() -> Vec<(String, Option<u32>)> {
    stack(&[("app::inner(int)", 4), ("app::outer(int)", 5), ("app::leaf(int)", 6), ("main", 8)])
}

#[test]
#[ignore = "needs the recorder"]
fn split_debug_information_is_read_from_its_files() {
    for version in [4, 5] {
        let script = format!("mkdir o && c++ -O2 -gdwarf-{version} -gsplit-dwarf -c a.cpp -o o/a.o && c++ o/a.o -o a");
        let folder = built(INLINED, &script).unwrap();
        assert_eq!(recorded(&folder), whole());
        // Some build systems copy the program and these files to one directory.
        std::fs::rename(folder.path("o/a.dwo"), folder.path("a.dwo")).unwrap();
        assert_eq!(recorded(&folder), whole());
        // A file of another build does not belong to the program.
        let other =
            "sed s/100/101/ a.cpp > b.cpp && c++ -O1 -g -gsplit-dwarf -c b.cpp && mv b.dwo a.dwo";
        assert!(folder.command("sh").args(["-c", other]).status().unwrap().success());
        // Without the file, the lines would be those of inlined functions, so no lines are shown.
        assert_eq!(recorded(&folder), stack(&[("app::leaf(int)", 0), ("main", 0)]));
    }
}

#[test]
#[ignore = "needs the recorder"]
fn split_debug_information_is_read_from_a_package() {
    let script =
        "c++ -O2 -gdwarf-4 -gsplit-dwarf -c a.cpp && c++ a.o -o a && dwp -e a -o a.dwp && rm a.dwo";
    let Some(folder) = built(INLINED, script) else { return skip("no dwp, which is in binutils") };
    assert_eq!(recorded(&folder), whole());
}

#[test]
#[ignore = "needs the recorder"]
fn debug_information_that_dwz_moved_to_another_file_is_read() {
    let script = "c++ -O2 -g a.cpp -o a && cp a b && dwz -m common.debug a b";
    let Some(folder) = built(INLINED, script) else { return skip("no dwz") };
    assert_eq!(recorded(&folder), whole());
    // Inlined functions without names are not shown.
    std::fs::remove_file(folder.path("common.debug")).unwrap();
    assert_eq!(recorded(&folder), stack(&[("app::leaf(int)", 6), ("main", 8)]));
}

#[test]
#[ignore = "needs the recorder"]
fn debug_sections_compressed_by_old_linkers_are_read() {
    let script = "c++ -O2 -g a.cpp -o a && objcopy --compress-debug-sections=zlib-gnu a && \
                  readelf -SW a | grep -q '[.]zdebug_info'";
    let Some(folder) = built(INLINED, script) else { return skip("no objcopy that compresses so") };
    assert_eq!(recorded(&folder), whole());
}

#[test]
#[ignore = "needs the recorder"]
fn a_function_with_several_aliases_is_shown_under_its_public_name() {
    let source = r#"
        #include <cstdlib>
        extern "C" {
        __attribute__((noinline, used)) static void* __GI___copy(int n)
        {
            void* p = std::malloc(n);
            *(volatile char*)p = 1;
            return p;
        }
        void* __copy(int n) __attribute__((alias("__GI___copy")));
        void* copy(int n) __attribute__((weak, alias("__GI___copy")));
        }
        namespace app {
        // The debug information of g++ has the last part of this name only.
        __attribute__((noinline)) static void* call(int n)
        {
            void* p = copy(n);
            *(volatile char*)p = 1;
            return p;
        }
        }
        int main() { for (int i = 0; i < 10; i++) std::free(app::call(100)); }
    "#;
    for options in ["-O1 -g", "-O1", "-O1 -g -s -rdynamic"] {
        let folder = built(source, &format!("c++ {options} a.cpp -o a")).unwrap();
        let names: Vec<String> = recorded(&folder).into_iter().map(|(name, _)| name).collect();
        let is_stripped = options.contains("-s ");
        let call = if is_stripped { names[1].clone() } else { "app::call(int)".to_string() };
        assert_eq!(names, ["copy", &call, "main"], "{options}");
    }
}

/// A debuginfod server on this machine, which serves the files in the directory `debug`.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Starts the server. `None` if elfutils' server or client is not installed.
    fn begin(folder: &Folder) -> Option<Server> {
        Command::new("debuginfod-find").arg("--version").output().ok()?;
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = folder.command("debuginfod");
        command.args(["-d", ":memory:", "-p", &port.to_string(), "-F", "debug"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let mut server = Server { process, url: format!("http://127.0.0.1:{port}") };
        // The client remembers what no server has, so each try uses a new cache.
        let id = build_id(folder);
        for cache in 0..1000 {
            let mut client = folder.command("debuginfod-find");
            client.args(["debuginfo", &id]).env("DEBUGINFOD_URLS", &server.url);
            client.env("DEBUGINFOD_CACHE_PATH", folder.path(&format!("try-{cache}")));
            if client.output().unwrap().status.success() {
                return Some(server);
            }
            assert!(server.process.try_wait().unwrap().is_none(), "debuginfod ended");
        }
        panic!("debuginfod does not serve {id}");
    }

    /// Runs a command of mallard that asks this server.
    fn mallard(&self, folder: &Folder, arguments: &[&str]) -> (bool, String) {
        let mut command = folder.command(MALLARD);
        command.args(arguments).env("DEBUGINFOD_URLS", &self.url);
        let ran = command.env("DEBUGINFOD_CACHE_PATH", folder.path("cache")).output().unwrap();
        (ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn build_id(folder: &Folder) -> String {
    let ran = folder.command("readelf").args(["-n", "a"]).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    said.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap().to_string()
}

#[test]
#[ignore = "needs the recorder"]
fn missing_debug_information_is_fetched_from_a_server() {
    let script = "mkdir debug && c++ -O2 -g -Wl,--build-id a.cpp -o a && \
                  objcopy --only-keep-debug a debug/a.debug && strip a";
    let folder = built(INLINED, script).unwrap();
    let Some(server) = Server::begin(&folder) else { return skip("no debuginfod of elfutils") };
    let inner = ["app::inner", "app::outer", "app::leaf", "main"];
    let sites = |name: &str| folder.mallard(&["sites", name, "--depth", "0"]).out();

    let record = |name, option: &[&str]| {
        server.mallard(&folder, &[&["record", "-o", name], option, &["--", "./a"]].concat())
    };
    assert!(record("fetched", &[]).0);
    assert!(inner.iter().all(|name| sites("fetched").contains(name)), "{}", sites("fetched"));
    assert!(record("plain", &["--no-debuginfod"]).0);
    let plain = sites("plain");
    assert!(plain.contains("  functions of a have no names: compile it with -g"), "{plain}");

    // A trace without names is shown with names from the server, but stays unchanged.
    let report = |option: &[&str]| {
        server.mallard(&folder, &[&["report", "plain", "--json"], option].concat()).1
    };
    assert!(inner.iter().all(|name| report(&[]).contains(name)), "{}", report(&[]));
    assert!(!report(&["--no-debuginfod"]).contains("app::inner"));
    assert_eq!(sites("plain"), plain);
}

#[test]
#[ignore = "needs the recorder"]
fn if_the_debuginfod_server_does_not_answer_other_names_are_still_found() {
    let folder = built(INLINED, "c++ -O2 a.cpp -o a").unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    drop(silent); // the port is closed from here on
    let mut command = folder.command(MALLARD);
    command.args(["record", "-o", "recorded", "--", "./a"]);
    command.env("DEBUGINFOD_URLS", format!("http://{address}"));
    let ran = command.env("DEBUGINFOD_CACHE_PATH", folder.path("cache")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let sites = folder.mallard(&["sites", "recorded", "--depth", "0"]).out();
    assert!(sites.contains("app::leaf"), "{sites}");
}
