//! Loads an allocator into a small program, and checks whose malloc the program calls.
//!
//! The small program is this command itself, with the hidden subcommand `whose-malloc`.

use super::Allocator;
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::mallocs::list::Mallocs;
use crate::output::shell::quoted_path;
use nix::libc;
use std::ffi::{CStr, OsStr};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time limit of the small program. A working allocator needs much less for a few blocks.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints the path of the library whose malloc this process calls.
#[derive(clap::Args)]
pub struct WhoseMalloc {}

impl WhoseMalloc {
    /// Does some work with the malloc, and then prints the path of the malloc's library.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(work)).collect();
        for thread in threads {
            let blocks = thread.join().expect("a thread that exits");
            drop(blocks); // frees blocks of a thread that has exited
        }
        let malloc = library_of(libc::malloc as *const libc::c_void);
        let free = library_of(libc::free as *const libc::c_void);
        let Some(path) = malloc.filter(|path| Some(path) == free.as_ref()) else {
            let what = "malloc and free are not in one library";
            return Err(Failure::new(what, "nothing was started", "use another library"));
        };
        crate::output::terminal::write(&path.to_string_lossy())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Allocates, grows and frees blocks of many sizes. Returns the blocks that are still in use.
fn work() -> Vec<Vec<u8>> {
    let mut blocks: Vec<Vec<u8>> = (0..200).map(|i| vec![1; i * i]).collect();
    for block in &mut blocks {
        block.extend([2; 100]);
    }
    blocks.retain(|block| block.len() % 3 == 0);
    blocks
}

#[allow(unsafe_code)]
fn library_of(function: *const libc::c_void) -> Option<PathBuf> {
    // SAFETY: all fields of `Dl_info` may be 0.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of a function, and `info` is valid.
    let found = unsafe { libc::dladdr(function, &mut info) } != 0 && !info.dli_fname.is_null();
    // SAFETY: the name ends with a zero byte, and the linker keeps it as long as the library is
    // loaded.
    found.then(|| {
        PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes()))
    })
}

/// Returns whether a library is the C library.
pub fn is_of_libc(library: &Path) -> bool {
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libc.so") || name.starts_with("libc-")
}

/// Returns the library whose malloc a program calls in the user's environment. `None` if the probe
/// fails.
pub fn malloc_as_started() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| run(|_| {}).ok().map(|answer| answer.0)).clone()
}

/// Checks that a program calls the allocator's malloc if the allocator's library is preloaded.
pub fn check(allocator: &Allocator) -> Result<(), Failure> {
    let (found, errors) = run(|command| allocator.apply(command)).map_err(|why| {
        let what = format!("a small program under {} {why}", allocator.name);
        failed(what, allocator, "")
    })?;
    let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
    let right = match &allocator.library {
        Some(library) => same(library, &found),
        None => allocator.as_started || is_of_libc(&found),
    };
    if !right {
        let what = format!(
            "{} has no effect when it is preloaded: malloc is still that of {}",
            allocator.name,
            found.display()
        );
        return Err(failed(what, allocator, &errors));
    }
    match unknown_setting(allocator) {
        Some(name) => {
            let what = format!("the C library of this machine does not know the setting {name}");
            let help = format!("{} --list-tunables, for the settings that it knows", LINKER);
            Err(Failure::new(what, "nothing was started", help).with_status(MALLARD_FAILED))
        }
        None => Ok(()),
    }
}

fn failed(what: String, allocator: &Allocator, errors: &str) -> Failure {
    let library = quoted_path(allocator.library.as_deref().unwrap_or(Path::new("")));
    let help = match errors.lines().next() {
        Some(line) => format!("the dynamic linker says: {line}"),
        None => format!("LD_PRELOAD={library} true; nm -D {library} | grep malloc"),
    };
    Failure::new(what, "nothing was started", help).with_status(MALLARD_FAILED)
}

/// Runs `whose-malloc`. Returns the path that it prints, and the text that it or the dynamic linker
/// wrote to stderr.
fn run(prepare: impl FnOnce(&mut Command)) -> Result<(PathBuf, String), String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot be started: {e}"))?;
    let mut command = Command::new(program);
    command.arg("whose-malloc");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    prepare(&mut command);
    let mut child = command.spawn().map_err(|e| format!("cannot be started: {e}"))?;
    let answer = read_all(child.stdout.take().expect("a pipe"));
    let errors = read_all(child.stderr.take().expect("a pipe"));
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| format!("cannot be waited for: {e}"))? {
            Some(status) => break status,
            None if begin.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("hangs: it was killed after {} s", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let answer = answer.join().unwrap_or_default();
    let errors = errors.join().unwrap_or_default();
    match (status.signal(), status.code()) {
        (Some(signal), _) => Err(format!("ends by signal {signal}")),
        (_, Some(0)) => {
            let errors = String::from_utf8_lossy(&errors).into_owned();
            Ok((PathBuf::from(OsStr::from_bytes(&answer)), errors))
        }
        (_, code) => Err(format!("ends with status {}", code.unwrap_or(-1))),
    }
}

/// Reads a pipe to its end while its writer runs. A malloc may print more than a pipe can hold, and
/// would otherwise wait for a reader.
fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.read_to_end(&mut text); // on an error, the text read so far is used
        text
    })
}

const LINKER: &str = if cfg!(target_arch = "aarch64") {
    "/lib/ld-linux-aarch64.so.1"
} else {
    "/lib64/ld-linux-x86-64.so.2"
};

/// Returns the libraries that a program loads when it starts, by name and path, without running the
/// program.
pub fn libraries(program: &Path) -> Vec<(String, PathBuf)> {
    let output = Command::new(LINKER).arg("--list").arg(program).output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    let parsed = text.lines().filter_map(|line| {
        let (line, _) = line.trim().rsplit_once(" (0x")?;
        let (name, path) = line.split_once(" => ").unwrap_or((line, line));
        Some((name.to_string(), PathBuf::from(path)))
    });
    parsed.collect()
}

/// Returns the name of the malloc library that a program is linked with. `None` if the program uses
/// the C library's malloc.
pub fn linked_malloc(program: &Path) -> Option<String> {
    libraries(program).into_iter().map(|(name, _)| name).find(|name| is_malloc(name))
}

/// Returns whether a library, given by its file name, has the operators new and delete of a C++
/// runtime.
pub fn is_cpp_runtime(name: &str) -> bool {
    ["libstdc++.so", "libc++.so", "libc++abi.so"].iter().any(|known| name.starts_with(known))
}

/// Returns whether a library, given by its file name, contains a malloc other than the C library's.
pub fn is_malloc(name: &str) -> bool {
    Mallocs::get().in_file(name).is_some()
}

/// Returns a setting in GLIBC_TUNABLES that the C library does not know and would ignore.
fn unknown_setting(allocator: &Allocator) -> Option<String> {
    let (_, wanted) = allocator.environment.iter().find(|(name, _)| name == "GLIBC_TUNABLES")?;
    let output = Command::new(LINKER).arg("--list-tunables").output().ok()?;
    let known = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return None; // glibc before 2.33 cannot list its settings
    }
    let names = wanted.split(':').map(|pair| pair.split('=').next().unwrap_or_default());
    let is_known = |name: &str| known.lines().any(|line| line.split(':').next() == Some(name));
    names.filter(|name| !is_known(name)).map(str::to_string).next()
}
