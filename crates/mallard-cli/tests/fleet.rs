//! Tests `mallard export --fleet`, and the documented queries over a fleet.
//!
//! The tests need DuckDB, which MALLARD_DUCKDB names, and the recorder; one needs Spark, for which
//! MALLARD_PYSPARK names a Python. `./x test` installs and builds them.

mod support;

use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::sql::{names, queries, query, record, recorded, rows, shop};
use support::{orders, Folder, Ran, MALLARD};

/// Adds a trace to the fleet `all`.
fn add(folder: &Folder, name: &str, options: &[&str]) -> Ran {
    folder.mallard(&[&["export", name, "--fleet", "all"], options].concat())
}

/// Paths of all files in a folder, without those whose names begin with a dot.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_str().unwrap().starts_with('.') {
            continue;
        }
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.to_str().unwrap().to_string());
        }
    }
    all
}

#[test]
fn words_that_name_no_run_are_refused() {
    let folder = orders();
    add(&folder, "orders", &[]).refuses(2, "--service");
    add(&folder, "orders", &["--service", "a/b"]).refuses(2, "a name begins with a letter");
    add(&folder, "orders", &["--service", "a", "--date", "today"]).refuses(2, "a date is a day");
    add(&folder, "orders", &["--service", "a", "--format", "csv"]).refuses(2, "--format");
    add(&folder, "nothing", &["--service", "a"]).refuses(3, "there is no trace");
    let nowhere = ["export", "orders", "--fleet", "no/such/folder", "--service", "a"];
    folder.mallard(&nowhere).refuses(3, "mkdir -p no/such/folder");
}

#[test]
fn a_run_is_added_once_and_replaced_with_force() {
    let folder = orders();
    let run = ["--service", "shop", "--date", "2026-11-26", "--run", "first"];
    let ran = add(&folder, "orders", &[&run[..], &["--events"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let all = folder.path("all");
    let place = "service=shop/date=2026-11-26/run=first/part-0000.parquet";
    for table in ["sites", "samples", "stacks", "frames", "modules", "threads", "events", "allocs"]
    {
        assert!(all.join(table).join(place).is_file(), "{table}");
    }
    add(&folder, "orders", &run).refuses(3, "the run first of shop is in all already");
    let other = ["--service", "shop", "--date", "2026-11-27", "--run", "first"];
    add(&folder, "orders", &other).refuses(3, "the run first is in all already, as ");
    let ran = add(&folder, "orders", &[&run[..], &["--force"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.errors().contains("--events adds them"), "{}", ran.errors());
    assert!(!all.join("events").join(place).exists(), "the events of the replaced run are gone");
    // By default, the name of the run is the moment of the recording.
    assert_eq!(add(&folder, "orders", &["--service", "shop"]).status(), 0);
    assert_eq!(files(&all.join("sites")).len(), 2);
}

#[test]
fn a_folder_of_another_layout_is_refused() {
    let folder = orders();
    let run = ["--service", "shop"];
    for other in ["notes.txt", "shop/sites/part-0.parquet", "sites/2026/part-0.parquet"] {
        let path = folder.path("all").join(other);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let before = files(&folder.path("all"));
        add(&folder, "orders", &run).refuses(3, "all is no fleet: it has ");
        query(&folder, &["--fleet", "all", "SELECT 1"]).refuses(3, "all is no fleet: it has ");
        assert_eq!(files(&folder.path("all")), before);
        fs::remove_dir_all(folder.path("all")).unwrap();
    }
    let in_trace = ["export", "orders", "--fleet", "orders.mallard", "--service", "shop"];
    folder.mallard(&in_trace).refuses(3, "orders.mallard is no fleet");
}

#[test]
fn a_damaged_trace_is_not_added() {
    let folder = orders();
    let frames = folder.path("orders.mallard/frames.parquet");
    let bytes = fs::read(&frames).unwrap();
    fs::write(&frames, &bytes[..bytes.len() - 20]).unwrap();
    add(&folder, "orders", &["--service", "shop"]).refuses(3, "frames.parquet is damaged");
    assert!(files(&folder.path("all")).is_empty());
    assert_eq!(fs::read_dir(folder.path("all")).unwrap().count(), 0, "nothing hidden is left");
}

#[test]
fn two_exports_at_once_both_succeed_unless_they_add_the_same_run() {
    let folder = orders();
    let start = |run: &str| {
        let words =
            ["export", "orders", "--fleet", "all", "--service", "shop", "--run", run, "--events"];
        let mut mallard = folder.command(MALLARD);
        mallard.args(words).stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs: Vec<_> = (0..8).map(|i| start(["same", "a", "same", "b"][i % 4])).collect();
    let ended: Vec<Ran> =
        runs.into_iter().map(|run| Ran(run.wait_with_output().unwrap())).collect();
    let succeeded = ended.iter().filter(|ran| ran.status() == 0).count();
    assert_eq!(succeeded, 3, "same, a and b");
    for ran in ended.iter().filter(|ran| ran.status() != 0) {
        ran.refuses(3, "already");
    }
    assert_eq!(files(&folder.path("all/sites")).len(), 3);
    assert_eq!(files(&folder.path("all/allocs")).len(), 3);
}

#[test]
fn a_full_disk_leaves_the_fleet_as_it_was() {
    let folder = orders();
    fs::create_dir(folder.path("small")).unwrap();
    // The script mounts a file system of 160 KiB in a mount namespace. Runs are added until the file
    // system is full.
    let script = format!(
        "mount -t tmpfs -o size=160k tmpfs small || exit 77\n\
         for i in 1 2 3 4 5 6 7 8 9; do\n\
           {MALLARD} export orders --fleet small --service shop --events --run run-$i || {{ echo failed $?; break; }}\n\
           find small -name '*.parquet' | sort > before\n\
         done\n\
         find small -name '*.parquet' | sort > after\n\
         find small -name '*.part'"
    );
    let unshared = folder.command("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap();
    let ran = Ran(unshared);
    if ran.errors().contains("mount:") || ran.errors().contains("unshare:") {
        return; // this machine permits no namespaces
    }
    assert_eq!(ran.out(), "failed 3\n", "{}", ran.errors());
    assert!(ran.errors().contains("cannot add to the fleet small"), "{}", ran.errors());
    let read = |name| fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(read("before"), read("after"));
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn the_blocks_of_a_fleet_are_those_of_the_view_of_the_trace() {
    let folder = recorded();
    let run = ["--service", "shop", "--events"];
    assert_eq!(add(&folder, "shop", &run).status(), 0);
    let sql = "SELECT * EXCLUDE (service, date, run) FROM allocs ORDER BY alloc";
    let derived = rows(&folder, &["shop", sql]);
    let exported = rows(&folder, &["--fleet", "all", sql]);
    assert!(derived.len() > 2000);
    assert!(derived == exported);
    let columns = "SELECT column_name, column_type FROM (DESCRIBE allocs) ORDER BY 1";
    assert_eq!(rows(&folder, &["shop", columns]), rows(&folder, &["--fleet", "all", columns]));
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_fleet_without_events_says_how_to_add_them() {
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
    // One trace has one day, so nothing has grown since the first day.
    assert_eq!(empty, [("fleet_growth".to_string(), true)]);
}

/// Whether two values are equal. DuckDB writes a sum of integers, which has 128 bits, as a text. Sums
/// of doubles differ in their last digits, because engines add in other orders.
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
        (Value::String(text), Value::Number(number)) => *text == number.to_string(),
        _ => a == b,
    }
}

#[test]
fn numbers_that_differ_are_not_equal() {
    assert!(are_equal(&json!({"a": 1.0, "b": "x"}), &json!({"b": "x", "a": 1})));
    assert!(are_equal(&json!({"a": "12"}), &json!({"a": 12})));
    assert!(!are_equal(&json!({"a": "13"}), &json!({"a": 12})));
    assert!(!are_equal(&json!({"a": 1.001}), &json!({"a": 1})));
    assert!(!are_equal(&json!({"a": 1}), &json!({"a": 1, "b": null})));
    assert!(!are_equal(&json!(9007199254740993i64), &json!(9007199254740992i64)));
}
