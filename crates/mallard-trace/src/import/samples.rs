//! Parses `memory` records, which describe the memory of a process at one moment.

use crate::heaps::{Mapped, MappedChange, Resident};
use crate::memory::Parts;
use std::collections::HashMap;

/// The memory of a process at one moment, as the kernel reported it.
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
    /// Makes a sample without time and live bytes, which the ledger supplies later.
    pub fn new(process: u32, numbers: Numbers) -> Self {
        Sample { ns: 0, process, live: (0.0, 0.0), numbers, parts: None }
    }
}

/// The maximum number of mappings that are stored until the next record with numbers. By default,
/// Linux allows a process 65,530 mappings (vm.max_map_count).
const MAPPINGS_MAX: usize = 1 << 22;

/// The names of the numbers in a sample, in the order of the columns.
const NAMES: [&str; 8] =
    ["rss", "pss", "anonymous", "huge", "minor_faults", "major_faults", "user_ns", "system_ns"];

/// Parses the text of a record: the numbers, and the changes of the mappings, if the text contains
/// them.
pub(super) fn parse(text: &str) -> (Numbers, Option<MappedChange>) {
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
    (numbers, mapped)
}

/// Returns the resident memory, if `numbers` contains it.
pub(super) fn resident(numbers: &Numbers, mapped: Option<MappedChange>) -> Option<Resident> {
    let [rss, _, anonymous, ..] = numbers.map(|number| number.and_then(|n| u64::try_from(n).ok()));
    rss.zip(anonymous).map(|(rss, anonymous)| Resident { rss, anonymous, mapped })
}

/// Mappings of processes, from records without numbers. They belong to the next record with numbers
/// of the same process. That record had no space for these mappings.
#[derive(Default)]
pub(super) struct Waiting(HashMap<u32, Vec<Mapped>>);

impl Waiting {
    /// Handles a record. If the record has mappings but no numbers, stores the mappings and returns
    /// `None`. Otherwise returns the record with the mappings that were stored for the same
    /// process.
    pub fn add(
        &mut self,
        process: u32,
        numbers: &Numbers,
        mapped: Option<MappedChange>,
    ) -> Option<Option<MappedChange>> {
        let Some(change) = mapped else { return Some(None) };
        let mut all = self.0.remove(&process).unwrap_or_default();
        all.extend(change.mappings);
        if *numbers != Numbers::default() || all.len() > MAPPINGS_MAX {
            return Some(Some(MappedChange { mappings: all, ..change }));
        }
        self.0.insert(process, all);
        None
    }
}

/// Parses `START-END:BYTES`. The addresses are hexadecimal.
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
    fn memory_samples_may_list_figures_and_mappings_in_any_order() {
        let text = "rss=9 map=1000-3000:4096 recorder=2 pss=x map=5-:1 anonymous=5 new=1";
        let (numbers, mapped) = parse(text);
        assert_eq!(numbers[..4], [Some(9), None, Some(5), None]);
        let mappings = vec![Mapped { start: 0x1000, end: 0x3000, anonymous: 4096 }];
        assert_eq!(mapped, Some(MappedChange { recorder: 2, mappings }));
        let resident = resident(&numbers, mapped).unwrap();
        assert_eq!((resident.rss, resident.anonymous), (9, 5));
        assert_eq!(parse("rss=9 anonymous=5").1, None);
        for text in ["rss=9 recorder=2 map=1000-3000:4096", "rss=9 anonymous=-5"] {
            let (numbers, mapped) = parse(text);
            assert!(super::resident(&numbers, mapped).is_none(), "{text}");
        }
    }

    #[test]
    fn mappings_without_figures_belong_to_the_next_memory_sample_of_their_process() {
        let mut waiting = Waiting::default();
        let mut said = |process, text: &str| {
            let (numbers, mapped) = parse(text);
            waiting.add(process, &numbers, mapped).map(|mapped| {
                mapped.map(|change| {
                    change.mappings.iter().map(|mapping| mapping.start).collect::<Vec<_>>()
                })
            })
        };
        assert_eq!(said(1, "recorder=2 map=1-2:4096"), None);
        assert_eq!(said(2, "rss=9 anonymous=5"), Some(None));
        assert_eq!(said(1, "recorder=2 map=3-4:4096"), None);
        assert_eq!(said(2, "rss=9 recorder=2 map=5-6:1"), Some(Some(vec![5])));
        assert_eq!(said(1, "rss=9 recorder=2 map=7-8:4096"), Some(Some(vec![1, 3, 7])));
        assert_eq!(said(1, "rss=9 recorder=2"), Some(Some(vec![])));
    }
}
