//! Parses documents, groups them by a key, changes them and writes them again. The values of one
//! document stay allocated while the next document is read.

use crate::text::{mix, word, Random};
use serde_json::{json, Map, Value};
use std::collections::HashMap;

pub fn run(times: usize) -> u64 {
    let documents: Vec<String> = (0..8).map(document).collect();
    let (mut sum, mut before) = (0, Value::Null);
    for round in 0..times * documents.len() {
        let all: Vec<Value> = serde_json::from_str(&documents[round % documents.len()]).unwrap();
        let mut groups: HashMap<String, Vec<Value>> = HashMap::new();
        for mut record in all {
            let team = record["team"].as_str().unwrap().to_owned();
            let fields = record.as_object_mut().unwrap();
            fields.remove("note");
            let tags = fields["tags"].as_array().unwrap().iter();
            let joined = tags.map(|t| t.as_str().unwrap()).collect::<Vec<_>>().join("/");
            fields.insert("path".to_owned(), Value::String(joined));
            groups.entry(team).or_default().push(record);
        }
        let mut teams: Vec<(String, Vec<Value>)> = groups.into_iter().collect();
        teams.sort_by(|a, b| a.0.cmp(&b.0));
        let after = Value::Object(
            teams
                .into_iter()
                .map(|(team, records)| {
                    let total: f64 = records.iter().map(|r| r["score"].as_f64().unwrap()).sum();
                    (team, json!({ "records": records, "total": total }))
                })
                .collect::<Map<_, _>>(),
        );
        sum = mix(sum, after.to_string().len() + before.as_object().map_or(0, Map::len));
        before = after;
    }
    sum
}

fn document(seed: u64) -> String {
    let mut random = Random(seed * 77 + 5);
    let records: Vec<Value> = (0..6000)
        .map(|i| {
            json!({
                "id": i,
                "name": format!("{} {}", word(&mut random), word(&mut random)),
                "team": format!("team-{}", random.below(40)),
                "score": random.below(10_000) as f64 / 7.0,
                "tags": (0..random.below(6)).map(|_| word(&mut random)).collect::<Vec<_>>(),
                "note": (0..random.below(20)).map(|_| word(&mut random)).collect::<Vec<_>>().join(" "),
                "place": { "x": random.below(500), "y": random.below(500), "of": word(&mut random) },
            })
        })
        .collect();
    serde_json::to_string(&records).unwrap()
}
