//! Tests the package as its users get it, which is unpacked in a new project, without this
//! repository.
#![cfg(mallard_engine)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns a call of cargo in `folder` that builds in `folder/target`, even if the environment
/// names another target directory.
fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTFLAGS");
    cargo
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

fn says(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn expect(output: Output) -> Output {
    assert!(output.status.success(), "{}", says(&output));
    output
}

/// Packs and unpacks the package, and makes a project with `files` next to the package. Returns the
/// project's directory.
fn project(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).unwrap();
    let target = room.join("packed");
    let pack = ["package", "--no-verify", "--allow-dirty", "--offline", "--target-dir"];
    expect(run(cargo(here).args(pack).arg(&target)));
    let version = env!("CARGO_PKG_VERSION");
    let archive = target.join(format!("package/mallard-malloc-{version}.crate"));
    expect(run(Command::new("tar").arg("xf").arg(archive).current_dir(&room)));
    fs::rename(room.join(format!("mallard-malloc-{version}")), room.join("mallard-malloc"))
        .unwrap();
    for (path, text) in files {
        let path = room.join("project").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // Use the versions of this repository's Cargo.lock, because they are available without a
    // network.
    let _ = fs::copy(here.join("../../Cargo.lock"), room.join("project/Cargo.lock"));
    room.join("project")
}

const MAIN: &str = r#"
#[global_allocator]
static A: mallard_malloc::Mallard = mallard_malloc::Mallard;

fn main() {
    let lines: Vec<String> = (0..1000).map(|i| format!("line {i}")).collect();
    assert!(mallard_malloc::statistics().blocks_live > 1000);
    println!("{} lines", lines.len());
}
"#;

#[test]
fn a_new_cargo_project_can_use_the_packaged_crate() {
    let manifest = "[package]\nname = \"fresh\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [workspace]\n[dependencies]\nmallard-malloc = { path = \"../mallard-malloc\" }\n";
    let project = project("fresh", &[("Cargo.toml", manifest), ("src/main.rs", MAIN)]);
    let out = expect(run(cargo(&project).args(["run", "--offline"])));
    assert!(says(&out).contains("1000 lines"), "{}", says(&out));
    assert!(!says(&out).contains("warning"), "{}", says(&out));

    let names = expect(run(Command::new("nm").arg(project.join("target/debug/fresh"))));
    let defines = |name: &str| {
        let ends = [format!(" T {name}"), format!(" t {name}")];
        says(&names).lines().any(|line| ends.iter().any(|end| line.ends_with(end)))
    };
    assert!(defines("mallard_rust_pop"));
    assert!(!defines("malloc") && !defines("free") && !defines("_Znwm"));

    let without = run(cargo(&project)
        .args(["build", "--offline", "--release"])
        .env("CXX", "no-such-compiler"));
    let says = says(&without);
    assert!(!without.status.success());
    assert!(says.contains("mallard-malloc: there is no C++ compiler `no-such-compiler`"), "{says}");
    assert!(says.contains("nothing was built"), "{says}");
    assert!(says.contains("help: apt-get install g++"), "{says}");
}

const PLUGIN: &str = r#"
#[global_allocator]
static A: mallard_malloc::Mallard = mallard_malloc::Mallard;

#[no_mangle]
pub extern "C" fn work(n: usize) -> usize {
    (0..n).map(|i| format!("{i}").len()).collect::<Vec<_>>().len()
}
"#;

const HOST: &str = r#"
use std::ffi::{c_char, c_int, c_void};

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
}

fn main() {
    let path = std::ffi::CString::new(std::env::args().nth(1).unwrap()).unwrap();
    for _ in 0..3 {
        std::thread::spawn({
            let path = path.clone();
            move || unsafe {
                let plugin = dlopen(path.as_ptr(), 2);
                assert!(!plugin.is_null());
                let work: extern "C" fn(usize) -> usize =
                    std::mem::transmute(dlsym(plugin, c"work".as_ptr()));
                assert_eq!(work(1000), 1000);
                assert_eq!(dlclose(plugin), 0);
            } // and the thread ends, after the plugin
        })
        .join()
        .unwrap();
    }
    println!("all threads ended");
}
"#;

#[test]
fn threads_that_used_a_plugin_can_exit_after_it_is_closed() {
    let manifest = "[package]\nname = \"plugin\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [workspace]\n[lib]\ncrate-type = [\"cdylib\"]\npath = \"src/plugin.rs\"\n\
                    [dependencies]\nmallard-malloc = { path = \"../mallard-malloc\" }\n";
    let files = [("Cargo.toml", manifest), ("src/plugin.rs", PLUGIN), ("host.rs", HOST)];
    let project = project("plugin", &files);
    expect(run(cargo(&project).args(["build", "--offline"])));
    let host = ["--edition", "2021", "host.rs"];
    expect(run(Command::new("rustc").args(host).current_dir(&project)));
    let plugin = project.join("target/debug/libplugin.so");
    let out = expect(run(Command::new(project.join("host")).arg(plugin)));
    assert!(says(&out).contains("all threads ended"));
}
