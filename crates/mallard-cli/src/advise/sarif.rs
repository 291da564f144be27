//! Writes cards in SARIF 2.1.0, a format in which code review tools read results of analyses
//! (OASIS, 2020; docs.oasis-open.org/sarif/sarif/v2.1.0).
//!
//! The types here have only the members that a result needs. The crate serde-sarif has all members,
//! but makes its types from the schema in each build, which needs about twenty more crates.

use super::candidate::Forced;
use super::card::Card;
use super::code::Place;
use super::facts::Program;
use super::force::wish;
use super::measured::Measured;
use super::rules::{Action, RULES};
use nix::libc;
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The identifier of the directory in which the command ran, as GitHub expects it.
const FOLDER: &str = "%SRCROOT%";
/// The rule ID for the result of a strategy that the user asked for.
const FORCED: &str = "forced";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    /// The directory in which the command ran. Paths of files are relative to this directory.
    original_uri_base_ids: BTreeMap<&'static str, Value>,
    column_kind: &'static str,
    invocations: [Value; 1],
    results: Vec<Result>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: &'static str,
    short_description: Message,
    full_description: Message,
    default_configuration: Value,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Result {
    rule_id: &'static str,
    rule_index: usize,
    kind: &'static str,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
    /// Identifies a result in later runs, even when lines have moved.
    partial_fingerprints: BTreeMap<&'static str, String>,
    properties: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
    logical_locations: [Value; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

/// Makes a SARIF log from the cards, or from the result of a strategy that the user asked for.
/// Paths of files below `folder` are relative to `folder`.
pub fn log(evidence: &Measured, cards: &[Card], folder: &Path) -> Value {
    let base = json!({"uri": format!("file://{}/", encoded(&folder.to_string_lossy()))});
    let program = &evidence.facts.program;
    let wishes = evidence.forced.iter().map(|forced| result_of_wish(forced, program, folder));
    let run = Run {
        tool: Tool {
            driver: Driver {
                name: "mallard advise",
                semantic_version: env!("CARGO_PKG_VERSION"),
                rules: RULES.iter().map(descriptor).chain([of_wish()]).collect(),
            },
        },
        original_uri_base_ids: BTreeMap::from([(FOLDER, base)]),
        column_kind: "utf16CodeUnits",
        invocations: [json!({"executionSuccessful": is_whole(evidence)})],
        results: wishes.chain(cards.iter().map(|card| result(card, program, folder))).collect(),
    };
    let log = Log { schema: SCHEMA, version: "2.1.0", runs: [run] };
    serde_json::to_value(log).expect("a log is plain")
}

fn descriptor(rule: &super::rules::Rule) -> Descriptor {
    let title = rule.title.replace("{function}", "a function");
    Descriptor {
        id: rule.id,
        short_description: Message {
            text: title.replace(
                "{allocator}",
                match rule.action {
                    Action::Set => "an environment variable for the malloc",
                    _ => "another malloc",
                },
            ),
        },
        full_description: Message { text: rule.why.to_string() },
        default_configuration: json!({"level": kind_and_level(rule.action).1}),
    }
}

/// Describes the rule for a strategy that the user asked for.
fn of_wish() -> Descriptor {
    let text = |text: &str| Message { text: text.to_string() };
    Descriptor {
        id: FORCED,
        short_description: text("A strategy that --force asked for"),
        full_description: text("The strategy was replayed because --force asked for it. Blocks that would be used after they are freed are an error."),
        default_configuration: json!({"level": "note"}),
    }
}

/// Makes the result of a strategy that the user asked for. If blocks would be used after they are
/// freed, the program would be wrong, so the result is a warning.
fn result_of_wish(forced: &Forced, program: &Program, folder: &Path) -> Result {
    let place = forced.region.as_ref().map(|of| Place {
        function: of.shown.clone(),
        file: of.file.clone(),
        line: of.line,
        ..Place::default()
    });
    let full = forced.region.as_ref().map(|of| of.function.as_str());
    let is_wrong = forced.dangling > 0;
    let what = format!("{FORCED}:{}", full.unwrap_or_default());
    Result {
        rule_id: FORCED,
        rule_index: RULES.len(),
        kind: if is_wrong { "fail" } else { "informational" },
        level: if is_wrong { "warning" } else { "none" },
        message: Message { text: wish(forced).trim_end().to_string() },
        locations: [location(full, place, program, folder)],
        partial_fingerprints: BTreeMap::from([("actionAndFunction/v1", what)]),
        properties: json!({"name": forced.name, "dangling": forced.dangling}),
    }
}

/// Returns the kind and the level of a result. A leak is a bug of the program, and so a warning. A
/// change of the allocator is an opportunity, and so a note.
fn kind_and_level(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::Fix => ("fail", "warning"),
        Action::Leave => ("pass", "none"),
        Action::Undecided => ("open", "none"),
        _ => ("fail", "note"),
    }
}

fn result(card: &Card, program: &Program, folder: &Path) -> Result {
    let (kind, level) = kind_and_level(card.action);
    let mut text = format!("{}. {}", card.title, card.sentence);
    if let Some(check) = &card.check {
        text += &format!(" Check: {check}");
    }
    let index = RULES.iter().position(|rule| rule.id == card.rule).unwrap_or_default();
    Result {
        rule_id: card.rule,
        rule_index: index,
        kind,
        level,
        message: Message { text },
        locations: [location(function(card), card.place(), program, folder)],
        partial_fingerprints: BTreeMap::from([("actionAndFunction/v1", fingerprint(card))]),
        properties: serde_json::to_value(card).expect("a card is plain"),
    }
}

/// Returns the full name of the function of a card.
fn function(card: &Card) -> Option<&str> {
    let function = card.region.as_ref().map(|region| region.function.as_str());
    function.or(card.site.as_ref().map(|site| site.function.as_str()))
}

/// Returns the place of a change, or the program if the change is of the whole program. `full` is
/// the full name of the function.
fn location(
    full: Option<&str>,
    place: Option<Place>,
    program: &Program,
    folder: &Path,
) -> Location {
    let file = place.as_ref().and_then(|of| of.file.as_deref()).filter(|file| !file.is_empty());
    let line = place.as_ref().and_then(|of| of.line).filter(|&line| line > 0);
    let physical_location = match file {
        Some(file) => PhysicalLocation {
            artifact_location: artifact(file, folder),
            region: line.map(|line| json!({"startLine": line})),
        },
        None => of_program(program, folder),
    };
    let (name, kind) = match &place {
        Some(place) => (place.function.as_str(), "function"),
        None => (program.name.as_str(), "module"),
    };
    let logical = json!({"name": name, "fullyQualifiedName": full.unwrap_or(name), "kind": kind});
    Location { physical_location, logical_locations: [logical] }
}

/// Returns the location of a program, because GitHub rejects results without a file. The file is
/// the source file of `main` if it is known.
fn of_program(program: &Program, folder: &Path) -> PhysicalLocation {
    let path = if program.path.is_empty() { &program.name } else { &program.path };
    match &program.source {
        Some(source) => PhysicalLocation {
            artifact_location: artifact(source, folder),
            region: Some(json!({"startLine": 1})),
        },
        None => PhysicalLocation { artifact_location: artifact(path, folder), region: None },
    }
}

/// Returns whether the recorded run and the measurement ended normally. SIGTERM and SIGINT count as
/// normal, because they terminate servers.
fn is_whole(evidence: &Measured) -> bool {
    let status = evidence.facts.program.status.unwrap_or(0);
    let is_ended = libc::WIFSIGNALED(status)
        && [libc::SIGTERM, libc::SIGINT].contains(&libc::WTERMSIG(status));
    !evidence.interrupted && (status == 0 || is_ended)
}

fn artifact(file: &str, folder: &Path) -> ArtifactLocation {
    let path = Path::new(file);
    let relative = match path.is_absolute() {
        true => path.strip_prefix(folder).ok(),
        false => Some(path),
    };
    match relative {
        Some(path) => {
            ArtifactLocation { uri: encoded(&path.to_string_lossy()), uri_base_id: Some(FOLDER) }
        }
        None => ArtifactLocation { uri: format!("file://{}", encoded(file)), uri_base_id: None },
    }
}

/// Encodes a path as part of a URI.
fn encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.bytes()
        .map(|byte| match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns a text that identifies the action and the function. The text does not change when lines
/// move.
fn fingerprint(card: &Card) -> String {
    let what = function(card).or(card.allocator.as_deref()).unwrap_or_default();
    format!("{}:{what}", card.action.word())
}

#[cfg(test)]
mod tests {
    use super::super::candidate::Kind;
    use super::super::card::cards;
    use super::super::measured::Measured;
    use super::super::rules::sample;
    use super::*;

    /// Checks a log against the published schema: the required members and the allowed values.
    fn check(log: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_string).expect("a string");
        assert_eq!(log["version"], "2.1.0");
        for run in log["runs"].as_array().expect("runs") {
            let driver = &run["tool"]["driver"];
            assert!(!text(&driver["name"]).is_empty());
            let rules = driver["rules"].as_array().unwrap();
            let ids: Vec<String> = rules.iter().map(|rule| text(&rule["id"])).collect();
            let kinds = ["notApplicable", "pass", "fail", "review", "open", "informational"];
            for result in run["results"].as_array().expect("results") {
                assert!(!text(&result["message"]["text"]).is_empty());
                assert!(kinds.contains(&text(&result["kind"]).as_str()));
                let level = text(&result["level"]);
                assert!(["none", "note", "warning", "error"].contains(&level.as_str()));
                // By section 3.27.9 of the standard, only a result of the kind "fail" has a level
                // other than "none".
                assert_eq!(result["kind"] != "fail", level == "none");
                let index = result["ruleIndex"].as_u64().unwrap() as usize;
                assert_eq!(text(&result["ruleId"]), ids[index]);
                // GitHub rejects results without a file.
                assert!(result["locations"][0]["physicalLocation"].is_object());
                for location in result["locations"].as_array().into_iter().flatten() {
                    if let Some(physical) = location.get("physicalLocation") {
                        let artifact = &physical["artifactLocation"];
                        let uri = text(&artifact["uri"]);
                        assert!(!uri.contains([' ', '\\']), "{uri}");
                        if let Some(base) = artifact.get("uriBaseId") {
                            assert!(run["originalUriBaseIds"].get(text(base)).is_some());
                            assert!(!uri.starts_with('/'), "{uri}");
                        }
                        let line = physical.get("region").map(|region| &region["startLine"]);
                        assert!(line.is_none_or(|line| line.as_u64() > Some(0)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_sarif_log_has_everything_that_the_schema_requires() {
        for evidence in sample::all() {
            let log = log(&evidence, &cards(&evidence), Path::new("/home/ada/app"));
            check(&log);
        }
    }

    #[test]
    fn a_sarif_result_points_to_the_file_and_line_of_the_function() {
        let mut evidence = sample::document();
        evidence.facts_mut().regions[0].file = Some("/home/ada/app/src/a b.cpp".to_string());
        let of = |evidence: &Measured, folder| {
            let log = log(evidence, &cards(evidence), Path::new(folder));
            log["runs"][0]["results"][0]["locations"][0]["physicalLocation"].clone()
        };
        let place = of(&evidence, "/home/ada/app");
        assert_eq!(place["artifactLocation"]["uri"], "src/a%20b.cpp");
        assert_eq!(place["artifactLocation"]["uriBaseId"], FOLDER);
        assert_eq!(place["region"]["startLine"], 40);
        let elsewhere = of(&evidence, "/srv");
        assert_eq!(elsewhere["artifactLocation"]["uri"], "file:///home/ada/app/src/a%20b.cpp");
        assert_eq!(elsewhere["artifactLocation"].get("uriBaseId"), None);
        evidence.facts_mut().regions[0].file = None;
        assert_eq!(of(&evidence, "/srv")["artifactLocation"]["uri"], "file:///usr/bin/app");
    }

    #[test]
    fn a_sarif_result_for_the_whole_program_points_to_main_or_else_to_its_file() {
        let mut evidence = sample::malloc("mimalloc", Kind::Malloc);
        let of = |evidence: &Measured| {
            let log = log(evidence, &cards(evidence), Path::new("/home/ada/app"));
            check(&log);
            log["runs"][0]["results"][0]["locations"][0]["physicalLocation"].clone()
        };
        assert_eq!(of(&evidence)["artifactLocation"]["uri"], "file:///usr/bin/app");
        evidence.facts_mut().program.source = Some("/home/ada/app/src/main.cpp".to_string());
        let place = of(&evidence);
        assert_eq!(place["artifactLocation"]["uri"], "src/main.cpp");
        assert_eq!(place["region"]["startLine"], 1);
    }

    #[test]
    fn a_failed_or_interrupted_run_is_marked_unsuccessful_in_sarif() {
        let of = |status, interrupted| {
            let mut evidence = Measured { interrupted, ..sample::nothing() };
            evidence.facts_mut().program.status = status;
            let log = log(&evidence, &cards(&evidence), Path::new("/"));
            log["runs"][0]["invocations"][0]["executionSuccessful"].as_bool().unwrap()
        };
        assert!(of(None, false) && of(Some(0), false) && of(Some(libc::SIGTERM), false));
        assert!(!of(Some(0), true) && !of(Some(3 << 8), false) && !of(Some(libc::SIGSEGV), false));
    }

    #[test]
    fn a_sarif_fingerprint_does_not_change_when_lines_move() {
        let mut evidence = sample::document();
        let of = |evidence: &Measured| {
            let log = log(evidence, &cards(evidence), Path::new("/"));
            log["runs"][0]["results"][0]["partialFingerprints"].clone()
        };
        let before = of(&evidence);
        evidence.facts_mut().regions[0].line = Some(99);
        assert_eq!(of(&evidence), before);
        evidence.facts_mut().regions[0].function = "other".to_string();
        assert_ne!(of(&evidence), before);
    }

    #[test]
    fn a_forced_strategy_is_a_sarif_result_and_an_error_if_blocks_would_dangle() {
        let of = |dangling| {
            let forced = Some(sample::wish(dangling));
            let evidence = Measured { forced, ..sample::document() };
            let log = log(&evidence, &[], Path::new("/"));
            check(&log);
            assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), 1);
            log["runs"][0]["results"][0].clone()
        };
        let wrong = of(3);
        assert_eq!((&wrong["ruleId"], &wrong["level"]), (&FORCED.into(), &"warning".into()));
        let text = wrong["message"]["text"].as_str().unwrap();
        assert!(text.contains("3 blocks would be used after they are freed"), "{text}");
        let place = &wrong["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "render.cpp");
        assert_eq!(of(0)["kind"], "informational");
    }
}
