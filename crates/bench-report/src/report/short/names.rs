//! Formats names of allocators and ranges of factors for the short answers.

use crate::rows::matching::{like, Like};

/// Formats an allocator's name as readers know it: `Mallard`, `jemalloc 5.3.1`.
pub fn known_as(contender: &str) -> String {
    if contender == "mallard/malloc" {
        return "Mallard".to_string();
    }
    // A slash separates the name from a variant or strategy. The 14 strategies AS1 to AS14 are not
    // named on short pages.
    let (name, variant) = contender.split_once('/').unwrap_or((contender, ""));
    let variant = if variant.starts_with("AS") { "" } else { variant };
    let name = match name.rsplit_once('-') {
        Some((name, rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{name} {rest}")
        }
        _ => name.to_string(),
    };
    let name = match name.strip_prefix("google-tcmalloc") {
        Some(rest) => format!("Google's tcmalloc{rest}"),
        None if name.starts_with("gperftools") => format!("{name} (tcmalloc)"),
        None => name,
    };
    [name.as_str(), variant].into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/")
}

/// Returns the library of a malloc, without its version, such as `jemalloc` for `jemalloc-5.3.1`.
pub fn library(contender: &str) -> &str {
    contender.rsplit_once('-').map_or(contender, |(name, _)| name)
}

pub fn is_malloc(contender: &str) -> bool {
    like(contender) == Some(Like::Malloc)
}

/// Formats the smallest and the largest of some factors: `0.88 to 0.93`.
pub fn from_to(factors: impl IntoIterator<Item = f64>) -> Option<String> {
    let range = crate::statistics::Range::of(factors)?;
    let (least, most) = (crate::tables::number(range.least), crate::tables::number(range.most));
    Some(if least == most { least } else { format!("{least} to {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_are_shown_under_their_well_known_names() {
        assert_eq!(known_as("mallard/malloc"), "Mallard");
        assert_eq!(known_as("jemalloc-5.3.1"), "jemalloc 5.3.1");
        assert_eq!(known_as("gperftools-2.10"), "gperftools 2.10 (tcmalloc)");
        assert_eq!(known_as("google-tcmalloc-2025.06"), "Google's tcmalloc 2025.06");
        assert_eq!(
            known_as("boost-container-1.74/unsync-pool"),
            "boost-container 1.74/unsync-pool"
        );
        assert_eq!(known_as("libstdc++-pmr-12/AS9"), "libstdc++-pmr 12");
        assert_eq!(known_as("std::vector"), "std::vector");
        assert_eq!((library("jemalloc-5.3.1"), library("fixed")), ("jemalloc", "fixed"));
    }

    #[test]
    fn a_range_with_equal_ends_is_printed_as_one_number() {
        assert_eq!(from_to([0.932, 0.884]).unwrap(), "0.88 to 0.93");
        assert_eq!(from_to([0.931, 0.932]).unwrap(), "0.93");
        assert_eq!(from_to([]), None);
    }
}
