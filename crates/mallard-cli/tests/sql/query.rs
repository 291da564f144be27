//! Tests `mallard query` over one trace.

use crate::support::sql::{names, number, queries, query, record, recorded, rows, shop};
use crate::support::{Ran, MALLARD};
use serde_json::{json, Value};
use std::fs;
use std::os::unix::fs::FileExt;

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn query_results_are_written_as_a_table_as_json_or_as_csv() {
    let folder = recorded();
    let sql = "SELECT 'a, b' AS text, 7 AS number, NULL AS nothing";
    let table = query(&folder, &["shop", sql]).out();
    assert!(table.contains("│ a, b    │      7 │    NULL │"), "{table}");
    let row = json!({"text": "a, b", "number": 7, "nothing": null});
    assert_eq!(rows(&folder, &["shop", sql]), [row]);
    let csv = query(&folder, &["shop", sql, "--csv"]).out();
    assert_eq!(csv.lines().collect::<Vec<_>>(), ["text,number,nothing", "\"a, b\",7,"]);
    let many = query(&folder, &["shop.mallard", "SELECT * FROM range(1000)"]).out();
    assert!(many.lines().count() > 1000, "{many}");
    assert_eq!(rows(&folder, &["shop", "SELECT 1 WHERE false"]), [] as [Value; 0]);
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn json_query_results_contain_numbers_with_all_digits() {
    let folder = recorded();
    let most = "340282366920938463463374607431768211455"; // is 2^128 - 1
    let least = "-170141183460469231731687303715884105728"; // is -2^127
    for (value, json) in [
        ("'-128'::TINYINT", "-128"),
        ("'-32768'::SMALLINT", "-32768"),
        ("'-2147483648'::INTEGER", "-2147483648"),
        ("9223372036854775807::BIGINT", "9223372036854775807"),
        (&format!("'{least}'::HUGEINT"), least),
        ("sum(9007199254740993::BIGINT)", "9007199254740993"),
        ("255::UTINYINT", "255"),
        ("65535::USMALLINT", "65535"),
        ("4294967295::UINTEGER", "4294967295"),
        ("18446744073709551615::UBIGINT", "18446744073709551615"),
        (&format!("{most}::UHUGEINT"), most),
        ("-0.5::DECIMAL(4, 1)", "-0.5"),
        ("'123456789.12'::DECIMAL(18, 2)", "123456789.12"),
        (
            "'12345678901234567890123456789.123456789'::DECIMAL(38, 9)",
            "12345678901234567890123456789.123456789",
        ),
        ("0.25::FLOAT", "0.25"),
        ("0.1::DOUBLE", "0.1"),
        ("1e300::DOUBLE", "1e300"),
        // JSON cannot express these three.
        ("'nan'::DOUBLE", "null"),
        ("'inf'::FLOAT", "null"),
        ("'-inf'::DOUBLE", "null"),
        ("[1::HUGEINT, 2]", "[1,2]"),
        ("{'a': 3::UHUGEINT, 'b': 1.5}", r#"{"a":3,"b":1.5}"#),
        // A value that is not a number stays a string.
        ("'5'::VARCHAR", r#""5""#),
        ("DATE '2026-01-31'", r#""2026-01-31""#),
        ("NULL::HUGEINT", "null"),
        ("true", "true"),
    ] {
        let ran = query(&folder, &["shop", &format!("SELECT {value} AS n"), "--json"]);
        assert_eq!(ran.out().trim(), format!(r#"[{{"n":{json}}}]"#), "{value}: {}", ran.errors());
    }
    let many =
        query(&folder, &["shop", "SELECT ';' AS a; -- b\nDESCRIBE sites;\nSHOW TABLES", "--json"]);
    assert_eq!(many.status(), 0, "{}", many.errors());
    let arrays = serde_json::Deserializer::from_str(&many.out()).into_iter::<Value>().count();
    assert_eq!(arrays, 3, "{}", many.out());
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn sql_comes_from_a_file_or_from_stdin() {
    let folder = recorded();
    fs::write(folder.path("a.sql"), "-- a comment\nSELECT 1 AS a;\nSELECT 2 AS b").unwrap();
    let expected = "a\n1\nb\n2\n";
    let unix = |text: String| text.replace('\r', "");
    assert_eq!(unix(query(&folder, &["shop", "--file", "a.sql", "--csv"]).out()), expected);
    for words in [&["shop", "-", "--csv"][..], &["shop", "--csv"]] {
        let mut mallard = folder.command(MALLARD);
        mallard.arg("query").args(words).stdin(fs::File::open(folder.path("a.sql")).unwrap());
        assert_eq!(unix(Ran(mallard.output().unwrap()).out()), expected);
    }
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_query_can_use_the_tables_of_the_trace_as_views() {
    let folder = recorded();
    let manifest = folder.manifest("shop.mallard");
    for table in manifest["tables"].as_array().unwrap() {
        let name = table["name"].as_str().unwrap();
        let count = number(&folder, &format!("count(*) FROM {name}"));
        assert_eq!(Value::from(count), table["rows"], "{name}");
    }
    let columns = query(&folder, &["shop", "DESCRIBE sites"]).out();
    assert!(columns.contains("peak_bytes") && !columns.contains('\x1b'), "{columns}");
    let blocks = number(&folder, "count(*) FROM allocs");
    assert_eq!(Value::from(blocks), manifest["counts"]["blocks"]);
    let live = number(&folder, "count(*) FROM allocs WHERE t1 IS NULL");
    assert_eq!(Value::from(live), manifest["totals"]["sites"]["live_allocs"]);
    let functions = number(&folder, "count(*) FROM functions WHERE func = 'make_order'");
    assert!(functions > 0);
    assert_eq!(number(&folder, "count(DISTINCT run) FROM sites WHERE service = 'shop'"), 1);
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn the_peak_computed_by_a_query_equals_the_peak_in_the_manifest() {
    let folder = recorded();
    let file = queries().join("exact_peak.sql");
    let rows = rows(&folder, &["shop", "--file", file.to_str().unwrap()]);
    let whole = &folder.manifest("shop.mallard")["totals"]["sites"];
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["peak_bytes"], whole["peak_bytes"]);
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn invalid_sql_is_rejected_with_the_message_of_duckdb() {
    let folder = recorded();
    query(&folder, &["shop", "SELEKT 1"]).refuses(2, "syntax error at or near \"SELEKT\"");
    let ran = query(&folder, &["shop", "SELECT byts FROM sites"]);
    ran.refuses(2, "Referenced column \"byts\" not found");
    assert!(ran.errors().contains("LINE 1: SELECT byts"), "{}", ran.errors());
    assert_eq!(ran.errors().matches("Referenced column").count(), 1, "{}", ran.errors());
    let ran = query(&folder, &["shop", "SELECT byts FROM sites", "--json"]);
    ran.refuses(2, "Referenced column \"byts\" not found");
    assert!(ran.errors().contains("\nSELECT byts FROM sites\n       ^"), "{}", ran.errors());
    let ran = query(&folder, &["shop", "SELECT 1 AS a; SELECT b; SELECT 3 AS c", "--csv"]);
    ran.refuses(2, "\"b\"");
    assert!(ran.out().contains('a') && !ran.out().contains('c'), "{}", ran.out());
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_query_cannot_access_files_outside_the_trace_directory() {
    let folder = recorded();
    fs::write(folder.path("secret.csv"), "a\n1\n").unwrap();
    let secret = folder.path("secret.csv");
    let read = format!("SELECT * FROM read_csv('{}')", secret.display());
    let write = format!("COPY (SELECT 1) TO '{}'", folder.path("out.csv").display());
    for sql in [&read, &write] {
        query(&folder, &["shop", sql]).refuses(2, "Permission Error");
    }
    for sql in [
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "RESET lock_configuration",
        "INSTALL httpfs",
        "ATTACH 'other.db'",
        ".shell touch out.csv",
        ".output out.csv\nSELECT 1",
        ".read secret.csv",
        ".import secret.csv a",
        "COPY (SELECT 1) TO 'out.csv'",
    ] {
        let ran = query(&folder, &["shop", sql]);
        assert_ne!(ran.status(), 0, "{sql}: {}", ran.out());
        assert!(!folder.path("out.csv").exists(), "{sql}");
    }
    let ran = query(&folder, &["shop", "--unlocked", "--csv", &read]);
    assert_eq!((ran.status(), ran.out().replace('\r', "")), (0, "a\n1\n".to_string()));
    assert_eq!(query(&folder, &["shop", "--unlocked", &write]).status(), 0);
    assert!(folder.path("out.csv").exists());
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_query_with_a_memory_limit_below_the_data_size_works_or_reports_an_error() {
    let folder = recorded();
    let sorted = "SELECT count(*) FROM (SELECT a.t0, b.t0 FROM allocs a, (SELECT t0 FROM allocs LIMIT 300) b \
                  ORDER BY hash(a.t0 + b.t0))";
    for memory in ["1MiB", "100MiB"] {
        let ran = query(&folder, &["shop", "--memory", memory, sorted]);
        if ran.status() != 0 {
            ran.refuses(3, "Out of Memory Error");
        }
    }
    query(&folder, &["shop", "--memory", "100KiB", sorted]).refuses(3, "Out of Memory Error");
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_corrupt_table_is_named_and_the_other_tables_can_be_queried() {
    let folder = recorded();
    let sites = folder.path("shop.mallard/sites.parquet");
    let bytes = fs::read(&sites).unwrap();
    fs::write(&sites, &bytes[..bytes.len() / 2]).unwrap();
    let ran = query(&folder, &["shop", "SELECT count(*) AS n FROM frames", "--csv"]);
    ran.refuses(3, "sites.parquet is corrupt");
    assert!(ran.out().starts_with('n'), "{}", ran.out());
    query(&folder, &["shop", "SELECT * FROM sites"])
        .refuses(2, "Table with name sites does not exist");
    fs::write(&sites, &bytes).unwrap();

    // The pages of the table are corrupt, but the end of the file is not.
    let file = fs::File::options().write(true).open(&sites).unwrap();
    file.write_all_at(&vec![0x5a; bytes.len() / 3], 64).unwrap();
    let ran = query(&folder, &["shop", "SELECT sum(bytes), sum(allocs), max(peak_t) FROM sites"]);
    assert_eq!(ran.status(), 3, "{}", ran.errors());
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_trace_of_a_newer_version_is_rejected() {
    let folder = recorded();
    let path = folder.path("shop.mallard/manifest.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"schema\": 1", "\"schema\": 9");
    fs::write(&path, text).unwrap();
    query(&folder, &["shop", "SELECT 1"]).refuses(3, "has version 9 of the tables");
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_trace_without_events_and_a_trace_without_symbols_can_be_queried() {
    let folder = shop();
    record(&folder, "none", 100, &["--window", "100s.."]);
    record(&folder, "plain", 100, &["--no-symbols", "--stacks", "none"]);
    for name in names() {
        let file = queries().join(format!("{name}.sql"));
        for trace in ["none", "plain"] {
            let ran = query(&folder, &[trace, "--file", file.to_str().unwrap()]);
            assert_eq!(ran.status(), 0, "{name} of {trace}: {}", ran.errors());
        }
    }
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn the_path_of_a_trace_may_have_any_characters() {
    let folder = recorded();
    let place = folder.path("it's [a] *folder?");
    fs::create_dir(&place).unwrap();
    fs::rename(folder.path("shop.mallard"), place.join("shop's.mallard")).unwrap();
    let name = place.join("shop's");
    let rows = rows(&folder, &[name.to_str().unwrap(), "SELECT count(*) AS n FROM allocs"]);
    assert!(rows[0]["n"].as_i64().unwrap() > 1000, "{rows:?}");
}

#[test]
#[ignore = "needs DuckDB and the recorder; ./x test has them"]
fn a_query_leaves_no_temporary_files_behind() {
    let folder = recorded();
    fs::create_dir(folder.path("tmp")).unwrap();
    let files = || fs::read_dir(folder.path("")).unwrap().count();
    let before = files();
    let mut mallard = folder.command(MALLARD);
    mallard.env("TMPDIR", folder.path("tmp")).args([
        "query",
        "shop",
        "SELECT sum(size) FROM events",
    ]);
    assert!(mallard.output().unwrap().status.success());
    assert_eq!(files(), before);
    assert_eq!(fs::read_dir(folder.path("tmp")).unwrap().count(), 0);
}
