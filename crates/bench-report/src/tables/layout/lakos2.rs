//! Lays out benchmark II of Lakos's talk as heat maps by subsystem size and iterations. There are
//! maps without local allocators, maps with local allocators, and maps of the ratio. Other tables
//! show the effect of shuffling on locality.

use super::strategies::text_of;
use super::{by_case, general, slices, Slice};
use crate::rows::cases::is_in_map;
use crate::rows::contender::short;
use crate::rows::experiment::{contenders, ratio, Experiment};
use crate::rows::natural;
use crate::rows::published::{Figure, Published};
use crate::tables::{Cell, Table};

/// The strategy that the tables of Lakos's talk show.
const OF_TALK: &str = "mallard/AS7";

pub fn tables(experiments: &[&Experiment], published: &Published) -> Vec<Table> {
    let mut tables = Vec::new();
    for slice in slices(experiments) {
        let mut maps_by_name: Vec<(String, Vec<&Experiment>)> = Vec::new();
        for e in slice.all.iter().filter(|e| is_in_map(e)) {
            let name = map_name(e);
            match maps_by_name.iter_mut().find(|(n, _)| *n == name) {
                Some((_, own)) => own.push(e),
                None => maps_by_name.push((name, vec![e])),
            }
        }
        maps_by_name.sort_by_key(|(name, _)| natural::key(name));
        for (name, own) in maps_by_name {
            tables.extend(maps(&slice, &name, &own, published));
        }
        tables.extend(diffusion(&slice, published));
        let others = slice.all.iter().filter(|e| !is_in_map(e) && !is_diffusion(e));
        tables.extend(general::tables(&others.copied().collect::<Vec<_>>()));
    }
    tables
}

fn is_diffusion(e: &Experiment) -> bool {
    e.part(0) == "diffusion" && e.part(2).starts_with("shuffles=")
}

/// Formats the name of a heat map: `2^21 elements` or `2^21 elements, shuffles=1`.
fn map_name(e: &Experiment) -> String {
    let name = format!("{} elements, {}", e.part(0), e.part(3));
    name.trim_end_matches(", ").to_string()
}

/// Returns the heat maps without local allocators (AS1) and with local allocators (AS7), and a map
/// of the ratio between AS1 and each local allocator.
fn maps(slice: &Slice, name: &str, all: &[&Experiment], published: &Published) -> Vec<Table> {
    let base = all.iter().find_map(|e| e.baseline()).map(|r| r.contender.clone());
    let Some(base) = base else { return Vec::new() };
    let name = format!("{name}, {}", slice.title());
    let is_of_talk = slice.metric == "degradation";
    let talk = |e: &Experiment, column: &str| {
        published.of(&e.suite, &e.case, column).filter(|_| is_of_talk)
    };
    let absolute = |e: &Experiment, contender: &str, column: &str| {
        let cell = Cell::of(e.of(contender)).published(text_of(talk(e, column)));
        let worse =
            is_of_talk.then(|| e.of(contender).and_then(|r| ratio(1.0, r.median?))).flatten();
        cell.shaded(worse)
    };
    let mut tables = vec![
        map(format!("{name}: without local allocators (AS1)"), all, |e| absolute(e, &base, "AS1")),
        map(format!("{name}: with local allocators (AS7)"), all, |e| absolute(e, OF_TALK, "AS7")),
        map(format!("{name}: ratio, without / with (AS7)"), all, |e| {
            let both = talk(e, "AS1").flatten().zip(talk(e, "AS7").flatten());
            ratio_cell(e, OF_TALK)
                .published(text_of(both.map(|(a, b)| ratio(a, b)) as Option<Figure>))
        }),
    ];
    for contender in contenders(all) {
        if contender != base && contender != OF_TALK {
            let title = format!("{name}: ratio, without / with {}", short(&contender));
            tables.push(map(title, all, |e| ratio_cell(e, &contender)));
        }
    }
    tables
}

fn ratio_cell(e: &Experiment, contender: &str) -> Cell {
    let gain = e.of(contender).and_then(|r| e.gain(r));
    if gain.is_none() {
        return Cell::of(e.of(contender));
    }
    Cell::figure(gain).shaded(gain)
}

/// Makes a heat map with sizes from large to small and iterations from many to few, as in Lakos's
/// talk.
fn map(title: String, all: &[&Experiment], cell: impl Fn(&Experiment) -> Cell) -> Table {
    let part = |index: usize| {
        let mut parts: Vec<String> = all.iter().map(|e| e.part(index).to_string()).collect();
        parts.sort_by_key(|p| std::cmp::Reverse(natural::key(p)));
        parts.dedup();
        parts
    };
    let (sizes, iterations) = (part(1), part(2));
    let mut table = Table::new(title, &["size"]).columns(iterations.iter().cloned()).of(all);
    for size in &sizes {
        let cells = iterations.iter().map(|i| {
            let found = all.iter().find(|e| e.part(1) == size && e.part(2) == i);
            found.map_or_else(Cell::default, |e| cell(e))
        });
        let cells: Vec<Cell> = cells.collect();
        table.line(vec![size.clone()], cells);
    }
    if table.lines.iter().all(|l| l.cells.iter().all(|c| c.text.is_empty())) {
        table.lines.clear(); // the allocator was not measured in any cell
    }
    table
}

/// Returns the tables of diffusion, with subsystem sizes as lines and the number of complete
/// shuffles as columns.
fn diffusion(slice: &Slice, published: &Published) -> Vec<Table> {
    let all: Vec<&Experiment> = slice.all.iter().filter(|e| is_diffusion(e)).copied().collect();
    let is_of_talk = slice.metric == "degradation";
    contenders(&all)
        .iter()
        .map(|contender| {
            let title = format!("Diffusion by shuffles, {}: {}", slice.title(), short(contender));
            let has = |e: &&Experiment| e.of(contender).is_some();
            let own: Vec<&Experiment> = by_case(&all).into_iter().filter(has).collect();
            map(title, &own, |e| {
                let row = e.of(contender);
                let worse = row.and_then(|r| ratio(1.0, r.median?)).filter(|_| is_of_talk);
                let column = short(contender);
                let talk = published.of(&e.suite, &e.case, &column).filter(|_| is_of_talk);
                Cell::of(row).shaded(worse).published(text_of(talk))
            })
            .reversed()
        })
        .collect()
}

impl Table {
    /// Reverses the columns, so that their values ascend.
    fn reversed(mut self) -> Table {
        self.columns.reverse();
        self.lines.iter_mut().for_each(|l| l.cells.reverse());
        self
    }
}
