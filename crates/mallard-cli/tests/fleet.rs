//! Tests `mallard export --fleet`. `sql/fleet.rs` tests queries over a fleet.

use crate::support::sql::{add, query};
use crate::support::{orders, skip, Ran, MALLARD};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Returns the paths of all files in a directory, except those whose names begin with a dot.
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
fn invalid_arguments_for_a_fleet_are_rejected() {
    let folder = orders();
    add(&folder, "orders", &[]).refuses(2, "--service");
    add(&folder, "orders", &["--service", "a/b"]).refuses(2, "a name begins with a letter");
    add(&folder, "orders", &["--service", "a", "--date", "today"])
        .refuses(2, "the date must be a day");
    add(&folder, "orders", &["--service", "a", "--format", "csv"]).refuses(2, "--format");
    add(&folder, "nothing", &["--service", "a"]).refuses(3, "there is no trace");
    let nowhere = ["export", "orders", "--fleet", "no/such/folder", "--service", "a"];
    folder.mallard(&nowhere).refuses(3, "mkdir -p no/such/folder");
}

#[test]
fn a_run_is_added_to_a_fleet_once_and_replaced_with_force() {
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
    // By default, the name of the run is the time of the recording.
    assert_eq!(add(&folder, "orders", &["--service", "shop"]).status(), 0);
    assert_eq!(files(&all.join("sites")).len(), 2);
}

#[test]
fn a_fleet_directory_with_another_layout_is_rejected() {
    let folder = orders();
    let run = ["--service", "shop"];
    for other in ["notes.txt", "shop/sites/part-0.parquet", "sites/2026/part-0.parquet"] {
        let path = folder.path("all").join(other);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let before = files(&folder.path("all"));
        add(&folder, "orders", &run).refuses(3, "all is not a fleet: it contains ");
        query(&folder, &["--fleet", "all", "SELECT 1"])
            .refuses(3, "all is not a fleet: it contains ");
        assert_eq!(files(&folder.path("all")), before);
        fs::remove_dir_all(folder.path("all")).unwrap();
    }
    let in_trace = ["export", "orders", "--fleet", "orders.mallard", "--service", "shop"];
    folder.mallard(&in_trace).refuses(3, "orders.mallard is not a fleet");
}

#[test]
fn a_corrupt_trace_is_not_added_to_a_fleet() {
    let folder = orders();
    let frames = folder.path("orders.mallard/frames.parquet");
    let bytes = fs::read(&frames).unwrap();
    fs::write(&frames, &bytes[..bytes.len() - 20]).unwrap();
    add(&folder, "orders", &["--service", "shop"]).refuses(3, "frames.parquet is corrupt");
    assert!(files(&folder.path("all")).is_empty());
    assert_eq!(fs::read_dir(folder.path("all")).unwrap().count(), 0, "nothing hidden is left");
}

#[test]
fn two_simultaneous_exports_to_a_fleet_succeed_unless_they_add_the_same_run() {
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
fn a_full_disk_leaves_the_fleet_unchanged() {
    let folder = orders();
    fs::create_dir(folder.path("small")).unwrap();
    // The script mounts a file system of 160 KiB in a mount namespace. Runs are added until the file
    // system is full.
    let script = format!(
        "mount -t tmpfs -o size=160k tmpfs small || exit 77\n\
         for i in 1 2 3 4 5 6 7 8 9; do\n\
           '{MALLARD}' export orders --fleet small --service shop --events --run run-$i || {{ echo failed $?; break; }}\n\
           find small -name '*.parquet' | sort > before\n\
         done\n\
         find small -name '*.parquet' | sort > after\n\
         find small -name '*.part'"
    );
    let unshared = folder.command("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap();
    let ran = Ran(unshared);
    if ran.errors().contains("mount:") || ran.errors().contains("unshare:") {
        return skip("no mount namespace");
    }
    assert_eq!(ran.out(), "failed 3\n", "{}", ran.errors());
    assert!(ran.errors().contains("cannot add to the fleet small"), "{}", ran.errors());
    let read = |name| fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(read("before"), read("after"));
}
