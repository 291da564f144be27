//! Implements `mallard report`, which writes a trace as one HTML file, or as the JSON object that
//! the file shows.

mod advice;
mod encode;
mod gather;
mod holders;
mod object;
mod page;
mod ranking;
mod regions;
mod resident;
mod run;
mod saved;
mod sentences;
mod sites;
mod strings;
mod tree;
mod write;

pub use advice::{FILE as ADVICE_FILE, VERIFIED as VERIFIED_FILE};

use crate::look::open;
use crate::output::debuginfod::Debuginfod;
use gather::Gathered;
use mallard_measure::error::Failure;
use mallard_measure::output::progress::Work;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::terminal::{self, say};
use mallard_measure::output::units::bytes;
use object::Object;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The maximum size of a page. Only a page whose sites cannot be cut further is larger.
const PAGE_BYTES_MAX: usize = 5_000_000;
/// The space in bytes for names, call stacks and sites, when the page is made for the first time.
const SITES_BYTES_MAX: usize = 4_200_000;

/// Makes one HTML file that shows a trace: what the program allocated, who held it, and for how long.
///
/// The file needs no network and no other file.
#[derive(clap::Args)]
pub struct Command {
    /// The trace, or a file FILE.json that `--json` made.
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// The file, or - for the standard output. Without this option, NAME.html next to the trace.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrites FILE even if it is no report of mallard.
    #[arg(long)]
    force: bool,
    /// Writes what the page shows as one JSON object, and makes no page.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    debuginfod: Debuginfod,
}

impl Command {
    /// Writes the file.
    pub fn run(self) -> Result<ExitCode, Failure> {
        if saved::is_object(&self.name) {
            let to = self.target(&self.name)?;
            let (name, json) = saved::read(&self.name)?;
            let page = page::page(&json, &title(&name));
            return self.deliver(&to, &json, &page);
        }
        let trace = self.debuginfod.name(open(&self.name)?);
        let to = self.target(trace.folder())?;
        let work = Work::begin();
        work.say("reading events");
        let gathered = Gathered::of(&trace)?;
        work.say("writing the page");
        let (json, page) = within_limit(&gathered, &title(&gathered.name));
        drop(work);
        self.deliver(&to, &json, &page)
    }

    /// Returns the file to write. Fails if the file exists and must not be overwritten.
    fn target(&self, source: &Path) -> Result<PathBuf, Failure> {
        let to = self.output.clone().unwrap_or_else(|| source.with_extension("html"));
        if !self.json && to != Path::new("-") {
            write::check(&to, self.force)?;
        }
        Ok(to)
    }

    /// Writes the page, or the object with `--json`.
    fn deliver(&self, to: &Path, json: &str, page: &str) -> Result<ExitCode, Failure> {
        if self.json {
            terminal::write(&format!("{json}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        write::replace(to, page)?;
        if to != Path::new("-") {
            let (name, size, pasted) = (to.display(), bytes(page.len() as u64), quoted_path(to));
            say(&format!("{name} ({size})\n  next: open it in a browser: xdg-open {pasted}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the title of a page.
fn title(name: &str) -> String {
    format!("{name}: memory")
}

/// Makes the object as JSON, and the page. If the page is too large, makes both again with less
/// space, so that the least important sites are left out.
fn within_limit(gathered: &Gathered, title: &str) -> (String, String) {
    let mut room = SITES_BYTES_MAX;
    loop {
        let object = Object::of(gathered, room);
        let json = serde_json::to_string(&object).expect("an object is plain");
        let page = page::page(&json, title);
        if page.len() < PAGE_BYTES_MAX || room == 0 {
            return (json, page);
        }
        // Reduces the space by the excess, and by some more, because sizes are estimates.
        let excess = page.len() - PAGE_BYTES_MAX + 100_000;
        room = room.saturating_sub(excess);
    }
}
