//! Parses the name of a benchmark case into its variant, and its place in the tables.

use super::experiment::Experiment;
use std::collections::HashSet;

/// The variants of a suite that a reader of the page can select, the most important first.
/// `returning` exists for lakos1 only. In this variant, glibc returns memory to the system between
/// repetitions.
pub const FACETS: [&str; 3] = ["corrected", "returning", "faithful"];

/// Returns the variant if a reader can select it on the page, or "" if it is part of the case.
pub fn facet(variant: &str) -> &str {
    if FACETS.contains(&variant) {
        variant
    } else {
        ""
    }
}

/// Returns whether a case of suite lakos2 belongs in a heat map. The name of such a case consists
/// of the number of elements, S and I, as in `2^21/S=2^13/I=2^8`. There is a fourth part if the
/// case has fewer shuffles than in J. Lakos's talk.
pub fn is_in_map(e: &Experiment) -> bool {
    e.part(0) != "diffusion" && e.part(2).starts_with("I=")
}

/// Returns whether a case of lakos2 is a cell of the heat maps in Lakos's talk. The number of
/// elements may differ.
pub fn is_cell(e: &Experiment) -> bool {
    is_in_map(e) && e.part(3).is_empty()
}

/// Returns the text that identifies a case in addition to the selectors of the page, such as `flow,
/// t=2s` or `random/T4, 4 threads`.
pub fn case_of(e: &Experiment) -> String {
    let variant = if facet(&e.variant).is_empty() { &*e.variant } else { "" };
    let threads = if e.threads > 1 { format!("{} threads", e.threads) } else { String::new() };
    let parts = [&*e.case, variant, &threads];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Returns the experiments that enter a comparison. If a case has several variants, only the
/// corrected variant is returned.
pub fn counted<'a>(all: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let key = |e: &Experiment| (e.suite.clone(), e.case.clone(), e.metric.clone(), e.threads);
    let corrected: HashSet<_> =
        all.iter().filter(|e| e.variant == "corrected").map(|e| key(e)).collect();
    let counts = |e: &&&Experiment| {
        facet(&e.variant).is_empty() || e.variant == FACETS[0] || !corrected.contains(&key(e))
    };
    all.iter().filter(counts).copied().collect()
}
