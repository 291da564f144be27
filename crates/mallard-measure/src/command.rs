//! Runs a command: parses the arguments, calls the subcommand, and prints errors in three lines.

use crate::error::{tell, Failure};
use crate::output::shell::as_called;
use crate::output::terminal::write;
use crate::output::width::know_subcommands;
use crate::{panics, process::preload};
use clap::error::ErrorKind;
use clap::Parser;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Parses the arguments of this process, and runs the command. Returns its exit status.
pub fn start<C: Parser>(run: impl FnOnce(C) -> Result<ExitCode, Failure>) -> ExitCode {
    know_subcommands(|| C::command().get_subcommands().map(|c| c.get_name().to_string()).collect());
    let command = match C::try_parse() {
        Ok(command) => command,
        Err(error) => return usage::<C>(&error),
    };
    // At the limit of file sizes (ulimit -f), the signal SIGXFSZ would end the process. With a
    // handler, the write fails instead. A recorded program has the default action, because exec
    // removes handlers.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Default::default());
    let status = panics::without(|| run(command)).unwrap_or_else(fail);
    preload::remove_links();
    status
}

/// Prints an error. Returns its exit status.
fn fail(failure: Failure) -> ExitCode {
    let help = as_called(failure.help());
    let status = failure.status();
    tell(failure.with_help(help));
    ExitCode::from(status)
}

/// Prints help in clap's format. Prints a usage error in three lines, like every other error.
fn usage<C: Parser>(error: &clap::Error) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            let text = error.render();
            let text = match std::io::stdout().is_terminal() {
                true => text.ansi().to_string(),
                false => text.to_string(),
            };
            write(&text).map_or_else(fail, |()| ExitCode::SUCCESS)
        }
        DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            let text = error.to_string();
            // In clap's text, the part before the first empty line describes the error. The lines
            // of this part are joined into one line.
            let what: Vec<&str> =
                text.lines().take_while(|l| !l.is_empty()).map(str::trim).collect();
            let what = what.join(" ");
            let what = what.strip_prefix("error: ").unwrap_or(&what).to_string();
            let help = format!("{} --help", typed_subcommands::<C>());
            fail(Failure::new(what, "nothing was done", help))
        }
    }
}

/// Returns the command and the subcommands that the user typed, such as `mallard try`, for a help
/// line.
fn typed_subcommands<C: Parser>() -> String {
    let mut command = C::command();
    let mut text = command.get_name().to_string();
    for word in std::env::args().skip(1) {
        let Some(subcommand) = command.find_subcommand(&word).cloned() else { break };
        text += " ";
        text += &word;
        command = subcommand;
    }
    text
}
