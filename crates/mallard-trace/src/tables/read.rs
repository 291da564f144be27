//! Reads tables. A corrupt file causes an error, but no panic.

use super::column::{Column, Values};
use super::schema::Schema;
use super::write::file_of;
use crate::error::{Error, Result};
use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{self, ParquetError};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A table whose files are open for reading.
pub struct Table {
    schema: &'static Schema,
    files: Vec<(PathBuf, SerializedFileReader<Source>)>,
    is_redacted: bool,
}

impl Table {
    /// Opens a table of the trace in `folder`. A table without a file has no rows.
    pub fn open(folder: &Path, schema: &'static Schema) -> Result<Table> {
        let mut files = Vec::new();
        for number in 0.. {
            let path = file_of(folder, schema, number);
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(damaged(&path, &error.to_string())),
            };
            let reader = guarded(&path, || SerializedFileReader::new(Source(Arc::new(file))))?;
            check_columns(&path, schema, &reader)?;
            files.push((path, reader));
            if !schema.has_parts {
                break;
            }
        }
        Ok(Table { schema, files, is_redacted: false })
    }

    /// Returns this table with a setting: when it is read, paths are reduced to file names.
    pub fn redacted(self) -> Table {
        Table { is_redacted: true, ..self }
    }

    /// Returns the paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// Returns whether integers have the encoding [`super::Encoding::Split`], which some Parquet
    /// readers do not support.
    pub fn has_split_integers(&self) -> bool {
        let groups = self.files.iter().flat_map(|(_, file)| file.metadata().row_groups());
        groups.flat_map(RowGroupMetaData::columns).any(|column| {
            let is_integer = matches!(column.column_type(), Type::INT32 | Type::INT64);
            is_integer && column.encodings().any(|encoding| encoding == Encoding::BYTE_STREAM_SPLIT)
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        let groups = self.files.iter().flat_map(|(_, file)| file.metadata().row_groups());
        groups.map(|group| rows_of(group) as u64).fold(0, u64::saturating_add)
    }

    /// Fails unless the table has `rows` rows.
    pub(crate) fn must_have(&self, rows: u64, folder: &Path) -> Result<()> {
        if self.rows() == rows {
            return Ok(());
        }
        let (first, count) = (file_of(folder, self.schema, 0), self.rows());
        Err(match self.files.as_slice() {
            [] => damaged(&first, "the file is missing"),
            _ => damaged(&first, &format!("it has {count} rows, the manifest names {rows}")),
        })
    }

    /// Returns the row groups, as pairs of indices for [`Table::group_column`].
    pub fn groups(&self) -> Vec<(usize, usize)> {
        let groups = |(file, (_, reader)): (usize, &(_, SerializedFileReader<Source>))| {
            (0..reader.num_row_groups()).map(move |group| (file, group))
        };
        self.files.iter().enumerate().flat_map(groups).collect()
    }

    /// Reads one column of one row group.
    ///
    /// # Panics
    ///
    /// If the schema has no such column or the table no such group.
    pub fn group_column(&self, group: (usize, usize), name: &str) -> Result<Column> {
        let mut pieces = self.pieces(group, &[name])?;
        let column = pieces.read(pieces.rows_left)?.remove(0);
        let is_redacted = self.is_redacted && self.schema.has_paths(name);
        Ok(if is_redacted { column.without_folders() } else { column })
    }

    /// Opens some columns of one row group, to read them in pieces.
    ///
    /// # Panics
    ///
    /// If the schema has no such column or the table no such group.
    pub fn pieces(&self, (file, group): (usize, usize), names: &[&str]) -> Result<Pieces> {
        let (path, reader) = &self.files[file];
        guarded(path, || {
            let group = reader.get_row_group(group)?;
            let open = |name: &&str| {
                let index = self.index(name);
                let is_optional = self.schema.fields[index].is_optional;
                Ok::<_, ParquetError>((group.get_column_reader(index)?, is_optional))
            };
            let columns = names.iter().map(open).collect::<errors::Result<Vec<_>>>()?;
            Ok(Pieces { path: path.clone(), columns, rows_left: rows_of(group.metadata()) })
        })
    }

    /// Reads the integers of a column. Rows without a value are -1.
    ///
    /// # Panics
    ///
    /// If the schema has no such column, or if the column has another type.
    pub fn i64s(&self, name: &str) -> Result<Vec<i64>> {
        self.all(name, |column| column.to_i64().expect("a column of integers"))
    }

    /// Reads the doubles of a column.
    ///
    /// # Panics
    ///
    /// If the schema has no such column, or if the column has another type.
    pub fn f64s(&self, name: &str) -> Result<Vec<Option<f64>>> {
        self.all(name, |column| column.to_f64().expect("a column of doubles"))
    }

    /// Reads the strings of a column. Rows without a value are empty.
    ///
    /// # Panics
    ///
    /// If the schema has no such column, or if the column has another type.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        self.all(name, |column| column.to_text().expect("a column of strings"))
    }

    fn all<T>(&self, name: &str, values: impl Fn(Column) -> Vec<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        for group in self.groups() {
            all.extend(values(self.group_column(group, name)?));
        }
        Ok(all)
    }

    fn index(&self, name: &str) -> usize {
        let fields = self.schema.fields;
        fields.iter().position(|field| field.name == name).expect("a column of the schema")
    }
}

/// Reads some columns of a row group in pieces. Each piece has the next rows of all these columns.
pub struct Pieces {
    path: PathBuf,
    /// The columns, and whether the rows of each column may be null.
    columns: Vec<(ColumnReader, bool)>,
    rows_left: usize,
}

impl Pieces {
    /// Reads the next rows, at most `rows_max`. Returns the columns in the order of the names that
    /// were passed to [`Table::pieces`], or `None` at the end of the row group.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<Vec<Column>>> {
        let rows = self.rows_left.min(rows_max);
        if rows == 0 {
            return Ok(None);
        }
        self.read(rows).map(Some)
    }

    fn read(&mut self, rows: usize) -> Result<Vec<Column>> {
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
        self.columns.par_iter_mut().map(read).collect()
    }
}

/// Checks that the file has the columns of the schema in the same order. The file may have
/// additional columns after them.
fn check_columns(path: &Path, schema: &Schema, file: &SerializedFileReader<Source>) -> Result<()> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    let is_same = schema.fields.len() <= columns.len()
        && schema.fields.iter().zip(columns).all(|(field, column)| {
            column.name() == field.name
                && column.physical_type() == field.kind.physical()
                && column.max_def_level() == i16::from(field.is_optional)
                && column.max_rep_level() == 0
        });
    if is_same {
        Ok(())
    } else {
        Err(damaged(path, "it has other columns than this table has"))
    }
}

fn rows_of(group: &RowGroupMetaData) -> usize {
    group.num_rows().max(0) as usize
}

fn read_column(
    reader: &mut ColumnReader,
    rows: usize,
    is_optional: bool,
) -> errors::Result<Column> {
    Ok(match reader {
        ColumnReader::Int32ColumnReader(of) => typed(of, rows, is_optional, Values::I32)?,
        ColumnReader::Int64ColumnReader(of) => typed(of, rows, is_optional, Values::I64)?,
        ColumnReader::DoubleColumnReader(of) => typed(of, rows, is_optional, Values::F64)?,
        ColumnReader::BoolColumnReader(of) => typed(of, rows, is_optional, Values::Bool)?,
        ColumnReader::ByteArrayColumnReader(of) => typed(of, rows, is_optional, Values::Text)?,
        _ => {
            return Err(ParquetError::General(
                "a column has a type that Mallard does not write".into(),
            ))
        }
    })
}

fn typed<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    is_optional: bool,
    wrap: fn(Vec<T::T>) -> Values,
) -> errors::Result<Column> {
    let mut values = Vec::new();
    let mut present = Vec::new();
    let mut done = 0;
    while done < rows {
        let levels = is_optional.then_some(&mut present);
        let (read, _, _) = reader.read_records(rows - done, levels, None, &mut values)?;
        if read == 0 {
            break;
        }
        done += read;
    }
    Ok(Column { values: wrap(values), present: is_optional.then_some(present) })
}

/// A file of a table. Each read uses an explicit offset, so that several threads can read columns
/// of one file at the same time.
struct Source(Arc<File>);

impl Length for Source {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Source {
    type T = BufReader<UpToEnd>;

    fn get_read(&self, start: u64) -> errors::Result<Self::T> {
        Ok(BufReader::new(UpToEnd { file: self.0.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> errors::Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF("a page goes beyond the end".into()));
        }
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Reads a file, and returns an error if a read reaches the end of the file. The Parquet library
/// does not notice the end when it skips parts of a page header, and a corrupt header may claim to
/// have billions of parts.
struct UpToEnd {
    file: Arc<File>,
    at: u64,
}

impl Read for UpToEnd {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.file.read_at(to, self.at)? {
            0 if !to.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => {
                self.at += bytes as u64;
                Ok(bytes)
            }
        }
    }
}

/// Converts the errors and the panics of the Parquet library to errors.
fn guarded<T>(path: &Path, read: impl FnOnce() -> errors::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(damaged(path, &error.to_string())),
        Err(_) => Err(damaged(path, "its pages contradict each other")),
    }
}

fn damaged(path: &Path, why: &str) -> Error {
    Error::damaged(format!("{} is corrupt: {why}", path.display()), "nothing was changed")
}
