//! Reads the rows of the table `events`, some at a time, and only the columns that are needed.

use crate::error::Result;
use crate::format::{op, SIZE_MAX};
use crate::tables::{Column, Pieces, Table, Values};
use std::sync::mpsc::{sync_channel, SyncSender};

/// Which columns are read, among those that may be left out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    /// The process of an event, for traces with several processes.
    pub proc: bool,
    pub stack: bool,
    pub fresh: bool,
    pub addr: bool,
    /// Duration, flags and alignment of the call.
    pub details: bool,
}

impl Wanted {
    /// The columns, and whether each is read.
    fn columns(self) -> [(&'static str, bool); 13] {
        [
            ("proc", self.proc),
            ("tid", true),
            ("t_ns", true),
            ("dur_ns", self.details),
            ("op", true),
            ("flags", self.details),
            ("size", true),
            ("align", self.details),
            ("alloc", true),
            ("old_alloc", true),
            ("stack", self.stack),
            ("fresh", self.fresh),
            ("addr", self.addr),
        ]
    }
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub tid: i32,
    pub t_ns: i64,
    pub dur_ns: i32,
    pub op: u8,
    pub flags: u16,
    pub size: u64,
    pub align: u8,
    /// The block, or -1.
    pub alloc: i64,
    /// The block before a realloc: -1 if the block was never seen, [`NULL`] if the realloc had no block.
    pub old_alloc: i64,
    /// The call stack, or -1 if it is not known.
    pub stack: i32,
    pub fresh: u16,
    /// Whether the row has an address; also true if the column of addresses was not read.
    pub has_addr: bool,
    /// The address, or 0.
    pub addr: u64,
}

impl Row {
    /// The block that a free or a realloc names; below 0 if there is none.
    #[inline]
    pub fn old_block(&self) -> i64 {
        if self.op == op::REALLOC_TO {
            self.old_alloc
        } else {
            self.alloc
        }
    }
}

/// The value of a column that is null.
pub(crate) const NULL: i64 = i64::MIN;

/// How many rows are in memory at a time.
const ROWS: usize = 1 << 17;

/// The rows of a row group, some at a time.
pub(crate) struct Reader {
    pieces: Pieces,
    wanted: Wanted,
}

impl Reader {
    /// Opens a row group of the table `events`.
    pub fn open(events: &Table, group: (usize, usize), wanted: Wanted) -> Result<Reader> {
        let columns = wanted.columns().into_iter().filter(|(_, is_wanted)| *is_wanted);
        let names: Vec<&str> = columns.map(|(name, _)| name).collect();
        Ok(Reader { pieces: events.pieces(group, &names)?, wanted })
    }

    /// Reads the next rows. `None` at the end.
    pub fn next(&mut self) -> Result<Option<Rows>> {
        Ok(self.pieces.next(ROWS)?.map(|columns| Rows::of(columns, self.wanted)))
    }
}

/// Reads all rows of the table `events` on another thread, which may be some rows ahead of `visit`.
/// Calls `visit` with the rows in order. Stops at the first error.
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

/// Sends all rows. Stops if the receiver is gone.
fn read_groups(events: &Table, wanted: Wanted, to: &SyncSender<Result<Rows>>) {
    for group in events.groups() {
        if let Err(error) = read_group(events, group, wanted, to) {
            let _ = to.send(Err(error)); // fails only if the receiver is gone
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

/// Some rows. A column that was left out is empty.
pub(crate) struct Rows {
    proc: Vec<i32>,
    tid: Vec<i32>,
    t_ns: Vec<i64>,
    dur_ns: Vec<i32>,
    op: Vec<i32>,
    flags: Vec<i32>,
    size: Vec<i64>,
    align: Vec<i32>,
    alloc: Vec<i64>,
    old_alloc: Vec<i64>,
    stack: Vec<i32>,
    fresh: Vec<i32>,
    addr: Vec<i64>,
}

impl Rows {
    /// Takes the columns that were wanted.
    fn of(columns: Vec<Column>, wanted: Wanted) -> Rows {
        let mut columns = columns.into_iter();
        let mut all = wanted.columns().into_iter();
        let mut next = || match all.next() {
            Some((_, true)) => columns.next(),
            _ => None,
        };
        // The members are in the order of `Wanted::columns`.
        Rows {
            proc: i32s(next()),
            tid: i32s(next()),
            t_ns: i64s(next()),
            dur_ns: i32s(next()),
            op: i32s(next()),
            flags: i32s(next()),
            size: i64s(next()),
            align: i32s(next()),
            alloc: i64s(next()),
            old_alloc: i64s(next()),
            stack: i32s(next()),
            fresh: i32s(next()),
            addr: i64s(next()),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.tid.len()
    }

    /// The process of a row, if the column was read.
    #[inline]
    pub fn process(&self, row: usize) -> Option<i32> {
        self.proc.get(row).copied()
    }

    /// A row.
    #[inline]
    pub fn row(&self, row: usize) -> Row {
        let addr = self.addr.get(row).copied();
        Row {
            tid: self.tid[row],
            t_ns: self.t_ns[row],
            dur_ns: self.dur_ns.get(row).copied().unwrap_or(0),
            op: self.op[row] as u8,
            flags: self.flags.get(row).copied().unwrap_or(0) as u16,
            size: (self.size[row] as u64).min(SIZE_MAX), // a damaged trace may have more
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

/// The numbers of a column. Rows without a value are -1.
fn i32s(column: Option<Column>) -> Vec<i32> {
    match column {
        Some(Column { values: Values::I32(values), present }) => spread(values, present, -1),
        _ => Vec::new(),
    }
}

/// The numbers of a column. Rows without a value are [`NULL`].
fn i64s(column: Option<Column>) -> Vec<i64> {
    match column {
        Some(Column { values: Values::I64(values), present }) => spread(values, present, NULL),
        _ => Vec::new(),
    }
}

/// Puts `none` where a row has no value.
fn spread<T: Copy>(values: Vec<T>, present: Option<Vec<i16>>, none: T) -> Vec<T> {
    let Some(present) = present else { return values };
    let mut values = values.into_iter();
    let value = |level| if level == 0 { none } else { values.next().unwrap_or(none) };
    present.into_iter().map(value).collect()
}
