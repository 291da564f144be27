//! Finds and kills processes, such as daemons, that a measured program leaves running when it ends.
//!
//! The kernel makes an orphan the child of its nearest ancestor that is a child subreaper. This
//! process makes itself a subreaper, so that all orphans of a program become its children, even
//! those in other process groups.

use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::process::proc;
use crate::process::starter;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// The time that processes which a program leaves running have to exit by themselves.
pub const GRACE: Duration = Duration::from_millis(300);

/// Makes this process a child subreaper, so that orphans become its children.
pub fn adopt() {
    let _ = nix::sys::prctl::set_child_subreaper(true); // on an error, orphans are not found
}

/// Waits up to `grace` for the processes that a program has left running to end by themselves.
/// Returns the names of those that still run.
pub fn names(program: Pid, grace: Duration) -> Vec<String> {
    let begin = Instant::now();
    loop {
        let running: Vec<String> = orphans(program).into_iter().filter_map(name).collect();
        if running.is_empty() || begin.elapsed() >= grace {
            return running;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills all processes that a program left running, and the orphans of the killed processes. A
/// process of another user cannot be killed, so such a process continues to run.
pub fn kill_all(program: Pid) {
    let end =
        |process: &Pid| kill(*process, Signal::SIGKILL).is_ok() && waitpid(*process, None).is_ok();
    while orphans(program).iter().filter(|process| end(process)).count() > 0 {}
}

/// Returns the children of this process except `program` and the starter. Empty if the kernel does
/// not list children.
fn orphans(program: Pid) -> Vec<Pid> {
    let known = [Some(program), starter::process()];
    children(Pid::this()).into_iter().filter(|process| !known.contains(&Some(*process))).collect()
}

/// Returns all running descendants of a process: its children, their children, and so on.
pub fn descendants(process: Pid) -> Vec<Pid> {
    let of = |child: Pid| [child].into_iter().chain(descendants(child));
    children(process).into_iter().flat_map(of).collect()
}

/// Returns the children of a process. Empty if the kernel does not list children.
fn children(process: Pid) -> Vec<Pid> {
    let children = proc::children(process.as_raw() as u32);
    children.into_iter().map(|child| Pid::from_raw(child as i32)).collect()
}

/// Returns the name of a process. `None` if the process has ended.
fn name(process: Pid) -> Option<String> {
    let stat = proc::Stat::of(process.as_raw() as u32)?;
    (!stat.is_zombie()).then(|| String::from_utf8_lossy(&stat.name).into_owned())
}

/// Returns the error for a program that leaves processes running.
pub fn refusal(left: &[String], program: &str) -> Option<Failure> {
    let first = left.first()?;
    let more = match left.len() {
        1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    let what =
        format!("the program exits while a process that it started still runs: {first}{more}");
    let state =
        "it was killed, and nothing was compared, because the time of such processes cannot be measured";
    let help = format!(
        "keep a server in the foreground and use it: --load 'CMD' -- {program} OPTION; or --ignore-output"
    );
    Some(Failure::new(what, state, help).with_status(MALLARD_FAILED))
}
