//! What the library reports about a program that ran under a plan.

use serde::Deserialize;

/// A process.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Process {
    /// The process id.
    pub process: u32,
    /// The name of the program.
    pub program: String,
    /// Whether all blocks came from malloc.
    pub control: bool,
    /// The rules, as the plan has them.
    pub rules: Vec<Rule>,
    /// The blocks whose call stacks the plan does not have.
    pub unknown_blocks: u64,
    /// The blocks that the plan leaves to malloc. `None` if the library did not count them.
    pub other_blocks: Option<u64>,
    /// The modules of the plan that the process does not have, or has in another build.
    pub modules_missing: Vec<String>,
}

/// What a rule served.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// The name.
    pub name: String,
    /// The local allocator.
    pub allocator: String,
    /// The blocks, and their bytes.
    pub blocks: u64,
    pub bytes: u64,
    /// The peak of the bytes in use.
    pub peak_bytes: u64,
    /// The blocks that came from malloc since the rule had twice the bytes of the recording.
    pub refused: u64,
    /// The blocks that came from malloc since they were too large for the rule.
    pub large: u64,
}

impl Process {
    /// All blocks of the process, if they were counted.
    pub fn blocks(&self) -> Option<u64> {
        Some(self.unknown_blocks + self.other_blocks? + self.served())
    }

    /// The blocks of the rules.
    pub fn served(&self) -> u64 {
        self.rules.iter().map(|rule| rule.blocks).sum()
    }
}

/// Reads the lines of a report. Other lines are left out: a process may have been killed while it wrote one.
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
