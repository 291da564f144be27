//! Runs the browser tests of a page in Chromium. The tests of several crates include this file.

use crate::skip;
use std::path::Path;
use std::process::Command;

/// Runs a script of tests/ that checks a page in Chromium, and returns what the script printed.
/// Skips the test and returns `None` if Chromium, chromedriver or Selenium is missing.
pub fn in_browser(script: &str, words: &[&Path]) -> Option<String> {
    let has_selenium = Command::new("/usr/bin/python3").args(["-c", "import selenium"]).output();
    if !has_selenium.is_ok_and(|ran| ran.status.success())
        || !Path::new("/usr/bin/chromedriver").exists()
    {
        skip("no Chromium, or no chromedriver and Selenium, which drive it");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let ran =
        Command::new(script).args(words).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    println!("{said}");
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    Some(said)
}
