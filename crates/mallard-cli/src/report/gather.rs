//! Reads and computes everything that a report shows.

use super::advice::Advice;
use super::holders::Holders;
use super::ranking::Ranked;
use super::regions;
use super::resident::Resident;
use mallard_measure::error::Failure;
use mallard_trace::residency::{self, Split};
use mallard_trace::survey::{self, survey, Survey};
use mallard_trace::tables::schema::MODULES;
use mallard_trace::trace::Stacks;
use mallard_trace::{RunNotes, Trace};
use std::panic::resume_unwind;
use std::thread;

/// The data of a report, read and computed.
pub struct Gathered<'a> {
    pub trace: &'a Trace,
    /// The name of the trace.
    pub name: String,
    pub ranked: Ranked,
    pub survey: Survey,
    pub stacks: Stacks,
    pub holders: Holders,
    pub resident: Resident,
    /// The parts of the resident memory at each moment of the timeline.
    pub split: Split,
    /// The paths of the program file and the libraries.
    pub modules: Vec<String>,
    /// The advice that `mallard advise` has saved. If there is no saved advice, this value has only
    /// the regions.
    pub advice: Advice,
}

impl Gathered<'_> {
    /// Reads a trace. A second thread reads the saved advice. If there is no advice, that thread
    /// finds the regions, with a separate pass over the events.
    pub fn of(trace: &Trace) -> Result<Gathered<'_>, Failure> {
        thread::scope(|scope| {
            let advice = scope.spawn(|| advice(trace));
            let gathered = Gathered::without_advice(trace);
            let advice = advice.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok(Gathered { advice: advice?, ..gathered? })
        })
    }

    /// Reads a trace. The largest tables are read one after the other, so that only one is in
    /// memory at a time.
    fn without_advice(trace: &Trace) -> Result<Gathered<'_>, Failure> {
        let ranked = Ranked::of(trace.sites()?, &trace.manifest().totals.sites);
        let chosen = ranked.kept.iter().take(survey::SITES_MAX).map(|site| site.stack as u32);
        let options = survey::Options { sites: chosen.collect(), ..survey::Options::default() };
        let survey = survey(trace, &options)?;
        let stacks = trace.stacks()?;
        let name = trace.folder().file_stem().unwrap_or_default();
        Ok(Gathered {
            trace,
            name: name.to_string_lossy().into_owned(),
            holders: Holders::of(&ranked.kept, &stacks),
            ranked,
            split: residency::split(trace, &survey.timeline.t_ns)?,
            survey,
            stacks,
            resident: Resident::read(trace)?,
            advice: Advice::default(),
            modules: trace.table(&MODULES)?.texts("path")?,
        })
    }

    /// Returns the peak of the resident memory without the recorder. This peak is the one that the
    /// system reported at the end, or else the highest sample. Returns 0 if the peak is unknown.
    pub fn peak_rss(&self) -> u64 {
        let counted = self.trace.manifest().notes.peak_rss.unwrap_or(0);
        let all = counted.max(self.resident.highest().max(0) as u64);
        let recorder = self.trace.manifest().memory.peak.parts.recorder;
        all.saturating_sub(recorder.max(0) as u64)
    }

    /// Returns the notes that `mallard record` has stored.
    pub fn notes(&self) -> &RunNotes {
        &self.trace.manifest().notes
    }
}

/// Returns the saved advice on the program. If there is no saved advice, finds the regions.
fn advice(trace: &Trace) -> Result<Advice, Failure> {
    let mut advice = Advice::read(trace);
    if advice.shown.is_none() {
        advice.regions = regions::find(trace)?;
    }
    Ok(advice)
}
