//! Finds a program before it is started, and checks whether the recorder or another malloc can be
//! preloaded into it.

use crate::error::status::{CANNOT_RECORD, NOT_FOUND};
use crate::error::Failure;
use crate::mallocs::list::Mallocs;
use crate::output::shell::quoted_path;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A property of a program that was found before the program starts.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Finding {
    /// Whether the program cannot be recorded or run under another malloc because of this property.
    pub refuses: bool,
    /// The description of the property in one line.
    pub what: String,
    /// What the user can do.
    pub help: String,
    /// The function by which the program allocates, if the program has its own allocator. Calls of
    /// that function are neither recorded nor served by a preloaded malloc.
    pub allocates_by: Option<&'static str>,
}

/// Returns the function by which a program allocates instead of malloc. `None` if no finding names
/// one.
pub fn allocates_by(findings: &[Finding]) -> Option<&'static str> {
    findings.iter().find_map(|finding| finding.allocates_by)
}

fn refusal(what: impl Into<String>, help: impl Into<String>) -> Finding {
    Finding { refuses: true, what: what.into(), help: help.into(), allocates_by: None }
}

fn warning(what: impl Into<String>, help: impl Into<String>) -> Finding {
    Finding { refuses: false, what: what.into(), help: help.into(), allocates_by: None }
}

/// Finds a program as a shell does: by its path if `name` has a slash, otherwise in PATH. `command`
/// is the command that the user typed in front of the name, such as `mallard record --`, for error
/// messages.
pub fn find(name: &OsStr, command: &str) -> Result<PathBuf, Failure> {
    let shown = name.to_string_lossy();
    // A name that begins with a dash is probably a mistyped option.
    if shown.starts_with('-') {
        let what = format!("there is no option '{shown}'");
        let help = format!("{} --help", command.trim_end_matches(" --"));
        return Err(Failure::new(what, "nothing was started", help));
    }
    let not_found = || {
        let help = if name.as_bytes().contains(&b'/') {
            let folder = Path::new(name).parent().unwrap_or(Path::new("/"));
            format!("ls {}", quoted_path(folder))
        } else if Path::new(name).is_file() {
            format!(
                "{command} {}, for the one in this directory",
                quoted_path(&Path::new(".").join(name))
            )
        } else {
            format!("check the name, or give the path: {command} ./PROG")
        };
        Failure::new(format!("there is no program '{shown}'"), "nothing was started", help)
            .with_status(NOT_FOUND)
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return if path.exists() { executable(path, command) } else { Err(not_found()) };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let files: Vec<PathBuf> = candidates.filter(|path| path.is_file()).collect();
    match files.iter().find(|path| is_executable(path)).or(files.first()) {
        Some(path) => executable(path.clone(), command),
        None => Err(not_found()),
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && path.metadata().is_ok_and(|m| m.permissions().mode() & 0o111 != 0)
}

fn executable(path: PathBuf, command: &str) -> Result<PathBuf, Failure> {
    if is_executable(&path) {
        return Ok(path);
    }
    let (shown, pasted) = (path.display(), quoted_path(&path));
    let (what, help) = if path.is_dir() {
        (format!("{shown} is a directory"), format!("name a program: {command} PROG"))
    } else {
        (
            format!("{shown} is not executable"),
            format!("chmod +x {pasted}, if it is a program: file {pasted}"),
        )
    };
    Err(Failure::new(what, "nothing was started", help).with_status(CANNOT_RECORD))
}

/// Examines the file of a program. For a script, examines its interpreter.
pub fn examine(path: &Path) -> std::io::Result<Vec<Finding>> {
    if let Some(line) = script_line(path)? {
        return examine_script(path, &line);
    }
    let mut findings = privileges(path)?;
    // Reads the file instead of mapping it. If another process truncated the file meanwhile,
    // reading a mapping would raise SIGBUS.
    let data = std::fs::read(path)?;
    if !data.starts_with(b"\x7fELF") {
        findings.push(refusal(
            "it is neither an ELF program nor a script with a #! line",
            format!("name the program that runs it, such as sh {}", quoted_path(path)),
        ));
        return Ok(findings);
    }
    match ElfFile64::<object::Endianness>::parse(&*data) {
        Ok(elf) if elf.elf_header().e_machine(elf.endian()) == machine() => {
            findings.extend(examine_elf(&elf));
        }
        Err(error) if is_for_this_machine(&data) => findings.push(refusal(
            format!("its ELF file is corrupt or truncated: {}", error.to_string().to_lowercase()),
            format!("copy or build it again; readelf -a {} shows more", quoted_path(path)),
        )),
        _ => findings.push(refusal(
            format!("it is not a 64-bit program for {}", std::env::consts::ARCH),
            "use a build for this machine",
        )),
    }
    findings.extend(hint(path));
    Ok(findings)
}

/// Returns whether the first bytes of an ELF file name this machine's processor and 64 bits.
fn is_for_this_machine(data: &[u8]) -> bool {
    data.get(4) == Some(&elf::ELFCLASS64) && data.get(18..20) == Some(&machine().to_le_bytes()[..])
}

/// Returns a warning if the file name is that of an interpreter with its own memory management.
/// Such an interpreter calls malloc for only a part of its memory.
fn hint(path: &Path) -> Option<Finding> {
    let name = path.file_name()?.to_string_lossy();
    if name.starts_with("python") && std::env::var_os("PYTHONMALLOC").is_none() {
        return Some(warning(
            "Python keeps small objects in its own arenas, and only these arenas are from malloc",
            "PYTHONMALLOC=malloc in front of the command, so that every object is from malloc",
        ));
    }
    ["java", "node"].contains(&&*name).then(|| {
        warning(
            format!("{name} has a garbage-collected heap, so only its native code calls malloc"),
            format!("use the profiler of {name} for the rest of its memory"),
        )
    })
}

/// Returns the first line of a script after `#!`; `None` if the file is no script.
fn script_line(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut begin = Vec::new();
    File::open(path)?.take(512).read_to_end(&mut begin)?;
    let line = begin.strip_prefix(b"#!").and_then(|line| line.split(|&b| b == b'\n').next());
    Ok(line.map(<[u8]>::to_vec))
}

fn machine() -> u16 {
    if cfg!(target_arch = "aarch64") {
        elf::EM_AARCH64
    } else {
        elf::EM_X86_64
    }
}

/// Returns the file that the system loads for a program, which is the interpreter if the program is
/// a script.
pub fn loaded(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    // The system follows at most four interpreters that are scripts themselves.
    for _ in 0..4 {
        let Ok(Some(line)) = script_line(&path) else { break };
        let mut words = line.split(u8::is_ascii_whitespace);
        let Some(interpreter) = words.find(|word| !word.is_empty()) else { break };
        path = PathBuf::from(OsStr::from_bytes(interpreter));
    }
    path
}

/// Returns a warning about a script that runs under a shell or `env`. Without `--follow fork,exec`,
/// the programs that the shell or `env` starts are not recorded.
pub fn script(path: &Path) -> Option<Finding> {
    let line = script_line(path).ok()??;
    let line = String::from_utf8_lossy(&line);
    let mut names = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let interpreter = names.find(|&name| name != "env" && !name.starts_with('-'))?;
    let is_shell = ["sh", "bash", "dash", "zsh", "ksh"].contains(&interpreter);
    let starter = if is_shell { "it" } else { "env" };
    (is_shell || line.contains("/env ")).then(|| {
        warning(
            format!("it is a script of {interpreter}, and what {starter} starts is not recorded"),
            format!("mallard record --follow fork,exec -- {}", quoted_path(path)),
        )
    })
}

/// Examines the interpreter of a script. `line` is the first line of the script, after #!.
fn examine_script(path: &Path, line: &[u8]) -> std::io::Result<Vec<Finding>> {
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let Some(interpreter) = words.next() else {
        return Ok(vec![refusal(
            "its #! line names no interpreter",
            format!("head -1 {}", quoted_path(path)),
        )]);
    };
    let mut interpreter = PathBuf::from(OsStr::from_bytes(interpreter));
    if interpreter.ends_with("env") {
        let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
        if let Some(Ok(found)) = name.map(|name| find(OsStr::from_bytes(name), "")) {
            interpreter = found;
        }
    }
    if interpreter == path || !interpreter.exists() {
        let what = format!("its interpreter {} does not exist", interpreter.display());
        return Ok(vec![refusal(what, format!("head -1 {}", quoted_path(path)))]);
    }
    examine(&interpreter)
}

/// Finds out whether the file gives privileges to the program, such as set-user-ID. The dynamic
/// linker ignores LD_PRELOAD for such a program.
fn privileges(path: &Path) -> std::io::Result<Vec<Finding>> {
    let meta = path.metadata()?;
    let is_root = nix::unistd::geteuid().is_root();
    let gains_user = meta.mode() & 0o4000 != 0 && meta.uid() != nix::unistd::geteuid().as_raw();
    let gains_group = meta.mode() & 0o2000 != 0 && meta.gid() != nix::unistd::getegid().as_raw();
    let mut findings = Vec::new();
    if gains_user || gains_group {
        findings.push(refusal(
            "it is set-user-ID or set-group-ID, and the system preloads nothing into such a program",
            format!("use a copy, which has no such bit: {}", copied(path)),
        ));
    } else if !is_root && has_capabilities(path) {
        findings.push(refusal(
            "its file has capabilities, and the system preloads nothing into such a program",
            format!("use a copy, which has none: {}", copied(path)),
        ));
    }
    Ok(findings)
}

fn copied(path: &Path) -> String {
    format!("cp {} /tmp", quoted_path(path))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    #[allow(unsafe_code)]
    // SAFETY: both strings end with a zero byte, and with a size of 0 the call returns only the
    // length.
    unsafe {
        nix::libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0)
            > 0
    }
}

fn examine_elf(elf: &ElfFile64) -> Vec<Finding> {
    let is_go = elf.section_by_name(".note.go.buildid").is_some();
    let Some(interpreter) = interpreter(elf) else {
        let what = if is_go {
            "it is a static Go program, whose memory is managed by Go's runtime, not by malloc"
        } else {
            "it is linked statically, and the system preloads nothing into such a program"
        };
        let help = if is_go {
            "use Go's own profiler, and go tool pprof to read its files"
        } else {
            "link it dynamically, or wrap single allocators in mallard::traced"
        };
        return vec![refusal(what, help)];
    };
    let mut findings = Vec::new();
    if interpreter.contains("ld-musl") {
        findings.push(refusal(
            "it uses the C library musl, and preloaded libraries need glibc",
            "use a build for glibc",
        ));
    }
    if is_go {
        let finding = warning(
            "it is a Go program, so only its C code calls malloc",
            "use Go's own profiler, and go tool pprof to read its files",
        );
        findings.push(Finding { allocates_by: Some("runtime.mallocgc"), ..finding });
    }
    let needed = needed_libraries(elf);
    let sanitizer = |name: &str| {
        ["libasan", "libtsan", "libmsan", "libhwasan", "liblsan"]
            .iter()
            .any(|s| name.starts_with(s))
    };
    let defined: std::collections::HashSet<&str> = elf
        .dynamic_symbols()
        .chain(elf.symbols())
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    // A program that defines or imports such a function calls the function instead of malloc.
    let own = Mallocs::get().allocates_by(|name| {
        defined.contains(name) || elf.dynamic_symbols().any(|symbol| symbol.name() == Ok(name))
    });
    let exported =
        |name: &str| elf.dynamic_symbols().any(|s| s.is_definition() && s.name() == Ok(name));
    if needed.iter().any(|name| sanitizer(name))
        || defined.contains("__asan_init")
        || defined.contains("__tsan_init")
    {
        findings.push(refusal(
            "it is built with a sanitizer, which replaces malloc itself",
            "use a build without -fsanitize",
        ));
    } else if exported("malloc") {
        findings.push(refusal(
            format!(
                "it has its own malloc{}, which is called instead of a preloaded one",
                whose(&defined)
            ),
            "use a build that has the malloc of the system",
        ));
    } else if let Some(symbol) = own {
        let finding = warning(
            format!("it has its own allocator ({symbol}), whose blocks are not from malloc"),
            "use a build that has the malloc of the system",
        );
        findings.push(Finding { allocates_by: Some(symbol), ..finding });
    } else if exported("_Znwm") && needed.iter().any(|name| is_library_of_cpp(name)) {
        findings.push(warning(
            "it has its own operator new, so memory that does not come from malloc is not recorded",
            "you need not do anything if it calls malloc; otherwise use a build without it",
        ));
    }
    findings
}

/// Returns whether a library is a C++ standard library, which defines operator new. If a program
/// loads no such library, an operator new in the program may be from a static copy of the library.
fn is_library_of_cpp(name: &str) -> bool {
    name.starts_with("libstdc++.") || name.starts_with("libc++.")
}

/// Returns the name of the allocator whose functions a program contains, for a message.
fn whose(defined: &std::collections::HashSet<&str>) -> String {
    let of = Mallocs::get().contained(|name| defined.contains(name));
    of.map_or(String::new(), |entry| format!(" ({})", entry.library_name()))
}

/// Returns the path of the dynamic linker. `None` if the program is static.
fn interpreter(elf: &ElfFile64) -> Option<String> {
    let endian = elf.endian();
    let header = elf.elf_program_headers().iter().find(|h| h.p_type(endian) == elf::PT_INTERP)?;
    let path = header.interpreter(endian, elf.data()).ok()??;
    Some(String::from_utf8_lossy(path).into_owned())
}

fn needed_libraries(elf: &ElfFile64) -> Vec<String> {
    let endian = elf.endian();
    let sections = elf.elf_section_table();
    let Ok(Some((entries, link))) = sections.dynamic(endian, elf.data()) else { return Vec::new() };
    let Ok(strings) = sections.strings(endian, elf.data(), link) else { return Vec::new() };
    entries
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED))
        .filter_map(|entry| entry.string(endian, strings).ok())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}
