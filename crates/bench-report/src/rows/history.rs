//! Finds commits that results name and that the repository no longer has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Returns the commits, given as short or complete hashes, that are not in the history of HEAD.
/// Returns an empty set if the history is unknown: outside a repository, without git, or in a
/// shallow clone.
pub fn unknown<'a>(root: &Path, commits: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let wanted: BTreeSet<&str> = commits.filter(|c| !c.is_empty()).collect();
    let known = match history(root) {
        Some(known) => known,
        None => return BTreeSet::new(),
    };
    let is_unknown = |commit: &&&str| {
        let hash = commit.split(['-', '+']).next().unwrap_or("");
        let next = known.partition_point(|k| k.as_str() < hash);
        !known.get(next).is_some_and(|k| k.starts_with(hash))
    };
    wanted.iter().filter(is_unknown).map(|c| c.to_string()).collect()
}

/// Returns all commits up to HEAD, sorted.
fn history(root: &Path) -> Option<Vec<String>> {
    let of = |words: &[&str]| {
        let ran = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
        ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    if of(&["rev-parse", "--is-shallow-repository"])?.trim() != "false" {
        return None;
    }
    let mut all: Vec<String> = of(&["rev-list", "HEAD"])?.lines().map(str::to_string).collect();
    all.sort();
    Some(all)
}
