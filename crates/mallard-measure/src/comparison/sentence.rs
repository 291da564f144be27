//! Writes the result of a comparison in one sentence.

use super::answer::Answer;
use super::plan::PLAN;
use super::report::Report;
use crate::output::units::{percent, plural};
use crate::rounds::measured::LeftOut;
use crate::rounds::subject::failure;
use crate::rounds::words::needs;
use crate::verdict::{Judgement, Verdict};

/// Returns the result in one sentence.
pub fn sentence(report: &Report) -> String {
    if report.measured.rounds() == 0 {
        return match report.measured.interrupted {
            true => "Interrupted before the first comparison was complete: nothing was measured."
                .to_string(),
            false if !report.measured.broken.is_empty() => "Nothing was measured.".to_string(),
            false => {
                "There is no other malloc to compare with: see mallard try --list.".to_string()
            }
        };
    }
    let cut = match report.measured.interrupted {
        true => {
            let runs = plural(report.measured.rounds() as u64, "run");
            format!(" (Interrupted after {runs} of each.)")
        }
        false => String::new(),
    };
    let text = if report.words.is_pair { pair(report) } else { mallocs(report) };
    failures(report) + &text + &bound(report) + &cut
}

/// Returns a sentence that the program fails in every run. Empty if the program does not fail.
fn failures(report: &Report) -> String {
    let name = match report.words.name.as_str() {
        "" => "the program",
        name => name,
    };
    let sentence =
        |how| format!("Every run of {name} {how}, and all figures are from these runs. ");
    failure(report.measured.status).map_or(String::new(), sentence)
}

/// Returns the sentence for a comparison of two programs.
fn pair(report: &Report) -> String {
    let rows = report.rows();
    let Some((cpu, memory)) = rows[0].judged else {
        return "The two programs behave differently, so nothing was compared.".to_string();
    };
    let open = |of: &Judgement| of.verdict == Verdict::NotMeasurable;
    match (open(cpu), open(memory)) {
        (true, true) => "What the change costs or saves is not measurable yet.".to_string(),
        (true, false) => format!(
            "After the change the program needs {}; its CPU time is not measurable yet.",
            needs(memory, "memory")
        ),
        (false, true) => format!(
            "After the change the program needs {}; its memory is not measurable yet.",
            needs(cpu, "CPU time")
        ),
        (false, false) => format!(
            "After the change the program needs {}, and {}.",
            needs(cpu, "CPU time"),
            needs(memory, "memory")
        ),
    }
}

fn mallocs(report: &Report) -> String {
    let program = &report.words.name;
    if let Some((row, cpu)) = report.winner() {
        let memory = row
            .judged
            .map_or(String::new(), |(_, memory)| format!(", and {}", needs(memory, "memory")));
        return format!(
            "{}, {program} needs {}{memory}.",
            under(&row.subject.name),
            needs(cpu, "CPU time")
        );
    }
    if let Some(function) = report.words.allocates_by {
        return format!(
            "The mallocs were not tested: {program} has its own allocator, {function}."
        );
    }
    let rows = report.rows();
    let candidates = rows.iter().filter(|row| !report.is_control(row.index));
    let judged: Vec<_> = candidates.filter_map(|row| row.judged).collect();
    if judged.is_empty() && !report.left_out(LeftOut::NoEffect).is_empty() {
        return format!(
            "No setting of glibc changes the page faults or the memory of {program}, and no other malloc was tried."
        );
    }
    if judged.is_empty() {
        return format!(
            "Under every other malloc {program} fails or behaves differently, so keep its malloc."
        );
    }
    let answer = report.answer();
    let time = match answer {
        Answer::TooFewRuns => {
            let runs = plural(report.measured.all_rounds() as u64, "run");
            format!("Not decided yet: {runs} of {program} under each malloc are too few")
        }
        Answer::NotYet { name, most } => format!(
            "Not decided yet: {name} may save up to {} of the CPU time of {program}",
            percent(most)
        ),
        Answer::No { most } if most > 0.0 => {
            format!("No malloc saves more than {} of the CPU time of {program}", percent(most))
        }
        Answer::No { .. } => {
            format!("Under every other malloc {program} needs more CPU time")
        }
    };
    // A malloc that saves memory is worth a change if it costs no CPU time.
    let cheap = report
        .best_by(|(cpu, memory)| if cpu.verdict == Verdict::NoDifference { memory } else { cpu });
    match cheap {
        Some((row, memory)) => format!(
            "{time}. {} it needs {}, and no more CPU time.",
            under(&row.subject.name),
            needs(memory, "memory")
        ),
        None if !matches!(answer, Answer::No { .. }) => format!("{time}."),
        None => format!("{time}, so keep the malloc that it has."),
    }
}

/// Returns the words for a malloc, or for a plan.
fn under(name: &str) -> String {
    match name {
        PLAN => "With the plan".to_string(),
        _ => format!("Under {name}"),
    }
}

/// Returns a sentence with the bound of a recording, which is the maximum that any malloc could
/// save. Empty if no bound is known.
fn bound(report: &Report) -> String {
    match report.bound {
        Some(share) => format!(
            " A recording says that malloc, free and page faults take at most {} of its CPU time: no malloc can save more, except by better locality.",
            percent(share)
        ),
        None => String::new(),
    }
}
