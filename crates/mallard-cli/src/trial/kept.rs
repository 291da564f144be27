//! Stores the result of `mallard verify` in the trace whose advice the user has followed. A report
//! shows the result next to the prediction.

use crate::output::file::write_whole;
use crate::record::names;
use crate::report::{ADVICE_FILE, VERIFIED_FILE};
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::units::percent;
use mallard_trace::Trace;
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// The advice that a comparison verifies.
pub struct Advised {
    folder: PathBuf,
    /// The number of the card that the program AFTER implements, counted from 1.
    number: usize,
    title: String,
    /// Whether the card recommends a change, or recommends to change nothing. False if the advice
    /// is undecided.
    is_decided: bool,
    /// The smallest and the largest predicted saving, as shares of the CPU time. `None` if the card
    /// predicts no saving.
    predicted: Option<(f64, f64)>,
}

impl Advised {
    /// Reads a card of a trace's advice, by its number from 1. Returns an error if there is no such
    /// card.
    pub fn of(name: &Path, card: usize) -> Result<Advised, Failure> {
        let folder = Trace::open(&names::trace_of(name))?.folder().to_path_buf();
        let text = fs::read_to_string(folder.join(ADVICE_FILE)).unwrap_or_default();
        let advice: Value = serde_json::from_str(&text).unwrap_or_default();
        let of = card.checked_sub(1).map_or(&Value::Null, |at| &advice["cards"][at]);
        let Some(title) = of["title"].as_str().map(str::to_string) else {
            let what = format!("{} has no advice with a card {card}", folder.display());
            let help = format!("mallard advise {}", quoted_path(&folder));
            return Err(Failure::new(what, "nothing was measured", help).with_status(UNREADABLE));
        };
        let share = |end: &str| of["saving"]["expected"][end].as_f64();
        let predicted = share("low").zip(share("high"));
        let is_decided = of["action"] != "undecided";
        Ok(Advised { folder, number: card, title, is_decided, predicted })
    }

    /// Returns a sentence with the prediction, and whether the measured saving is in the predicted
    /// interval. `cpu` is the CPU time as in the JSON object of the comparison.
    pub fn beside(&self, cpu: &Value) -> String {
        let card = format!("card {} of the advice", self.number);
        if !self.is_decided {
            return "the advice is undecided and predicts nothing".to_string();
        }
        let Some((low, high)) = self.predicted else { return format!("{card} predicts no saving") };
        let range = match high < 1.0 {
            true => format!("{} to {}", percent(low).trim_end_matches(" %"), percent(high)),
            false => format!("at least {}", percent(low)),
        };
        let saving = cpu["saving"].as_f64().filter(|_| cpu["verdict"] != "not measurable");
        let end = match saving {
            Some(saving) if (low..=high).contains(&saving) => "the measured saving is inside",
            Some(_) => "the measured saving is outside",
            None => "the runs differ too much to compare them with the prediction",
        };
        format!("{card} predicts {range} less CPU time: {end}")
    }

    /// Writes the comparison of two commands. `result` is the JSON object of the comparison.
    pub fn keep(&self, before: &str, after: &str, result: &Value) -> Result<(), Failure> {
        let of = &result["candidates"][0];
        let kept = json!({
            "version": 1,
            "card": self.title,
            "before": before,
            "after": after,
            "cpu": of["cpu"],
            "memory": of["memory"],
            "peak_rss_bytes": [result["base"]["peak_rss_bytes"], of["peak_rss_bytes"]],
            "runs": of["runs"],
        });
        let text = format!("{kept}\n");
        write_whole(&self.folder.join(VERIFIED_FILE), true, |to| Ok(to.write_all(text.as_bytes())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prediction_is_printed_next_to_the_measured_saving() {
        let beside = |predicted, saving: f64, verdict: &str| {
            let (folder, title) = (PathBuf::new(), String::new());
            let advised = Advised { folder, number: 2, title, is_decided: true, predicted };
            advised.beside(&json!({"saving": saving, "verdict": verdict}))
        };
        let of_card = |text: &str| format!("card 2 of the advice predicts {text}");
        let range = Some((0.26, 0.37));
        let said = "26 to 37 % less CPU time: the measured saving is ";
        assert_eq!(beside(range, 0.31, "gain"), of_card(&format!("{said}inside")));
        assert_eq!(beside(range, 0.38, "gain"), of_card(&format!("{said}outside")));
        assert_eq!(beside(range, -0.1, "loss"), of_card(&format!("{said}outside")));
        let at_least = "at least 26 % less CPU time: the measured saving is inside";
        assert_eq!(beside(Some((0.26, 1.0)), 0.8, "gain"), of_card(at_least));
        let unknown =
            "26 to 37 % less CPU time: the runs differ too much to compare them with the prediction";
        assert_eq!(beside(range, 0.31, "not measurable"), of_card(unknown));
        assert_eq!(beside(None, 0.31, "gain"), of_card("no saving"));
    }
}
