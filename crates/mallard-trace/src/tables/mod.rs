//! Reads and writes the tables of a trace, which are Parquet files.

mod column;
mod read;
pub mod schema;
mod write;

pub use column::{Column, Values};
pub use read::{Pieces, Table};
pub use schema::{Encoding, Field, Kind, Schema};
pub use write::{Style, Tables, Written, GROUP_ROWS};
