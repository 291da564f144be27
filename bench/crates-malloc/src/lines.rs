//! Processes a service's log. Two threads read lines into records and send the records in batches
//! to a third thread. The third thread keeps the last records of each key and frees the rest, so it
//! frees memory that other threads allocated.

use crate::text::{file, mix};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::mpsc;

struct Record {
    key: String,
    fields: Vec<(String, String)>,
    words: Vec<String>,
}

pub fn run(times: usize) -> u64 {
    let texts: [String; 2] = [file(1001, 20_000), file(1002, 20_000)];
    let (send, receive) = mpsc::sync_channel::<Vec<Record>>(8);
    std::thread::scope(|s| {
        for text in &texts {
            let send = send.clone();
            s.spawn(move || {
                for _ in 0..times {
                    let mut batch = Vec::new();
                    for line in text.lines() {
                        batch.push(record(line));
                        if batch.len() == 64 {
                            send.send(std::mem::take(&mut batch)).unwrap();
                        }
                    }
                    send.send(batch).unwrap();
                }
            });
        }
        drop(send);
        s.spawn(move || keep(receive)).join().unwrap()
    })
}

fn record(line: &str) -> Record {
    let mut words = line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let key = words.remove(0);
    let fields = words
        .iter()
        .filter_map(|w| w.split_once('='))
        .map(|(name, value)| (name.to_uppercase(), format!("{value:>8}")))
        .collect();
    Record { key, fields, words }
}

/// Keeps the last records of each key. The result does not depend on the order in which batches
/// arrive.
fn keep(receive: mpsc::Receiver<Vec<Record>>) -> u64 {
    let mut kept: HashMap<String, VecDeque<Record>> = HashMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for batch in receive {
        for record in batch {
            *counts.entry(record.key.clone()).or_default() +=
                record.words.len() + record.fields.iter().map(|f| f.1.len()).sum::<usize>();
            let last = kept.entry(record.key.clone()).or_default();
            last.push_back(record);
            if last.len() > 20 {
                last.pop_front();
            }
        }
    }
    counts.values().fold(kept.len() as u64, |s, &n| mix(s, n))
}
