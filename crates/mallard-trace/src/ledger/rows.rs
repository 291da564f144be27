//! Rows of the table `events` that are not written yet, a vector for each column.

use crate::tables::{Column, Values, GROUP_ROWS};

/// A column of numbers with nulls, while it grows.
#[derive(Default)]
pub(super) struct Optional<T> {
    values: Vec<T>,
    present: Vec<i16>,
}

impl<T> Optional<T> {
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

fn i32s(values: Vec<i32>) -> Column {
    Column { values: Values::I32(values), present: None }
}

fn i64s(values: Vec<i64>) -> Column {
    Column { values: Values::I64(values), present: None }
}

impl From<Optional<i32>> for Column {
    fn from(from: Optional<i32>) -> Column {
        Column { values: Values::I32(from.values), present: Some(from.present) }
    }
}

impl From<Optional<i64>> for Column {
    fn from(from: Optional<i64>) -> Column {
        Column { values: Values::I64(from.values), present: Some(from.present) }
    }
}

/// Returns an empty vector with room for a row group, so that a column never moves while it grows.
fn room<T>() -> Vec<T> {
    Vec::with_capacity(GROUP_ROWS)
}

/// Rows of `events` that are not written yet.
pub(super) struct EventRows {
    pub proc: Vec<i32>,
    pub tid: Vec<i32>,
    pub t_ns: Vec<i64>,
    pub dur_ns: Vec<i32>,
    pub op: Vec<i32>,
    pub flags: Vec<i32>,
    pub size: Vec<i64>,
    pub align: Vec<i32>,
    pub alloc: Vec<i64>,
    pub old_alloc: Optional<i64>,
    pub addr: Optional<i64>,
    pub stack: Optional<i32>,
    pub fresh: Vec<i32>,
}

impl EventRows {
    pub fn new() -> Self {
        EventRows {
            proc: room(),
            tid: room(),
            t_ns: room(),
            dur_ns: room(),
            op: room(),
            flags: room(),
            size: room(),
            align: room(),
            alloc: room(),
            old_alloc: Optional::default(),
            addr: Optional::default(),
            stack: Optional::default(),
            fresh: room(),
        }
    }

    pub fn into_columns(self) -> Vec<Column> {
        vec![
            i32s(self.proc),
            i32s(self.tid),
            i64s(self.t_ns),
            i32s(self.dur_ns),
            i32s(self.op),
            i32s(self.flags),
            i64s(self.size),
            i32s(self.align),
            i64s(self.alloc),
            self.old_alloc.into(),
            self.addr.into(),
            self.stack.into(),
            i32s(self.fresh),
        ]
    }
}
