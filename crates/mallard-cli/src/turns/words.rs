//! How judgements are shown, in tables and in sentences.

use crate::output::units::percent;
use crate::verdict::{Judgement, Verdict};

/// The saving with its interval, and the verdict.
pub fn cells(of: &Judgement, column: usize) -> [String; 2] {
    let verdict = match (column, of.verdict) {
        (1, Verdict::NoDifference) => "control".to_string(),
        (_, verdict) => verdict.to_string(),
    };
    if !of.saving.is_finite() {
        return [String::new(), verdict];
    }
    let saved = percent(of.saving);
    let [low, high] = [of.low, of.high].map(|end| percent(end).replace(" %", ""));
    [format!("{saved} ({low} to {high})"), verdict]
}

/// `3.1 % less CPU time (2.5 to 3.6 %)`.
pub fn needs(of: &Judgement, what: &str) -> String {
    let size = |share: f64| percent(share.abs());
    let range = |a: f64, b: f64| format!("{} to {}", size(a).replace(" %", ""), size(b));
    match of.verdict {
        Verdict::Gain => format!("{} less {what} ({})", size(of.saving), range(of.low, of.high)),
        Verdict::Loss => format!("{} more {what} ({})", size(of.saving), range(of.high, of.low)),
        Verdict::NoDifference => {
            format!("as much {what} (within {})", size(of.low.abs().max(of.high.abs())))
        }
        Verdict::NotMeasurable => format!("{what} as yet unknown"),
    }
}
