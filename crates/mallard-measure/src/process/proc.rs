//! Reads what the kernel reports about processes in /proc. Only this module contains paths of files
//! in /proc.
//!
//! Names and paths are bytes and are not read as UTF-8. A program may choose any name, the kernel
//! may cut a name in the middle of a character, and a path may contain any byte but 0.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The maximum number of bytes of a process name that the kernel stores.
pub const NAME_BYTES_MAX: usize = 15;

/// A process of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The calling process.
    This,
    /// The process with this id.
    Id(u32),
}

impl fmt::Display for Process {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Process::This => to.write_str("self"),
            Process::Id(id) => id.fmt(to),
        }
    }
}

/// Returns the directory of a process in /proc, or a path below it.
fn place(process: Process, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/{name}"))
}

/// Reads a file of a process in /proc. `None` if the process has exited, or this command has no
/// permission to examine the process.
fn read(process: Process, name: &str) -> Option<Vec<u8>> {
    fs::read(place(process, name)).ok()
}

/// Parses a decimal number in bytes.
fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Splits a line at blanks.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Returns the names of a directory's entries that are numbers.
fn numbers_in(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the ids of all processes.
pub fn processes() -> Vec<u32> {
    numbers_in(Path::new("/proc"))
}

/// Returns the ids of the threads of a process.
pub fn threads(process: u32) -> Vec<u32> {
    numbers_in(&place(Process::Id(process), "task"))
}

/// Returns whether a thread of a process is still running.
pub fn has_thread(process: u32, thread: u32) -> bool {
    place(Process::Id(process), &format!("task/{thread}")).exists()
}

/// Returns the CPU time of a thread in nanoseconds. `None` if the thread has ended.
pub fn cpu_ns_of_thread(process: u32, thread: u32) -> Option<u64> {
    number(words(&read(Process::Id(process), &format!("task/{thread}/schedstat"))?).next()?)
}

/// Returns the children of a process. Empty if the kernel does not list children.
pub fn children(process: u32) -> Vec<u32> {
    let of_thread = |thread| {
        let list = read(Process::Id(process), &format!("task/{thread}/children"));
        let list = list.unwrap_or_default();
        words(&list).filter_map(number).map(|child| child as u32).collect::<Vec<_>>()
    };
    threads(process).into_iter().flat_map(of_thread).collect()
}

/// The content of the file /proc/PID/stat.
#[derive(Debug)]
pub struct Stat {
    /// The name of the program, at most [`NAME_BYTES_MAX`] bytes.
    pub name: Vec<u8>,
    /// The fields after the name.
    rest: Vec<u8>,
}

impl Stat {
    /// Reads and parses the file of a process.
    pub fn of(process: u32) -> Option<Stat> {
        Stat::parse(&read(Process::Id(process), "stat")?)
    }

    /// Parses the text of the file. The name is in parentheses, and may contain any character, even
    /// a parenthesis.
    fn parse(text: &[u8]) -> Option<Stat> {
        let begin = text.iter().position(|&byte| byte == b'(')?;
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let name = text.get(begin + 1..end)?.to_vec();
        Some(Stat { name, rest: text[end + 1..].to_vec() })
    }

    /// Returns the number in a field. `index` counts fields as proc_pid_stat(5) does, where field 1
    /// is the process id.
    pub fn field(&self, index: usize) -> Option<u64> {
        number(words(&self.rest).nth(index - 3)?)
    }

    /// Returns whether the process has exited, but its parent has not waited for it yet.
    pub fn is_zombie(&self) -> bool {
        matches!(words(&self.rest).next(), Some(b"Z" | b"X"))
    }
}

/// Returns the number of resident pages of a process, and how many of those belong to a file.
pub fn resident_pages(process: u32) -> Option<(u64, u64)> {
    let text = read(Process::Id(process), "statm")?;
    let mut pages = words(&text).skip(1).map_while(number);
    Some((pages.next()?, pages.next()?))
}

/// Returns a value in the file /proc/PID/status. `name` ends with a colon.
pub fn status(process: Process, name: &str) -> Option<String> {
    let text = read(process, "status")?;
    let value = text.split(|&byte| byte == b'\n').find_map(|l| l.strip_prefix(name.as_bytes()))?;
    Some(String::from_utf8_lossy(value.trim_ascii()).into_owned())
}

/// Returns a value in the status file of a thread, as `status` does for a process.
pub fn status_of_thread(process: u32, thread: u32, name: &str) -> Option<String> {
    let text = read(Process::Id(process), &format!("task/{thread}/status"))?;
    let value = text.split(|&byte| byte == b'\n').find_map(|l| l.strip_prefix(name.as_bytes()))?;
    Some(String::from_utf8_lossy(value.trim_ascii()).into_owned())
}

/// Returns a value in bytes that the file /proc/PID/status has in KiB.
pub fn status_bytes(process: Process, name: &str) -> Option<u64> {
    Some(status(process, name)?.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Returns the limit of a process's address space in bytes (RLIMIT_AS), or `None` if it is
/// unlimited. Also works for a process that has ended but that nobody has waited for yet.
pub fn address_space_limit(process: Process) -> Option<u64> {
    let text = read(process, "limits")?;
    let mut lines = text.split(|&byte| byte == b'\n');
    number(words(lines.find_map(|line| line.strip_prefix(b"Max address space"))?).next()?)
}

/// Reads the file /proc/PID/smaps into `text`, and returns whether the file could be read.
pub fn read_smaps(process: u32, text: &mut Vec<u8>) -> bool {
    text.clear();
    let file = fs::File::open(place(Process::Id(process), "smaps"));
    file.and_then(|mut file| file.read_to_end(text)).is_ok()
}

/// Returns whether a process has mapped the file with this inode and a path that ends with `path`.
/// If `inode` is `None`, only the path is compared.
pub fn has_mapped(process: u32, path: &Path, inode: Option<u64>) -> bool {
    let text = read(Process::Id(process), "maps").unwrap_or_default();
    is_in_maps(&text, path, inode)
}

fn is_in_maps(text: &[u8], path: &Path, inode: Option<u64>) -> bool {
    // In /proc/PID/maps, the kernel writes a line feed in a path as \012. It adds ` (deleted)` to
    // the path of a deleted file.
    let path = path.as_os_str().as_bytes();
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'\n').collect();
    let path = parts.join(&b"\\012"[..]);
    text.split(|&byte| byte == b'\n').any(|line| {
        let line = line.strip_suffix(b" (deleted)").unwrap_or(line);
        let its_inode = words(line).nth(4).and_then(number);
        line.ends_with(&path) && (inode.is_none() || its_inode == inode)
    })
}

/// Returns a path to the file that a process executes. The path works even if the file was deleted.
pub fn executable(process: u32) -> PathBuf {
    place(Process::Id(process), "exe")
}

/// Returns a path to the memory of a process. An offset in that file is an address in the process.
pub fn memory(process: u32) -> PathBuf {
    place(Process::Id(process), "mem")
}

/// Returns a path to the root directory of a process.
pub fn root(process: u32) -> PathBuf {
    place(Process::Id(process), "root")
}

/// Returns a path to the file behind a descriptor of a process.
pub fn file_of(process: u32, descriptor: i32) -> PathBuf {
    place(Process::Id(process), &format!("fd/{descriptor}"))
}

/// Returns the namespace of a given kind, such as `mnt`, in which a process is.
pub fn namespace(process: Process, kind: &str) -> Option<PathBuf> {
    fs::read_link(place(process, &format!("ns/{kind}"))).ok()
}

/// Returns the numbers in the auxiliary vector that the kernel passed to a program, each with its
/// type.
pub fn auxiliary(process: u32) -> Vec<(u64, u64)> {
    let text = read(Process::Id(process), "auxv").unwrap_or_default();
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    text.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect()
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address, and the address after the last.
    pub range: std::ops::Range<u64>,
    /// Whether the process may write to the mapping.
    pub is_writable: bool,
    /// Whether the process may execute code in the mapping.
    pub is_executable: bool,
    /// The path of the mapped file, or the kernel's name for the mapping, such as `[heap]`. Empty
    /// for a mapping without a name.
    pub name: Vec<u8>,
}

/// Returns the mappings of a process, in order of their addresses.
pub fn mappings(process: u32) -> Vec<Mapping> {
    let text = read(Process::Id(process), "maps").unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(mapping).collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut words = words(line);
    let (begin, end) = std::str::from_utf8(words.next()?).ok()?.split_once('-')?;
    let [begin, end] = [begin, end].map(|text| u64::from_str_radix(text, 16));
    let rights = words.next()?;
    let name = words.nth(3).map_or(&b""[..], |name| {
        let begin = name.as_ptr() as usize - line.as_ptr() as usize;
        &line[begin..]
    });
    Some(Mapping {
        range: begin.ok()?..end.ok()?,
        is_writable: rights.get(1) == Some(&b'w'),
        is_executable: rights.get(2) == Some(&b'x'),
        name: name.to_vec(),
    })
}

/// Returns the state of a thread as the kernel shows it, such as `S` for a thread that waits.
pub fn state_of_thread(process: u32, thread: u32) -> Option<char> {
    let stat = Stat::parse(&read(Process::Id(process), &format!("task/{thread}/stat"))?)?;
    let state = words(&stat.rest).next()?.first().copied();
    state.map(char::from)
}

/// Returns the number of the system call in which a thread waits. `None` if the thread runs.
pub fn system_call_of_thread(process: u32, thread: u32) -> Option<u64> {
    number(words(&read(Process::Id(process), &format!("task/{thread}/syscall"))?).next()?)
}

/// Returns the value of Yama's `ptrace_scope` (0 to 3), which restricts who may trace other
/// processes. `None` if the kernel has no Yama.
pub fn trace_restriction() -> Option<u8> {
    let text = fs::read("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    number(&text).map(|value| value as u8)
}

/// Returns a path to the stdin of this process.
pub fn stdin() -> PathBuf {
    place(Process::This, "fd/0")
}

/// Returns whether a path is in /proc. Another process may find another file at such a path.
pub fn has(path: &Path) -> bool {
    path.starts_with("/proc")
}

/// Returns a path by which other processes can open a descriptor of this process.
pub fn descriptor(number: i32) -> PathBuf {
    place(Process::Id(std::process::id()), &format!("fd/{number}"))
}

/// Returns whether other processes can open descriptors of this process by their paths.
pub fn is_mounted() -> bool {
    place(Process::Id(std::process::id()), "fd").exists()
}

/// Returns the name of the processor. `None` if the kernel shows no name.
pub fn processor() -> Option<String> {
    let text = fs::read("/proc/cpuinfo").ok()?;
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"model name"))?;
    Some(String::from_utf8_lossy(line.trim_ascii_start().strip_prefix(b":")?).trim().to_string())
}

/// Returns the name that the kernel gives to a process when it executes a file.
pub fn name_of(file: &OsStr) -> Vec<u8> {
    let name = file.as_bytes();
    name[..name.len().min(NAME_BYTES_MAX)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arbitrary_bytes_in_a_process_name_do_not_shift_the_fields_of_proc_stat() {
        let fields = " S 1 7 7 0 -1 4194304 11 0 13 0 15 16 0 0 20 0 2 0 22 6 7";
        for name in [&b"a) b) c"[..], b"\xc3\xa4 (\n", b"\xff", b"", b"x) Z 1 1 (y"] {
            let text = [b"7 (", name, b")", fields.as_bytes()].concat();
            let stat = Stat::parse(&text).unwrap();
            assert_eq!((stat.name.as_slice(), stat.is_zombie()), (name, false));
            let fields = [10, 12, 14, 15, 20, 22].map(|index| stat.field(index));
            assert_eq!(fields, [11, 13, 15, 16, 2, 22].map(Some));
            assert_eq!((stat.field(8), stat.field(99)), (None, None)); // -1, and no such field
        }
        assert!(Stat::parse(b"7 (a) Z 1").unwrap().is_zombie());
        for damaged in ["", "7", "7 (a", ")("] {
            assert!(Stat::parse(damaged.as_bytes()).is_none(), "{damaged}");
        }
    }

    #[test]
    fn a_mapped_file_is_found_by_its_path_and_inode() {
        let text = b"55d0-55d8 r-xp 00001000 08:02 17        /opt/\xff it's\\012x\n\
                     7fa0-7fb0 rw-s 00000000 00:01 2         /memfd:ring (deleted)\n7f00-7f80 rw-p 0 00:00 0 \n";
        let has = |path: &[u8], inode| is_in_maps(text, Path::new(OsStr::from_bytes(path)), inode);
        assert!(has(b"/opt/\xff it's\nx", None) && has(b"/opt/\xff it's\nx", Some(17)));
        assert!(has(b"/memfd:ring", Some(2)) && !has(b"/memfd:ring", Some(3)));
        assert!(!has(b"/opt/x", None));
    }

    #[test]
    fn a_line_of_proc_maps_is_parsed_with_any_file_name() {
        let line = b"7fa0-7fb0 r-xp 00001000 08:02 17        /opt/a b\xff (deleted)";
        let expected = Mapping {
            range: 0x7fa0..0x7fb0,
            is_writable: false,
            is_executable: true,
            name: b"/opt/a b\xff (deleted)".to_vec(),
        };
        assert_eq!(mapping(line), Some(expected));
        let unnamed = mapping(b"7f00-7f80 rw-p 00000000 00:00 0 ").unwrap();
        assert!(unnamed.is_writable && !unnamed.is_executable && unnamed.name.is_empty());
        assert_eq!(mapping(b""), None);
    }

    #[test]
    fn the_proc_files_of_the_current_process_are_parsed() {
        let own = std::process::id();
        assert!(processes().contains(&own) && threads(own).contains(&own) && has_thread(own, own));
        assert!(cpu_ns_of_thread(own, own).is_some());
        assert!(Stat::of(own).unwrap().field(20).unwrap() >= 1);
        let (resident, of_files) = resident_pages(own).unwrap();
        assert!(resident > of_files && of_files > 0);
        assert!(status_bytes(Process::This, "VmHWM:").unwrap() >= resident * 1024);
        assert_eq!(status(Process::Id(own), "Pid:"), Some(own.to_string()));
        assert!(has_mapped(own, &std::env::current_exe().unwrap(), None));
        let mut smaps = Vec::new();
        assert!(read_smaps(own, &mut smaps) && !smaps.is_empty());
        assert!(is_mounted() && executable(own).exists());
        assert_eq!(Stat::of(u32::MAX).map(|stat| stat.name), None);
    }

    #[test]
    fn no_other_module_contains_paths_in_proc() {
        fn check(folder: &Path) {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                match path.is_dir() {
                    true => check(&path),
                    false if path.ends_with("proc.rs") => {}
                    false => {
                        let text = fs::read_to_string(&path).unwrap();
                        // Test code may contain paths in /proc. The tests are at the end of each
                        // source file.
                        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                        assert!(!code.contains("\"/proc/"), "{}", path.display());
                    }
                }
            }
        }
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    }
}
