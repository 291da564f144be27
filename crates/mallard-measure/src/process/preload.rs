//! Makes paths of libraries for LD_PRELOAD, in which a space or a colon ends a path.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// The directory with links to libraries, and the links by library. The directory exists until
/// `remove_links` is called.
struct Links {
    folder: TempDir,
    of: HashMap<PathBuf, PathBuf>,
}

static LINKS: Mutex<Option<Links>> = Mutex::new(None);

fn is_one_path(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte))
}

/// Returns a path that LD_PRELOAD can contain: the path of the library, or the path of a new link
/// to the library. If no link can be made, the path of the library is returned, and the dynamic
/// linker reports that it does not find the library.
pub fn preloadable(library: &Path) -> PathBuf {
    if is_one_path(library) {
        return library.to_path_buf();
    }
    link_to(library).unwrap_or_else(|_| library.to_path_buf())
}

/// Joins `parts`, each of which names libraries, to one value for LD_PRELOAD. Skips empty parts.
pub fn joined(parts: impl IntoIterator<Item = OsString>) -> OsString {
    let parts: Vec<OsString> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(OsStr::new(":"))
}

fn link_to(library: &Path) -> std::io::Result<PathBuf> {
    let mut links = LINKS.lock().unwrap_or_else(PoisonError::into_inner);
    if links.is_none() {
        let place = Some(std::env::temp_dir()).filter(|place| is_one_path(place));
        let place = place.unwrap_or_else(|| PathBuf::from("/tmp"));
        let folder = tempfile::Builder::new().prefix("mallard-").tempdir_in(place)?;
        *links = Some(Links { folder, of: HashMap::new() });
    }
    let Some(Links { folder, of }) = links.as_mut() else { unreachable!("there are links") };
    if let Some(link) = of.get(library) {
        return Ok(link.clone());
    }
    // The link has the name of the library, by which programs and reports recognise it, unless the
    // name itself contains a space or a colon.
    let name = library.file_name().filter(|name| is_one_path(Path::new(name)));
    let inner = folder.path().join(of.len().to_string());
    std::fs::create_dir(&inner)?;
    let link = inner.join(name.unwrap_or(OsStr::new("library.so")));
    std::os::unix::fs::symlink(std::path::absolute(library)?, &link)?;
    of.insert(library.to_path_buf(), link.clone());
    Ok(link)
}

/// Removes the links. Call it when no program will be started any more.
pub fn remove_links() {
    *LINKS.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preloaded_library_gets_a_path_without_spaces_or_colons() {
        let plain = Path::new("/lib/libmany.so");
        assert_eq!(preloadable(plain), plain);
        for library in ["/a folder/libmany.so", "/a:folder/libmany.so", "/lib/lib many.so"] {
            let link = preloadable(Path::new(library));
            assert!(is_one_path(&link), "{link:?}");
            assert_eq!(std::fs::read_link(&link).unwrap(), Path::new(library));
            assert_eq!(preloadable(Path::new(library)), link);
        }
        assert!(preloadable(Path::new("/a folder/libmany.so")).ends_with("libmany.so"));
    }
}
