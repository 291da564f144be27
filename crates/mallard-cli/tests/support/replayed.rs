//! Helpers of the tests of `mallard replay`: a recorded program, and the replayer.

use super::{Folder, Ran};
use mallard_trace::Trace;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A program that parses 50 documents of 200 nodes and a name each. Then it loads a configuration of 10
/// names, one of which stays in use.
pub const DOCUMENTS: &str = r#"
#include <stdlib.h>
struct node { struct node* next; };
static void* volatile kept;
__attribute__((noinline)) static void* make_node(void) { void* volatile n = malloc(24); return n; }
__attribute__((noinline)) static void* make_name(int n) { void* volatile p = malloc(n); return p; }
__attribute__((noinline)) static void parse_document(void) {
    struct node* first = 0;
    for (int i = 0; i < 200; ++i) {
        struct node* node = make_node();
        node->next = first;
        first = node;
    }
    void* name = make_name(104);
    free(name);
    while (first != 0) { struct node* next = first->next; free(first); first = next; }
}
__attribute__((noinline)) static void load_config(void) {
    for (int i = 1; i <= 10; ++i) {
        void* name = make_name(100 + i);
        if (i < 10) free(name);
        else kept = name;
    }
}
int main(void) {
    for (int i = 0; i < 50; ++i) parse_document();
    load_config();
    return 0;
}
"#;

/// The recording of a program, in a directory.
pub struct Replayed {
    pub folder: Folder,
}

impl Replayed {
    /// Compiles and records a program.
    pub fn new(source: &str) -> Replayed {
        Replayed::recorded(source, &[])
    }

    /// Compiles a program, and records it with options.
    pub fn recorded(source: &str, options: &[&str]) -> Replayed {
        let folder = Folder::new();
        folder.compile("program", source, &["-pthread"]);
        let begin = ["record", "-o", "recorded"];
        let ran = folder.mallard(&[&begin, options, &["--", "./program"]].concat());
        assert!(folder.path("recorded.mallard").is_dir(), "{}", ran.errors());
        Replayed { folder }
    }

    pub fn trace(&self) -> Trace {
        Trace::open(&self.folder.path("recorded.mallard")).unwrap()
    }

    /// Runs `mallard replay`.
    pub fn replay(&self, options: &[&str]) -> Ran {
        self.folder.mallard(&[&["replay", "recorded"], options].concat())
    }

    /// Runs `mallard replay` for a second, and returns its JSON object.
    pub fn json(&self, options: &[&str]) -> Value {
        let ran = self.replay(&[&["--json", "--budget", "1s"], options].concat());
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        serde_json::from_str(&ran.out()).unwrap()
    }

    /// Writes an op stream, and returns the output of the command.
    pub fn write(&self, name: &str, options: &[&str]) -> String {
        let ran = self.replay(&[&["--write", name], options].concat());
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        ran.out()
    }

    /// Writes a plan, and returns the name of its file.
    pub fn plan(&self, text: &str) -> String {
        fs::write(self.folder.path("plan.toml"), text).unwrap();
        "plan.toml".to_string()
    }

    /// Returns the number of the call stack with these innermost functions.
    pub fn stack_of(&self, functions: &[&str]) -> u64 {
        let sites = self.folder.mallard(&["sites", "recorded", "--json"]).out();
        let sites = sites.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let is_wanted = |site: &Value| {
            let mut pairs = functions.iter().enumerate();
            pairs.all(|(at, function)| site["functions"][at]["function"] == *function)
        };
        let mut found = sites.filter(is_wanted);
        found.next().unwrap()["stack"].as_u64().unwrap()
    }
}

/// Runs the replayer, and returns the object that it prints.
pub fn player(folder: &Folder, arguments: &[&str]) -> Value {
    let player = std::env::var("MALLARD_REPLAY").expect("MALLARD_REPLAY names the player");
    let ran = Ran(folder.command(&player).args(arguments).output().unwrap());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap()
}

/// Compiles the tests' malloc, which fails on request.
pub fn compile_own_malloc(folder: &Folder, name: &str, options: &[&str]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/malloc.c");
    let begin = ["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE"];
    folder.compile_file(name, &file, &[&begin, options].concat());
}
