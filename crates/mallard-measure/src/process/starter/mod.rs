//! Starts programs from a small process, so that the measured peak memory and CPU time of a program
//! do not include those of this process.
//!
//! Before a new process executes its program, the process is a copy of the process that made it.
//! The kernel counts the pages of this copy in the peak memory of the new process (`ru_maxrss`),
//! and the time to discard the copy in its CPU time. `mallard advise` has some 100 MiB of a trace
//! in memory, which is more than many programs need.
//!
//! So `prepare` forks a small process, the *starter*, before this process needs much memory. The
//! starter makes new processes with CLONE_PARENT. Such a process is a child of this process, which
//! waits for it in the usual way. If the kernel rejects CLONE_PARENT, as qemu-user does, this
//! process makes the new processes itself.

mod image;

pub use image::Program;
use image::{Image, Made};
use nix::libc;
use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags};
use nix::sys::wait::waitpid;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, fork, setpgid, ForkResult, Pid};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock};

/// The starter process, which starts programs, and the socket over which it receives requests.
struct Starter {
    process: Pid,
    socket: Mutex<UnixStream>,
}

static STARTER: OnceLock<Starter> = OnceLock::new();

/// Forks the starter on the first call. Call this function before this process has other threads or
/// needs much memory. If the fork fails, `start` makes processes without the starter.
#[allow(unsafe_code)]
pub fn prepare() {
    if STARTER.get().is_some() {
        return;
    }
    let Ok((ours, theirs)) = UnixStream::pair() else { return };
    // SAFETY: this process has one thread, so the child may call any function.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            drop(ours);
            serve(theirs);
            // SAFETY: the call ends the process.
            unsafe { libc::_exit(0) }
        }
        Ok(ForkResult::Parent { child }) => {
            let _ = STARTER.set(Starter { process: child, socket: Mutex::new(ours) });
        }
        Err(_) => {}
    }
}

/// Returns the process of the starter, which is a child of this process. `None` if there is no
/// starter.
pub fn process() -> Option<Pid> {
    STARTER.get().map(|starter| starter.process)
}

/// Starts a program as a child of this process.
pub fn start(program: &Program) -> io::Result<Pid> {
    let image = Image::new(program)?;
    let streams = program.streams.map(|stream| stream.as_raw_fd());
    let asked = STARTER.get().and_then(|starter| starter.make(&image, streams).ok());
    let made = match asked {
        Some(made) if made.process != 0 => made,
        _ => image.make(streams, 0),
    };
    let process = Pid::from_raw(made.process);
    if made.error == 0 {
        return Ok(process);
    }
    if made.process != 0 {
        let _ = waitpid(process, None);
    }
    Err(io::Error::from_raw_os_error(made.error))
}

impl Starter {
    /// Lets the starter make a process.
    fn make(&self, image: &Image, streams: [RawFd; 3]) -> io::Result<Made> {
        let mut socket = self.socket.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (head, body) = image.encode();
        let rights = [ControlMessage::ScmRights(&streams)];
        sendmsg::<()>(
            socket.as_raw_fd(),
            &[IoSlice::new(&head)],
            &rights,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        socket.write_all(&body)?;
        let mut answer = [0; Made::BYTES];
        socket.read_exact(&mut answer)?;
        Ok(Made::decode(answer))
    }
}

/// Makes the processes that are requested over the socket, until the other side closes the socket.
/// The starter has a separate process group, so that it receives no signals from the terminal.
fn serve(mut socket: UnixStream) {
    let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
    let _ = nix::sys::prctl::set_name(c"mallard-starter");
    // The starter closes its copy of mallard's stdout. Otherwise, a program that reads mallard's
    // output would have to wait until the starter exits.
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null).and(dup2_stdout(&null)).and(dup2_stderr(&null));
    }
    while let Ok((image, streams)) = receive(&mut socket) {
        let made = image.make(streams.each_ref().map(AsRawFd::as_raw_fd), libc::CLONE_PARENT);
        drop(streams);
        if socket.write_all(&made.encode()).is_err() {
            return;
        }
    }
}

/// Receives the image and the descriptors that `Starter::make` sends.
#[allow(unsafe_code)]
fn receive(socket: &mut UnixStream) -> io::Result<(Image, [OwnedFd; 3])> {
    let mut head = [0; image::HEAD_BYTES];
    let mut space = nix::cmsg_space!([RawFd; 3]);
    let mut parts = [IoSliceMut::new(&mut head)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut streams = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            // SAFETY: the descriptors are new and have no other owner.
            streams.extend(received.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let mut body = vec![0; image::body_bytes(head)];
    socket.read_exact(&mut body)?;
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let image = Image::decode(head, &body).ok_or_else(damaged)?;
    Ok((image, streams.try_into().map_err(|_| damaged())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::OFlag;
    use nix::unistd::pipe2;
    use std::ffi::OsStr;
    use std::path::Path;

    /// Starts `sh -c SCRIPT`. Returns its status and its output.
    fn run(make: impl Fn(&Program) -> io::Result<Pid>, script: &str) -> (i32, String) {
        let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let null = File::open("/dev/null").unwrap();
        let process = make(&Program {
            path: Path::new("/bin/sh"),
            words: ["sh", "-c", script].map(OsStr::new).to_vec(),
            variables: &[("GIVEN".into(), Some("a value".into())), ("HOME".into(), None)],
            streams: [null.as_fd(), write.as_fd(), write.as_fd()],
            is_measured: true,
        });
        drop(write);
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).unwrap();
        let ended = crate::process::launch::reap(process.unwrap()).unwrap();
        (ended.exit_code().into(), text)
    }

    /// Runs a starter in a thread. It makes processes without CLONE_PARENT. A process made with
    /// CLONE_PARENT would be a child of this process's parent, because the starter is a thread of
    /// this process.
    fn in_a_thread() -> Starter {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            while let Ok((image, streams)) = receive(&mut theirs) {
                let made = image.make(streams.each_ref().map(AsRawFd::as_raw_fd), 0);
                drop(streams);
                theirs.write_all(&made.encode()).unwrap();
            }
        });
        Starter { process: Pid::this(), socket: Mutex::new(ours) }
    }

    #[test]
    fn a_started_program_has_the_requested_arguments_environment_streams_and_process_group() {
        let script = "echo $GIVEN ${HOME-none}; ps -o pgid= -p $$ | grep -cw $$; read x; echo err >&2; exit 3";
        let wanted = (3, "a value none\n1\nerr\n".to_string());
        assert_eq!(run(start, script), wanted);
        let starter = in_a_thread();
        let by_starter = |program: &Program| {
            let streams = program.streams.map(|stream| stream.as_raw_fd());
            starter.make(&Image::new(program)?, streams).map(|made| Pid::from_raw(made.process))
        };
        assert_eq!(run(by_starter, script), wanted);
    }

    #[test]
    fn a_started_program_has_the_default_sigpipe_action_and_no_blocked_signals() {
        let blocked = run(start, "grep ^SigBlk /proc/self/status");
        assert_eq!(blocked, (0, "SigBlk:\t0000000000000000\n".to_string()));
        assert_eq!(run(start, "kill -PIPE $$; echo ignored"), (128 + 13, String::new()));
    }

    #[test]
    fn a_program_that_cannot_be_executed_returns_the_error_of_exec() {
        let null = File::open("/dev/null").unwrap();
        for (path, error) in [("/no/such/program", libc::ENOENT), ("/etc", libc::EACCES)] {
            let program = Program {
                path: Path::new(path),
                words: vec![OsStr::new(path)],
                variables: &[],
                streams: [null.as_fd(); 3],
                is_measured: true,
            };
            assert_eq!(start(&program).unwrap_err().raw_os_error(), Some(error));
            let image = Image::new(&program).unwrap();
            let made = in_a_thread().make(&image, [null.as_raw_fd(); 3]).unwrap();
            assert_eq!(made.error, error);
            waitpid(Pid::from_raw(made.process), None).unwrap();
        }
    }

    #[test]
    fn starting_a_program_is_an_error_if_the_starter_process_has_exited() {
        let (ours, _) = UnixStream::pair().unwrap();
        let gone = Starter { process: Pid::this(), socket: Mutex::new(ours) };
        let null = File::open("/dev/null").unwrap();
        let image = Image::new(&Program {
            path: Path::new("/bin/true"),
            words: Vec::new(),
            variables: &[],
            streams: [null.as_fd(); 3],
            is_measured: true,
        });
        assert!(gone.make(&image.unwrap(), [null.as_raw_fd(); 3]).is_err());
    }
}
