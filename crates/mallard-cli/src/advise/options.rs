//! Defines the options of `mallard advise`, and repeats them in the commands that the advice
//! proposes.
//!
//! A proposed command that the user pastes must run the program as this command did, with the same
//! stdin, setup and load, and with the same minimum gain.

use crate::output::debuginfod::Debuginfod;
use crate::record::{Follow, ServerWork};
use clap::ValueEnum;
use mallard_measure::comparison::Conditions;
use mallard_measure::output::shell::own_assignments;
use mallard_measure::output::shell::{quoted, quoted_path};
use mallard_measure::rounds::timing::Timing;
use mallard_trace::replay::Strategy;
use std::path::PathBuf;
use std::time::Duration;

/// The names of the options that give a server its load.
const LOAD: [&str; 3] = ["--load", "--for", "--timeout"];

/// What the user asks for.
#[derive(clap::Args)]
pub struct Options {
    /// Records processes that the program starts as well: by fork, or also by exec.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub follow: Vec<Follow>,
    /// Considers only this function, however little it allocates.
    #[arg(long, value_name = "FUNCTION")]
    pub region: Option<String>,
    /// Replays this strategy, AS1 to AS14, even if the evidence speaks against it, and lists the
    /// blocks that would be used after they are freed. The strategy is for the function of
    /// --region, or without --region for the whole program.
    #[arg(long, value_name = "STRATEGY", value_parser = strategy)]
    pub force: Option<Strategy>,
    /// Another recording of the program, with another input. A recommendation drops memory without
    /// running destructors only if no block outlived its call there either. By default, the program
    /// is recorded again.
    #[arg(long, value_name = "NAME")]
    pub again: Option<PathBuf>,
    /// Does not run the program again.
    #[arg(long)]
    pub no_try: bool,
    /// Writes the recommendations in the format SARIF, which code review tools show next to the code.
    #[arg(long, conflicts_with = "json")]
    pub sarif: bool,
    /// Whether debug information is fetched.
    #[command(flatten)]
    pub debuginfod: Debuginfod,
    /// How the program runs.
    #[command(flatten)]
    pub conditions: Conditions,
    /// The work of a server.
    #[command(flatten)]
    pub work: ServerWork,
    /// The time, the least gain and the output.
    #[command(flatten)]
    pub timing: Timing,
    /// The folder in which the program was recorded, if it is another one than the user's.
    #[arg(skip)]
    pub folder: Option<PathBuf>,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    text.parse().map_err(|()| "the strategy must be one of AS1 to AS14".to_string())
}

/// The options that the user gave, quoted for a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The options of a measurement, which `mallard try` and `mallard verify` have as well.
    measured: Vec<String>,
    /// The options that only `mallard advise` has.
    advised: Vec<String>,
    /// The file that is stdin of each run.
    stdin: Option<String>,
    /// The text before each command: `cd` to the directory of the program, and assignments of
    /// variables.
    set: String,
}

impl Typed {
    /// Quotes the options of this command.
    pub fn of(command: &Options) -> Typed {
        let stdin = command.conditions.stdin.as_deref().map(quoted_path);
        let mut measured = of_conditions(&command.conditions);
        if let Some(load) = &command.work.load {
            measured.push(format!("--load {}", quoted(load)));
        }
        measured.extend(command.work.repeated_for.map(|time| format!("--for {}", seconds(time))));
        measured.extend(command.work.timeout.map(|time| format!("--timeout {}", seconds(time))));
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
        let folder = command.folder.as_deref().map(|to| format!("cd {} && ", quoted_path(to)));
        let set = folder.unwrap_or_default() + &own_assignments();
        Typed { measured, advised, stdin, set }
    }

    /// Returns a command `mallard advise TRACE` with the same options and with `more`, such as a
    /// larger budget.
    pub fn advise(&self, trace: &str, more: &str) -> String {
        let options = self.measured.iter().chain(&self.advised).map(String::as_str);
        let words = ["mallard advise", trace].into_iter().chain(options).chain([more]);
        self.set.clone() + &words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Returns a command `mallard try` or `mallard verify` with the options of a measurement. These
    /// options come before `rest`, because words after the program's name belong to the program.
    pub fn measure(&self, subcommand: &str, rest: &str) -> String {
        let options: String = self.measured.iter().map(|option| format!("{option} ")).collect();
        format!("{}mallard {subcommand} {options}{rest}", self.set)
    }

    /// Returns the options that give a server its load.
    pub fn load(&self) -> String {
        let is_load =
            |option: &&String| LOAD.iter().any(|name| option.split(' ').next() == Some(name));
        self.measured.iter().filter(is_load).map(|option| format!("{option} ")).collect()
    }

    /// Adds the directory, the variables and stdin to a command that runs the program once.
    pub fn run(&self, command: &str) -> String {
        let stdin = self.stdin.as_ref().map_or(String::new(), |file| format!(" < {file}"));
        format!("{}{command}{stdin}", self.set)
    }
}

fn of_conditions(of: &Conditions) -> Vec<String> {
    let setup = of.setup.as_ref().map(|command| format!("--setup {}", quoted(command)));
    let stdin = of.stdin.as_deref().map(|file| format!("--stdin {}", quoted_path(file)));
    let ignores = of.ignore_output.then(|| "--ignore-output".to_string());
    [setup, stdin, ignores].into_iter().flatten().collect()
}

/// Formats a time as the options expect it, such as `0.25s`.
fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Mallard {
        name: Option<String>,
        #[command(flatten)]
        options: Options,
        #[arg(last = true)]
        program: Vec<String>,
    }

    fn typed(words: &[&str]) -> Typed {
        let words = ["advise"].iter().chain(words);
        Typed::of(&Mallard::try_parse_from(words).unwrap_or_else(|e| panic!("{e}")).options)
    }

    /// Splits a command line into words as a shell does.
    fn words(line: &str) -> Vec<String> {
        let script = format!("printf '%s\\n' {line}");
        let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().lines().map(str::to_string).collect()
    }

    const ALL: [&str; 17] = [
        "--setup",
        "cp 'a b' c",
        "--stdin",
        "my input",
        "--ignore-output",
        "--load",
        "curl \"$URL\"",
        "--for",
        "0.25s",
        "--timeout",
        "900s",
        "--min-gain",
        "7%",
        "--seed",
        "3",
        "--again",
        "an other",
    ];

    #[test]
    fn a_suggested_command_repeats_the_options_of_the_user() {
        let line = typed(&[&["my trace"], &ALL[..]].concat()).advise("'my trace'", "--budget 9s");
        let expected = [&["mallard", "advise", "my trace"], &ALL[..], &["--budget", "9s"]].concat();
        assert_eq!(words(&line), expected);
        let wish = ["run", "--region", "f(int)", "--force", "AS4", "--follow", "fork", "--no-try"];
        assert_eq!(words(&typed(&wish).advise("run", ""))[2..], wish);
    }

    #[test]
    fn a_suggested_command_does_not_repeat_default_options() {
        let plain = typed(&["run", "--min-gain", "2%", "--budget", "5s", "--json"]);
        assert_eq!(plain, Typed::default());
        assert_eq!(plain.advise("run", "--budget 9s"), "mallard advise run --budget 9s");
        assert_eq!(plain.run("./app"), "./app");
    }

    #[test]
    fn environment_variables_precede_each_suggested_command() {
        let typed = Typed { set: "PYTHONMALLOC=malloc ".to_string(), ..Typed::default() };
        let commands = [
            typed.advise("run", ""),
            typed.measure("try", "--allocator mimalloc -- python3 a.py"),
            typed.run("mallard run --allocator mimalloc -- python3 a.py"),
        ];
        for command in commands {
            assert!(command.starts_with("PYTHONMALLOC=malloc mallard "), "{command}");
        }
    }

    #[test]
    fn options_precede_the_program_in_a_suggested_command() {
        let typed = typed(&["--stdin", "in", "--no-try", "--", "./app", "-x"]);
        let tried = typed.measure("try", "--allocator mimalloc -- ./app -x");
        assert_eq!(tried, "mallard try --stdin in --allocator mimalloc -- ./app -x");
        let verified = typed.measure("verify", "--before a --after 'mallard try'");
        assert_eq!(verified, "mallard verify --stdin in --before a --after 'mallard try'");
        assert_eq!(typed.run("mallard run -- ./app -x"), "mallard run -- ./app -x < in");
    }
}
