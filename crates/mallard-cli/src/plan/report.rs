//! Reads the report that the plan library writes about a program that ran under a plan.

use serde::Deserialize;

/// The report on one process.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Process {
    /// The process ID.
    pub process: u32,
    /// The name of the program.
    pub program: String,
    /// Whether the rules only counted their blocks, and all blocks came from malloc.
    pub control: bool,
    /// The rules, in the order of the plan.
    pub rules: Vec<Rule>,
    /// The number of blocks whose call stacks are not in the plan.
    pub unknown_blocks: u64,
    /// The number of blocks that the plan leaves to malloc. `None` if the library did not count
    /// these blocks.
    pub other_blocks: Option<u64>,
    /// The modules of the plan that the process does not have, or of which the process has another
    /// build.
    pub modules_missing: Vec<String>,
}

/// The blocks that a rule served.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// The name of the rule.
    pub name: String,
    /// The local allocator.
    pub allocator: String,
    /// The number of blocks that the rule served. The next field is the total size of these blocks
    /// in bytes.
    pub blocks: u64,
    pub bytes: u64,
    /// The peak of the bytes in use by blocks of the rule.
    pub peak_bytes: u64,
    /// The number of blocks that came from malloc because the rule already held twice the bytes of
    /// the recording, or because the system had no memory.
    pub refused: u64,
    /// The number of blocks that came from malloc because they were too large for the rule.
    pub large: u64,
}

impl Process {
    /// Returns the number of all blocks of the process, if they were counted.
    pub fn blocks(&self) -> Option<u64> {
        Some(self.unknown_blocks + self.other_blocks? + self.served())
    }

    /// Returns the number of blocks that the rules served.
    pub fn served(&self) -> u64 {
        self.rules.iter().map(|rule| rule.blocks).sum()
    }
}

/// Reads the lines of a report. Invalid lines are skipped, because a process may be killed while it
/// writes a line.
pub fn read(text: &str) -> Vec<Process> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_for_each_process() {
        let text = r#"{"process":7,"program":"a","control":true,"rules":[{"name":"r","allocator":"arena","blocks":3,"bytes":9,"peak_bytes":8,"refused":1,"large":2}],"unknown_blocks":4,"other_blocks":5,"modules_missing":["b"],"new_field":1}
{"process":8,"program":"#;
        let [process] = &read(text)[..] else { panic!("one process") };
        assert_eq!((process.blocks(), process.served(), process.control), (Some(12), 3, true));
        assert_eq!((process.rules[0].refused, process.rules[0].large), (1, 2));
        assert_eq!(process.modules_missing, ["b"]);
    }
}
