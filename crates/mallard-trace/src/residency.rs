//! Computes the parts of a program's resident memory over time, with the function [`split`].

pub use crate::memory::{Cause, Growing, MemorySummary, Moment, Parts, Split};

use crate::error::Result;
use crate::memory::Sums;
use crate::tables::schema::{MEMORY, PROCESSES};
use crate::Trace;

/// The parts of one process at one moment: a row of the table `memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The moment, in nanoseconds since the stream was opened.
    pub t_ns: i64,
    /// The number of the process, as in the column `proc` of the table `processes`.
    pub process: i32,
    /// The parts of the resident memory at that moment.
    pub parts: Parts,
}

/// Reads the table `memory`. Returns an empty list if the trace does not have the parts.
pub fn rows(trace: &Trace) -> Result<Vec<Row>> {
    let table = trace.table(&MEMORY)?;
    let times = table.i64s("t_ns")?.into_iter().zip(table.i64s("proc")?);
    let row = |(t_ns, process)| Row { t_ns, process: process as i32, parts: Parts::default() };
    let mut rows: Vec<Row> = times.map(row).collect();
    for (name, member) in Parts::MEMBERS {
        for (row, value) in rows.iter_mut().zip(table.i64s(name)?) {
            *member(&mut row.parts) = value;
        }
    }
    Ok(rows)
}

/// Divides the resident memory into parts at each of `moments`, which are in nanoseconds since the
/// stream was opened, in any order. At a moment, the parts of a process are those of its latest row
/// up to the moment. They are 0 before its first row and after its exit.
pub fn split(trace: &Trace, moments: &[i64]) -> Result<Split> {
    let rows = rows(trace)?;
    if rows.is_empty() {
        return Ok(Split::default());
    }
    let ends = ends(trace)?;
    let mut split = Split::new(moments.len());
    let mut order: Vec<usize> = (0..moments.len()).collect();
    order.sort_unstable_by_key(|&index| moments[index]);
    // All changes in time order. A change is a row with new parts, or the exit of a process
    // (`None`).
    let mut happens: Vec<(i64, i32, Option<&Parts>)> =
        rows.iter().map(|row| (row.t_ns, row.process, Some(&row.parts))).collect();
    happens.extend(ends.into_iter().map(|(t_ns, process)| (t_ns, process as i32, None)));
    happens.sort_by_key(|&(t_ns, ..)| t_ns);
    let mut happens = happens.into_iter().peekable();
    let mut sums = Sums::default();
    for index in order {
        while let Some((t_ns, process, parts)) = happens.next_if(|h| h.0 <= moments[index]) {
            match parts {
                Some(parts) => sums.add(t_ns, process as u32, parts),
                None => sums.end_process(t_ns, process as u32),
            }
        }
        split.set(index, &sums.total());
    }
    Ok(split)
}

/// Returns the moments at which processes lost their memory, by exit or `exec`, each as (time in
/// ns, process).
fn ends(trace: &Trace) -> Result<Vec<(i64, i64)>> {
    let table = trace.table(&PROCESSES)?;
    let (processes, parents) = (table.i64s("proc")?, table.i64s("parent")?);
    let own = table.i64s("t1")?.into_iter().zip(processes);
    let execs = table.i64s("t0")?.into_iter().zip(parents).zip(table.texts("begins")?);
    let before = execs.filter(|(_, begins)| begins == "exec").map(|(end, _)| end);
    Ok(own.chain(before).filter(|&(t_ns, process)| t_ns >= 0 && process >= 0).collect())
}
