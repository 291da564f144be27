//! Event streams: files of records, plain or packed.

mod packed;
mod reader;
mod writer;

pub use reader::{Ending, Event, Reader};
pub use writer::{Compression, Writer};
