//! The options with which the user runs `mallard advise`, for the commands that the advice proposes.
//!
//! A command that is pasted must run the program as this command did: with the same stdin, setup and
//! load, and with the same least gain.

use super::evidence::Evidence;
use super::Command;
use crate::output::shell::own_assignments;
use crate::output::shell::{quoted, quoted_path};
use crate::record::Follow;
use crate::trial::Conditions;
use clap::ValueEnum;
use std::time::Duration;

/// Options as a shell needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The options of a measurement, which `mallard try` and `mallard verify` have as well.
    measured: Vec<String>,
    /// The options that only `mallard advise` has.
    advised: Vec<String>,
    /// The file that is stdin of each run.
    stdin: Option<String>,
    /// The variables in front of each command.
    set: String,
}

impl Typed {
    /// The options of a command.
    pub fn of(command: &Command) -> Typed {
        let stdin = command.conditions.stdin.as_deref().map(quoted_path);
        let mut measured = of_conditions(&command.conditions);
        if let Some(load) = &command.work.load {
            measured.push(format!("--load {}", quoted(load)));
        }
        measured.extend(command.work.repeated_for.map(|time| format!("--for {}", seconds(time))));
        measured.extend(command.timing.typed());
        let mut advised = Vec::new();
        if let Some(function) = &command.region {
            advised.push(format!("--region {}", quoted(function)));
        }
        advised.extend(command.force.map(|strategy| format!("--force {strategy}")));
        if let Some(name) = &command.again {
            advised.push(format!("--again {}", quoted_path(name)));
        }
        let follow = command.follow.iter().filter_map(Follow::to_possible_value);
        advised.extend(follow.map(|processes| format!("--follow {}", processes.get_name())));
        if command.no_try {
            advised.push("--no-try".to_string());
        }
        Typed { measured, advised, stdin, set: own_assignments() }
    }

    /// `mallard advise` of a trace with the same options and some more, such as a larger budget.
    pub fn advise(&self, trace: &str, more: &str) -> String {
        let options = self.measured.iter().chain(&self.advised).map(String::as_str);
        let words = ["mallard advise", trace].into_iter().chain(options).chain([more]);
        self.set.clone() + &words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// A command `mallard try` or `mallard verify` with the options of a measurement.
    pub fn measure(&self, command: &str) -> String {
        let options: String = self.measured.iter().map(|option| format!(" {option}")).collect();
        // The options follow the name of the subcommand: what comes later may belong to the program.
        let name = ["mallard try", "mallard verify"].into_iter().find(|n| command.starts_with(n));
        let (name, rest) = command.split_at(name.map_or(command.len(), str::len));
        format!("{}{name}{options}{rest}", self.set)
    }

    /// The work of a server, as options of a command.
    pub fn load(&self) -> String {
        let is_load =
            |option: &&String| ["--load ", "--for "].iter().any(|o| option.starts_with(o));
        self.measured.iter().filter(is_load).map(|option| format!("{option} ")).collect()
    }

    /// A command that runs the program once.
    pub fn run(&self, command: &str) -> String {
        let stdin = self.stdin.as_ref().map_or(String::new(), |file| format!(" < {file}"));
        format!("{}{command}{stdin}", self.set)
    }
}

/// `mallard advise` of the trace with more options, as the user can paste it.
pub fn again(evidence: &Evidence, more: &str) -> String {
    evidence.typed.advise(&quoted_path(evidence.program.trace.as_ref()), more)
}

fn of_conditions(of: &Conditions) -> Vec<String> {
    let setup = of.setup.as_ref().map(|command| format!("--setup {}", quoted(command)));
    let stdin = of.stdin.as_deref().map(|file| format!("--stdin {}", quoted_path(file)));
    let ignores = of.ignore_output.then(|| "--ignore-output".to_string());
    [setup, stdin, ignores].into_iter().flatten().collect()
}

/// A time as an option takes it: `0.25s`.
fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Mallard {
        #[command(flatten)]
        command: Command,
    }

    fn typed(words: &[&str]) -> Typed {
        let words = ["advise"].iter().chain(words);
        Typed::of(&Mallard::try_parse_from(words).unwrap_or_else(|e| panic!("{e}")).command)
    }

    /// The words of a command line, as a shell splits it.
    fn words(line: &str) -> Vec<String> {
        let script = format!("printf '%s\\n' {line}");
        let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().lines().map(str::to_string).collect()
    }

    const ALL: [&str; 15] = [
        "--setup",
        "cp 'a b' c",
        "--stdin",
        "my input",
        "--ignore-output",
        "--load",
        "curl \"$URL\"",
        "--for",
        "0.25s",
        "--min-gain",
        "7%",
        "--seed",
        "3",
        "--again",
        "an other",
    ];

    #[test]
    fn a_pasted_command_has_the_options_of_the_user() {
        let line = typed(&[&["my trace"], &ALL[..]].concat()).advise("'my trace'", "--budget 9s");
        let expected = [&["mallard", "advise", "my trace"], &ALL[..], &["--budget", "9s"]].concat();
        assert_eq!(words(&line), expected);
        let wish = ["run", "--region", "f(int)", "--force", "AS4", "--follow", "fork", "--no-try"];
        assert_eq!(words(&typed(&wish).advise("run", ""))[2..], wish);
    }

    #[test]
    fn defaults_are_not_repeated() {
        let plain = typed(&["run", "--min-gain", "2%", "--budget", "5s", "--json"]);
        assert_eq!(plain, Typed::default());
        assert_eq!(plain.advise("run", "--budget 9s"), "mallard advise run --budget 9s");
        assert_eq!(plain.run("./app"), "./app");
    }

    #[test]
    fn variables_stand_before_each_command() {
        let typed = Typed { set: "PYTHONMALLOC=malloc ".to_string(), ..Typed::default() };
        let commands = [
            typed.advise("run", ""),
            typed.measure("mallard try --allocator mimalloc -- python3 a.py"),
            typed.run("mallard run --allocator mimalloc -- python3 a.py"),
        ];
        for command in commands {
            assert!(command.starts_with("PYTHONMALLOC=malloc mallard "), "{command}");
        }
    }

    #[test]
    fn options_stand_before_the_program() {
        let typed = typed(&["--stdin", "in", "--no-try", "--", "./app", "-x"]);
        let tried = typed.measure("mallard try --allocator mimalloc -- ./app -x");
        assert_eq!(tried, "mallard try --stdin in --allocator mimalloc -- ./app -x");
        let verified = typed.measure("mallard verify --before a --after 'mallard try'");
        assert_eq!(verified, "mallard verify --stdin in --before a --after 'mallard try'");
        assert_eq!(typed.run("mallard run -- ./app -x"), "mallard run -- ./app -x < in");
    }
}
