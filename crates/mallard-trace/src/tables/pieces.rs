//! Reads a row group piece by piece, so that only some of its rows are in memory at a time.

use super::column::Column;
use super::read::{guarded, read_column};
use crate::error::Result;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Some columns of a row group. Each piece has the next rows of all these columns.
pub struct Pieces {
    path: PathBuf,
    /// The columns, and whether the rows of each may be without a value.
    columns: Vec<(ColumnReader, bool)>,
    rows_left: usize,
}

impl Pieces {
    pub(super) fn new(path: &Path, columns: Vec<(ColumnReader, bool)>, rows: usize) -> Pieces {
        Pieces { path: path.to_path_buf(), columns, rows_left: rows }
    }

    /// Reads the next rows, at most `rows_max`. Returns the columns in the order in which they were
    /// named, or `None` at the end of the group.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<Vec<Column>>> {
        let rows = self.rows_left.min(rows_max);
        if rows == 0 {
            return Ok(None);
        }
        self.rows_left -= rows;
        let path = &self.path;
        let read = |(reader, is_optional): &mut (ColumnReader, bool)| {
            guarded(path, || {
                let column = read_column(reader, rows, *is_optional)?;
                if column.rows() != rows {
                    return Err(ParquetError::General("a column ends early".into()));
                }
                Ok(column)
            })
        };
        self.columns.par_iter_mut().map(read).collect::<Result<Vec<_>>>().map(Some)
    }
}
