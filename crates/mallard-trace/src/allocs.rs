//! The blocks of a trace, derived from its events: the rows of a table `allocs`.
//!
//! Traces do not have this table (`docs/decisions/0041-no-table-of-blocks.md`). A fleet may have it,
//! since a query of a fleet reads the rows of many runs.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::tables::{Column, Table, Values, GROUP_ROWS};

/// Whether an event of this kind frees a block. A realloc can free a block too, but is not included.
fn is_free(op: i64) -> bool {
    op >= 32 || op == 2
}

/// The allocation of a block that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begin {
    proc: i32,
    t0: i64,
    size: i64,
    align: i8,
    addr: Option<i64>,
    stack: Option<i32>,
    tid: i32,
}

/// The end of a block: when it ended, and by which thread and call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    t1: i64,
    stack: Option<i32>,
    tid: i32,
}

/// Derives the rows of the table `allocs`: first the blocks that ended, in the order of their ends,
/// then all others, in the order of their numbers. Calls `pass_on` with at most [`GROUP_ROWS`] rows
/// at a time, and stops if it returns false. Memory: 80 bytes for each block in use, and two groups
/// of rows.
pub fn derive(events: &Table, pass_on: &mut dyn FnMut(Vec<Column>) -> bool) -> Result<()> {
    let mut in_use: NumberMap<i64, Begin> = NumberMap::default();
    let mut rows = Rows::default();
    for group in events.groups() {
        let group = Group::read(events, group)?;
        for row in 0..group.op.len() {
            if let Some((alloc, end)) = group.end(row) {
                if let Some(begin) = in_use.remove(&alloc) {
                    rows.push(alloc, begin, Some(end));
                }
            }
            if let Some((alloc, begin)) = group.begin(row) {
                in_use.insert(alloc, begin);
            }
            if rows.alloc.len() == GROUP_ROWS && !pass_on(std::mem::take(&mut rows).into_columns())
            {
                return Ok(());
            }
        }
    }
    let mut left: Vec<(i64, Begin)> = in_use.into_iter().collect();
    left.sort_unstable_by_key(|&(alloc, _)| alloc);
    for (alloc, begin) in left {
        rows.push(alloc, begin, None);
        if rows.alloc.len() == GROUP_ROWS && !pass_on(std::mem::take(&mut rows).into_columns()) {
            return Ok(());
        }
    }
    pass_on(rows.into_columns());
    Ok(())
}

/// The columns of a row group of `events`. A row without a value is `None`.
struct Group {
    proc: Vec<i64>,
    tid: Vec<i64>,
    t_ns: Vec<i64>,
    op: Vec<i64>,
    size: Vec<i64>,
    align: Vec<i64>,
    alloc: Vec<i64>,
    old_alloc: Vec<Option<i64>>,
    addr: Vec<Option<i64>>,
    stack: Vec<Option<i64>>,
}

impl Group {
    fn read(events: &Table, group: (usize, usize)) -> Result<Group> {
        let numbers = |name: &str| -> Result<Vec<i64>> {
            Ok(events.group_column(group, name)?.to_i64().unwrap_or_default())
        };
        let optional = |name: &str| -> Result<Vec<Option<i64>>> {
            Ok(or_none(events.group_column(group, name)?))
        };
        Ok(Group {
            proc: numbers("proc")?,
            tid: numbers("tid")?,
            t_ns: numbers("t_ns")?,
            op: numbers("op")?,
            size: numbers("size")?,
            align: numbers("align")?,
            alloc: numbers("alloc")?,
            old_alloc: optional("old_alloc")?,
            addr: optional("addr")?,
            stack: optional("stack")?,
        })
    }

    /// The number and the data of the block that this row allocates; `None` if the row allocates none.
    fn begin(&self, row: usize) -> Option<(i64, Begin)> {
        let (op, alloc) = (self.op[row], self.alloc[row]);
        let is_new = alloc >= 0 && !is_free(op) && Some(alloc) != self.old_alloc[row];
        is_new.then(|| {
            let begin = Begin {
                proc: self.proc[row] as i32,
                t0: self.t_ns[row],
                size: self.size[row],
                align: self.align[row] as i8,
                addr: self.addr[row],
                stack: self.stack[row].map(|stack| stack as i32),
                tid: self.tid[row] as i32,
            };
            (alloc, begin)
        })
    }

    /// The number and the end of the block that this row ends, by a free, or by a realloc that moves or
    /// frees the block. `None` if the row ends no block.
    fn end(&self, row: usize) -> Option<(i64, End)> {
        let (alloc, old) = (self.alloc[row], self.old_alloc[row].filter(|&old| old >= 0));
        let ended = match old {
            _ if is_free(self.op[row]) => Some(alloc).filter(|&alloc| alloc >= 0),
            Some(old) if old != alloc && (alloc >= 0 || self.size[row] == 0) => Some(old),
            _ => None,
        };
        ended.map(|ended| {
            let stack = self.stack[row].map(|stack| stack as i32);
            (ended, End { t1: self.t_ns[row], stack, tid: self.tid[row] as i32 })
        })
    }
}

/// The numbers of a column, with `None` for rows without a value.
fn or_none(column: Column) -> Vec<Option<i64>> {
    let values: Vec<i64> = match column.values {
        Values::I32(values) => values.into_iter().map(i64::from).collect(),
        Values::I64(values) => values,
        _ => Vec::new(),
    };
    let Some(present) = column.present else { return values.into_iter().map(Some).collect() };
    let mut values = values.into_iter();
    present.into_iter().map(|level| if level == 0 { None } else { values.next() }).collect()
}

/// Rows of the table, stored as one vector for each column.
#[derive(Default)]
struct Rows {
    alloc: Vec<i64>,
    begin: Vec<Begin>,
    end: Vec<Option<End>>,
}

impl Rows {
    fn push(&mut self, alloc: i64, begin: Begin, end: Option<End>) {
        self.alloc.push(alloc);
        self.begin.push(begin);
        self.end.push(end);
    }

    fn into_columns(self) -> Vec<Column> {
        let (begin, end) = (&self.begin, &self.end);
        vec![
            Column::i64(self.alloc),
            Column::i32(begin.iter().map(|begin| begin.proc)),
            Column::i64(begin.iter().map(|begin| begin.t0)),
            Column::i64_or_null(end.iter().map(|end| end.map(|end| end.t1))),
            Column::i64(begin.iter().map(|begin| begin.size)),
            Column::i32(begin.iter().map(|begin| i32::from(begin.align))),
            Column::i64_or_null(begin.iter().map(|begin| begin.addr)),
            Column::i32_or_null(begin.iter().map(|begin| begin.stack)),
            Column::i32_or_null(end.iter().map(|end| end.and_then(|end| end.stack))),
            Column::i32(begin.iter().map(|begin| begin.tid)),
            Column::i32_or_null(end.iter().map(|end| end.map(|end| end.tid))),
        ]
    }
}
