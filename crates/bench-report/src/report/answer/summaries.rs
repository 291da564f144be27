//! Summarises thousands of benchmark results in a few lines, for a page without scripts.

use crate::rows::cases::case_of;
use crate::rows::contender::{explained, short, Strategy};
use crate::rows::experiment::{contenders, deciding, ratio, Experiment, Kind};
use crate::rows::published::{Published, Seed};
use crate::rows::row::Row;
use crate::statistics::{geometric_mean, Range};
use crate::tables::layout::lakos5::condition;
use crate::tables::layout::slices;
use crate::tables::{number, Cell, Line, Table};

/// Summarises benchmarks III and IV as percentages of AS1 over all cells, with a line for each
/// allocator.
pub fn shares(experiments: &[&Experiment], published: &Published) -> Vec<Table> {
    let of_talk = experiments.iter().filter(|e| e.part(0).contains('='));
    let of_talk: Vec<&Experiment> = of_talk.copied().collect();
    let of_time = slices(&of_talk).into_iter();
    of_time
        .filter(|s| ["ns_per_op", "seconds"].contains(&s.metric))
        .map(|slice| {
            let title = format!("Per cent of AS1 over all cells: {}", slice.title());
            let columns = ["median", "least", "most", "cells", "FAIL"].map(str::to_string);
            let mut table = Table::new(title, &["contender"]).columns(columns).of(&slice.all);
            let has_run = |c: &String| {
                let rows = slice.all.iter().filter_map(|e| e.of(c));
                rows.into_iter().any(|r| r.median.is_some() || r.failed())
            };
            for contender in contenders(&slice.all).into_iter().filter(has_run) {
                let line = share_line(&slice.all, &contender, published);
                table.lines.push(Line {
                    heads: vec![explained(&contender)],
                    cells: line,
                    contender: Some(contender),
                });
            }
            table
        })
        .collect()
}

fn share_line(all: &[&Experiment], contender: &str, published: &Published) -> Vec<Cell> {
    let rows = all.iter().filter_map(|e| Some((e, e.of(contender)?)));
    let (mut shares, mut fails, mut talk, mut talk_fails, mut cells) = (vec![], 0, vec![], 0, 0);
    let mut computed = 0;
    for (e, row) in rows {
        cells += 1;
        shares.extend(e.gain(row).map(|g| 100.0 / g));
        fails += usize::from(row.failed());
        computed += usize::from(row.failed_on_paper());
        let is_of_talk = Strategy::of(contender).is_some_and(|s| s.is_of_the_talk());
        match published.share(&e.suite, &e.case, &short(contender)).filter(|_| is_of_talk) {
            Some(Some(share)) => talk.push(share * 100.0),
            Some(None) => talk_fails += 1,
            None => {}
        }
    }
    let (ours, talk) = (Range::of(shares), Range::of(talk));
    let cell = |of: fn(Range) -> f64| {
        let cell =
            Cell::figure(ours.map(of)).published(talk.map_or(String::new(), |t| number(of(t))));
        cell.shaded(ours.and_then(|o| ratio(100.0, of(o))))
    };
    let count = |n: usize| Cell::text(n.to_string());
    let failures = match computed {
        0 => count(fails),
        computed => Cell::text(format!("{fails}, {computed} of them computed and not run")),
    };
    let talk_fails = if talk.is_some() { talk_fails.to_string() } else { String::new() };
    vec![
        cell(|r| r.median),
        cell(|r| r.least),
        cell(|r| r.most),
        count(cells),
        failures.published(talk_fails),
    ]
}

/// Summarises benchmark V, which divides the time of each allocator in a fragmented heap by its
/// time in a clean heap.
pub fn fragmented(experiments: &[&Experiment]) -> Option<Table> {
    let all = deciding(experiments);
    let names = contenders(&all);
    let mut columns: Vec<&str> = Vec::new();
    for e in &all {
        if condition(e) != "clean" && !columns.contains(&condition(e)) {
            columns.push(condition(e));
        }
    }
    let mut table = Table::new("Time in a fragmented heap, where it is 1 in a clean one", &["contender"])
        .columns(columns.iter().map(|c| c.to_string()))
        .of(&all)
        .note("Geometric mean over structures and sizes; freed=1/4: a quarter of the blocks before were freed.");
    let clean = |e: &Experiment, contender: &str| {
        let of_same = |c: &&&Experiment| {
            c.part(0) == e.part(0) && c.part(1) == e.part(1) && condition(c) == "clean"
        };
        all.iter().find(of_same)?.of(contender)?.median
    };
    for contender in names {
        let cells = columns.iter().map(|column| {
            let own = all.iter().filter(|e| condition(e) == *column);
            let slower = geometric_mean(
                own.filter_map(|e| ratio(e.of(&contender)?.median?, clean(e, &contender)?)),
            );
            Cell::figure(slower).shaded(slower.map(|s| 1.0 / s))
        });
        let cells = cells.collect();
        table.lines.push(Line {
            heads: vec![explained(&contender)],
            cells,
            contender: Some(contender),
        });
    }
    (!table.is_empty()).then_some(table)
}

/// Returns tables of the cases that have a published figure. A table compares the published
/// figures, glibc, Mallard's best allocator, and the best competitor.
pub fn seeds(title: &str, experiments: &[&Experiment], published: &Published) -> Vec<Table> {
    let slices = slices(experiments);
    let of_time = slices.iter().filter(|s| s.all[0].kind() == Kind::Time);
    let tables = of_time.map(|slice| {
        let columns = ["published", "glibc", "Mallard's best", "best peer", "Mallard / peer"];
        let mut table =
            Table::prose(format!("{title}: {}", slice.title()), &["case"], &columns).of(&slice.all);
        for e in &slice.all {
            let of_case = |s: &&Seed| s.case == e.case && s.metric == e.metric;
            let theirs = published.seeds.iter().filter(of_case);
            let theirs: Vec<String> = theirs
                .filter(|s| s.suite == e.suite)
                .map(|s| format!("{} {}", s.contender, number(s.value)))
                .collect();
            if theirs.is_empty() {
                continue;
            }
            let (ours, peer) = (e.best_ours(), e.best_peer());
            let named = |r: Option<&Row>| {
                let median = r.and_then(|r| r.median);
                median.map_or(String::new(), |m| {
                    format!("{} {}", r.map_or("", |r| &r.contender), number(m))
                })
            };
            let share = ours.zip(peer).and_then(|(o, p)| ratio(o.median?, p.median?));
            let cells = [
                Cell::text(theirs.join(", ")),
                Cell::figure(e.baseline().and_then(|r| r.median)),
                Cell::text(named(ours)),
                Cell::text(named(peer)),
                Cell::figure(share).shaded(share.map(|s| 1.0 / s)),
            ];
            table.line(vec![case_of(e)], cells.to_vec());
        }
        table
    });
    tables.filter(|t| !t.is_empty()).collect()
}
