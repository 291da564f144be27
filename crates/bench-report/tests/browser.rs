//! Tests the HTML page in a real browser by running the checks of page.py, for two machines and
//! every suite.

use crate::fixture::{a_part, elsewhere, row, Tree};
use crate::in_browser::in_browser;
use serde_json::{json, Value};

/// Makes results of two programs under two mallocs. For one of the four pairs, the replay has no
/// figure.
fn calibration() -> Vec<Value> {
    let mut rows = Vec::new();
    for (program, allocator, real, replayed) in [
        ("perl", "mallard", -10.0, -8.0),
        ("perl", "jemalloc", 6.0, 1.0),
        ("lua", "mallard", -1.5, -1.0),
        ("lua", "jemalloc", -20.0, f64::NAN),
    ] {
        let mut push = |metric: &str, median: f64, low: f64, high: f64| {
            let mut row = row("calibration", program, allocator, metric, median);
            (row["low"], row["high"], row["verdict"]) = (json!(low), json!(high), json!("gain"));
            rows.push(row);
        };
        push("real_cpu_percent", real, real - 1.0, real + 1.0);
        push("replayed_cpu_percent", replayed, replayed - 1.0, replayed + 1.0);
        push("predicted_cpu_percent", real, real - 4.0, real + 2.0);
        push("real_peak_change_kib", 2048.0, 2000.0, 2100.0);
        push("replayed_peak_change_kib", 1024.0, 1000.0, 1100.0);
    }
    rows
}

#[test]
#[ignore = "needs chromium, chromium-driver, python3-selenium and libjs-chart.js; ./x test has them"]
fn the_page_works_in_a_browser() {
    let rows = a_part();
    let tree = Tree::with(&[rows.clone(), elsewhere(&rows), calibration()].concat());
    tree.run(&["report"]).ok();
    let Some(said) = in_browser("page.py", &[&tree.path("build/performance.html")]) else { return };
    assert!(said.matches("ok    ").count() >= 20, "{said}");
}
