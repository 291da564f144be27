//! Writes the tables of a trace, except the large table `events`.

use super::reading::{Process, ReadStream};
use super::samples::Sample;
use crate::memory::{MemorySummary, Parts, Sums};
use crate::modules::{Frame, Module};
use crate::site_row::{self, SiteRow};
use crate::stacks::ROOT;
use crate::symbols::Symbols;
use crate::tables::schema::{
    CPU, FRAMES, MAPPINGS, MEMORY, MODULES, PROCESSES, SAMPLES, SITES, STACKS, THREADS,
};
use crate::tables::{Column, Tables, GROUP_ROWS};

impl ReadStream {
    /// Writes the tables that do not depend on symbols.
    pub fn write_small_tables(&self, tables: &mut Tables) {
        self.write_stacks(tables);
        self.write_mappings(tables);
        self.write_processes(tables);
        self.write_threads(tables);
        self.write_samples(tables);
        self.write_memory(tables);
        let cpu = &self.cpu_rows;
        tables.write(
            &CPU,
            vec![
                Column::i64(cpu.iter().map(|row| row.0)),
                Column::i32(cpu.iter().map(|row| row.1)),
                Column::i64(cpu.iter().map(|row| row.2)),
            ],
        );
    }

    fn write_stacks(&self, tables: &mut Tables) {
        let count = self.tree.nodes() as u32;
        for begin in (0..count).step_by(GROUP_ROWS) {
            let nodes = begin..count.min(begin + GROUP_ROWS as u32);
            let rows = nodes.clone().map(|node| self.tree.node(node));
            let columns = vec![
                Column::i32(nodes.clone().map(|node| node as i32)),
                Column::i32(
                    nodes.clone().zip(rows.clone()).map(|(node, row)| parent_of(node, row.0)),
                ),
                Column::i32(rows.clone().map(|row| row.1 as i32)),
                Column::i32(rows.map(|row| i32::from(row.2 as i16))),
            ];
            tables.write(&STACKS, columns);
        }
    }

    fn write_mappings(&self, tables: &mut Tables) {
        let rows = self.modules.mappings();
        tables.write(
            &MAPPINGS,
            vec![
                Column::i32(rows.iter().map(|row| row.process as i32)),
                Column::i32(rows.iter().map(|row| row.module as i32)),
                Column::i64(rows.iter().map(|row| row.start as i64)),
                Column::i64(rows.iter().map(|row| row.end as i64)),
                Column::i64(rows.iter().map(|row| row.offset as i64)),
                Column::i64(rows.iter().map(|row| self.clock.ns(row.t0))),
                Column::i64_or_null(rows.iter().map(|row| row.t1.map(|t| self.clock.ns(t)))),
            ],
        );
    }

    fn write_processes(&self, tables: &mut Tables) {
        let rows = &self.processes;
        tables.write(
            &PROCESSES,
            vec![
                Column::i32(rows.iter().map(|row| row.number as i32)),
                Column::i64(rows.iter().map(|row| row.pid as i64)),
                Column::i32_or_null(rows.iter().map(|row| row.parent.map(|parent| parent as i32))),
                Column::text(rows.iter().map(|row| row.begins.as_str())),
                Column::text(rows.iter().map(|row| row.path.as_str())),
                Column::i64(
                    rows.iter().map(|row| if row.t0 == 0 { 0 } else { self.clock.ns(row.t0) }),
                ),
                Column::i64_or_null(rows.iter().map(|row| row.t1.map(|t| self.clock.ns(t)))),
                Column::i32_or_null(rows.iter().map(|row| row.status.map(|status| status as i32))),
            ],
        );
    }

    fn write_threads(&self, tables: &mut Tables) {
        let rows = &self.threads;
        tables.write(
            &THREADS,
            vec![
                Column::i32(rows.iter().map(|row| row.number as i32)),
                Column::i32(rows.iter().map(|row| row.process as i32)),
                Column::i64(rows.iter().map(|row| row.system_id as i64)),
                Column::text(rows.iter().map(|row| row.name.as_str())),
                Column::i64_or_null(rows.iter().map(|row| row.t0.map(|t| self.clock.ns(t)))),
                Column::i64_or_null(rows.iter().map(|row| row.t1.map(|t| self.clock.ns(t)))),
                Column::i64(rows.iter().map(|row| row.events as i64)),
                Column::i64_or_null(rows.iter().map(|row| row.cpu_ns.map(|ns| ns as i64))),
            ],
        );
    }

    fn write_samples(&self, tables: &mut Tables) {
        let rows = &self.samples;
        let mut columns = vec![
            Column::i64(rows.iter().map(|row| row.ns)),
            Column::i32(rows.iter().map(|row| row.process as i32)),
            Column::i64(rows.iter().map(|row| row.live.0.round() as i64)),
            Column::i64(rows.iter().map(|row| row.live.1.round() as i64)),
        ];
        let numbers = (0..8).map(|i| Column::i64_or_null(rows.iter().map(|row| row.numbers[i])));
        columns.extend(numbers);
        tables.write(&SAMPLES, columns);
    }

    fn write_memory(&self, tables: &mut Tables) {
        let rows: Vec<(&Sample, Parts)> =
            self.samples.iter().filter_map(|sample| Some((sample, sample.parts?))).collect();
        let mut columns = vec![
            Column::i64(rows.iter().map(|(sample, _)| sample.ns)),
            Column::i32(rows.iter().map(|(sample, _)| sample.process as i32)),
        ];
        columns.extend(Parts::MEMBERS.map(|(_, member)| {
            Column::i64(rows.iter().map(|&(_, mut parts)| *member(&mut parts)))
        }));
        tables.write(&MEMORY, columns);
    }

    /// Returns the moments at which the memory of a process ends, each as (time in ns, process).
    /// The memory of `process` ends when it exits. The memory of its parent ends when `process`
    /// began by `exec`.
    fn ends(&self, process: &Process) -> impl Iterator<Item = (i64, u32)> {
        let own = process.t1.map(|t| (self.clock.ns(t), process.number));
        let before = process.parent.filter(|_| process.begins == "exec");
        own.into_iter().chain(before.map(|before| (self.clock.ns(process.t0), before)))
    }

    /// Summarizes the parts of the resident memory over time.
    pub fn memory(&self) -> MemorySummary {
        let mut sums = Sums::default();
        let mut ends: Vec<(i64, u32)> = self.processes.iter().flat_map(|p| self.ends(p)).collect();
        ends.sort_unstable_by_key(|&(ns, process)| (std::cmp::Reverse(ns), process));
        let rows = self.samples.iter().filter_map(|sample| Some((sample, sample.parts?)));
        for (sample, parts) in rows {
            while let Some(&(ns, process)) = ends.last().filter(|end| end.0 <= sample.ns) {
                ends.pop();
                sums.end_process(ns, process);
            }
            sums.add(sample.ns, sample.process, &parts);
        }
        let mut memory = sums.finish(self.duration_ns);
        memory.rounding = self.rounding.name().to_string();
        self.sites.find_growing(&mut memory);
        memory
    }
}

fn parent_of(node: u32, parent: u32) -> i32 {
    if node == ROOT {
        -1
    } else {
        parent as i32
    }
}

/// Writes the tables `modules` and `frames`.
pub(super) fn frames(tables: &mut Tables, modules: &[Module], frames: &[Frame], symbols: &Symbols) {
    let paths: Vec<_> = modules.iter().map(|module| module.path.to_string_lossy()).collect();
    tables.write(
        &MODULES,
        vec![
            Column::i32((0..modules.len()).map(|module| module as i32)),
            Column::text(paths.iter().map(|path| &**path)),
            Column::text_or_null(modules.iter().map(|module| {
                Some(module.build_id.as_str()).filter(|build_id| !build_id.is_empty())
            })),
            Column::text(symbols.sources.iter().map(|source| source.as_str())),
        ],
    );
    let rows = symbols.rows(frames);
    tables.write(
        &FRAMES,
        vec![
            Column::i32(rows.iter().map(|row| row.frame as i32)),
            Column::i32_or_null(rows.iter().map(|row| row.module.map(|module| module as i32))),
            Column::i64_or_null(rows.iter().map(|row| row.offset.map(|offset| offset as i64))),
            Column::text(rows.iter().map(|row| row.function.as_ref())),
            Column::text_or_null(rows.iter().map(|row| row.file)),
            Column::i32_or_null(rows.iter().map(|row| row.line.map(|line| line as i32))),
            Column::i32_or_null(rows.iter().map(|row| row.inline_of.map(|frame| frame as i32))),
        ],
    );
}

/// Writes the table `sites` as a single row group.
pub(super) fn sites(tables: &mut Tables, rows: &[SiteRow]) {
    tables.write(&SITES, site_row::columns(rows));
}
