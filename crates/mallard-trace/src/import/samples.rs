//! Parses `memory` records, which describe the memory of a process at one moment.

use crate::heaps::{Mapped, MappedChange, Resident};
use crate::memory::Parts;

/// The memory of a process at one moment, as the system reported it.
pub(super) struct Sample {
    pub ns: i64,
    pub process: u32,
    pub live: (f64, f64),
    pub numbers: Numbers,
    pub parts: Option<Parts>,
}

/// The numbers of a sample, in the order of the columns.
pub(super) type Numbers = [Option<i64>; 8];

impl Sample {
    /// Makes a sample whose time and live bytes are filled in later.
    pub fn new(process: u32, numbers: Numbers) -> Self {
        Sample { ns: 0, process, live: (0.0, 0.0), numbers, parts: None }
    }
}

/// The names of the numbers in a sample, in the order of the columns.
const NAMES: [&str; 8] =
    ["rss", "pss", "anonymous", "huge", "minor_faults", "major_faults", "user_ns", "system_ns"];

/// Parses the text of a record: the numbers, and the resident memory, if the text has it.
pub(super) fn parse(text: &str) -> (Numbers, Option<Resident>) {
    let mut numbers = [None; 8];
    let mut mapped: Option<MappedChange> = None;
    let mut mappings = Vec::new();
    for (name, value) in text.split(' ').filter_map(|part| part.split_once('=')) {
        match name {
            "recorder" => {
                mapped.get_or_insert_default().recorder = value.parse().unwrap_or(0);
            }
            "map" => mappings.extend(mapping(value)),
            _ => {
                if let Some(index) = NAMES.iter().position(|&known| known == name) {
                    numbers[index] = value.parse().ok();
                }
            }
        }
    }
    if let Some(mapped) = &mut mapped {
        mapped.mappings = mappings;
    }
    let [rss, _, anonymous, ..] = numbers.map(|number| number.and_then(|n| u64::try_from(n).ok()));
    let resident = rss.zip(anonymous).map(|(rss, anonymous)| Resident { rss, anonymous, mapped });
    (numbers, resident)
}

/// Parses `START-END:BYTES`; the addresses are hexadecimal.
fn mapping(text: &str) -> Option<Mapped> {
    let (range, anonymous) = text.split_once(':')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapped { start: address(start)?, end: address(end)?, anonymous: anonymous.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_numbers_and_mappings_in_any_order() {
        let text = "rss=9 map=1000-3000:4096 recorder=2 pss=x map=5-:1 anonymous=5 new=1";
        let (numbers, resident) = parse(text);
        assert_eq!(numbers[..4], [Some(9), None, Some(5), None]);
        let resident = resident.unwrap();
        assert_eq!((resident.rss, resident.anonymous), (9, 5));
        let mappings = vec![Mapped { start: 0x1000, end: 0x3000, anonymous: 4096 }];
        assert_eq!(resident.mapped, Some(MappedChange { recorder: 2, mappings }));
        assert_eq!(parse("rss=9 anonymous=5").1.unwrap().mapped, None);
        assert_eq!(parse("rss=9 recorder=2 map=1000-3000:4096").1, None);
        assert_eq!(parse("rss=9 anonymous=-5").1, None);
    }
}
