//! Compiles Mallard's engine, which is written in C++20 and needs no C++ runtime.

use std::path::PathBuf;
use std::process::{exit, Command};
use std::{env, fs};

const ENGINE: &str = "engine/src";

/// The list of the files to compile, with the optimisation for each file. CMake reads the same
/// list.
const SOURCE_LIST: &str = "engine/src/engine_sources.txt";

fn main() {
    println!("cargo:rustc-check-cfg=cfg(mallard_engine)");
    println!("cargo:rerun-if-changed=build.rs");
    if !has_engine() {
        let target = env::var("TARGET").unwrap_or_default();
        println!("cargo:warning=the engine does not support {target}, so Mallard uses the system's allocator");
        return;
    }
    println!("cargo:rustc-cfg=mallard_engine");
    let mut all = compiler(2);
    let prefers_size = |source: &Source| match source.optimise.as_str() {
        "Os-clang" => all.try_get_compiler().is_ok_and(|c| c.is_like_clang()),
        optimise => optimise == "Os",
    };
    let (short, fast): (Vec<_>, Vec<_>) = sources().into_iter().partition(prefers_size);
    for object in compile(&short, "s").into_iter().chain(compile(&fast, "2")) {
        all.object(object);
    }
    // +whole-archive is needed because a linker takes an object from an archive only if another
    // object refers to the object. No object refers to options.o (which reads MALLARD_LIMIT) or to
    // malloc.o.
    all.link_lib_modifier("+whole-archive").compile("mallard_malloc");
    for place in ["src/engine_sources.txt", "src/heap", "src/malloc", "src/os", "include/mallard"] {
        println!("cargo:rerun-if-changed=engine/{place}");
    }
}

/// Returns whether the engine supports the target.
fn has_engine() -> bool {
    let of = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    (of("OS").as_str(), of("ARCH").as_str(), of("ENV").as_str()) == ("linux", "x86_64", "gnu")
}

/// A source file to compile, and its optimisation: "O2", "Os" or "Os-clang" (`-Os` with clang
/// only).
struct Source {
    path: PathBuf,
    optimise: String,
}

/// Returns the sources that the list names for this crate, in the order of the list.
fn sources() -> Vec<Source> {
    let list = fs::read_to_string(SOURCE_LIST).unwrap_or_else(|_| {
        fail(
            "the engine's sources are not in engine/",
            "the package is incomplete, or links were not checked out; nothing was built",
            "git config core.symlinks true && git checkout crates/mallard-malloc/engine",
        )
    });
    let overrides = env::var_os("CARGO_FEATURE_OVERRIDE").is_some();
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (part, optimise, path) = (words.next()?, words.next()?, words.next()?);
        let is_wanted = !["malloc", "glibc"].contains(&part) || overrides;
        is_wanted.then(|| Source {
            path: format!("{ENGINE}/{}", path.replace("{platform}", "linux")).into(),
            optimise: optimise.to_owned(),
        })
    };
    list.lines().filter(|l| !l.starts_with('#')).filter_map(line).collect()
}

/// Returns a compiler for the engine. The compiler optimises in every build profile, so that a
/// debug build of a program also has a fast allocator.
fn compiler(level: u32) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++20")
        .include("engine/include")
        .include(format!("{ENGINE}/malloc/unchecked"))
        .include(format!("{ENGINE}/malloc/dlsym")) // works without a C++ runtime
        .opt_level(level)
        .force_frame_pointer(false)
        .warnings(false)
        .define("NDEBUG", None)
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-fvisibility=hidden")
        .flag("-fvisibility-inlines-hidden")
        // With initial-exec, reading a thread-local variable never allocates.
        .flag("-ftls-model=initial-exec")
        .flag("-fno-builtin-malloc")
        .flag("-U_GLIBCXX_ASSERTIONS");
    build
}

fn compile(sources: &[Source], level: &str) -> Vec<PathBuf> {
    let mut build = compiler(2);
    build.opt_level_str(level).files(sources.iter().map(|s| &s.path));
    match build.try_compile_intermediates() {
        Ok(objects) => objects,
        Err(error) => explain(&build, &error.to_string()),
    }
}

/// Prints why the engine does not compile, and exits.
fn explain(build: &cc::Build, error: &str) -> ! {
    let command = build.try_get_compiler().map(|c| c.path().to_owned()).unwrap_or("c++".into());
    let name = command.display();
    let says = |option| Command::new(&command).arg(option).output();
    match says("--version") {
        Err(_) => fail(
            &format!("there is no C++ compiler `{name}`"),
            "the engine of this crate is C++20 and is compiled here; nothing was built",
            "apt-get install g++, or CXX=clang++ cargo build",
        ),
        Ok(version) => fail(
            &format!("`{name}` does not compile the engine"),
            &format!("it is {}: {}", first_line(&version.stdout), first_line(error.as_bytes())),
            "g++ 12 and clang 16 do, and later ones: CXX=g++-12 cargo build",
        ),
    }
}

fn first_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().next().unwrap_or_default().to_owned()
}

/// Prints an error in three lines (what happened, the state, help) and exits.
fn fail(what: &str, state: &str, help: &str) -> ! {
    eprintln!("mallard-malloc: {what}\n  {state}\n  help: {help}");
    exit(1);
}
