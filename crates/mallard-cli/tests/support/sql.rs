//! Helpers of the tests of SQL queries: a recorded shop program, and queries over its trace.

use super::{Folder, Ran};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the directory with the queries of the documentation.
pub fn queries() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/sql")
}

/// Returns the names of the queries of the documentation.
pub fn names() -> Vec<String> {
    let files = fs::read_dir(queries()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "sql"));
    let mut names: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    names.sort();
    names
}

/// Makes a directory with the program `shop`.
pub fn shop() -> Folder {
    let folder = Folder::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shop.c");
    folder.compile_file("shop", &file, &["-pthread"]);
    folder
}

/// Records a run of the shop.
pub fn record(folder: &Folder, name: &str, orders: u32, options: &[&str]) {
    let (program, orders) = (folder.path("shop"), orders.to_string());
    let begin = ["record", "-q", "--force", "-o", name];
    let program = ["--", program.to_str().unwrap(), orders.as_str()];
    let ran = folder.mallard(&[&begin, options, &program].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
}

/// Makes a directory with the trace `shop.mallard`.
pub fn recorded() -> Folder {
    let folder = shop();
    record(&folder, "shop", 500, &[]);
    folder
}

/// Runs `mallard query`.
pub fn query(folder: &Folder, arguments: &[&str]) -> Ran {
    folder.mallard(&[&["query"], arguments].concat())
}

/// Returns the rows of a query's result, as JSON.
pub fn rows(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let ran = query(folder, &[arguments, &["--json"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap_or_else(|error| panic!("{error}: {}", ran.out()))
}

/// Returns the number in the only row of a query's result.
pub fn number(folder: &Folder, sql: &str) -> i64 {
    let rows = rows(folder, &["shop", &format!("SELECT * FROM (SELECT {sql}) AS rows(number)")]);
    rows[0]["number"].as_i64().unwrap_or_else(|| panic!("{rows:?}"))
}

/// Adds a trace to the fleet `all`.
pub fn add(folder: &Folder, name: &str, options: &[&str]) -> Ran {
    folder.mallard(&[&["export", name, "--fleet", "all"], options].concat())
}
