//! Tests that every command in the guide to profiling works: runs the blocks of shell and Python in
//! docs/guide/profiling.md, one after the other, in one folder.
//!
//! The test needs the recorder (MALLARD_RECORDER has its path), a C++ compiler and the programs that
//! the guide names. MALLARD_PYARROW is a Python that has the package pyarrow; without it, blocks of
//! Python are not run. `./x test` has all of them.

mod support;

use std::path::Path;
use std::process::Stdio;
use support::{Folder, MALLARD};

/// A block of code in a page.
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

#[test]
#[ignore = "needs the recorder and go; ./x test has them"]
fn every_command_of_the_guide_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/profiling.md");
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
            "" => {} // what a command printed
            other => panic!("nobody runs blocks in {other}"),
        }
    }
    assert!(shell >= 4, "{shell} blocks");
}
