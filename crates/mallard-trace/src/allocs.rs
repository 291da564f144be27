//! Derives the table `allocs` of a trace from the events. The table has a row for each block.
//!
//! A trace does not contain this table (`docs/decisions/0041-no-table-of-blocks.md`). A fleet,
//! which combines the traces of many runs, may contain it, so that queries do not derive it for
//! each run.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::lifetimes::{join, Left, ThreadRow, Visitor};
use crate::rows::{read_ahead, Wanted};
use crate::tables::{Column, Table, GROUP_ROWS};

/// The allocation of a block.
#[derive(Clone, Copy)]
struct Begin {
    proc: i32,
    t0: i64,
    /// The size that the program requested in the allocation. `size` is the size after the last
    /// resize.
    size0: u64,
    size: u64,
    align: u8,
    addr: Option<i64>,
    stack: i32,
    tid: i32,
}

/// The free of a block: its time, thread and call stack.
#[derive(Clone, Copy)]
struct End {
    t1: i64,
    stack: i32,
    tid: i32,
}

/// Derives the rows of the table `allocs`: first the freed blocks, in the order of their frees,
/// then all other blocks, in the order of their allocations. Passes at most [`GROUP_ROWS`] rows to
/// each call of `pass_on`, and stops if `pass_on` returns false. Uses 88 bytes of memory for each
/// block in use, and memory for two groups of rows.
pub fn derive(events: &Table, pass_on: &mut dyn FnMut(Vec<Column>) -> bool) -> Result<()> {
    let (in_use, rows) = (NumberMap::default(), Vec::new());
    let mut blocks = Blocks { in_use, rows, proc: -1, is_wanted: true, pass_on };
    let wanted = Wanted { proc: true, stack: true, addr: true, details: true, fresh: false };
    read_ahead(events, wanted, |rows| {
        for row in 0..rows.len() {
            if !blocks.is_wanted {
                break;
            }
            blocks.proc = rows.process(row).unwrap_or(-1);
            join(&mut blocks, (&rows.row(row), 0));
        }
        Ok(())
    })?;
    let mut left: Vec<(i64, Begin)> = blocks.in_use.drain().collect();
    left.sort_unstable_by_key(|&(alloc, _)| alloc);
    left.into_iter().for_each(|(alloc, begin)| blocks.push(alloc, begin, None));
    blocks.pass_on();
    Ok(())
}

/// The blocks in use, and the rows that are not yet passed to `pass_on`.
struct Blocks<'a> {
    in_use: NumberMap<i64, Begin>,
    rows: Vec<(i64, Begin, Option<End>)>,
    /// The process of the current event.
    proc: i32,
    is_wanted: bool,
    pass_on: &'a mut dyn FnMut(Vec<Column>) -> bool,
}

impl Blocks<'_> {
    fn push(&mut self, alloc: i64, begin: Begin, end: Option<End>) {
        self.rows.push((alloc, begin, end));
        if self.rows.len() == GROUP_ROWS {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let begins = || rows.iter().map(|(_, begin, _)| begin);
        let ends = || rows.iter().map(|(_, _, end)| end);
        let known = |stack: i32| (stack >= 0).then_some(stack);
        let columns = vec![
            Column::i64(rows.iter().map(|row| row.0)),
            Column::i32(begins().map(|begin| begin.proc)),
            Column::i64(begins().map(|begin| begin.t0)),
            Column::i64_or_null(ends().map(|end| end.map(|end| end.t1))),
            Column::i64(begins().map(|begin| begin.size as i64)),
            Column::i32(begins().map(|begin| i32::from(begin.align))),
            Column::i64_or_null(begins().map(|begin| begin.addr)),
            Column::i32_or_null(begins().map(|begin| known(begin.stack))),
            Column::i32_or_null(ends().map(|end| end.and_then(|end| known(end.stack)))),
            Column::i32(begins().map(|begin| begin.tid)),
            Column::i32_or_null(ends().map(|end| end.map(|end| end.tid))),
            Column::i64(begins().map(|begin| begin.size0 as i64)),
        ];
        self.is_wanted = self.is_wanted && (self.pass_on)(columns);
    }
}

impl Visitor<ThreadRow<'_>> for Blocks<'_> {
    type Done = ();

    fn begin(&mut self, (row, _): ThreadRow) {
        let begin = Begin {
            proc: self.proc,
            t0: row.t_ns,
            size0: row.size,
            size: row.size,
            align: row.align,
            addr: row.has_addr.then_some(row.addr as i64),
            stack: row.stack,
            tid: row.tid,
        };
        self.in_use.insert(row.alloc, begin);
    }

    fn resize(&mut self, (row, thread): ThreadRow) {
        if row.alloc != row.old_alloc {
            self.end((row, thread));
            self.begin((row, thread));
        } else if let Some(block) = self.in_use.get_mut(&row.alloc) {
            block.size = row.size;
        }
    }

    fn end(&mut self, (row, _): ThreadRow) {
        if let Some(begin) = self.in_use.remove(&row.old_block()) {
            let end = End { t1: row.t_ns, stack: row.stack, tid: row.tid };
            self.push(row.old_block(), begin, Some(end));
        }
    }

    fn leave(&mut self, _: ThreadRow, _: Left) {}

    /// Does nothing, because the table has no time of a free for blocks that a reset freed.
    fn reset(&mut self, _: ThreadRow) {}

    fn pass(&mut self) {}
}
