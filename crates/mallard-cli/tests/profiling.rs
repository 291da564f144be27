//! Tests that every command in the guides to profiling, to advice and to plans works. Runs the
//! shell and Python blocks in docs/guide/profiling.md, advise.md and plans.md in order, each page
//! in one directory.
//!
//! The tests need the recorder, the replayer and the library of plans (MALLARD_RECORDER,
//! MALLARD_REPLAY and MALLARD_PLAN_LIBRARY have their paths), a C++ compiler and the programs that
//! the guides name. MALLARD_PYARROW is a Python with the package pyarrow; without it, Python blocks
//! are not run. `./x test` provides all of them.

use crate::support::{Folder, MALLARD};
use std::path::Path;
use std::process::Stdio;

/// A block of code in a guide.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (language, after) = after.split_once('\n').expect("a line");
        let (text, after) = after.split_once("\n```").expect("an end of the block");
        blocks.push(Block { language, text });
        rest = after;
    }
    blocks
}

fn run(folder: &Folder, program: &str, arguments: &[&str]) -> String {
    let tools = Path::new(MALLARD).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = folder
        .command(program)
        .args(arguments)
        .env("PATH", format!("{}:{path}", tools.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}{errors}", arguments.join(" "));
    said
}

/// Runs the blocks of a page. Returns how many shell blocks the page has.
fn run_all(name: &str) -> usize {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name);
    let page = std::fs::read_to_string(page).unwrap();
    let folder = Folder::new();
    let mut shell = 0;
    for block in blocks(&page) {
        match block.language {
            "sh" => {
                shell += 1;
                run(&folder, "bash", &["-euo", "pipefail", "-c", block.text]);
            }
            "python" => {
                let Ok(python) = std::env::var("MALLARD_PYARROW") else { continue };
                let said = run(&folder, &python, &["-c", block.text]);
                assert!(said.contains("log_order"), "{said}");
            }
            "" => {} // a block that shows the output of a command
            other => panic!("nobody runs blocks in {other}"),
        }
    }
    shell
}

#[test]
#[ignore = "needs the recorder and go; ./x test has them"]
fn every_command_in_the_profiling_guide_works() {
    let shell = run_all("profiling.md");
    assert!(shell >= 4, "{shell} blocks");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn every_command_in_the_advice_guide_works() {
    let shell = run_all("advise.md");
    assert!(shell >= 5, "{shell} blocks");
}

#[test]
#[ignore = "needs the recorder and the library of plans; ./x test has them"]
fn every_command_in_the_plan_guide_works() {
    let shell = run_all("plans.md");
    assert!(shell >= 5, "{shell} blocks");
}
