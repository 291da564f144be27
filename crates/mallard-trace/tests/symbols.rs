//! Tests that functions and lines are found in the program itself, and in other files by build-id.

use crate::support::run::skip;
use crate::support::{call, import_in, StreamOf};
use mallard_trace::format::op;
use mallard_trace::import::Options;
use mallard_trace::tables::schema::MODULES;
use mallard_trace::Trace;
use object::read::{File, Object};
use std::path::{Path, PathBuf};

/// A function of this program. The tests look up its name.
#[inline(never)]
fn function_with_a_name(number: u64) -> u64 {
    std::hint::black_box(number * 3) + std::hint::black_box(1)
}

/// Returns the mapping of this program that contains an address: start, end and offset in the file.
pub fn mapping_of(address: u64) -> (u64, u64, u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let parse = |text: &str| u64::from_str_radix(text, 16).unwrap();
    maps.lines()
        .find_map(|line| {
            let mut parts = line.split_whitespace();
            let (start, end) = parts.next()?.split_once('-')?;
            let offset = parse(parts.nth(1)?);
            let (start, end) = (parse(start), parse(end));
            (start <= address && address < end).then_some((start, end, offset))
        })
        .expect("a mapping")
}

pub fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Returns the build-id of this program, or `None` if the linker writes none.
pub fn build_id() -> Option<String> {
    let bytes = std::fs::read(this_program()).unwrap();
    let id = File::parse(&bytes[..]).unwrap().build_id().unwrap()?.to_vec();
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Imports one allocation by `function_with_a_name`, with `path` as the path of the module.
fn trace_with(folder: &Path, build_id: &str, path: &Path, options: &Options) -> Trace {
    let address = function_with_a_name as fn(u64) -> u64 as usize as u64;
    let (start, end, offset) = mapping_of(address);
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    let text = format!("{end:x} {offset:x} {build_id} {}", path.display());
    stream.text(op::MODULE, 1000, 1, start, 0, &text);
    stream.thread(1, 1);
    stream.piece(1, &[call(op::MALLOC, 1001, 0x10, 8, 0, &[address + 4])]);
    import_in(folder, &stream.finish(), options).unwrap()
}

/// Returns three facts about the only site: its innermost function that is not inlined, the source
/// file of this function, and the source of the names.
fn found(trace: &Trace) -> (String, String, String) {
    let stacks = trace.stacks().unwrap();
    let node = trace.sites().unwrap()[0].stack;
    let functions = stacks.functions(node);
    let outer = functions.iter().find(|function| !function.is_inlined).unwrap();
    let source = trace.table(&MODULES).unwrap().texts("symbols").unwrap().remove(0);
    (outer.function.to_string(), outer.file.to_string(), source)
}

#[test]
fn the_function_at_an_address_of_this_program_is_found() {
    assert_eq!(function_with_a_name(2), 7);
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_with(folder.path(), "-", &this_program(), &Options::default());
    let (function, file, source) = found(&trace);
    assert_eq!(source, "dwarf");
    assert!(function.ends_with("function_with_a_name"), "{function}");
    assert!(file.ends_with("tests/symbols.rs"), "{file}");
}

#[test]
fn debug_information_is_found_by_build_id_alone() {
    let Some(id) = build_id() else { return skip("the linker gave this program no build-id") };
    let folder = tempfile::tempdir().unwrap();
    let debug = folder.path().join("debug");
    let place = debug.join(format!(".build-id/{}/{}.debug", &id[..2], &id[2..]));
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::copy(this_program(), place).unwrap();
    let options = Options { debug_folders: vec![debug], ..Options::default() };
    let trace = trace_with(folder.path(), &id, Path::new("/nowhere/a program"), &options);
    assert!(found(&trace).0.ends_with("function_with_a_name"));
}

#[test]
fn a_file_with_another_build_id_gives_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_with(folder.path(), "00112233", &this_program(), &Options::default());
    let (function, _, source) = found(&trace);
    assert_eq!(source, "none");
    let name = this_program().file_name().unwrap().to_string_lossy().into_owned();
    assert!(function.starts_with(&format!("{name}+0x")), "{function}");
}

#[test]
fn a_file_that_is_not_a_program_gives_no_names() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["/dev/zero", "/etc/passwd", "/", "[vdso]", ""] {
        let part = folder.path().join(path.replace('/', "_"));
        std::fs::create_dir_all(&part).unwrap();
        assert_eq!(found(&trace_with(&part, "-", Path::new(path), &Options::default())).2, "none");
    }
}

#[test]
fn compressed_debug_information_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["zlib", "zstd"] {
        let copy = folder.path().join(format);
        let option = format!("--compress-debug-sections={format}");
        let done = std::process::Command::new("objcopy")
            .arg(option)
            .arg(this_program())
            .arg(&copy)
            .output();
        // Some versions of objcopy do not support zstd.
        if !done.is_ok_and(|done| done.status.success()) {
            continue;
        }
        let trace =
            trace_with(folder.path(), "-", &copy, &Options { force: true, ..Options::default() });
        let (function, file, source) = found(&trace);
        assert_eq!(source, "dwarf");
        assert!(function.ends_with("function_with_a_name"), "{function}");
        assert!(file.ends_with("tests/symbols.rs"), "{file}");
    }
}

#[test]
fn the_embedded_symbols_of_a_stripped_program_are_read() {
    let folder = tempfile::tempdir().unwrap();
    // Like packages of Fedora: a section contains a symbol file, compressed by xz.
    let script =
        "objcopy --only-keep-debug \"$0\" debug && objcopy --strip-debug debug symbols && \
                  strip -o stripped \"$0\" && xz -k symbols && \
                  objcopy --add-section .gnu_debugdata=symbols.xz stripped";
    let done = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(this_program())
        .current_dir(folder.path())
        .output();
    if !done.is_ok_and(|done| done.status.success()) {
        return skip("no objcopy, strip or xz");
    }
    let options = Options { force: true, ..Options::default() };
    let stripped = folder.path().join("stripped");
    let (function, _, source) = found(&trace_with(folder.path(), "-", &stripped, &options));
    assert_eq!(source, "symtab");
    assert!(function.ends_with("function_with_a_name"), "{function}");
    // A corrupt section counts as missing.
    let mut bytes = std::fs::read(&stripped).unwrap();
    let at = bytes.windows(6).rposition(|six| six == b"\xfd7zXZ\0").expect("a stream of xz");
    bytes[at + 200..at + 300].fill(0xaa);
    std::fs::write(&stripped, bytes).unwrap();
    let (function, ..) = found(&trace_with(folder.path(), "-", &stripped, &options));
    assert!(function.starts_with("stripped+0x"), "{function}");
}
