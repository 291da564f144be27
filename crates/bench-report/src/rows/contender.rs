//! Parses the name of a contender, which is an allocator under test, into its library and its
//! strategy. The strategies AS1 to AS14 are those of J. Lakos's talk (ACCU 2017).

/// A strategy of Lakos's talk. `mallard/AS3+reset` has provider `mallard`, number 3 and extra
/// `+reset`.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    pub provider: String,
    pub number: u32,
    pub extra: String,
}

impl Strategy {
    pub fn of(contender: &str) -> Option<Strategy> {
        let (provider, rest) = contender.rsplit_once("/AS")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..digits].parse().ok().filter(|n| (1..=14).contains(n))?;
        Some(Strategy { provider: provider.to_string(), number, extra: rest[digits..].to_string() })
    }

    /// Returns whether the tables of Lakos's talk contain the strategy. They contain glibc's AS1
    /// and AS2, and the local strategies, which are Mallard's here.
    pub fn is_of_the_talk(&self) -> bool {
        let expected = if self.number <= 2 { "glibc" } else { "mallard" };
        self.provider.split('-').next() == Some(expected)
    }
}

/// Returns the library of a competitor, such as `boost-container-1.74`, without the parts of the
/// name that describe a variant or a combination of allocators.
pub fn family(peer: &str) -> String {
    let name = peer.split('/').next().unwrap_or(peer);
    match name.split_once('+') {
        Some((base, with)) if !with.starts_with('+') => base.to_string(), // "libstdc++" is one name
        _ => name.to_string(),
    }
}

/// Returns whether a contender is a local allocator of Mallard with default settings. Lakos's talk
/// compares such allocators.
pub fn is_local(contender: &str) -> bool {
    Strategy::of(contender).is_some_and(|s| s.provider == "mallard" && s.number >= 3)
        && !is_tuned(contender)
}

/// Returns whether a variant is tuned for its case, or needs a program that was written for the
/// variant. Examples are an arena that is reset at each generation, and a pool that knows its
/// largest size. Tuned variants are not compared with default settings, because competitors are not
/// tuned. Support for threads, such as `+mutex`, is not tuning.
pub fn is_tuned(contender: &str) -> bool {
    const TUNED: [&str; 6] =
        ["+reset", "+fifo", "+largest=", "/huge-pages", "/doubling", "/one-a-thread"];
    contender.starts_with("mallard/") && TUNED.iter().any(|t| contender.contains(t))
}

/// Describes a strategy as the table of Lakos's talk does.
pub fn words(number: u32) -> String {
    let allocator = match number {
        1 | 2 => "global allocator",
        3..=6 => "arena",
        7..=10 => "multipool",
        _ => "multipool in an arena",
    };
    let position = (number.max(3) - 3) % 4;
    let abstract_base = if number <= 2 { number == 2 } else { position >= 2 };
    let binding = if abstract_base { "abstract base" } else { "type parameter" };
    let end = if number > 2 && position % 2 == 1 { ", winked out" } else { "" };
    format!("{allocator}, {binding}{end}")
}

/// Returns `AS11 (multipool in an arena, type parameter)` for a strategy of Lakos's talk. Returns
/// the contender's name otherwise.
pub fn explained(contender: &str) -> String {
    match Strategy::of(contender) {
        Some(s) if s.is_of_the_talk() => {
            format!("AS{}{} ({})", s.number, s.extra, words(s.number))
        }
        _ => contender.to_string(),
    }
}

/// Returns `AS11` for a strategy of Lakos's talk. Returns the contender's name otherwise.
pub fn short(contender: &str) -> String {
    match Strategy::of(contender) {
        Some(s) if s.is_of_the_talk() => format!("AS{}{}", s.number, s.extra),
        _ => contender.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_allocators_are_parsed() {
        let reset = Strategy::of("mallard/AS3+reset").unwrap();
        assert_eq!((reset.number, reset.extra.as_str()), (3, "+reset"));
        assert_eq!(Strategy::of("mallard/malloc/AS1").unwrap().provider, "mallard/malloc");
        assert_eq!(family("libstdc++-pmr-12/unsync-pool+mutex"), "libstdc++-pmr-12");
        assert_eq!(family("std::shared_ptr+libstdc++-pmr"), "std::shared_ptr");
        assert_eq!(family("boost-pool-1.74+mutex"), "boost-pool-1.74");
        assert_eq!(family("mimalloc-2.0.9/AS1"), "mimalloc-2.0.9");
        assert_eq!(Strategy::of("mallard/none/lifo"), None);
        assert_eq!(Strategy::of("mallard/AS15"), None);
    }

    #[test]
    fn only_untuned_local_allocators_of_mallard_are_local() {
        assert!(is_local("mallard/AS3") && !is_local("mallard/AS3+reset"));
        assert!(is_tuned("mallard/AS3+reset") && !is_tuned("mallard/none/lifo"));
        assert!(is_tuned("mallard/AS7+largest=32") && !is_local("mallard/AS7+fifo"));
        assert!(is_local("mallard/AS7+mutex") && !is_tuned("mallard/AS7+mutex"));
        assert!(!is_local("mallard/malloc/AS1") && !is_local("boost-container-1.74/AS5"));
    }

    #[test]
    fn the_fourteen_strategies_are_described_as_lakos_described_them() {
        assert_eq!(words(1), "global allocator, type parameter");
        assert_eq!(words(2), "global allocator, abstract base");
        assert_eq!(words(4), "arena, type parameter, winked out");
        assert_eq!(words(9), "multipool, abstract base");
        assert_eq!(words(14), "multipool in an arena, abstract base, winked out");
    }
}
