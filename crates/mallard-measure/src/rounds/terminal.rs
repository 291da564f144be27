//! Recognises programs that cannot work without a terminal or without input.

use super::subject::Run;
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::shell::quoted;

/// Texts in lower case that programs write to stderr if stdin or stdout is not a terminal.
const NEEDS_TERMINAL: [&str; 10] = [
    "not a terminal",
    "not a tty",
    "not from a terminal",
    "not to a terminal",
    "requires a terminal",
    "needs a terminal",
    "error opening terminal",
    "inappropriate ioctl for device",
    "/dev/tty",
    "term environment variable",
];

/// Texts in lower case that programs write to stderr if stdin is empty.
const NEEDS_INPUT: [&str; 7] = [
    "no input",
    "empty input",
    "unexpected eof",
    "unexpected end of file",
    "unexpected end of input",
    "from stdin",
    "standard input",
];

/// Explains why the first run failed, if the cause is a missing terminal or missing input. The
/// program would fail in the same way under every malloc, so a comparison would be useless.
pub fn refusal(first: &Run, program: &str) -> Option<Failure> {
    if first.status == 0 {
        return None;
    }
    let errors = String::from_utf8_lossy(&first.output.errors).to_lowercase();
    let line = |known: &[&str]| {
        let fits = |line: &&str| known.iter().any(|text| line.contains(text));
        Some(errors.lines().find(fits)?.trim().chars().take(160).collect::<String>())
    };
    let (what, help) = if let Some(line) = line(&NEEDS_TERMINAL) {
        (
            format!("the program needs a terminal, and has none here: {line}"),
            format!("give it a terminal: mallard try -- script -qec {} /dev/null", quoted(program)),
        )
    } else {
        let line = line(&NEEDS_INPUT)?;
        (
            format!("the program fails without input, and stdin is empty: {line}"),
            "--stdin FILE, with what the program reads".to_string(),
        )
    };
    let state = "nothing was compared: every run would fail in the same way";
    Some(Failure::new(what, state, help).with_status(MALLARD_FAILED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::child::{Output, Seen};
    use crate::rounds::subject::Figures;
    use std::time::Duration;

    fn refused(status: i32, errors: &str) -> Option<Failure> {
        let mut output = Output::default();
        output.errors = errors.as_bytes().to_vec();
        let (figures, seen, took) = (Figures::default(), Seen::Unknown, Duration::ZERO);
        refusal(&Run { figures, output, status, seen, left: Vec::new(), took }, "less a.txt")
    }

    #[test]
    fn a_failure_caused_by_a_missing_terminal_is_recognised() {
        for errors in [
            "Error opening terminal: unknown.\n",
            "stty: 'standard input': Inappropriate ioctl for device\n",
            "warming up\ntop: failed tty get\n/dev/tty: No such device or address\n",
            "the input device is not a TTY\n",
        ] {
            let failure = refused(1 << 8, errors).expect(errors);
            assert!(failure.what().contains("needs a terminal"), "{}", failure.what());
            assert!(failure.help().contains("script -qec 'less a.txt'"), "{}", failure.help());
        }
    }

    #[test]
    fn for_a_failure_caused_by_missing_input_the_stdin_option_is_suggested() {
        let failure = refused(1 << 8, "jq: error: unexpected end of input\n").unwrap();
        assert!(failure.help().contains("--stdin FILE"), "{}", failure.help());
    }

    #[test]
    fn other_failures_and_successes_are_accepted() {
        assert!(refused(1 << 8, "cannot open the database\n").is_none());
        assert!(refused(0, "Warning: Input is not from a terminal\n").is_none());
    }
}
