//! Finds the file of a module, and the file with its debug information.

use crate::modules::Module;
use object::read::{File, Object, ReadCache};
use std::path::{Path, PathBuf};

const SYSTEM_FOLDER: &str = "/usr/lib/debug";

/// The file of a module, if the file has the build-id of the module. `folders` are searched first, as if
/// each folder was the root of the file system.
pub(super) fn binary(module: &Module, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = Path::new(&module.path);
    let inside = path.strip_prefix("/").unwrap_or(path);
    let elsewhere = folders.iter().map(|folder| folder.join(inside));
    let mut places = elsewhere.chain(path.is_absolute().then(|| path.to_path_buf()));
    places.find(|place| has_build_id(place, &module.build_id))
}

/// The separate file with the debug information of a module; `None` if none is found. `link` is the name
/// that the module states for the file.
pub(super) fn separate(
    module: &Module,
    link: Option<&str>,
    folders: &[PathBuf],
) -> Option<PathBuf> {
    let system = PathBuf::from(SYSTEM_FOLDER);
    let roots = || folders.iter().chain(std::iter::once(&system));
    let mut places = Vec::new();
    if let Some((first, rest)) =
        module.build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())
    {
        places.extend(roots().map(|root| root.join(format!(".build-id/{first}/{rest}.debug"))));
    }
    let beside = Path::new(&module.path).parent();
    // A name with a slash would lead out of the folders.
    if let (Some(link), Some(beside)) = (link.filter(|link| !link.contains('/')), beside) {
        places.push(beside.join(link));
        places.push(beside.join(".debug").join(link));
        let inside = beside.strip_prefix("/").unwrap_or(beside);
        places.extend(roots().map(|root| root.join(inside).join(link)));
    }
    let is_other = |place: &PathBuf| place != Path::new(&module.path);
    places.into_iter().filter(is_other).find(|place| has_build_id(place, &module.build_id))
}

/// Whether a file has a build-id. If `build_id` is empty, any object file matches.
fn has_build_id(path: &Path, build_id: &str) -> bool {
    // A module may be a device or a pipe: opening a pipe would block.
    if !path.is_file() {
        return false;
    }
    let Ok(file) = std::fs::File::open(path) else { return false };
    let cache = ReadCache::new(file);
    let Ok(object) = File::parse(&cache) else { return false };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    build_id.is_empty() || object.build_id().ok().flatten().is_some_and(|id| hex(id) == build_id)
}
