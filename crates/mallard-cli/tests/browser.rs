//! Tests the HTML page in a real browser: runs the checks of page.py, for two machines and every
//! suite.

mod fixture;

use fixture::{a_part, elsewhere, Tree};
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs chromium, chromium-driver, python3-selenium and libjs-chart.js; ./x test has them"]
fn the_page_works_in_a_browser() {
    let rows = a_part();
    let tree = Tree::with(&[rows.clone(), elsewhere(&rows)].concat());
    tree.run(&["report"]).ok();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page.py");
    let output = Command::new(script).arg(tree.path("build/performance.html")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.matches("ok    ").count() >= 15, "{said}");
}
