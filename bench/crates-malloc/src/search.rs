//! Searches many files with two threads. Each thread compiles its patterns and takes files from a
//! queue. It keeps each line that matches, together with the captured groups. At the end the
//! results are sorted and printed into a string.

use crate::text::{file, mix};
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

struct Match {
    line: usize,
    text: String,
    captures: Vec<String>,
}

pub fn run(times: usize) -> u64 {
    let files: Arc<Vec<(String, String)>> = Arc::new(
        (0..300).map(|i| (format!("src/part{}/file{i}.txt", i % 17), file(i, 400))).collect(),
    );
    let mut sum = 0;
    for _ in 0..times {
        let queue = Arc::new(Mutex::new((0..files.len()).collect::<Vec<_>>()));
        let (found, all_found) = mpsc::channel::<(String, Vec<Match>)>();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (files, queue, found) = (files.clone(), queue.clone(), found.clone());
                std::thread::spawn(move || {
                    let pattern = Regex::new(r"(?i)\b(\w*q\w*)=(\d+)\b|\b(a\w+e)\s+(\w+)").unwrap();
                    let number = Regex::new(r"\d{3,}").unwrap();
                    loop {
                        let Some(i) = queue.lock().unwrap().pop() else { return };
                        let (path, text) = &files[i];
                        found.send((path.clone(), search(text, &pattern, &number))).unwrap();
                    }
                })
            })
            .collect();
        drop(found);
        let by_path: BTreeMap<String, Vec<Match>> = all_found.into_iter().collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        let mut out = String::new();
        for (path, matches) in &by_path {
            for m in matches {
                out.push_str(&format!(
                    "{path}:{}: {} [{}]\n",
                    m.line,
                    m.text,
                    m.captures.join(",")
                ));
            }
        }
        sum = mix(sum, out.len());
    }
    sum
}

fn search(text: &str, pattern: &Regex, number: &Regex) -> Vec<Match> {
    let mut matches = Vec::new();
    for (line, text) in text.lines().enumerate() {
        if let Some(c) = pattern.captures(text) {
            let captures = c.iter().flatten().map(|m| m.as_str().to_owned()).collect();
            let text = number.replace_all(text, "#").into_owned();
            matches.push(Match { line, text, captures });
        }
    }
    matches
}
