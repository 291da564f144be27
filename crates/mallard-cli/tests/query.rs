//! Tests `mallard query` without DuckDB, in particular its errors. `sql/query.rs` tests it with
//! DuckDB.

use crate::support::sql::{names, queries, query};
use crate::support::{orders, Folder, Ran, MALLARD};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// Runs `mallard query orders 'SELECT 1'` with a script instead of DuckDB.
fn with_duckdb(folder: &Folder, script: &str) -> Ran {
    let program = folder.path("duckdb");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut mallard = folder.command(MALLARD);
    mallard.env("MALLARD_DUCKDB", &program).args(["query", "orders", "SELECT 1"]);
    Ran(mallard.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_missing_duckdb_is_reported_with_how_to_install_it() {
    let folder = orders();
    let mut mallard = folder.command(MALLARD);
    mallard.env("MALLARD_DUCKDB", "/no/such/duckdb").args(["query", "orders", "SELECT 1"]);
    let ran = Ran(mallard.output().unwrap());
    ran.refuses(3, "there is no program /no/such/duckdb");
    assert!(ran.errors().contains("help: pip install duckdb-cli"), "{}", ran.errors());
    with_duckdb(&folder, "").refuses(3, "cannot be started");
    with_duckdb(&folder, "#!/bin/sh\necho hello\n").refuses(3, "is not DuckDB");
}

#[test]
fn a_duckdb_version_that_is_too_old_is_rejected() {
    let ran = with_duckdb(&orders(), "#!/bin/sh\necho 'v1.1.3 19864453f7'\n");
    ran.refuses(3, "is DuckDB 1.1, and a query needs 1.2 or newer");
}

#[test]
fn a_duckdb_process_killed_by_a_signal_gives_status_3() {
    let script = "#!/bin/sh\n[ \"$1\" = -version ] && echo v2.0.1 && exit\nkill -9 $$\n";
    let ran = with_duckdb(&orders(), script);
    ran.refuses(3, "signal 9, SIGKILL, ended DuckDB");
}

#[test]
fn invalid_query_arguments_are_rejected() {
    let folder = orders();
    query(&folder, &[]).refuses(2, "no trace was named");
    query(&folder, &["nothing", "SELECT 1"]).refuses(3, "there is no trace nothing.mallard");
    query(&folder, &["orders", "SELECT 1", "--file", "a"]).refuses(2, "SQL is given twice");
    query(&folder, &["orders", "--file", "no.sql"]).refuses(2, "cannot read SQL from no.sql");
    query(&folder, &["orders", "SELECT 1", "--json", "--csv"]).refuses(2, "--csv");
    query(&folder, &["orders", "SELECT 1", "--memory", "much"]).refuses(2, "the size");
    query(&folder, &["--fleet", "no", "SELECT 1"]).refuses(3, "there is no directory no");
    query(&folder, &["--fleet", "no", "SELECT", "1"]).refuses(2, "an extra argument: '1'");
}

#[test]
fn every_documented_query_begins_with_a_question_and_is_the_same_for_duckdb_and_spark() {
    let names = names();
    assert!(names.len() >= 12, "{names:?}");
    for name in names {
        let text = fs::read_to_string(queries().join(format!("{name}.sql"))).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("-- ") && text.contains('?'), "{name}: {first}");
        for foreign in ["QUALIFY", "ASOF", "//", "::"] {
            assert!(!text.contains(foreign), "{name} has {foreign}");
        }
    }
}
