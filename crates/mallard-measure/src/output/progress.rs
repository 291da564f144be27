//! Shows on a terminal what the command itself is doing, while no measured program runs.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A line on stderr that changes while the command works. The line is shown only if stderr is a
/// terminal, and disappears when the value is dropped.
pub struct Work {
    bar: ProgressBar,
}

impl Work {
    /// Shows the progress line.
    pub fn begin() -> Work {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        bar.set_style(style.expect("a valid template"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Work { bar }
    }

    /// Changes the text.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_string());
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
