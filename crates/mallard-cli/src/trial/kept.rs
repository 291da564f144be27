//! Stores the result of `mallard verify` in the trace whose advice the user followed. A report
//! shows the result beside the prediction.

use crate::error::status::UNREADABLE;
use crate::error::Failure;
use crate::output::file::write_whole;
use crate::record::names;
use crate::report::{ADVICE_FILE, VERIFIED_FILE};
use mallard_trace::Trace;
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// The advice that a comparison checks.
pub struct Advised {
    folder: PathBuf,
    /// The title of the card that AFTER follows.
    title: String,
}

impl Advised {
    /// Reads a card of the advice of a trace, counted from 1. Fails if there is none.
    pub fn of(name: &Path, card: usize) -> Result<Advised, Failure> {
        let folder = Trace::open(&names::trace_of(name))?.folder().to_path_buf();
        let text = fs::read_to_string(folder.join(ADVICE_FILE)).unwrap_or_default();
        let advice: Value = serde_json::from_str(&text).unwrap_or_default();
        let of_card = card.checked_sub(1).map(|at| &advice["cards"][at]["title"]);
        let Some(title) = of_card.and_then(Value::as_str).map(str::to_string) else {
            let what = format!("{} has no card {card} of an advice", folder.display());
            let help = format!("mallard advise {}", folder.display());
            return Err(Failure::new(what, "nothing was measured", help).with_status(UNREADABLE));
        };
        Ok(Advised { folder, title })
    }

    /// Writes the comparison of two commands, of which `result` is the JSON object.
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
