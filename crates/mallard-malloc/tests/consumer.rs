//! The package as others get it: unpacked elsewhere, in a fresh project, without this repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap()
}

fn says(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn expect(output: Output) -> Output {
    assert!(output.status.success(), "{}", says(&output));
    output
}

/// Where the package is, and beside it a project with these files.
fn project(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).unwrap();
    let target = room.join("packed");
    let pack = ["package", "--no-verify", "--allow-dirty", "--offline", "--target-dir"];
    expect(cargo(here, &[&pack[..], &[target.to_str().unwrap()]].concat()));
    let version = env!("CARGO_PKG_VERSION");
    let archive = target.join(format!("package/mallard-malloc-{version}.crate"));
    expect(Command::new("tar").arg("xf").arg(archive).current_dir(&room).output().unwrap());
    fs::rename(room.join(format!("mallard-malloc-{version}")), room.join("mallard-malloc"))
        .unwrap();
    for (path, text) in files {
        let path = room.join("project").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // The versions that this package has, which are at hand without a network.
    let _ = fs::copy(here.join("../../Cargo.lock"), room.join("project/Cargo.lock"));
    room.join("project")
}

const MAIN: &str = r#"
#[global_allocator]
static A: mallard_malloc::Mallard = mallard_malloc::Mallard;

fn main() {
    let lines: Vec<String> = (0..1000).map(|i| format!("line {i}")).collect();
    assert!(mallard_malloc::stats().blocks_live > 1000);
    println!("{} lines", lines.len());
}
"#;

#[test]
fn a_fresh_project_uses_the_package() {
    let manifest = "[package]\nname = \"fresh\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [workspace]\n[dependencies]\nmallard-malloc = { path = \"../mallard-malloc\" }\n";
    let project = project("fresh", &[("Cargo.toml", manifest), ("src/main.rs", MAIN)]);
    let out = expect(cargo(&project, &["run", "--offline"]));
    assert!(says(&out).contains("1000 lines"), "{}", says(&out));
    assert!(!says(&out).contains("warning"), "{}", says(&out));

    let names =
        expect(Command::new("nm").arg(project.join("target/debug/fresh")).output().unwrap());
    let defines = |name: &str| {
        let ends = [format!(" T {name}"), format!(" t {name}")];
        says(&names).lines().any(|line| ends.iter().any(|end| line.ends_with(end)))
    };
    assert!(defines("mallard_rust_pop"));
    assert!(!defines("malloc") && !defines("free") && !defines("_Znwm"));

    let without = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--release"])
        .current_dir(&project)
        .env_remove("CARGO_TARGET_DIR")
        .env("CXX", "no-such-compiler")
        .output()
        .unwrap();
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
fn a_plugin_is_closed_before_the_threads_that_used_it_end() {
    let manifest = "[package]\nname = \"plugin\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [workspace]\n[lib]\ncrate-type = [\"cdylib\"]\npath = \"src/plugin.rs\"\n\
                    [dependencies]\nmallard-malloc = { path = \"../mallard-malloc\" }\n";
    let files = [("Cargo.toml", manifest), ("src/plugin.rs", PLUGIN), ("host.rs", HOST)];
    let project = project("plugin", &files);
    expect(cargo(&project, &["build", "--offline"]));
    expect(
        Command::new("rustc")
            .args(["--edition", "2021", "host.rs"])
            .current_dir(&project)
            .output()
            .unwrap(),
    );
    let plugin = project.join("target/debug/libplugin.so");
    let out = expect(Command::new(project.join("host")).arg(plugin).output().unwrap());
    assert!(says(&out).contains("all threads ended"));
}
