//! Memory that outlives a process (arenas in files), or that processes share (shared memory).

mod file_arena;
mod file_commit;
mod file_format;
mod file_open;
mod file_store;
mod shared_memory;

pub use file_arena::{layout_hash, FileAccess, FileArena, FileOptions, FileStatistics};
pub use shared_memory::SharedMemory;
