//! Describes what a new process executes, and makes the process.

use nix::fcntl::OFlag;
use nix::libc::{self, c_char, c_int};
use nix::unistd::{getpgrp, pipe2};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The size in bytes of the fixed head of an encoded image: four numbers of 4 bytes each.
pub const HEAD_BYTES: usize = 16;

/// The program to start, and how to start it.
pub struct Program<'a> {
    /// The path of the program.
    pub path: &'a Path,
    /// The name and the arguments of the program.
    pub words: Vec<&'a OsStr>,
    /// Environment variables to set, or to remove if the value is `None`. The others are inherited.
    pub variables: &'a [(OsString, Option<OsString>)],
    /// The stdin, stdout and stderr of the program.
    pub streams: [BorrowedFd<'a>; 3],
    /// Whether this process measures the program. If so, the program has a separate process group,
    /// and the kernel kills the program when this process ends.
    pub is_measured: bool,
}

/// What a new process executes, in the form that system calls need. The image is complete before
/// the new process exists, because the new process must not allocate memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Image {
    path: CString,
    words: Vec<CString>,
    /// The environment variables in the form `NAME=VALUE`.
    variables: Vec<CString>,
    /// The process group of the new process. 0 means a new group.
    group: c_int,
    /// Whether the kernel kills the process when its parent ends.
    dies_with_parent: bool,
}

/// The result of making a process: the process, or the reason why it was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The process id, or 0 if there is no process.
    pub process: c_int,
    /// The error of the system call that failed, or 0. If `error` is not 0 but there is a process,
    /// the process has already exited, and its parent must still wait for it.
    pub error: c_int,
}

impl Made {
    pub const BYTES: usize = 8;

    pub fn encode(self) -> [u8; Self::BYTES] {
        encode([self.process, self.error])
    }

    pub fn decode(bytes: [u8; Self::BYTES]) -> Made {
        let [process, error] = decode(bytes);
        Made { process, error }
    }
}

impl Image {
    /// Converts a program into an image. Fails if a string contains a zero byte.
    pub fn new(program: &Program) -> io::Result<Image> {
        let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in program.variables {
            match value {
                Some(value) => all.insert(name.clone(), value.clone()),
                None => all.remove(name),
            };
        }
        let assignments = all.into_iter().map(|(name, value)| {
            let mut text = name.into_vec();
            text.push(b'=');
            text.extend(value.into_vec());
            CString::new(text)
        });
        Ok(Image {
            path: CString::new(program.path.as_os_str().as_bytes())?,
            words: program
                .words
                .iter()
                .map(|w| CString::new(w.as_bytes()))
                .collect::<Result<_, _>>()?,
            variables: assignments.collect::<Result<_, _>>()?,
            group: if program.is_measured { 0 } else { getpgrp().as_raw() },
            dies_with_parent: program.is_measured,
        })
    }

    /// Encodes the image as a head of fixed size, and all strings, each with a zero byte at its
    /// end.
    pub fn encode(&self) -> ([u8; HEAD_BYTES], Vec<u8>) {
        let strings = std::iter::once(&self.path).chain(&self.words).chain(&self.variables);
        let body = strings.flat_map(|text| text.as_bytes_with_nul()).copied().collect::<Vec<_>>();
        let numbers = [body.len() as c_int, self.words.len() as c_int, self.group];
        let [bytes, words, group] = numbers;
        (encode([bytes, words, group, self.dies_with_parent.into()]), body)
    }

    /// Decodes an image. Returns `None` if `encode` cannot have produced these bytes.
    pub fn decode(head: [u8; HEAD_BYTES], body: &[u8]) -> Option<Image> {
        let [_, words, group, dies_with_parent] = decode(head);
        let mut strings = body
            .split_inclusive(|byte| *byte == 0)
            .map(|text| CStr::from_bytes_with_nul(text).ok().map(CStr::to_owned));
        Some(Image {
            path: strings.next()??,
            words: strings.by_ref().take(words as usize).collect::<Option<_>>()?,
            variables: strings.collect::<Option<_>>()?,
            group,
            dies_with_parent: dies_with_parent != 0,
        })
    }

    /// Makes a process that executes the program with these descriptors as stdin, stdout and
    /// stderr. Returns when the program has been started. `flag` is 0, or CLONE_PARENT if the new
    /// process should be a child of this process's parent instead of this process.
    #[allow(unsafe_code)]
    pub fn make(&self, streams: [RawFd; 3], flag: c_int) -> Made {
        // The pipe closes on exec, so the read below ends when the program starts.
        let (from_child, to_parent) = match pipe2(OFlag::O_CLOEXEC) {
            Ok(pipe) => pipe,
            Err(error) => return Made { process: 0, error: error as c_int },
        };
        let words = pointers(&self.words);
        let variables = pointers(&self.variables);
        let flags = flag | libc::SIGCHLD;
        // SAFETY: without CLONE_VM the call works like fork. The child only makes system calls, so
        // locks that other threads held at the fork do not matter.
        let process = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) as c_int };
        if process < 0 {
            return Made { process: 0, error: last_error() };
        }
        if process == 0 {
            // SAFETY: this is the child, and both lists end with a null pointer.
            unsafe { self.execute(&words, &variables, streams, to_parent.as_raw_fd()) }
        }
        drop(to_parent);
        let mut error = [0; 4];
        let has_failed = File::from(from_child).read_exact(&mut error).is_ok();
        Made { process, error: if has_failed { c_int::from_ne_bytes(error) } else { 0 } }
    }

    /// Executes the program. If a system call fails, writes its error to a pipe and exits.
    #[allow(unsafe_code)]
    unsafe fn execute(
        &self,
        words: &[*const c_char],
        variables: &[*const c_char],
        streams: [RawFd; 3],
        errors: RawFd,
    ) -> ! {
        // SAFETY: the caller guarantees that this is the child of a fork, whose only thread is this
        // one. None of these calls allocates, and both lists end with a null pointer.
        unsafe {
            libc::setpgid(0, self.group);
            if self.dies_with_parent {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
            let are_set = (0..).zip(streams).all(|(to, from)| libc::dup2(from, to) >= 0);
            if are_set {
                // Rust's runtime ignores SIGPIPE, and exec would pass this setting on to the
                // program.
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                let mut none = std::mem::zeroed();
                libc::sigemptyset(&mut none);
                libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
                libc::execvpe(self.path.as_ptr(), words.as_ptr(), variables.as_ptr());
            }
            let error = last_error().to_ne_bytes();
            libc::write(errors, error.as_ptr().cast(), error.len());
            libc::_exit(127)
        }
    }
}

/// Returns the number of bytes that follow the head of an encoded image.
pub fn body_bytes(head: [u8; HEAD_BYTES]) -> usize {
    let [bytes, ..] = decode::<4, HEAD_BYTES>(head);
    bytes as usize
}

/// Returns pointers to strings, with a null pointer at the end.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

fn encode<const N: usize, const BYTES: usize>(numbers: [c_int; N]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

fn decode<const N: usize, const BYTES: usize>(bytes: [u8; BYTES]) -> [c_int; N] {
    std::array::from_fn(|i| c_int::from_ne_bytes(std::array::from_fn(|j| bytes[4 * i + j])))
}

fn last_error() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::fd::AsFd;
    use std::path::Path;

    fn image(words: &[&str]) -> io::Result<Image> {
        let null = File::open("/dev/null").unwrap();
        Image::new(&Program {
            path: Path::new("/bin/true"),
            words: words.iter().map(OsStr::new).collect(),
            variables: &[("EMPTY".into(), Some("".into())), ("PATH".into(), None)],
            streams: [null.as_fd(); 3],
            is_measured: true,
        })
    }

    #[test]
    fn an_encoded_start_request_is_decoded_unchanged() {
        for words in [&["true"][..], &["", "a b", "", "\u{e4}"], &[]] {
            let image = image(words).unwrap();
            assert!(image.variables.contains(&c"EMPTY=".into()));
            assert!(!image.variables.iter().any(|v| v.as_bytes().starts_with(b"PATH=")));
            let (head, body) = image.encode();
            assert_eq!(body_bytes(head), body.len());
            assert_eq!(Image::decode(head, &body), Some(image));
        }
    }

    #[test]
    fn invalid_bytes_are_rejected_as_a_start_request() {
        let (head, body) = image(&["true"]).unwrap().encode();
        assert_eq!(Image::decode(head, &[]), None);
        assert_eq!(Image::decode(head, &body[..body.len() - 1]), None);
    }

    #[test]
    fn an_argument_with_a_zero_byte_is_rejected() {
        assert_eq!(image(&["a\0b"]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
