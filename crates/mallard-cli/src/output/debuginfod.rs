//! Finds the names of functions whose debug information is missing. The names come from debuginfod
//! servers, as for gdb and perf, or else from a package.

use mallard_measure::output::progress::Work;
use mallard_trace::Trace;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The maximum time for which one command fetches files.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The option of commands that look names up.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Debuginfod {
    /// Does not fetch debug information from the servers in DEBUGINFOD_URLS.
    #[arg(long)]
    no_debuginfod: bool,
}

impl Debuginfod {
    /// Returns the time limit for fetching files. Returns `None` if no server is named, or if the
    /// user forbids fetching.
    pub fn time(self) -> Option<Duration> {
        (has_servers() && !self.no_debuginfod).then_some(TIME_MAX)
    }

    /// Fetches the names that a trace lacks. If the trace cannot be read again, returns the trace
    /// unchanged, so that its next reader reports the error.
    pub fn name(self, mut trace: Trace) -> Trace {
        if let Some(time) = self.time() {
            let work = Work::begin();
            let mut show = |number, of| work.say(&fetching(number, of));
            let _ = trace.fetch_names(time, &mut show);
        }
        trace
    }
}

/// Returns the progress message for fetching files.
pub fn fetching(number: usize, of: usize) -> String {
    format!("fetching debug information, file {number} of {of}, at most {} s", TIME_MAX.as_secs())
}

fn has_servers() -> bool {
    std::env::var_os("DEBUGINFOD_URLS")
        .is_some_and(|urls| !urls.as_encoded_bytes().iter().all(u8::is_ascii_whitespace))
}

/// Describes how functions of a module get names.
pub fn how_to_name(module: &str) -> String {
    let file = module.rsplit('/').next().unwrap_or_default();
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let by_package = install(module, &release);
    let by_server = match (has_servers(), by_package.is_some()) {
        (false, true) => Some(format!("set DEBUGINFOD_URLS={} and record again", server(&release))),
        (true, _) if !is_installed("debuginfod-find") => {
            Some("install debuginfod, whose servers DEBUGINFOD_URLS names".to_string())
        }
        _ => None,
    };
    let ways: Vec<String> = by_package.into_iter().chain(by_server).collect();
    let ways = match ways.is_empty() {
        true => "compile it with -g, and do not strip it".to_string(),
        false => ways.join(", or "),
    };
    format!("functions of {file} have no names: {ways}")
}

/// Returns the command that installs the debug information of a file. `None` if no package of the
/// distribution has the file.
fn install(file: &str, release: &str) -> Option<String> {
    // /lib is a link to /usr/lib, and a package lists a file at one of these paths.
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.into());
    let target = target.to_string_lossy();
    let places = [file, &target, target.strip_prefix("/usr").unwrap_or(file)];
    if let Some(said) = places.iter().find_map(|place| said("dpkg-query", &["--search", place])) {
        // a line of output is, for example, libstdc++6:amd64:
        // /usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30
        let package = said.split([':', ',']).next()?.to_string();
        return Some(match package.as_str() {
            "libc6" => "apt install libc6-dbg".to_string(),
            _ => format!("apt install {package}-dbgsym"),
        });
    }
    let package = said("rpm", &["--query", "--file", "--queryformat", "%{NAME}", file])?;
    Some(match is_like(release, "suse") {
        true => format!("zypper install {package}-debuginfo"),
        false => format!("dnf debuginfo-install {package}"),
    })
}

/// Returns the server of the distribution, or else the server that forwards requests to the servers
/// of many distributions.
fn server(release: &str) -> &'static str {
    [
        ("ubuntu", "https://debuginfod.ubuntu.com"),
        ("debian", "https://debuginfod.debian.net"),
        ("fedora", "https://debuginfod.fedoraproject.org"),
        ("suse", "https://debuginfod.opensuse.org"),
        ("arch", "https://debuginfod.archlinux.org"),
    ]
    .into_iter()
    .find(|(name, _)| is_like(release, name))
    .map_or("https://debuginfod.elfutils.org", |(_, server)| server)
}

/// Returns whether the text of /etc/os-release describes the distribution `name`, or a distribution
/// that is derived from it.
fn is_like(release: &str, name: &str) -> bool {
    let mut lines = release.lines().filter(|line| line.starts_with("ID"));
    lines.any(|line| line.split_once('=').is_some_and(|(_, value)| value.contains(name)))
}

/// Returns what a program prints, if it is installed and succeeds.
fn said(program: &str, words: &[&str]) -> Option<String> {
    let ran = Command::new(program).args(words).stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8(ran.stdout).ok()?;
    (ran.status.success() && !said.is_empty()).then_some(said)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .any(|folder| Path::new(&folder).join(OsStr::new(program)).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_linux_distribution_has_its_debuginfod_server() {
        for (release, name) in [
            ("NAME=Debian\nID=debian\n", "debian.net"),
            ("ID=ubuntu\nID_LIKE=debian\n", "ubuntu.com"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "ubuntu.com"),
            ("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "opensuse.org"),
            ("ID=\"rhel\"\nID_LIKE=\"fedora\"\n", "fedoraproject.org"),
            ("ID=gentoo\n", "elfutils.org"),
        ] {
            assert!(server(release).ends_with(name), "{release}");
        }
    }

    #[test]
    fn for_a_file_of_no_package_the_advice_is_to_compile_with_debug_information() {
        let text = how_to_name("/no such folder/a program");
        assert!(text.starts_with("functions of a program have no names: "), "{text}");
        assert!(text.contains("-g") || text.contains("debuginfod"), "{text}");
    }
}
