//! The memory that the code in the process uses: a page of code, a page of data, a stack, and room for
//! the vector registers.

use std::ops::Range;

/// The bytes of a page.
pub const PAGE: usize = 4096;

/// Where each field is in the page of data. All have 8 bytes but `REAL`, which has one for each function.
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
/// The fields of the request that are known last.
const SOCKET: usize = REQUEST_BYTES + 4;
const LIBRARY: usize = REQUEST_BYTES + 28;
const PEER: usize = REQUEST_BYTES + 32;
/// The text that `NAME` points to.
pub const NAME_TEXT: usize = 256;
/// The name of the library's copy.
pub const COPY_NAME: usize = 288;
/// The text that `PATH` points to: at most 1,024 bytes.
pub const PATH_TEXT: usize = 320;
/// The request of `src/record/attach_request.hpp`.
pub const REQUEST_BYTES: usize = 1408;

/// `STATE` while no thread has come, and after one has loaded the library. The code writes 1 between.
pub const WAITING: u64 = 0;
pub const DONE: u64 = 2;
/// `STATE` while no thread may load the library.
pub const CLOSED: u64 = 3;

/// Where the stack begins, which holds the table of operations until a thread needs the stack.
pub const TABLE: usize = 2 * PAGE;
const STACK_BYTES: usize = 256 << 10;
const VECTOR_BYTES: usize = 64 << 10;
/// All bytes that are mapped.
pub const BYTES: usize = 2 * PAGE + STACK_BYTES + VECTOR_BYTES;

/// The version of `src/record/attach_request.hpp`.
const VERSION: u32 = 1;
/// How many entries a request can have.
pub const ENTRIES_MAX: usize = 64;

/// An entry of a module that is changed until the library is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the entry is.
    pub at: u64,
    /// What the entry had.
    pub before: u64,
    /// What it has now.
    pub now: u64,
}

/// What the code is called with.
pub struct Data<'a> {
    /// Where the memory is mapped.
    pub scratch: u64,
    /// The id of the process, as the process knows it.
    pub pid_there: u32,
    /// The id of the process, as this command knows it.
    pub pid: u32,
    /// The id of this command, as the process knows it, or 0.
    pub command: u32,
    /// The functions that the code stands for.
    pub real: &'a [u64],
    pub dlopen: u64,
    pub dlsym: u64,
    pub dlerror: u64,
    pub errno: u64,
    pub flags: u64,
    pub entries: &'a [Entry],
}

/// What is known after the operations of the stopped thread.
pub struct Late<'a> {
    /// The library's file, as the process knows it.
    pub path: &'a [u8],
    /// The socket of the process, and that of this command, which the recorder closes.
    pub socket: i32,
    pub peer: i32,
    /// The descriptor of the library's file, or -1.
    pub library: i32,
}

impl Late<'_> {
    /// The fields as offsets in the page of data, and their bytes.
    pub fn fields(&self) -> [(usize, Vec<u8>); 4] {
        [
            (PATH_TEXT, self.path.to_vec()), // the page is zero after it
            (SOCKET, self.socket.to_ne_bytes().to_vec()),
            (PEER, self.peer.to_ne_bytes().to_vec()),
            (LIBRARY, self.library.to_ne_bytes().to_vec()),
        ]
    }
}

/// An operation that a stopped thread makes.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A system call with its arguments.
    Call(nix::libc::c_long, [u64; 4]),
    /// Stores `now` in an entry that has `before`.
    Store(Entry),
}

/// The bytes of an operation in the table, and where its result is in them.
pub const OPERATION_BYTES: usize = 64;
pub const OPERATION_RESULT: usize = 56;
const END: u64 = u64::MAX;
const STORE: u64 = u64::MAX - 1;

/// The table of operations.
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
    /// The page of data.
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

/// The range of the path's text, which ends with 0.
pub const PATH_ROOM: Range<usize> = PATH_TEXT..REQUEST_BYTES - 1;

const _: () = assert!(REQUEST_BYTES + 40 + 24 * ENTRIES_MAX <= PAGE);
