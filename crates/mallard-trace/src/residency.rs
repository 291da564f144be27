//! The parts of the resident memory of a program over time: see [`split`].

pub use crate::memory::{Cause, Growing, MemorySummary, Moment, Parts};

use crate::error::Result;
use crate::memory::Sums;
use crate::tables::schema::{MEMORY, PROCESSES};
use crate::Trace;

/// The parts of the resident memory at some moments, summed over processes. Each list has one number
/// for each moment. All lists are empty if the trace does not have the parts: an older version made
/// the trace, or only some of the blocks were recorded.
///
/// Forked children are left out, since their heaps contain blocks of the parent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// Resident bytes: the sums of the lists below.
    pub resident: Vec<i64>,
    /// See [`Parts`].
    pub live: Vec<i64>,
    /// See [`Parts`].
    pub rounding: Vec<i64>,
    /// See [`Parts`].
    pub fragmented: Vec<i64>,
    /// See [`Parts`].
    pub kept: Vec<i64>,
    /// See [`Parts`].
    pub code: Vec<i64>,
    /// See [`Parts`].
    pub stacks: Vec<i64>,
    /// See [`Parts`].
    pub recorder: Vec<i64>,
}

impl Split {
    /// Whether the trace does not have the parts.
    pub fn is_empty(&self) -> bool {
        self.resident.is_empty()
    }

    fn set(&mut self, at: usize, parts: &Parts) {
        self.resident[at] = parts.resident;
        self.live[at] = parts.live;
        self.rounding[at] = parts.rounding;
        self.fragmented[at] = parts.fragmented;
        self.kept[at] = parts.kept;
        self.code[at] = parts.code;
        self.stacks[at] = parts.stacks;
        self.recorder[at] = parts.recorder;
    }
}

/// The parts of one process at one moment: a row of the table `memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The moment, in nanoseconds since the stream was opened.
    pub t_ns: i64,
    /// The number of the process.
    pub process: i32,
    /// The parts at that moment.
    pub parts: Parts,
}

/// Selects one of the parts.
type Member = fn(&mut Parts) -> &mut i64;

/// Reads the table `memory`. The result is empty if the trace does not have the parts.
pub fn rows(trace: &Trace) -> Result<Vec<Row>> {
    let table = trace.table(&MEMORY)?;
    let times = table.i64s("t_ns")?.into_iter().zip(table.i64s("proc")?);
    let row = |(t_ns, process)| Row { t_ns, process: process as i32, parts: Parts::default() };
    let mut rows: Vec<Row> = times.map(row).collect();
    let columns: [(&str, Member); 8] = [
        ("resident", |parts| &mut parts.resident),
        ("live", |parts| &mut parts.live),
        ("rounding", |parts| &mut parts.rounding),
        ("fragmented", |parts| &mut parts.fragmented),
        ("kept", |parts| &mut parts.kept),
        ("code", |parts| &mut parts.code),
        ("stacks", |parts| &mut parts.stacks),
        ("recorder", |parts| &mut parts.recorder),
    ];
    for (name, member) in columns {
        for (row, value) in rows.iter_mut().zip(table.i64s(name)?) {
            *member(&mut row.parts) = value;
        }
    }
    Ok(rows)
}

/// Divides the resident memory into parts at each of `moments`, which are in nanoseconds since the
/// stream was opened, in any order. The parts of a process at a moment are those of its last row up to
/// the moment. They are 0 before its first row and after its end.
pub fn split(trace: &Trace, moments: &[i64]) -> Result<Split> {
    let rows = rows(trace)?;
    if rows.is_empty() {
        return Ok(Split::default());
    }
    let ends = ends(trace)?;
    let none = vec![0; moments.len()];
    let mut split = Split {
        resident: none.clone(),
        live: none.clone(),
        rounding: none.clone(),
        fragmented: none.clone(),
        kept: none.clone(),
        code: none.clone(),
        stacks: none.clone(),
        recorder: none,
    };
    let mut order: Vec<usize> = (0..moments.len()).collect();
    order.sort_unstable_by_key(|&index| moments[index]);
    // All changes in the order of time: a row with new parts, or the end of a process (`None`).
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

/// The ends of the memory of processes: the end of the process, or an `exec`.
fn ends(trace: &Trace) -> Result<Vec<(i64, i64)>> {
    let table = trace.table(&PROCESSES)?;
    let (processes, parents) = (table.i64s("proc")?, table.i64s("parent")?);
    let own = table.i64s("t1")?.into_iter().zip(processes);
    let execs = table.i64s("t0")?.into_iter().zip(parents).zip(table.texts("begins")?);
    let before = execs.filter(|(_, begins)| begins == "exec").map(|(end, _)| end);
    Ok(own.chain(before).filter(|&(t_ns, process)| t_ns >= 0 && process >= 0).collect())
}
