//! Checks that docs/guide/advise_json.md lists exactly the keys of the JSON output.

use super::budget::Budget;
use super::candidate::Forced;
use super::measured::Measured;
use super::rules::sample;
use super::show::Output;
use super::stages::Stages;
use crate::replay::Played;
use mallard_measure::verdict::{Judgement, Verdict, Why};
use mallard_trace::regions::{Lane, Region};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// The paths of keys, such as `cards[].saving.total`, and whether the value of each may be null.
type Keys = BTreeMap<String, bool>;

fn path(outer: &str, key: &str) -> String {
    match outer {
        "" => key.to_string(),
        _ => format!("{outer}.{key}"),
    }
}

/// Returns the parts of a text between backquotes.
fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Reads the keys from the tables of the guide. The heading before a table names the objects with
/// these keys.
fn written() -> Keys {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/advise_json.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (mut objects, mut keys) = (Vec::new(), Keys::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            objects = if heading == "The object" { vec![""] } else { code(heading) };
        }
        if !line.starts_with("| `") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [names, _, _, null] = cells[..] else { panic!("not four cells: {line}") };
        for (object, name) in
            objects.iter().flat_map(|of| code(names).into_iter().map(move |name| (of, name)))
        {
            let known = keys.insert(path(object, name), !null.is_empty());
            assert_eq!(known, None, "{object} has the key {name} twice");
        }
    }
    keys
}

/// Adds the keys of a value and of all values in it.
fn add(value: &Value, at: &str, keys: &mut Keys) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let path = path(at, key);
                *keys.entry(path.clone()).or_default() |= value.is_null();
                add(value, &path, keys);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| add(value, &format!("{at}[]"), keys)),
        _ => {}
    }
}

/// Returns a judgement without a figure, such as that of a saving compared with a base of zero.
fn without_figure() -> Judgement {
    let (saving, verdict) = (f64::NEG_INFINITY, Verdict::NotMeasurable);
    let why = Some(Why::NoFigure);
    Judgement { saving, low: saving, high: saving, p: 1.0, verdict, why }
}

/// Returns results that together produce all keys: the samples of the rules, and some rare cases.
fn samples() -> Vec<Measured> {
    // A sample with replays, with runs of the program and with an instance, but without figures of
    // memory.
    let mut replayed = sample::document();
    replayed.facts_mut().regions[0].lanes.push(Lane::default());
    for of in &mut replayed.candidates {
        of.replayed = Some(of.cpu.clone());
        of.predicted = of.expected;
        of.memory = without_figure();
        of.memory_at_end = Some(without_figure());
    }
    // A change for a region with few escapes is recommended if its plan does not wink out.
    let mut escapes = sample::one_escapes();
    escapes.candidates.retain(|of| of.rule == Some("multipool-over-arena"));
    let played = || Played {
        cpu: without_figure(),
        allocator: without_figure(),
        pages: without_figure(),
        memory: without_figure(),
        memory_at_end: without_figure(),
        expected: None,
        peak_bytes: (0, 0),
        end_bytes: (0, 0),
    };
    let wish = |played| {
        let sites = sample::one_escapes().facts.regions[0].escape_sites.clone();
        let forced = Some(Forced { sites, played, ..sample::wish(30) });
        Measured { forced, ..sample::program() }
    };
    // A region and a site without debug information.
    let region = Region { file: None, line: None, cpu_ns: Some(1.0), ..sample::region() };
    let stripped = sample::with(sample::document(), |facts| facts.regions = vec![region]);
    let mut structure = sample::structure((16, 64));
    let site = &mut structure.facts_mut().sites[0];
    (site.file, site.line) = (None, None);
    (site.owner.file, site.owner.line) = (None, None);
    let rare = [replayed, escapes, wish(Some(played())), wish(None), stripped, structure];
    sample::all().into_iter().chain(rare).chain([Measured::default()]).collect()
}

#[test]
fn the_guide_documents_exactly_the_keys_of_the_json_output() {
    let budget = Budget::begin(Duration::from_secs(1), Default::default(), true);
    let mut stages = Stages::default();
    stages.time("regions", || ());
    let mut found = Keys::new();
    for evidence in samples() {
        add(&Output::new(&evidence, &budget, &stages).json(), "", &mut found);
    }
    let written = written();
    let all = |keys: &Keys| keys.keys().cloned().collect::<BTreeSet<String>>();
    let (found_keys, written_keys) = (all(&found), all(&written));
    let missing: Vec<_> = found_keys.difference(&written_keys).collect();
    let gone: Vec<_> = written_keys.difference(&found_keys).collect();
    assert!(missing.is_empty(), "docs/guide/advise_json.md lacks {missing:#?}");
    assert!(gone.is_empty(), "docs/guide/advise_json.md has keys without a value: {gone:#?}");
    let is_null = |key: &&String| found[*key] && !written[*key];
    let null: Vec<_> = found.keys().filter(is_null).collect();
    assert!(
        null.is_empty(),
        "docs/guide/advise_json.md does not say when these are null: {null:#?}"
    );
}
