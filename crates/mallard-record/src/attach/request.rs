//! The memory that the injected code in the process uses: a page of code, a page of data, a stack,
//! and room for the vector registers.

use std::ops::Range;

/// The size of a page in bytes.
pub const PAGE: usize = 4096;

/// The offset of each field in the page of data. A field has 8 bytes, except `REAL`, which has 8
/// bytes for each function.
pub const STATE: usize = 0;
pub const PID: usize = 8;
pub const REAL: usize = 16;
pub const DLOPEN: usize = 80;
pub const DLSYM: usize = 88;
pub const DLERROR: usize = 96;
pub const ERRNO: usize = 104;
pub const PATH: usize = 112;
pub const FLAGS: usize = 120;
pub const NAME: usize = 128;
pub const REQUEST: usize = 136;
pub const STACK: usize = 144;
pub const VECTORS: usize = 152;
pub const SAVED: usize = 160;
pub const AGAIN_RIP: usize = 168;
pub const AGAIN_RAX: usize = 176;
pub const RESULT: usize = 184;
pub const ERROR: usize = 192;
pub const TICKS: usize = 200;
/// Two descriptors of four bytes, which the system writes.
pub const SOCKETS: usize = 208;
/// The offsets of those fields of the request that are written last.
const SOCKET: usize = REQUEST_BYTES + 4;
const LIBRARY: usize = REQUEST_BYTES + 28;
const PEER: usize = REQUEST_BYTES + 32;
/// The text that `NAME` points to.
pub const NAME_TEXT: usize = 256;
/// The name of the memory file with a copy of the library.
pub const COPY_NAME: usize = 288;
/// The text that `PATH` points to: at most 1,024 bytes.
pub const PATH_TEXT: usize = 320;
/// The struct that `src/record/attach_request.hpp` defines.
pub const REQUEST_BYTES: usize = 1408;

/// The values of `STATE` before a thread loads the library, and after a thread has loaded the
/// library. While a thread is loading the library, the value is 1.
pub const WAITING: u64 = 0;
pub const DONE: u64 = 2;
/// The value of `STATE` while no thread may load the library.
pub const CLOSED: u64 = 3;

/// The offset of the stack. The memory of the stack holds the table of operations until a thread
/// needs the stack.
pub const TABLE: usize = 2 * PAGE;
const STACK_BYTES: usize = 256 << 10;
const VECTOR_BYTES: usize = 64 << 10;
/// The number of bytes that are mapped.
pub const BYTES: usize = 2 * PAGE + STACK_BYTES + VECTOR_BYTES;

/// The version of `src/record/attach_request.hpp`.
const VERSION: u32 = 1;
/// The maximum number of entries in a request.
pub const ENTRIES_MAX: usize = 64;

/// An entry in a module's relocation table that is changed until the library is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The address of the entry.
    pub at: u64,
    /// The original value of the entry.
    pub before: u64,
    /// The new value of the entry.
    pub now: u64,
}

/// The arguments of the injected code.
pub struct Data<'a> {
    /// The address of the mapped memory.
    pub scratch: u64,
    /// The id of the process in the PID namespace of the process.
    pub pid_there: u32,
    /// The id of the process in the PID namespace of this command.
    pub pid: u32,
    /// The id of this command, or 0 if the process is in another PID namespace.
    pub command: u32,
    /// The addresses of the functions that the code replaces.
    pub real: &'a [u64],
    pub dlopen: u64,
    pub dlsym: u64,
    pub dlerror: u64,
    pub errno: u64,
    pub flags: u64,
    pub entries: &'a [Entry],
}

/// The values that are known only after the stopped thread has executed its operations.
pub struct Late<'a> {
    /// The path by which the process finds the library.
    pub path: &'a [u8],
    /// The descriptors, in the process, of the process's socket and of this command's socket. The
    /// recorder closes the latter.
    pub socket: i32,
    pub peer: i32,
    /// The descriptor of the memory file with the library, or -1 if there is no such file.
    pub library: i32,
}

impl Late<'_> {
    /// Returns the offset in the page of data, and the bytes, of each field.
    pub fn fields(&self) -> [(usize, Vec<u8>); 4] {
        [
            (PATH_TEXT, self.path.to_vec()), // the page is zero after it
            (SOCKET, self.socket.to_ne_bytes().to_vec()),
            (PEER, self.peer.to_ne_bytes().to_vec()),
            (LIBRARY, self.library.to_ne_bytes().to_vec()),
        ]
    }
}

/// An operation that a stopped thread executes.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A system call with its arguments.
    Call(nix::libc::c_long, [u64; 4]),
    /// Stores `now` in an entry if the value of the entry is `before`.
    Store(Entry),
}

/// The size of an operation in the table, and the offset of the result in these bytes.
pub const OPERATION_BYTES: usize = 64;
pub const OPERATION_RESULT: usize = 56;
const END: u64 = u64::MAX;
const STORE: u64 = u64::MAX - 1;

/// Returns the bytes of a table with these operations.
pub fn table(operations: &[Operation]) -> Vec<u8> {
    let words = |operation: &Operation| match *operation {
        Operation::Call(number, [rdi, rsi, rdx, r10]) => {
            [number as u64, rdi, rsi, rdx, r10, 0, 0, END]
        }
        Operation::Store(Entry { at, before, now }) => [STORE, at, now, before, 0, 0, 0, 0],
    };
    let end = [[END, 0, 0, 0, 0, 0, 0, 0]];
    operations.iter().map(words).chain(end).flatten().flat_map(u64::to_ne_bytes).collect()
}

impl Data<'_> {
    /// Returns the bytes of the page of data.
    pub fn page(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        let data = self.scratch + PAGE as u64;
        let stack = data + PAGE as u64;
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        let words = [
            (STATE, CLOSED), // until all is prepared
            (PID, self.pid_there.into()),
            (DLOPEN, self.dlopen),
            (DLSYM, self.dlsym),
            (DLERROR, self.dlerror),
            (ERRNO, self.errno),
            (PATH, data + PATH_TEXT as u64),
            (FLAGS, self.flags),
            (NAME, data + NAME_TEXT as u64),
            (REQUEST, data + REQUEST_BYTES as u64),
            (STACK, stack + STACK_BYTES as u64),
            (VECTORS, stack + STACK_BYTES as u64),
        ];
        for (at, word) in words {
            put(at, &word.to_ne_bytes());
        }
        for (index, real) in self.real.iter().enumerate() {
            put(REAL + 8 * index, &real.to_ne_bytes());
        }
        put(NAME_TEXT, b"mallard_record_attach\0");
        put(COPY_NAME, b"libmallard-record.so\0");
        let heads = [VERSION, 0, self.command, self.entries.len() as u32];
        for (index, head) in heads.iter().enumerate() {
            put(REQUEST_BYTES + 4 * index, &head.to_ne_bytes());
        }
        put(REQUEST_BYTES + 16, &self.scratch.to_ne_bytes());
        put(REQUEST_BYTES + 24, &self.pid.to_ne_bytes());
        for (index, entry) in self.entries.iter().enumerate() {
            let at = REQUEST_BYTES + 40 + 24 * index;
            for (word, value) in [entry.at, entry.before, entry.now].iter().enumerate() {
                put(at + 8 * word, &value.to_ne_bytes());
            }
        }
        page
    }
}

/// The range of the page of data that may contain the path, without the 0 that ends the path.
pub const PATH_ROOM: Range<usize> = PATH_TEXT..REQUEST_BYTES - 1;

const _: () = assert!(REQUEST_BYTES + 40 + 24 * ENTRIES_MAX <= PAGE);
