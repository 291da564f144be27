//! Sends the ring to followed programs that cannot open the ring by its path below /proc, because
//! they run as another user, in another user namespace, or below another root directory.
//!
//! The recorder in such a program connects to a socket of this process, sends a token from the
//! program's environment, and receives a descriptor of the ring. The address of the socket is in
//! the abstract namespace, so it is in no file system. `src/record/handover.cpp` implements the
//! other side.

use nix::errno::Errno;
use nix::sys::socket::{
    bind, getsockname, listen, sendmsg, shutdown, socket, AddressFamily, Backlog, ControlMessage,
    MsgFlags, Shutdown, SockFlag, SockType, UnixAddr,
};
use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long to wait for the token of a program that has connected.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread that sends the ring until this value is dropped.
pub struct Handover {
    listener: Arc<UnixListener>,
    /// The socket address that the kernel has chosen, which is five hexadecimal digits.
    name: String,
    /// Only a program that knows the token receives the ring.
    token: String,
    thread: Option<JoinHandle<()>>,
}

impl Handover {
    /// Starts the thread, which sends the file of the ring.
    pub fn begin(ring: &File) -> io::Result<Handover> {
        let socket: OwnedFd =
            socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        bind(socket.as_raw_fd(), &UnixAddr::new_unnamed())?;
        listen(&socket, Backlog::MAXCONN)?;
        let address: UnixAddr = getsockname(socket.as_raw_fd())?;
        let name = address.as_abstract().ok_or(Errno::EADDRNOTAVAIL)?;
        let name = String::from_utf8_lossy(name).into_owned();
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let token = format!("{:032x}", u128::from_ne_bytes(bytes));
        let listener = Arc::new(UnixListener::from(socket));
        let (own, file, expected) = (listener.clone(), ring.try_clone()?, token.clone());
        let thread = std::thread::Builder::new().spawn(move || serve(&own, &file, &expected))?;
        Ok(Handover { listener, name, token, thread: Some(thread) })
    }

    /// Returns the end of the variable MALLARD_RING, which contains the address and the token.
    pub fn words(&self) -> String {
        format!(":{}:{}", self.name, self.token)
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // Ends the thread's wait for connections.
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Sends the file to each process that connects and sends the token, until the socket is shut down.
fn serve(listener: &UnixListener, ring: &File, token: &str) {
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => drop(send(stream, ring, token)), // fails if the process has exited
            Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => return,
            Err(_) => std::thread::sleep(Duration::from_millis(10)), // too many files are open
        }
    }
}

fn send(mut stream: UnixStream, ring: &File, token: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut sent = vec![0; token.len()];
    stream.read_exact(&mut sent)?;
    if sent == token.as_bytes() {
        let rights = [ring.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&rights)];
        let text = [IoSlice::new(b"r")];
        sendmsg::<()>(stream.as_raw_fd(), &text, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;

    /// Connects and sends a token. Returns how many bytes the other side sent.
    fn asked(name: &str, token: &str) -> usize {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let mut stream = UnixStream::connect_addr(&address).unwrap();
        io::Write::write_all(&mut stream, token.as_bytes()).unwrap();
        stream.read(&mut [0; 8]).unwrap_or(0)
    }

    #[test]
    fn only_a_process_with_the_token_receives_the_ring() {
        let handover = Handover::begin(&File::open("/dev/null").unwrap()).unwrap();
        let words = handover.words();
        let words: Vec<&str> = words.split(':').collect();
        assert_eq!((words[1].len(), words[2].len()), (5, 32));
        assert_eq!(asked(words[1], &"0".repeat(32)), 0);
        assert_eq!(asked(words[1], words[2]), 1);
        drop(handover);
        let address = SocketAddr::from_abstract_name(words[1]).unwrap();
        assert!(UnixStream::connect_addr(&address).is_err());
    }
}
