//! Tests the queries of the documentation over a fleet.

use crate::support::sql::{add, names, queries, query, record, recorded, rows, shop};
use crate::support::Folder;
use serde_json::{json, Value};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn the_blocks_in_a_fleet_equal_those_of_the_trace_view() {
    let folder = recorded();
    let run = ["--service", "shop", "--events"];
    assert_eq!(add(&folder, "shop", &run).status(), 0);
    let sql = "SELECT * EXCLUDE (service, date, run) FROM allocs ORDER BY alloc";
    let derived = rows(&folder, &["shop", sql]);
    let exported = rows(&folder, &["--fleet", "all", sql]);
    assert!(derived.len() > 2000);
    assert!(derived == exported);
    // A realloc that does not move its block changes the size of the block.
    let resized = derived.iter().filter(|block| block["size"] != block["size0"]).count() as i64;
    let distinct =
        "SELECT count(DISTINCT alloc) AS n FROM events WHERE alloc >= 0 AND alloc = old_alloc";
    assert!(resized > 0);
    assert_eq!(Value::from(resized), rows(&folder, &["shop", distinct])[0]["n"]);
    let columns = "SELECT column_name, column_type FROM (DESCRIBE allocs) ORDER BY 1";
    assert_eq!(rows(&folder, &["shop", columns]), rows(&folder, &["--fleet", "all", columns]));
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_query_on_a_fleet_without_events_explains_how_to_add_them() {
    let folder = recorded();
    assert_eq!(add(&folder, "shop", &["--service", "shop"]).status(), 0);
    let ran = query(&folder, &["--fleet", "all", "SELECT * FROM allocs"]);
    ran.refuses(2, "Table with name allocs does not exist");
    assert!(ran.errors().contains("--events"), "{}", ran.errors());
    let counts =
        rows(&folder, &["--fleet", "all", "SELECT service, count(*) AS n FROM sites GROUP BY 1"]);
    assert_eq!(counts.len(), 1);
    let outside = query(&folder, &["--fleet", "all", "SELECT * FROM 'shop.mallard/sites.parquet'"]);
    assert_eq!(outside.status(), 2, "{}", outside.errors());
}

/// Makes the trace `one` and a fleet of 20 runs of 3 services on 4 days. Each run of a service makes
/// more orders than the run before.
fn one_and_twenty() -> Folder {
    let folder = shop();
    record(&folder, "one", 300, &[]);
    for run in 0..20u32 {
        let (service, day) = (["billing", "shop", "web-1"][run as usize % 3], 1 + run / 6);
        record(&folder, "run", 100 + 10 * run, &[]);
        let (date, run) = (format!("2026-11-{day:02}"), format!("run-{run}"));
        let words = ["--service", service, "--date", &date, "--run", &run, "--events"];
        let ran = add(&folder, "run", &words);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
    }
    folder
}

#[test]
#[ignore = "needs DuckDB, Spark and the recorder; ./x test has them"]
fn every_documented_query_has_the_same_rows_on_duckdb_and_on_spark() {
    let folder = one_and_twenty();
    let key = &rows(&folder, &["one", "SELECT service, date, run FROM sites LIMIT 1"])[0];
    let python =
        std::env::var("MALLARD_PYSPARK").expect("MALLARD_PYSPARK names a Python with pyspark");
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spark.py"))
        .arg("trace")
        .arg(format!("{}::{key}", folder.path("one.mallard").display()))
        .arg("fleet")
        .arg(folder.path("all"))
        .arg(queries())
        .arg(folder.path("answers"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let spark = fs::read_to_string(folder.path("answers")).unwrap();
    let read = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let answers: Vec<Value> = spark.lines().map(read).collect();
    assert_eq!(answers.len(), 2 * names().len());
    let mut empty = Vec::new();
    for answer in &answers {
        let name = answer["query"].as_str().unwrap().to_string();
        let file = queries().join(format!("{name}.sql"));
        let file = file.to_str().unwrap();
        let is_trace = answer["tables"] == "trace";
        let tables: &[&str] = if is_trace { &["one"] } else { &["--fleet", "all"] };
        let duckdb = rows(&folder, &[tables, &["--file", file]].concat());
        let spark = answer["rows"].as_array().unwrap();
        assert_eq!(duckdb.len(), spark.len(), "{name}");
        for (ours, theirs) in duckdb.iter().zip(spark) {
            assert!(are_equal(ours, theirs), "{name}: {ours} and {theirs}");
        }
        if duckdb.is_empty() {
            empty.push((name, is_trace));
        }
    }
    // One trace has only one day, so no growth since the first day is found.
    assert_eq!(empty, [("fleet_growth".to_string(), true)]);
}

/// Returns whether two values are equal. Sums of doubles may differ in their last digits, because
/// engines add in different orders.
fn are_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, value)| b.get(name).is_some_and(|other| are_equal(value, other)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        _ => a == b,
    }
}

#[test]
fn the_comparison_of_query_results_detects_different_numbers() {
    assert!(are_equal(&json!({"a": 1.0, "b": "x"}), &json!({"b": "x", "a": 1})));
    assert!(!are_equal(&json!({"a": "12"}), &json!({"a": 12})));
    assert!(!are_equal(&json!({"a": 1.001}), &json!({"a": 1})));
    assert!(!are_equal(&json!({"a": 1}), &json!({"a": 1, "b": null})));
    assert!(!are_equal(&json!(9007199254740993i64), &json!(9007199254740992i64)));
}
