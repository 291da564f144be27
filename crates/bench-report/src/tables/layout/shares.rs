//! Lays out benchmarks III and IV of Lakos's talk. As in the files of Lakos's talk, AS1 is shown as
//! measured, the other strategies in percent of AS1, and FAIL if memory ran out.

use super::strategies::{peers, talk, Named, Unit};
use super::{by_case, general, slices};
use crate::rows::experiment::Experiment;
use crate::rows::published::Published;
use crate::tables::Table;

pub fn tables(experiments: &[&Experiment], published: &Published) -> Vec<Table> {
    let mut tables = Vec::new();
    for slice in slices(experiments) {
        // A case of Lakos's talk has a name that begins with a parameter and `=`. Other cases have
        // no strategies.
        let (of_talk, others): (Vec<&Experiment>, Vec<&Experiment>) =
            slice.all.iter().partition(|e| e.part(0).contains('='));
        let lines: Vec<Named> = by_case(&of_talk).into_iter().map(|e| (heads(e), e)).collect();
        if let Some((_, first)) = lines.first() {
            let heads: Vec<&str> = first.case.split('/').map(name_of).collect();
            let strategies = Table::new(format!("{}, per cent of AS1", slice.title()), &heads);
            tables.push(talk(strategies, &lines, Unit::ShareOfFirst, published));
            tables.push(peers(Table::new(format!("{}, peers", slice.title()), &heads), &lines));
        }
        tables.extend(general::tables(&others));
    }
    tables
}

/// Returns the values in the name of a case: 2^30, 2^15, 2^10 for `T=2^30/M=2^15/S=2^10`.
fn heads(e: &Experiment) -> Vec<String> {
    e.case.split('/').map(|p| p.rsplit('=').next().unwrap_or(p).to_string()).collect()
}

fn name_of(part: &str) -> &str {
    part.split('=').next().unwrap_or(part)
}
