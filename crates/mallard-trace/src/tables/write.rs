//! Writes tables, one row group at a time, in a background thread.

use super::column::{Column, Values};
use super::schema::{Encoding, Field, Kind, Schema};
use crate::error::{help_to_write, Error, ErrorKind, Result};
use bytes::Bytes;
use parquet::basic::{self, Compression, LogicalType, Repetition, ZstdLevel};
use parquet::column::writer::{get_column_writer, ColumnCloseResult, ColumnWriter};
use parquet::errors::{self, ParquetError};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type, TypePtr};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The number of rows in a row group. Each call of [`Tables::write`] must pass this number of rows.
/// Only the last call may pass fewer rows.
pub const GROUP_ROWS: usize = 1 << 20;
/// The maximum number of row groups in one file, for a table with several files.
const PART_GROUPS: usize = 64;

/// The readers for which tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Mallard, and other readers that support all Parquet encodings. The files are the smallest.
    #[default]
    Small,
    /// Any reader. DuckDB before 2.0 and the vectorized reader of Spark do not support integers
    /// with [`Encoding::Split`].
    Portable,
    /// Readers that read the files only once. The files are fast to write and to read, but large.
    Scratch,
}

/// A table that was written.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Written {
    /// Name of the table.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Size of the table's files, in bytes.
    pub bytes: u64,
}

/// The tables of one trace, in a directory. A background thread encodes and writes them.
///
/// At most two row groups are in memory at the same time, waiting to be written.
pub struct Tables {
    jobs: SyncSender<Job>,
    is_redacted: bool,
    encoder: JoinHandle<Result<Vec<Written>>>,
}

struct Job {
    schema: &'static Schema,
    columns: Vec<Column>,
}

impl Tables {
    /// Starts the background thread. The directory `folder` must exist.
    pub fn new(folder: &Path) -> Self {
        Tables::with_style(folder, Style::Small)
    }

    /// Starts the background thread. `style` determines the readers for which files are written.
    /// The directory `folder` must exist.
    pub fn with_style(folder: &Path, style: Style) -> Self {
        let (jobs, inbox) = sync_channel(1);
        let folder = folder.to_path_buf();
        let thread = std::thread::Builder::new().name("tables".to_string());
        let encode = move || encode_all(&folder, inbox, style);
        let encoder = thread.spawn(encode).expect("a thread");
        Tables { jobs, is_redacted: false, encoder }
    }

    /// Replaces paths by file names in all tables that are written after this call.
    pub fn redact(&mut self) {
        self.is_redacted = true;
    }

    /// Writes rows of a table. `columns` has the columns of the schema in its order, all with the
    /// same number of rows. Returns false if writing has failed, in which case [`Tables::finish`]
    /// returns the error.
    pub fn write(&mut self, schema: &'static Schema, columns: Vec<Column>) -> bool {
        debug_assert_eq!(schema.fields.len(), columns.len());
        let name = |(field, column): (&Field, Column)| match schema.has_paths(field.name) {
            true => column.without_folders(),
            false => column,
        };
        let columns = match self.is_redacted {
            true => schema.fields.iter().zip(columns).map(name).collect(),
            false => columns,
        };
        self.jobs.send(Job { schema, columns }).is_ok()
    }

    /// Waits until all rows are written. Returns the number of rows and bytes of each table.
    pub fn finish(self) -> Result<Vec<Written>> {
        drop(self.jobs);
        self.encoder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A file of a table that is being written.
struct Part {
    writer: SerializedFileWriter<File>,
    groups: usize,
}

/// The files of a table.
struct Files {
    schema: &'static Schema,
    style: Style,
    part: Option<Part>,
    parts: usize,
    written: Written,
}

fn encode_all(folder: &Path, inbox: Receiver<Job>, style: Style) -> Result<Vec<Written>> {
    let mut tables: BTreeMap<&str, Files> = BTreeMap::new();
    for Job { schema, columns } in inbox {
        let files = tables.entry(schema.name).or_insert_with(|| Files {
            schema,
            style,
            part: None,
            parts: 0,
            written: Written { name: schema.name.to_string(), rows: 0, bytes: 0 },
        });
        files.write(folder, columns).map_err(|error| refused(&error))?;
    }
    let mut all = Vec::new();
    for (_, mut files) in tables {
        files.close_part().map_err(|error| refused(&error))?;
        all.push(files.written);
    }
    Ok(all)
}

impl Files {
    fn write(&mut self, folder: &Path, columns: Vec<Column>) -> errors::Result<()> {
        if self.part.as_ref().is_some_and(|part| part.groups == PART_GROUPS)
            && self.schema.has_parts
        {
            self.close_part()?;
        }
        let part = match &mut self.part {
            Some(part) => part,
            none => none.insert(open_part(folder, self.schema, self.style, self.parts)?),
        };
        let rows = columns.first().map_or(0, Column::rows);
        if rows > 0 {
            let properties = part.writer.properties().clone();
            let fields = part.writer.schema_descr().columns().to_vec();
            let encoded: Vec<_> = columns
                .into_par_iter()
                .zip(fields)
                .map(|(column, field)| encode(column, field, properties.clone()))
                .collect::<errors::Result<_>>()?;
            let mut group = part.writer.next_row_group()?;
            for (bytes, close) in encoded {
                group.append_column(&bytes, close)?;
            }
            group.close()?;
            part.groups += 1;
        }
        self.written.rows += rows as u64;
        Ok(())
    }

    fn close_part(&mut self) -> errors::Result<()> {
        if let Some(mut part) = self.part.take() {
            part.writer.finish()?;
            self.written.bytes += part.writer.bytes_written() as u64;
            self.parts += 1;
        }
        Ok(())
    }
}

fn open_part(
    folder: &Path,
    schema: &'static Schema,
    style: Style,
    number: usize,
) -> errors::Result<Part> {
    let path = file_of(folder, schema, number);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let file = File::create_new(path)?;
    let writer = SerializedFileWriter::new(file, message(schema)?, properties(schema, style))?;
    Ok(Part { writer, groups: 0 })
}

/// Returns the path of a table's file. `number` is the number of the file, for a table with several
/// files.
pub(super) fn file_of(folder: &Path, schema: &Schema, number: usize) -> PathBuf {
    if schema.has_parts {
        folder.join(schema.name).join(format!("part-{number:04}.parquet"))
    } else {
        folder.join(format!("{}.parquet", schema.name))
    }
}

/// Encodes and compresses one column of a row group.
fn encode(
    column: Column,
    field: ColumnDescPtr,
    properties: WriterPropertiesPtr,
) -> errors::Result<(Bytes, ColumnCloseResult)> {
    let mut sink = TrackedWrite::new(Vec::new());
    let present = column.present.as_deref();
    let mut writer =
        get_column_writer(field, properties, Box::new(SerializedPageWriter::new(&mut sink)));
    macro_rules! write {
        ($($writer:ident $kind:ident,)*) => {
            match (&mut writer, &column.values) {
                $((ColumnWriter::$writer(to), Values::$kind(values)) => {
                    to.write_batch(values, present, None)?
                })*
                _ => {
                    let why = "a column has another type than its field";
                    return Err(ParquetError::General(why.into()));
                }
            }
        };
    }
    write! {
        Int32ColumnWriter I32, Int64ColumnWriter I64, DoubleColumnWriter F64,
        ByteArrayColumnWriter Text, BoolColumnWriter Bool,
    };
    let close = writer.close()?;
    Ok((sink.into_inner()?.into(), close))
}

/// Returns the Parquet schema of a table.
fn message(schema: &Schema) -> errors::Result<TypePtr> {
    let integer = |bit_width| Some(LogicalType::integer(bit_width, true));
    let fields = schema.fields.iter().map(|field| {
        let logical = match field.kind {
            Kind::I8 => integer(8),
            Kind::I16 => integer(16),
            Kind::Text => Some(LogicalType::String),
            Kind::I32 | Kind::I64 | Kind::F64 | Kind::Bool => None,
        };
        let repetition =
            if field.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(field.name, field.kind.physical())
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    });
    let fields = fields.collect::<errors::Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(schema.name).with_fields(fields).build()?))
}

impl Field {
    /// Returns the encoding of the column for the readers that `style` names.
    fn encoding_in(&self, style: Style) -> Encoding {
        let is_split_integer = self.encoding == Encoding::Split && self.kind != Kind::F64;
        match style {
            Style::Small => self.encoding,
            // Addresses and block IDs are close to the previous value, so their deltas are small.
            // Other numbers occur repeatedly, so a dictionary is better.
            Style::Portable
                if is_split_integer && self.kind == Kind::I64 && self.name != "size" =>
            {
                Encoding::Delta
            }
            Style::Portable if is_split_integer => Encoding::Dictionary,
            Style::Portable => self.encoding,
            // A dictionary saves space only if it is small.
            Style::Scratch if self.encoding == Encoding::Dictionary => Encoding::Dictionary,
            Style::Scratch => Encoding::Plain,
        }
    }
}

fn properties(schema: &Schema, style: Style) -> WriterPropertiesPtr {
    let level = ZstdLevel::try_new(3).expect("a level of zstd");
    let compression = match style {
        Style::Scratch => Compression::UNCOMPRESSED,
        Style::Small | Style::Portable => Compression::ZSTD(level),
    };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("mallard {}", env!("CARGO_PKG_VERSION")))
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_page_size_limit(1 << 20)
        // With only one page for a column of a row group, zstd finds most repetitions.
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_data_page_size_limit(16 << 20)
        .set_offset_index_disabled(true) // the footer already contains the offset of that page
        .set_write_batch_size(1 << 14) // the default, 1024 rows, checks the page size too often
        .set_max_row_group_row_count(None);
    for field in schema.fields {
        let column = || ColumnPath::from(field.name);
        let encoding = field.encoding_in(style);
        let has_dictionary = encoding == Encoding::Dictionary;
        properties = properties.set_column_dictionary_enabled(column(), has_dictionary);
        properties = match encoding {
            Encoding::Dictionary | Encoding::Plain => properties,
            Encoding::Split => {
                properties.set_column_encoding(column(), basic::Encoding::BYTE_STREAM_SPLIT)
            }
            Encoding::Delta => {
                properties.set_column_encoding(column(), basic::Encoding::DELTA_BINARY_PACKED)
            }
        };
    }
    Arc::new(properties.build())
}

fn refused(error: &ParquetError) -> Error {
    let system =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let (why, help) = match system {
        Some(cause) => (cause.to_string().to_lowercase(), help_to_write(cause)),
        None => (error.to_string(), "name another place with -o"),
    };
    Error::new(
        ErrorKind::System,
        format!("cannot write the tables of the trace: {why}"),
        "no trace was written, not even a part of it; the event log is unchanged",
        help,
    )
}
