//! The sentences of cards.

use super::choose::{self, Change};
use super::{answer, Card};
use crate::advise::evidence::{By, Candidate, Evidence, Kind, Site};
use crate::advise::rules::condition::{
    growing_bytes, is_a_trade, is_too_large, more_bytes, Subject, MEMORY_NOISE,
};
use crate::advise::rules::{self, Action, Rule};
use crate::allocators;
use crate::output::shell::quoted;
use crate::output::units::{bytes, percent, plural};
use crate::verdict::{Judgement, Verdict};
use mallard_trace::names::{is_start, short};
use mallard_trace::regions::Region;
use mallard_trace::replay::{self, Allocator, Scope, Strategy};

/// How many alternatives a card names.
pub const ALTERNATIVES_MAX: usize = 3;
/// A bound of at least this share of the CPU time is not shown.
pub const BOUND_MAX: f64 = 0.9;
/// How many functions of a call stack a card names.
const STACK_MAX: usize = 5;

fn word_of(allocator: Allocator) -> &'static str {
    match allocator {
        Allocator::Heap => "heap",
        Allocator::Arena => "arena",
        Allocator::Multipool => "multipool",
        Allocator::MultipoolOverArena => "multipool in an arena",
    }
}

/// A strategy in words: `arena, allocator as a type parameter, memory dropped at once`.
pub fn of_strategy(strategy: Strategy) -> String {
    let allocator = word_of(strategy.allocator());
    let binding = match strategy.is_virtual() {
        true => "allocator behind an abstract base (std::pmr)",
        false => "allocator as a type parameter",
    };
    let end = match strategy.winks_out() {
        true => "memory dropped at once",
        false => "destroyed as before",
    };
    format!("{allocator}, {binding}, {end}")
}

/// The name of a candidate with its allocator in words: `AS4 in parse` is `an arena, dropped at once (AS4),
/// in parse`. The name of a malloc stays.
pub fn named(name: &str) -> String {
    let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
    let Ok(strategy) = first.parse::<Strategy>() else { return name.to_string() };
    let allocator = word_of(strategy.allocator());
    let article = if strategy.allocator() == Allocator::Arena { "an" } else { "a" };
    let (end, comma) = if strategy.winks_out() { (", dropped at once", ",") } else { ("", "") };
    let place = if rest.is_empty() { String::new() } else { format!("{comma} {rest}") };
    format!("{article} {allocator}{end} ({strategy}){place}")
}

/// The title of a card: the action, in a few words. `{function}` stays.
pub fn title(rule: &Rule, what: &str, of: Option<&Candidate>, action: Action) -> String {
    let allocator = of.map_or("", |of| of.name.as_str());
    let title = rule.title.replace("{what}", what).replace("{allocator}", allocator);
    let title = match (action, of.map(|of| variables(&of.name))) {
        (Action::Set, Some(Some(variables))) => title.replace(allocator, &variables),
        _ => title,
    };
    match of.filter(|of| is_a_trade(of)) {
        Some(of) => format!("{title}, if {} more memory may be used", bytes(more_bytes(of))),
        None => title,
    }
}

/// The variables of a setting, as a shell needs them. `None` for a malloc without variables.
fn variables(name: &str) -> Option<String> {
    let entry = allocators::list().iter().find(|entry| entry.name == name)?;
    Some(entry.environment.clone()).filter(|variables| !variables.is_empty())
}

/// A saving and its interval: `12 % (10 to 14 %)`. If both ends look the same, the saving alone.
pub fn share(saving: f64, low: f64, high: f64) -> String {
    if !saving.is_finite() {
        return "unknown".to_string();
    }
    let (saving, low, high) = (percent(saving), percent(low), percent(high));
    match low == high {
        true => saving,
        false => format!("{saving} ({} to {high})", low.replace(" %", "")),
    }
}

/// A saving with its interval.
pub fn judged(of: &Judgement) -> String {
    share(of.saving, of.low, of.high)
}

/// The facts that support a change.
pub fn evidence(
    evidence: &Evidence,
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
    all.extend(rule.reasons(evidence, subject));
    if let Subject::Candidate(_) = subject {
        all.extend(bounds(evidence));
        all.extend(threads(evidence));
    }
    all
}

/// The functions of a call stack, outwards from the innermost of the program to `main`. `None` for a
/// single one.
fn stack(of: &Site) -> Option<String> {
    let own = of.stack.iter().position(|name| *name == of.owner.shown).unwrap_or(0);
    let inner = of.stack[own.min(of.stack.len())..].iter().map(String::as_str);
    let is_main = |name: &str| name == "main" || name.ends_with("::main");
    let main = inner.clone().find(|name| is_main(name));
    let shown: Vec<&str> = inner.take_while(|name| !is_start(name)).chain(main).collect();
    let more = if shown.len() > STACK_MAX { " from ..." } else { "" };
    let named = &shown[..shown.len().min(STACK_MAX)];
    (named.len() > 1).then(|| format!("call stack: {}{more}", named.join(" from ")))
}

/// The functions of a plan for several sites. `None` for any other plan.
fn together(of: &Candidate) -> Option<String> {
    let rules = &of.plan.as_ref()?.rules;
    let name = |rule: &replay::Rule| match &rule.scope {
        Scope::Site(function) => Some(short(function)),
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

/// D, V and the number of calls of a region.
fn weight(evidence: &Evidence, of: &Region) -> String {
    let time = match evidence.program.cpu_ns {
        Some(cpu) if cpu > 0.0 && evidence.bound.unknown.is_none() => format!(
            "its calls take at most {}{} of the CPU time (D); ",
            evidence.program.about(),
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

/// The property C (contention): how threads meet in the allocator. `None` if threads never run at once.
fn threads(evidence: &Evidence) -> Option<String> {
    let totals = &evidence.program.totals;
    let other = totals.cross_thread_frees as f64 / totals.allocs.max(1) as f64;
    let program = &evidence.program;
    let has_one_each = program.processes > 1 && program.threads == program.processes;
    let who = if has_one_each { "process" } else { "thread" };
    (program.threads_at_once > 1).then(|| {
        let c = totals.c.value.map_or(String::new(), |c| format!(" (C {c:.2})"));
        format!(
            "{} at once, and {} of the blocks are freed by another thread{c}",
            plural(program.threads_at_once, who),
            percent(other)
        )
    })
}

/// The upper limit of what any allocator can save.
pub fn bounds(evidence: &Evidence) -> Vec<String> {
    let bound = &evidence.bound;
    let mut all = Vec::new();
    if let (Some(calls), Some(faults)) = (bound.calls, bound.faults) {
        all.push(format!(
            "malloc and free take at most {}{} of the CPU time, and page faults {}",
            evidence.program.about(),
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
        all.push(format!("so no allocator can save more than {share}, locality aside"));
    }
    all.extend(evidence.memory.summary.sentence());
    all
}

/// The risks of a change.
pub fn hazards(rule: &Rule, of: Option<&Candidate>, region: Option<&Region>) -> Vec<String> {
    let mut all: Vec<String> = rule.hazards.iter().map(|text| text.to_string()).collect();
    if of.is_some_and(is_too_large) {
        all.insert(0, "it needs much more memory: only where there is room".to_string());
    }
    if let Some(region) = region.filter(|region| region.threads > 1) {
        let threads = plural(region.threads.into(), "thread");
        all.push(format!("{threads} run it: each call needs an allocator of its own"));
    }
    if region.is_some_and(|region| region.module.contains(".so")) {
        all.push("it is in a library: the library has to take an allocator".to_string());
    }
    all
}

/// Why other changes are not advised: candidates for the same function, and rules that do not apply.
pub fn why_not(evidence: &Evidence, change: &Change, region: Option<&Region>) -> Vec<String> {
    let mut all = Vec::new();
    for other in &evidence.candidates {
        if choose::is_alternative(evidence, change, other) {
            all.push((other.cpu.saving, alternative(evidence, change, other)));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut lines: Vec<String> =
        all.into_iter().take(ALTERNATIVES_MAX).map(|(_, line)| line).collect();
    match region {
        Some(region) if !change.rule.winks_out() => lines.extend(no_wink_out(evidence, region)),
        None if change.rule.strategy == 0 => {
            lines.extend(answer::need_recording(evidence));
            lines.extend(answer::not_local(evidence));
        }
        _ => {}
    }
    lines
}

fn alternative(evidence: &Evidence, change: &Change, other: &Candidate) -> String {
    let saves = answer::saves(other);
    let but = if other.cpu.saving < 0.0 { "and" } else { "but" };
    let refused =
        other.rule.and_then(rules::rule).map(|rule| choose::why_not(evidence, rule, other));
    let why = match refused.and_then(|reasons| reasons.into_iter().next()) {
        Some(reason) => format!(", {but} {reason}"),
        None if is_too_large(other) => {
            too_large(other).map_or(String::new(), |why| format!(", {but} {why}"))
        }
        None if other.cpu.verdict != Verdict::Gain => format!(": {}", other.cpu.verdict),
        None => not_first(other, change),
    };
    saves + &why
}

/// Why a candidate that may be advised too does not come before a change: what it saves, or what it costs.
fn not_first(other: &Candidate, change: &Change) -> String {
    let Some(chosen) = change.candidate else { return String::new() };
    let more = other.peak_bytes.1.saturating_sub(chosen.peak_bytes.1);
    let needs_more = other.memory_by == chosen.memory_by && more > MEMORY_NOISE;
    if change.rule.id == "fragmented-after-peak" {
        return ", but saves less memory".to_string();
    }
    let (saving, best) = (percent(other.cpu.saving), percent(chosen.cpu.saving));
    match other.cpu.saving > chosen.cpu.saving {
        true if skips_more(other, change) => ", but skips destructors".to_string(),
        _ if saving == best && !needs_more => ", no more than this change".to_string(),
        false if saving != best => ", less than this change".to_string(),
        _ if needs_more => format!(", but needs {} more memory", bytes(more)),
        _ => ", and this change probably saves more than its replay shows".to_string(),
    }
}

/// Whether a candidate drops memory at once, and a change does not.
fn skips_more(other: &Candidate, change: &Change) -> bool {
    other.rule.and_then(rules::rule).is_some_and(Rule::winks_out) && !change.rule.winks_out()
}

/// A sentence that a candidate needs much more memory. `None` if the candidate does not.
pub fn too_large(of: &Candidate) -> Option<String> {
    let (before, after) = of.peak_bytes;
    is_too_large(of).then(|| format!("needs {} instead of {}", bytes(after), bytes(before)))
}

/// Why the memory of a region is not dropped at once. `None` if no reason is known.
fn no_wink_out(evidence: &Evidence, region: &Region) -> Option<String> {
    let rule = rules::rule("wink-out-arena")?;
    let subject = Subject::Region(region);
    let failed = rule.when.iter().filter(|condition| !condition.holds(evidence, &subject));
    let why = failed.filter_map(|condition| condition.failure(evidence, &subject)).next();
    let why = why.or_else(|| unmeasured_wink_out(evidence, region))?;
    Some(format!("no wink-out: {why}"))
}

/// Why a wink-out that the rules allow is not advised: a second recording is missing, or the wink-out
/// was not replayed. `None` if the wink-out was measured.
fn unmeasured_wink_out(evidence: &Evidence, region: &Region) -> Option<String> {
    if evidence.not_again.is_some() {
        return choose::no_second_recording(evidence);
    }
    let is_here = |place: Option<usize>| {
        let of = place.and_then(|place| evidence.regions.get(place));
        of.is_some_and(|of| of.function == region.function)
    };
    let winks_out = |name: &str| {
        let strategy: Option<Strategy> = name.split(' ').next().and_then(|n| n.parse().ok());
        strategy.is_some_and(Strategy::winks_out)
    };
    let mut dropped = evidence.dropped.iter().filter(|of| is_here(of.region));
    let of = dropped.find(|of| winks_out(&of.name))?;
    Some(format!("{} was not measured: {}", of.name, of.why))
}

/// The command that checks a change of the code.
pub fn check_of_code(evidence: &Evidence) -> String {
    let program = &evidence.program;
    let command = program.command.as_deref().unwrap_or(&program.name);
    format!("mallard verify --before {} --after {}", quoted(&before(command)), quoted(command))
}

/// The command that makes a change without new code, and the command that checks a change. `mallard run`
/// takes time of its own, so the check of another malloc measures the program under that malloc alone.
pub fn commands(evidence: &Evidence, of: &Candidate) -> (Option<String>, String) {
    let program = &evidence.program;
    let command = program.command.as_deref().unwrap_or(&program.name);
    let run = || format!("mallard run --allocator {} -- {command}", of.name);
    let check = format!("mallard try --allocator {} -- {command}", of.name);
    match of.kind {
        Kind::Strategy => (None, check_of_code(evidence)),
        Kind::Malloc => (Some(run()), check),
        Kind::Variable => {
            let set = variables(&of.name).map(|variables| format!("{variables} {command}"));
            (Some(set.unwrap_or_else(run)), check)
        }
    }
}

/// `command` for a copy of the program from before the change: `./app.before data`.
///
/// A shell ends the first word at the first space outside of single quotes, with which `quoted` makes
/// the words of a command. In a shell, `'my app'.before` is one word.
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

/// The result of a change in a sentence that stands alone.
pub fn sentence(evidence: &Evidence, card: &Card, change: &Change, function: &str) -> String {
    let name = &evidence.program.name;
    if let (None, Some(site)) = (change.candidate, change.site) {
        return format!(
            "The memory of {name} grows until it ends, by {} that {function} allocates and never \
             frees: no allocator helps, the program has to free them or to need them.",
            bytes(growing_bytes(evidence, site))
        );
    }
    let Some(of) = change.candidate else { return card.title.clone() };
    let what = match card.action {
        Action::Switch => format!("With {} as its malloc, {name}", of.name),
        Action::Set => format!("With a setting of its malloc ({}), {name}", of.name),
        Action::Pool => format!("With a pool for what {function} allocates, {name}"),
        _ => format!("With an allocator of its own for each call of {function}, {name}"),
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

/// The saving of a candidate in the program, measured in runs of the program or predicted by a replay.
fn saved(of: &Candidate) -> String {
    match of.expected.filter(|_| of.by == By::Replay) {
        Some((low, high)) if low > 0.0 && high < 1.0 => {
            format!("{} to {}", percent(low).replace(" %", ""), percent(high))
        }
        Some((low, _)) if low > 0.0 => format!("at least {}", percent(low)),
        _ => judged(&of.cpu),
    }
}

/// What shows a saving, and what would show more.
fn proof(evidence: &Evidence, by: By, kind: Kind) -> String {
    let shows = match kind {
        Kind::Strategy => "only the changed program can show it",
        Kind::Malloc | Kind::Variable => "only runs of the program can show it",
    };
    match by {
        By::Try => "runs of the program itself show it".to_string(),
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
    use crate::output::shell::quoted;

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
    fn a_candidate_is_named_by_its_allocator_in_words() {
        assert_eq!(named("AS4 in parse"), "an arena, dropped at once (AS4), in parse");
        assert_eq!(
            named("AS7 for cache::put and 2 more"),
            "a multipool (AS7) for cache::put and 2 more"
        );
        assert_eq!(named("AS11"), "a multipool in an arena (AS11)");
        assert_eq!(named("mimalloc"), "mimalloc");
    }

    #[test]
    fn the_program_before_a_change_has_a_name_of_its_own_in_a_shell() {
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
