//! Tests that with `--anonymize`, the files of `mallard record`, `import` and `export` contain no
//! path, argument, environment variable or host name.

use crate::support::{self, orders, Folder, THREE_BLOCKS};
use mallard_trace::tables::schema::{ALL, ALLOCS};
use mallard_trace::tables::{Kind, Table};
use std::fs;
use std::path::Path;

/// Returns all readable content of the files in a directory, which is their bytes, and the texts of
/// compressed tables.
fn content(folder: &Path) -> String {
    let mut content = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            content += &self::content(&path);
        } else {
            content += &String::from_utf8_lossy(&fs::read(&path).unwrap());
            content += &texts(&path);
        }
    }
    content
}

/// Returns all texts of a table. The table is the file NAME.parquet or in a directory NAME.
fn texts(path: &Path) -> String {
    let tables = ALL.into_iter().chain([&ALLOCS]);
    let mut all = String::new();
    for schema in tables.filter(|schema| path.to_str().unwrap().contains(schema.name)) {
        // To read it, the file is opened as the table of a temporary trace.
        let place = tempfile::tempdir().unwrap();
        let to = match schema.has_parts {
            true => place.path().join(schema.name).join("part-0000.parquet"),
            false => place.path().join(format!("{}.parquet", schema.name)),
        };
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(path, to).unwrap();
        let Ok(table) = Table::open(place.path(), schema) else { continue };
        for field in schema.fields.iter().filter(|field| field.kind == Kind::Text) {
            all += &table.texts(field.name).unwrap().join("\n");
        }
    }
    all
}

#[test]
fn an_import_omits_paths_on_request() {
    let folder = orders();
    assert!(content(&folder.path("orders.mallard")).contains("/usr/bin/orders"));
    let words = ["import", "orders.stream", "--anonymize", "-o", "anonymous"];
    assert_eq!(folder.mallard(&words).status(), 0);
    let left = content(&folder.path("anonymous.mallard"));
    assert!(left.contains("orders of the day") && !left.contains("/usr"), "{left}");
    assert!(folder.mallard(&["sites", "anonymous"]).out().contains("orders of the day"));
}

#[test]
fn an_export_omits_paths_on_request() {
    let folder = orders();
    let add = ["export", "orders", "--fleet", "all", "--service", "shop", "--events"];
    assert_eq!(folder.mallard(&add).status(), 0);
    assert!(content(&folder.path("all")).contains("/usr/bin/orders"));
    let ran = folder.mallard(&[&add[..], &["--anonymize", "--force"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let left = content(&folder.path("all"));
    assert!(left.contains("orders of the day") && !left.contains("/usr"), "{left}");
    assert!(content(&folder.path("orders.mallard")).contains("/usr/bin/orders"), "it is unchanged");
}

#[test]
fn every_export_format_omits_paths_on_request() {
    let folder = orders();
    for format in ["csv", "folded", "pprof", "speedscope", "perfetto"] {
        let export = |options: &[&str]| {
            let words = ["export", "orders", "--format", format, "--force", "-o", "file"];
            let ran = folder.mallard(&[&words[..], options].concat());
            assert_eq!(ran.status(), 0, "{}", ran.errors());
            // With these options, gzip copies a file that is not compressed.
            let gunzip = folder.command("gzip").args(["-dcf", "file"]).output().unwrap();
            String::from_utf8_lossy(&gunzip.stdout).into_owned()
        };
        assert!(!export(&["--anonymize"]).contains("/usr/bin"), "{format}");
        assert!(export(&[]).contains("orders"), "{format}");
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_recording_omits_paths_arguments_environment_and_host_name_on_request() {
    let folder = Folder::new();
    let program = folder.compile("three", THREE_BLOCKS, &[]);
    let host = nix::sys::utsname::uname().unwrap().nodename().to_str().unwrap().to_string();
    let record = |name: &str, options: &[&str]| {
        let mut mallard = folder.command(support::MALLARD);
        mallard.env("MALLOC_ARENA_MAX", "7654321").args(["record", "-o", name]).args(options);
        mallard.args(["--", &program, "--password", "tell-nobody"]);
        assert_eq!(support::Ran(mallard.output().unwrap()).status(), 7);
        content(&folder.path(&format!("{name}.mallard")))
    };
    let home = folder.path("").to_str().unwrap().trim_end_matches('/').to_string();
    let secrets =
        [home.as_str(), "tell-nobody", "--password", "7654321", "MALLOC_ARENA_MAX", "/lib/"];
    let open = record("open", &[]);
    for secret in secrets {
        assert!(open.contains(secret), "{secret}");
    }
    assert!(folder.manifest("open.mallard")["notes"]["host"] == host.as_str());
    let closed = record("closed", &["--anonymize"]);
    for secret in secrets {
        assert!(!closed.contains(secret), "{secret}");
    }
    assert!(!closed.contains("/usr/"), "{closed}");
    let notes = &folder.manifest("closed.mallard")["notes"];
    assert_eq!((&notes["host"], &notes["program"]), (&serde_json::Value::Null, &"three".into()));
    assert!(!fs::exists(folder.path("closed.stream")).unwrap());
    // The trace still contains what makes it useful.
    let sites = folder.mallard(&["sites", "closed"]).out();
    assert!(sites.contains("make  three.c:4"), "{sites}");
    assert!(folder.mallard(&["stats", "closed"]).out().starts_with("program         three\n"));
    let keep = ["record", "--anonymize", "--keep-stream", "--", "true"];
    folder.mallard(&keep).refuses(2, "--keep-stream");
}
