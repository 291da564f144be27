//! `mallard try --install`: installs the mallocs that a distribution has as packages.

use super::{library, list, Entry, Kind};
use crate::error::status::MALLARD_FAILED;
use crate::error::{tell, Failure};
use nix::unistd::geteuid;
use std::process::{Command, Stdio};

/// What to type if there is no apt-get. The package managers of other distributions have the same
/// package names.
const ELSEWHERE: &str =
    "install mimalloc, jemalloc and gperftools by the package manager of this system";

/// Installs the missing mallocs of the list with apt-get. Shows the output of apt-get.
pub fn install() -> Result<(), Failure> {
    let missing: Vec<&Entry> =
        list().filter(|of| of.kind == Kind::Debian && library::of(of).is_err()).collect();
    if missing.is_empty() {
        tell("mallard: every malloc of the distribution is installed");
        return Ok(());
    }
    if !runs(Command::new("apt-get").arg("--version")) {
        let what = "mallard installs mallocs with apt-get, which is not here";
        return Err(failure(what, ELSEWHERE));
    }
    let packages = || missing.iter().filter_map(|of| of.packages().find(|name| is_known(name)));
    if packages().count() < missing.len() {
        as_root(&["update"])?;
    }
    let packages: Vec<&str> = packages().collect();
    if packages.is_empty() {
        let names: Vec<&str> = missing.iter().flat_map(|of| of.packages()).collect();
        return Err(failure(format!("apt-get finds none of {}", names.join(", ")), ELSEWHERE));
    }
    as_root(&[&["install", "-y", "--no-install-recommends"], &packages[..]].concat())
}

/// Returns whether the distribution has a package.
fn is_known(package: &str) -> bool {
    runs(Command::new("apt-cache").args(["show", package]))
}

/// Returns whether a command can be started and exits with status 0.
fn runs(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs apt-get as root. stdout is for the result of `mallard`, so apt-get writes to stderr.
fn as_root(arguments: &[&str]) -> Result<(), Failure> {
    let words = [&["apt-get"], arguments].concat();
    let words = if geteuid().is_root() { words } else { [&["sudo"], &words[..]].concat() };
    let shown = words.join(" ");
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    match command.stdout(std::io::stderr()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(failure(format!("{shown} failed"), format!("{shown}, by itself"))),
        Err(_) => {
            let help = format!(
                "let root type: {}",
                ["apt-get"].iter().chain(arguments).copied().collect::<Vec<_>>().join(" ")
            );
            Err(failure(format!("{} cannot be started", words[0]), help))
        }
    }
}

fn failure(what: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::new(what, "no malloc was installed, and nothing was measured", help)
        .with_status(MALLARD_FAILED)
}
