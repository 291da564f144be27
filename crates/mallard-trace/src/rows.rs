//! Reads the rows of the table `events` in batches. Reads only the columns that are needed.

use crate::error::Result;
use crate::format::{op, SIZE_MAX};
use crate::tables::{Column, Pieces, Table, Values};
use std::sync::mpsc::{sync_channel, SyncSender};

/// The optional columns to read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    /// Column of the process. Only traces with several processes need it.
    pub proc: bool,
    pub stack: bool,
    pub fresh: bool,
    pub addr: bool,
    /// Duration, flags and alignment of the call.
    pub details: bool,
}

/// A row of the table `events`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub tid: i32,
    pub t_ns: i64,
    pub dur_ns: i32,
    pub op: u8,
    pub flags: u16,
    pub size: u64,
    pub align: u8,
    /// ID of the block, or -1.
    pub alloc: i64,
    /// ID of the block before a realloc. -1 if the block is unknown, and [`NULL`] if the program
    /// passed a null pointer to realloc.
    pub old_alloc: i64,
    /// The call stack, or -1 if it is unknown.
    pub stack: i32,
    pub fresh: u16,
    /// Whether the row has an address. Also true if the column of addresses was not read.
    pub has_addr: bool,
    /// The address of the block, or 0.
    pub addr: u64,
}

impl Row {
    /// Returns the ID of the block that was passed to free or realloc. Negative if there is no
    /// block.
    #[inline]
    pub fn old_block(&self) -> i64 {
        if self.op == op::REALLOC_TO {
            self.old_alloc
        } else {
            self.alloc
        }
    }
}

/// The value that stands for null in a column of 64-bit integers.
pub(crate) const NULL: i64 = i64::MIN;

/// Number of rows in a batch.
const ROWS: usize = 1 << 17;

/// Reads the rows of a row group in batches.
pub(crate) struct Reader {
    pieces: Pieces,
    wanted: Wanted,
}

impl Reader {
    /// Opens a row group of the table `events`.
    pub fn open(events: &Table, group: (usize, usize), wanted: Wanted) -> Result<Reader> {
        Ok(Reader { pieces: events.pieces(group, &wanted.names())?, wanted })
    }

    /// Reads the next batch of rows. Returns `None` at the end.
    pub fn next(&mut self) -> Result<Option<Rows>> {
        Ok(self.pieces.next(ROWS)?.map(|columns| Rows::of(columns, &self.wanted)))
    }
}

/// Reads all rows of the table `events` on another thread, and calls `visit` with each batch in
/// order. The thread reads a few batches in advance. Stops at the first error.
pub(crate) fn read_ahead(
    events: &Table,
    wanted: Wanted,
    mut visit: impl FnMut(&Rows) -> Result<()>,
) -> Result<()> {
    let (to, from) = sync_channel(2);
    std::thread::scope(|scope| {
        scope.spawn(move || read_groups(events, wanted, &to));
        for rows in from {
            visit(&rows?)?;
        }
        Ok(())
    })
}

/// Sends all rows. Stops if the receiver no longer exists.
fn read_groups(events: &Table, wanted: Wanted, to: &SyncSender<Result<Rows>>) {
    for group in events.groups() {
        if let Err(error) = read_group(events, group, wanted, to) {
            let _ = to.send(Err(error)); // fails only if the receiver no longer exists
            break;
        }
    }
}

fn read_group(
    events: &Table,
    group: (usize, usize),
    wanted: Wanted,
    to: &SyncSender<Result<Rows>>,
) -> Result<()> {
    let mut reader = Reader::open(events, group, wanted)?;
    while let Some(rows) = reader.next()? {
        if to.send(Ok(rows)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Declares the columns in the order of reading, each with a function that returns whether it is
/// wanted.
macro_rules! columns {
    ($($name:ident: $type:ident by $read:ident if $is_wanted:expr,)*) => {
        impl Wanted {
            /// Returns the names of the wanted columns.
            fn names(&self) -> Vec<&'static str> {
                let is_wanted: &[(&str, fn(&Wanted) -> bool)] = &[$((stringify!($name), $is_wanted),)*];
                is_wanted.iter().filter(|(_, of)| of(self)).map(|(name, _)| *name).collect()
            }
        }

        /// A batch of rows. A column that was not read is empty.
        pub(crate) struct Rows {
            $($name: Vec<$type>,)*
        }

        impl Rows {
            /// Makes a batch from the columns that were read.
            fn of(columns: Vec<Column>, wanted: &Wanted) -> Rows {
                let mut columns = columns.into_iter();
                let mut next = |is_wanted: fn(&Wanted) -> bool| match is_wanted(wanted) {
                    true => columns.next(),
                    false => None,
                };
                Rows { $($name: $read(next($is_wanted)),)* }
            }
        }
    };
}

columns! {
    proc: i32 by i32s if |wanted| wanted.proc,
    tid: i32 by i32s if |_| true,
    t_ns: i64 by i64s if |_| true,
    dur_ns: i32 by i32s if |wanted| wanted.details,
    op: i32 by i32s if |_| true,
    flags: i32 by i32s if |wanted| wanted.details,
    size: i64 by i64s if |_| true,
    align: i32 by i32s if |wanted| wanted.details,
    alloc: i64 by i64s if |_| true,
    old_alloc: i64 by i64s if |_| true,
    stack: i32 by i32s if |wanted| wanted.stack,
    fresh: i32 by i32s if |wanted| wanted.fresh,
    addr: i64 by i64s if |wanted| wanted.addr,
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.tid.len()
    }

    /// Returns the process of a row, if the column was read.
    #[inline]
    pub fn process(&self, row: usize) -> Option<i32> {
        self.proc.get(row).copied()
    }

    /// Returns the row at an index.
    #[inline]
    pub fn row(&self, row: usize) -> Row {
        let addr = self.addr.get(row).copied();
        Row {
            tid: self.tid[row],
            t_ns: self.t_ns[row],
            dur_ns: self.dur_ns.get(row).copied().unwrap_or(0),
            op: self.op[row] as u8,
            flags: self.flags.get(row).copied().unwrap_or(0) as u16,
            size: (self.size[row] as u64).min(SIZE_MAX), // a corrupt trace may have more
            align: self.align.get(row).copied().unwrap_or(0) as u8,
            alloc: self.alloc[row],
            old_alloc: self.old_alloc[row],
            stack: self.stack.get(row).copied().unwrap_or(-1),
            fresh: self.fresh.get(row).copied().unwrap_or(0) as u16,
            has_addr: addr.is_none_or(|addr| addr != NULL),
            addr: addr.filter(|&addr| addr != NULL).unwrap_or(0) as u64,
        }
    }
}

/// Returns the numbers of a column. Rows without a value become -1.
fn i32s(column: Option<Column>) -> Vec<i32> {
    match column {
        Some(Column { values: Values::I32(values), present }) => spread(values, present, -1),
        _ => Vec::new(),
    }
}

/// Returns the numbers of a column. Rows without a value become [`NULL`].
fn i64s(column: Option<Column>) -> Vec<i64> {
    match column {
        Some(Column { values: Values::I64(values), present }) => spread(values, present, NULL),
        _ => Vec::new(),
    }
}

/// Inserts the value `none` for each row without a value.
fn spread<T: Copy>(values: Vec<T>, present: Option<Vec<i16>>, none: T) -> Vec<T> {
    let Some(present) = present else { return values };
    let mut values = values.into_iter();
    let value = |level| if level == 0 { none } else { values.next().unwrap_or(none) };
    present.into_iter().map(value).collect()
}
