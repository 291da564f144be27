//! Streams: files of records, plain or compressed with zstd.

mod reader;
mod writer;

pub use reader::{Ending, Event, Reader};
pub use writer::{Compression, Writer};
