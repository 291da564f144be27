//! Finds the replayer `mallard-replay`, runs it, and parses what it prints.

use mallard_measure::error::status::MALLARD_FAILED;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{quoted_path, quoted_words};
use mallard_measure::output::units::count;
use mallard_measure::process::installed::PLAYER;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds the replayer.
pub fn find() -> Result<PathBuf, Failure> {
    PLAYER.find("nothing was replayed")
}

/// If a replay has more than this many times the page faults of the program, the replay writes to
/// pages that the program left untouched.
const MORE_FAULTS: f64 = 1.1;

/// How op streams are played.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Manner {
    /// What is written to new blocks: nothing, a byte of each page, or all bytes. auto: a byte of each
    /// page, but nothing if that makes more page faults than the program had.
    #[arg(long, value_enum, default_value = "auto")]
    touch: Touch,
    /// The pauses between calls: none, as recorded (real), or as recorded times a factor (x0.5).
    #[arg(long, value_name = "none|real|xF", value_parser = pace, default_value = "none")]
    pace: Pace,
    /// Fills the heap before the replay, and frees all blocks except this share (0.4, or 40%). The
    /// heap then has gaps, as in a program that has run for long.
    #[arg(long, value_name = "SHARE", value_parser = litter, default_value = "0")]
    litter: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Touch {
    #[default]
    Auto,
    None,
    Page,
    All,
}

impl Touch {
    fn word(self) -> &'static str {
        match self {
            Touch::None => "none",
            Touch::Page | Touch::Auto => "page",
            Touch::All => "all",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pace(f64);

fn pace(text: &str) -> Result<Pace, String> {
    let factor = match text {
        "none" => Some(0.0),
        "real" => Some(1.0),
        _ => text.strip_prefix('x').and_then(|factor| factor.parse().ok()),
    };
    let is_factor = |factor: &f64| factor.is_finite() && *factor >= 0.0;
    factor
        .filter(is_factor)
        .map(Pace)
        .ok_or("the pace must be none, real, or x and a factor, such as x0.5".into())
}

/// Parses a share from 0 to 1, or in percent.
fn litter(text: &str) -> Result<f64, String> {
    let share = match text.contains('%') {
        true => mallard_measure::parse::share(text).ok(),
        false => text.parse().ok(),
    };
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or("the value must be a share, such as 0.4 or 40%".into())
}

impl Manner {
    /// Returns what is written to new blocks: `none`, `page` or `all`.
    pub fn touch(&self) -> &'static str {
        self.touch.word()
    }

    /// Decides what is written to new blocks, if the user has not decided. `of_program` is the
    /// number of page faults of the program, and `replayed` the number in a run that writes to all
    /// pages. Returns a note if nothing will be written.
    ///
    /// A program that allocates large buffers and writes to a part of them has fewer page faults than
    /// a replay that writes to all pages.
    pub fn decide(&mut self, of_program: Option<f64>, replayed: f64) -> Option<String> {
        if self.touch != Touch::Auto {
            return None;
        }
        self.touch = Touch::Page;
        let of_program = of_program.filter(|program| replayed > MORE_FAULTS * program)?;
        self.touch = Touch::None;
        let [replayed, program] = [replayed, of_program].map(|faults| count(faults as u64));
        Some(format!(
            "the program leaves many pages of its blocks untouched: writing to all pages would cause {replayed} \
             page faults, and the program had {program}; so the replay writes to none (--touch page does)"
        ))
    }

    /// Returns the command line of the replayer.
    pub fn words(&self, stream: &Path, mode: Mode) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["mallard-replay".into()];
        words.extend(mode.word().map(OsString::from));
        words.extend(["--touch", self.touch.word()].map(OsString::from));
        if self.pace.0 > 0.0 {
            words.extend(["--pace".into(), self.pace.0.to_string().into()]);
        }
        if self.litter > 0.0 {
            words.extend(["--litter".into(), self.litter.to_string().into()]);
        }
        words.push(stream.into());
        words
    }
}

/// What the replayer does with an op stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Makes the calls.
    Play,
    /// Makes the calls to an allocator that does nothing.
    NoOp,
    /// Counts the memory of local allocators, in one thread and without a clock.
    Account,
}

impl Mode {
    fn word(self) -> Option<&'static str> {
        match self {
            Mode::Play => None,
            Mode::NoOp => Some("--no-op"),
            Mode::Account => Some("--account"),
        }
    }
}

/// Runs the replayer once, and returns the object that it prints.
pub fn ask<T: for<'a> Deserialize<'a>>(player: &Path, words: &[OsString]) -> Result<T, Failure> {
    let failed = |what: String| {
        let help = format!("{} {}", quoted_path(player), quoted_words(&words[1..]));
        Failure::new(what, "nothing was replayed", help).with_status(MALLARD_FAILED)
    };
    let ran = Command::new(player).args(&words[1..]).output().map_err(|e| {
        failed(format!("cannot start the replayer: {}", e.to_string().to_lowercase()))
    })?;
    if !ran.status.success() {
        let errors = String::from_utf8_lossy(&ran.stderr);
        let first = errors.lines().next().unwrap_or("no message");
        return Err(failed(format!(
            "the replayer failed: {}",
            first.trim_start_matches("mallard-replay: ")
        )));
    }
    serde_json::from_slice(&ran.stdout)
        .map_err(|e| failed(format!("the replayer printed no result: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_with_too_many_page_faults_does_not_write_to_blocks() {
        let touch = |of_program, replayed| {
            let mut manner = Manner::default();
            let note = manner.decide(of_program, replayed);
            (manner.touch(), note.is_some())
        };
        assert_eq!(touch(Some(1000.0), 1000.0), ("page", false));
        assert_eq!(touch(Some(1000.0), 2000.0), ("none", true));
        assert_eq!(touch(None, 2000.0), ("page", false));
        let mut all = Manner { touch: Touch::All, ..Manner::default() };
        assert_eq!(all.decide(Some(1.0), 9.0), None);
        assert_eq!(all.touch(), "all");
    }

    #[test]
    fn the_litter_option_accepts_a_fraction_or_a_percentage() {
        assert_eq!((litter("0"), litter("0.4"), litter("40%")), (Ok(0.0), Ok(0.4), Ok(0.4)));
        assert_eq!(litter("1"), Ok(1.0));
        for wrong in ["1.5", "-0.1", "140%", "much", "", "NaN"] {
            assert!(litter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_pace_option_scales_the_recorded_pauses() {
        let factor = |text: &str| pace(text).map(|pace| pace.0);
        assert_eq!((factor("none"), factor("real"), factor("x0.5")), (Ok(0.0), Ok(1.0), Ok(0.5)));
        for wrong in ["x", "0.5", "x-1", "xinf", "fast"] {
            assert!(factor(wrong).is_err(), "{wrong}");
        }
    }
}
