//! Tests `mallard export`.

mod support;

use std::fs;
use support::orders;

#[test]
fn a_table_of_sites_has_a_line_for_each_site() {
    let folder = orders();
    let ran = folder.mallard(&["export", "orders", "--format", "csv"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.errors().contains("next: head orders.csv"), "{}", ran.errors());
    let mut reader = csv::Reader::from_path(folder.path("orders.csv")).unwrap();
    let heads = reader.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let (bytes, functions) = (at("bytes"), at("functions"));
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let sites = folder.mallard(&["sites", "orders", "--json", "--top", "0"]).out();
    let sites: Vec<serde_json::Value> =
        sites.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), sites.len());
    let sum: i64 = lines.iter().map(|line| line[bytes].parse::<i64>().unwrap()).sum();
    assert_eq!(sum, sites.iter().map(|site| site["bytes"].as_i64().unwrap()).sum::<i64>());
    assert!(lines.iter().any(|line| !line[functions].is_empty()));
}

#[test]
fn an_export_replaces_a_file_only_with_force() {
    let folder = orders();
    fs::write(folder.path("mine"), "text").unwrap();
    let arguments = ["export", "orders", "--format", "csv", "-o", "mine"];
    folder.mallard(&arguments).refuses(3, "mine exists already");
    assert_eq!(fs::read_to_string(folder.path("mine")).unwrap(), "text");
    assert_eq!(folder.mallard(&[&arguments[..], &["--force"]].concat()).status(), 0);
    let to_stdout = folder.mallard(&["export", "orders", "--format", "csv", "-o", "-"]);
    assert_eq!(to_stdout.out(), fs::read_to_string(folder.path("mine")).unwrap());
    folder.mallard(&["export", "orders"]).refuses(2, "--format");
    folder.mallard(&["export", "nothing", "--format", "csv"]).refuses(3, "there is no trace");
    folder
        .mallard(&["export", "orders", "--format", "csv", "-o", "no/such/folder"])
        .refuses(3, "mkdir -p no/such");
}
