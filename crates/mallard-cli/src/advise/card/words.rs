//! Writes the sentences of cards.

use super::card::Card;
use super::choose::{action, Change};
use super::phrases::{judged, predicted, BOUND_MAX};
use crate::advise::candidate::{By, Candidate, InProgram, Kind};
use crate::advise::code::Language;
use crate::advise::facts::Site;
use crate::advise::measured::Measured;
use crate::advise::rules::condition::{
    growing_bytes, is_a_trade, is_too_large, more_bytes, Subject, MEMORY_NOISE,
};
use crate::advise::rules::{Action, Rule};
use crate::look::frames::in_words;
use mallard_measure::mallocs;
use mallard_measure::output::shell::{quoted, quoted_path};
use mallard_measure::output::units::{bytes, percent, plural};
use mallard_measure::verdict::Verdict;
use mallard_trace::names::{is_start, short};
use mallard_trace::regions::Region;
use mallard_trace::replay::{self, Scope};

/// A plan is worth applying to the unchanged program if it saves at least this share more than
/// every malloc.
const AHEAD: f64 = 0.03;
/// The maximum number of functions of a call stack on a card.
const STACK_MAX: usize = 5;

/// Writes the title of a card: the action, in a few words.
pub fn title(change: &Change, what: &str, function: &str) -> String {
    let set = |of: &Candidate| variables(of).filter(|_| action(change) == Action::Set);
    let named = |of: &Candidate| set(of).unwrap_or_else(|| of.name.to_string());
    let allocator = change.candidate.map_or(String::new(), named);
    let texts = [("{what}", what), ("{allocator}", &allocator), ("{function}", function)];
    let fill = |title: String, (name, text): (&str, &str)| title.replace(name, text);
    let title = texts.into_iter().fold(change.rule.title.to_string(), fill);
    match change.candidate.filter(|of| is_a_trade(of)) {
        Some(of) => format!("{title}, if {} more memory may be used", bytes(more_bytes(of))),
        None => title,
    }
}

/// Returns the variables of a setting, as a shell needs them. `None` for a malloc without
/// variables.
fn variables(of: &Candidate) -> Option<String> {
    let entry = mallocs::list().find(|entry| entry.name == of.name.short())?;
    Some(entry.environment.clone()).filter(|variables| !variables.is_empty())
}

/// Lists the facts that support a change.
pub fn evidence(
    evidence: &Measured,
    rule: &Rule,
    subject: &Subject,
    of: Option<&Candidate>,
) -> Vec<String> {
    let mut all = vec![rule.why.to_string()];
    match subject {
        Subject::Region(region) => all.push(weight(evidence, region)),
        Subject::Site(site) => all.extend(stack(site)),
        _ => {}
    }
    all.extend(of.and_then(together));
    all.extend(rule.reasons(&evidence.facts, subject));
    if let Subject::Candidate(_) = subject {
        all.extend(bounds(evidence));
        all.extend(threads(evidence));
    }
    all
}

/// Describes a call stack, from the innermost function of the program outwards to `main`. `None` if
/// there is only one function.
fn stack(of: &Site) -> Option<String> {
    let own = of.stack.iter().position(|name| *name == of.owner.shown).unwrap_or(0);
    let inner = of.stack[own.min(of.stack.len())..].iter().map(String::as_str);
    let is_main = |name: &str| name == "main" || name.ends_with("::main");
    let main = inner.clone().find(|name| is_main(name));
    let shown: Vec<&str> = inner.take_while(|name| !is_start(name)).chain(main).collect();
    let more = if shown.len() > STACK_MAX { " from ..." } else { "" };
    let named: Vec<String> = shown.iter().take(STACK_MAX).map(|name| in_words(name)).collect();
    (named.len() > 1).then(|| format!("call stack: {}{more}", named.join(" from ")))
}

/// Describes the functions of a plan for several sites. `None` for any other plan.
fn together(of: &Candidate) -> Option<String> {
    let rules = &of.plan.as_ref()?.rules;
    let name = |rule: &replay::Rule| match &rule.scope {
        Scope::Site(function) => Some(in_words(&short(function))),
        _ => None,
    };
    let mut names: Vec<String> = Vec::new();
    for name in rules.iter().filter_map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (rules.len() > 1 && !names.is_empty()).then(|| {
        format!(
            "measured with a multipool for each of {}: one structure may own them",
            names.join(", ")
        )
    })
}

/// Describes the properties D (density) and V (variation) of a region, and what one call allocates.
fn weight(evidence: &Measured, of: &Region) -> String {
    let time = match evidence.facts.program.cpu_ns {
        Some(cpu) if cpu > 0.0 && evidence.bound().unknown.is_none() => format!(
            "its calls take at most {}{} of the CPU time (D); ",
            evidence.facts.program.about(),
            percent((of.call_ns / cpu).min(1.0))
        ),
        _ => String::new(),
    };
    format!(
        "{time}its blocks have {} (V {:.1} bits); a call allocates {} (median) in {}",
        plural(of.sizes.into(), "size"),
        of.variation_bits,
        bytes(of.total.p50.max(0.0) as u64),
        match of.instances {
            0 => "an unknown number of blocks".to_string(),
            calls => format!("{} (mean)", plural(of.blocks / calls, "block")),
        }
    )
}

/// Describes the property C (contention), which shows how much threads contend in the allocator.
/// `None` if the program never has two threads at the same time.
fn threads(evidence: &Measured) -> Option<String> {
    let totals = &evidence.facts.program.totals;
    let other = totals.cross_thread_frees as f64 / totals.allocs.max(1) as f64;
    let program = &evidence.facts.program;
    let has_one_each = program.processes > 1 && program.threads == program.processes;
    let who = if has_one_each { "process" } else { "thread" };
    (program.threads_at_once > 1).then(|| {
        let c = totals.c.value.map_or(String::new(), |c| format!(" (C {c:.2})"));
        format!(
            "{} at the same time, and {} of the blocks are freed by another thread{c}",
            plural(program.threads_at_once, who),
            percent(other)
        )
    })
}

/// Describes the upper limit of what any allocator can save.
pub fn bounds(evidence: &Measured) -> Vec<String> {
    let bound = &evidence.bound();
    let mut all = Vec::new();
    if let (Some(calls), Some(faults)) = (bound.calls, bound.faults) {
        all.push(format!(
            "malloc and free take at most {}{} of the CPU time, and page faults {}",
            evidence.facts.program.about(),
            percent(calls),
            percent(faults)
        ));
    }
    if let Some(share) = bound.replayed {
        let share = percent(share);
        all.push(format!(
            "a replay of all calls, page faults included, takes {share} of the CPU time"
        ));
    }
    if let Some(why) = &bound.unknown {
        all.push(format!("how much of the CPU time malloc and free take is unknown: {why}"));
    }
    if let Some(teardown) = bound.teardown.filter(|&share| share > 0.0) {
        all.push(format!(
            "frees at the end of a function's calls, with the destructors around them, take at most {}",
            percent(teardown)
        ));
    }
    if let Some(share) = bound.share.filter(|&share| share < BOUND_MAX) {
        let share = percent(share);
        all.push(format!("so no allocator can save more than {share}, except by better locality"));
    }
    all.extend(evidence.facts.memory.summary.sentence());
    all
}

/// Returns whether runs of the program save more than all recorded calls and page faults take.
fn saves_more_than_recorded(evidence: &Measured, of: &Candidate) -> bool {
    of.by == By::Try && evidence.bound().share.is_some_and(|share| of.cpu.low > share)
}

/// Lists the risks of a change.
pub fn hazards(
    evidence: &Measured,
    rule: &Rule,
    of: Option<&Candidate>,
    region: Option<&Region>,
    language: Language,
) -> Vec<String> {
    let of_objects = Some(rule.hazards_of_objects).filter(|_| language != Language::C);
    let texts = rule.hazards.iter().chain(of_objects.into_iter().flatten());
    let mut all: Vec<String> = texts.map(|text| text.to_string()).collect();
    if of.is_some_and(|of| saves_more_than_recorded(evidence, of)) {
        let what =
            "the program saves more than its recorded calls and page faults take: the change \
                    also affects code that was not recorded, such as code in an emulator, or \
                    it improves locality";
        all.insert(0, what.to_string());
    }
    if of.is_some_and(is_too_large) {
        all.insert(
            0,
            "it needs much more memory, so use it only where there is enough".to_string(),
        );
    }
    if let Some(region) = region.filter(|region| region.threads > 1) {
        let threads = plural(region.threads.into(), "thread");
        all.push(format!("{threads} run it, so each call needs a separate allocator"));
    }
    if region.is_some_and(|region| region.module.contains(".so")) {
        all.push("it is in a library, which has to accept an allocator".to_string());
    }
    all
}

/// Returns the command that makes a change without new code, and the command that checks a change.
/// The check of another malloc measures the program under that malloc alone, because `mallard run`
/// itself takes time.
pub fn commands(evidence: &Measured, of: Option<&Candidate>) -> (Option<String>, String) {
    let (program, typed) = (&evidence.facts.program, &evidence.facts.typed);
    let command = program.command.as_deref().unwrap_or(&program.name);
    let Some(of) = of.filter(|of| of.kind != Kind::Strategy) else {
        let sides = format!("--before {} --after {}", quoted(before(command)), quoted(command));
        let plan = of.and_then(|of| of.in_program.as_ref()).filter(|of| is_ahead(evidence, of));
        let plan = plan.map(|of| {
            let file = quoted_path(&of.file);
            typed.run(&format!("mallard run --plan {file} -- {command}"))
        });
        return (plan, typed.measure("verify", &sides));
    };
    let set = variables(of).filter(|_| of.kind == Kind::Variable);
    let how = match set {
        Some(variables) => format!("{variables} {command}"),
        None => format!("mallard run --allocator {} -- {command}", of.name),
    };
    let check = format!("--allocator {} -- {command}", of.name);
    (Some(typed.run(&how)), typed.measure("try", &check))
}

/// Returns whether a plan is worth applying to the unchanged program, because it saves more than
/// every malloc.
fn is_ahead(evidence: &Measured, of: &InProgram) -> bool {
    let mallocs = evidence.candidates.iter().filter(|of| of.kind != Kind::Strategy);
    let best = mallocs.filter(|of| of.by == By::Try).map(|of| of.cpu.saving).fold(0.0, f64::max);
    let is_gain = of.as_it_is.verdict != Verdict::Loss;
    is_gain && of.as_it_is.saving >= best + AHEAD && !of.file.as_os_str().is_empty()
}

/// Returns `command` for a copy of the program from before the change, such as `./app.before data`.
///
/// The first word of a command ends at the first space outside of single quotes, because `quoted`
/// puts words into single quotes. In a shell, `'my app'.before` is one word.
fn before(command: &str) -> String {
    let (mut is_quoted, mut last) = (false, ' ');
    let end = command.find(|c| {
        // Outside of quotes, \' is a quote that is part of the word.
        is_quoted ^= c == '\'' && (is_quoted || last != '\\');
        last = c;
        c == ' ' && !is_quoted
    });
    let (program, rest) = command.split_at(end.unwrap_or(command.len()));
    format!("{program}.before{rest}")
}

/// Writes the result of a change in a sentence that stands alone.
pub fn sentence(evidence: &Measured, card: &Card, change: &Change, function: &str) -> String {
    let name = &evidence.facts.program.name;
    if let (None, Some(site)) = (change.candidate, change.site) {
        return format!(
            "While {name} was recorded, its memory grew by {} that {function} allocates and does not \
             free. No allocator helps: unless the program needs these blocks, it has to free them.",
            bytes(growing_bytes(&evidence.facts, site))
        );
    }
    let Some(of) = change.candidate else { return card.title.clone() };
    let what = match card.action {
        Action::Switch => format!("With {} as its malloc, {name}", of.name),
        Action::Set => format!("With a setting of its malloc ({}), {name}", of.name),
        Action::Pool => format!("With a pool for what {function} allocates, {name}"),
        _ => format!("With a separate allocator for each call of {function}, {name}"),
    };
    if change.rule.id == "fragmented-after-peak" {
        let when = if of.saves_at_end() { "after its peak" } else { "at its peak" };
        let saved = judged(of.memory_saving().0);
        let by = if of.saves_at_end() { By::Replay } else { of.by };
        return format!(
            "{what} needs {saved} less memory {when}; {}.",
            proof(evidence, by, of.kind)
        );
    }
    if change.is_for_memory {
        let needs = if of.by == By::Plan { "would need" } else { "needs" };
        let time = match of.cpu.verdict {
            Verdict::Gain => format!(" and {} less CPU time", saved(of)),
            _ => String::new(),
        };
        return format!(
            "{what} {needs} {} less memory{time} ({} instead of {} at its peak); {}.",
            percent(of.memory.saving),
            bytes(of.peak_bytes.1),
            bytes(of.peak_bytes.0),
            proof(evidence, of.by, of.kind)
        );
    }
    let less = of.peak_bytes.0.saturating_sub(of.peak_bytes.1);
    let memory = match of.memory.verdict {
        _ if is_a_trade(of) => format!(
            ", but {} more memory ({} instead of {}): your choice",
            bytes(more_bytes(of)),
            bytes(of.peak_bytes.1),
            bytes(of.peak_bytes.0)
        ),
        Verdict::Gain if less > MEMORY_NOISE => {
            format!(" and {} less memory", percent(of.memory.saving))
        }
        _ => String::new(),
    };
    let needs = if of.by == By::Try { "needs" } else { "would need" };
    format!(
        "{what} {needs} {} less CPU time{memory}; {}.",
        saved(of),
        proof(evidence, of.by, of.kind)
    )
}

/// Describes the saving of a candidate in the program, measured in runs of the program or predicted
/// by a replay.
fn saved(of: &Candidate) -> String {
    match of.expected.filter(|_| of.by != By::Try) {
        Some((low, high)) => predicted(low, high),
        None => judged(&of.cpu),
    }
}

/// Describes which measurement shows a saving, and which measurement would show the saving better.
fn proof(evidence: &Measured, by: By, kind: Kind) -> String {
    let shows = match kind {
        Kind::Strategy => "only the changed program can show the real saving",
        Kind::Malloc | Kind::Variable => "only runs of the program can show the real saving",
    };
    match by {
        By::Try => "runs of the program itself show it".to_string(),
        By::Plan => "runs of the unchanged program with the plan show that".to_string(),
        By::Replay => {
            let of = if evidence.part.is_some() { "recorded part of the run" } else { "recording" };
            format!("replays of the {of} predict that, and {shows}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rules::sample;
    use mallard_measure::output::shell::quoted;

    #[test]
    fn a_call_stack_ends_with_the_main_function_of_the_program() {
        let mut site = sample::site((16, 16));
        let runtime = ["app::main", "core::ops::FnOnce::call_once", "std::rt::lang_start", "main"];
        site.stack = ["cache::put"].iter().chain(&runtime).map(|name| name.to_string()).collect();
        assert_eq!(super::stack(&site).unwrap(), "call stack: cache::put from app::main");
        site.stack = ["cache::put", "work", "start_thread", "clone"].map(String::from).to_vec();
        assert_eq!(super::stack(&site).unwrap(), "call stack: cache::put from work");
    }

    #[test]
    fn the_program_before_a_change_gets_another_name_that_a_shell_accepts() {
        assert_eq!(before("./app"), "./app.before");
        assert_eq!(before("./app 'a b' c"), "./app.before 'a b' c");
        for program in ["my app", "it's an app", "a\\", "k=v"] {
            let command = format!("printf %s {}", before(&format!("{} 'x y'", quoted(program))));
            let shell = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
            let printed = String::from_utf8(shell.stdout).unwrap();
            assert_eq!(printed, format!("{program}.beforex y"), "{command}");
        }
    }
}
