//! Reads the object of a report from a file that `mallard report --json` wrote.

use super::object::VERSION;
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Returns whether a file contains the object of a report, which its name shows. Any file whose
/// name does not end in `.json` is a trace.
pub fn is_object(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "json")
}

/// Reads a file. Returns the name of the recorded trace, and the object as JSON.
pub fn read(file: &Path) -> Result<(String, String), Failure> {
    let shown = file.display();
    let refused = |what: String| {
        let help = "mallard report NAME --json > FILE.json writes a file that can be read";
        Failure::new(what, "nothing was written", help).with_status(UNREADABLE)
    };
    let json = fs::read_to_string(file)
        .map_err(|e| refused(format!("cannot read {shown}: {}", e.to_string().to_lowercase())))?;
    let object: Value = serde_json::from_str(&json)
        .map_err(|e| refused(format!("{shown} is not JSON: {}", e.to_string().to_lowercase())))?;
    match object["version"].as_u64() {
        Some(version) if version == u64::from(VERSION) => {}
        Some(version) => {
            return Err(refused(format!("{shown} has version {version} of the data of a report")))
        }
        None => return Err(refused(format!("{shown} does not have the data of a report"))),
    }
    Ok((object["name"].as_str().unwrap_or_default().to_string(), json))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<(String, String), Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        fs::write(&file, text).unwrap();
        read(&file)
    }

    #[test]
    fn saved_report_data_must_be_a_json_object_of_the_current_version() {
        let (name, json) = read_text(r#"{"version":1,"name":"words"}"#).unwrap();
        assert_eq!((name.as_str(), json.len()), ("words", 28));
        assert!(read_text("{}").unwrap_err().what().contains("does not have the data"));
        assert!(read_text("[1,2").unwrap_err().what().contains("is not JSON"));
        assert!(read_text(r#"{"version":2}"#).unwrap_err().what().contains("has version 2"));
        assert!(read(Path::new("/no/such.json")).unwrap_err().what().contains("cannot read"));
    }
}
