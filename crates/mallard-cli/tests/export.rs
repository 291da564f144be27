//! Tests `mallard export`.

use crate::support::{orders, Folder, MALLARD};
use std::fs;
use std::process::Command;

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

/// Runs mallard with stdout and stderr redirected by a shell, and returns the exit status.
fn status_with(folder: &Folder, arguments: &str, redirected: &str) -> i32 {
    let script = format!("exec '{MALLARD}' {arguments} {redirected}");
    let mut shell: Command = folder.command("sh");
    shell.args(["-c", &script]).status().unwrap().code().unwrap()
}

#[test]
fn an_unwritable_stderr_does_not_change_the_exit_status() {
    let folder = orders();
    let status = |arguments: &str| status_with(&folder, arguments, "2> /dev/full");
    assert_eq!(status("export orders --format csv"), 0);
    assert_eq!(status("import orders.stream -o again"), 0);
    assert_eq!(status("stats nothing"), 3);
    assert_eq!(status("doctor no-such-program"), 127);
    assert_eq!(status("stats --no-such-option"), 2);
}

#[test]
fn a_failed_write_to_stdout_is_an_error_but_a_closed_pipe_is_not() {
    let folder = orders();
    for arguments in ["stats orders", "sites orders", "export orders --format csv -o -"] {
        let status = status_with(&folder, arguments, "> /dev/full 2> errors");
        let errors = fs::read_to_string(folder.path("errors")).unwrap();
        assert_eq!(status, 3, "{arguments}");
        assert!(errors.starts_with("mallard: cannot write"), "{errors}");
        let pipe =
            format!("{{ '{MALLARD}' {arguments}; echo $? > status; }} 2> errors | head -c 1");
        let shell = folder.command("sh").args(["-c", &pipe]).output().unwrap();
        assert_eq!(shell.stdout.len(), 1);
        assert_eq!(fs::read_to_string(folder.path("status")).unwrap(), "0\n", "{arguments}");
        assert_eq!(fs::read_to_string(folder.path("errors")).unwrap(), "");
    }
}

#[test]
fn the_suggested_next_command_can_be_pasted_whatever_the_trace_is_named() {
    let folder = orders();
    let pasted = |text: String| {
        let next = text.lines().find_map(|line| line.trim_start().strip_prefix("next: ")).unwrap();
        let next = match next.strip_prefix("mallard ") {
            Some(rest) => format!("'{MALLARD}' {rest}"),
            None => next.to_string(), // has a path already, because mallard was called by its path
        };
        let shell = folder.command("sh").args(["-c", &next]).output().unwrap();
        assert!(shell.status.success(), "{next}: {}", String::from_utf8_lossy(&shell.stderr));
        String::from_utf8(shell.stdout).unwrap()
    };
    for name in ["sp ace", "-", "a;b", "q\"x", "it's $HOME"] {
        let output = format!("--output={name}");
        let imported = folder.mallard(&["import", "orders.stream", &output]);
        assert_eq!(imported.status(), 0, "{}", imported.errors());
        pasted(pasted(imported.errors())); // pastes mallard stats, and then mallard sites
        let trace = format!("./{name}.mallard");
        pasted(folder.mallard(&["diff", "orders", &trace]).out());
        let output = format!("--output={name}.csv");
        let exported = folder.mallard(&["export", &trace, "--format", "csv", &output]);
        let heads = pasted(exported.errors());
        assert!(heads.contains("peak_bytes"), "{heads}");
        let report = folder.mallard(&["report", &trace]);
        let expected = format!("xdg-open '{}'", trace.replace(".mallard", ".html"));
        let quoted = report.out().replace("'\\''", "'");
        assert!(name == "-" || quoted.contains(&expected), "{quoted}");
    }
}
