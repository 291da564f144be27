//! Reads memory, page faults and CPU time of a recorded process from the system.

use crate::smaps::{Mapping, Smaps};
use mallard_measure::process::proc::{self, Stat};
use mallard_trace::format::TEXT_BYTES_MAX;
use nix::time::{clock_gettime, ClockId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The memory and the CPU time of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident bytes.
    pub rss: u64,
    /// Proportional set size (PSS): resident bytes, where bytes that n processes share count as one
    /// n-th. `None` if the PSS was not read this time, because reading takes long in large
    /// processes.
    pub pss: Option<u64>,
    /// Resident bytes that belong to no file.
    pub anonymous: u64,
    /// Resident bytes in huge pages, which are read together with `pss`.
    pub huge: Option<u64>,
    /// Page faults without reading from disk since the process began.
    pub minor_faults: u64,
    /// Page faults with reading from disk since the process began.
    pub major_faults: u64,
    /// User CPU time since the process began, in nanoseconds.
    pub user_ns: u64,
    /// System CPU time since the process began, in nanoseconds.
    pub system_ns: u64,
    /// The mappings, which are read together with `pss`.
    pub mapped: Option<Mapped>,
}

/// The mappings of a process, as changes since the last reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Resident bytes of the recorder that are backed by files.
    pub recorder: u64,
    /// Mappings whose anonymous bytes have changed. 0 bytes mean that the mapping is gone.
    pub changes: Vec<Mapping>,
}

impl Memory {
    /// The maximum length of a list of numbers, which has eight names and numbers of 20 digits.
    const NUMBERS_BYTES_MAX: usize = 300;

    /// Returns the texts of the `memory` records (see spec/trace_format.md). There are several if
    /// the mappings do not fit in one. The last text has the other numbers.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let mut text = String::new();
        if let Some(mapped) = &self.mapped {
            let recorder = format!(" recorder={}", mapped.recorder);
            text += &recorder;
            for Mapping { start, end, anonymous } in &mapped.changes {
                let map = format!(" map={start:x}-{end:x}:{anonymous}");
                if text.len() + map.len() > TEXT_BYTES_MAX - Self::NUMBERS_BYTES_MAX {
                    texts.push(std::mem::replace(&mut text, recorder.clone()).split_off(1));
                }
                text += &map;
            }
        }
        texts.push(self.numbers() + &text);
        texts
    }

    /// Returns the numbers in a `memory` record, except those of mappings.
    fn numbers(&self) -> String {
        let mut text = format!("rss={} anonymous={}", self.rss, self.anonymous);
        if let Some(pss) = self.pss {
            text += &format!(" pss={pss}");
        }
        if let Some(huge) = self.huge {
            text += &format!(" huge={huge}");
        }
        text += &format!(
            " minor_faults={} major_faults={} user_ns={} system_ns={}",
            self.minor_faults, self.major_faults, self.user_ns, self.system_ns
        );
        text
    }
}

/// Reads samples of one process. The reading uses at most 1 % of a core.
pub struct Sampler {
    process: u32,
    page_bytes: u64,
    ns_per_tick: u64,
    smaps: Paced,
    /// The text of /proc/PID/smaps, which is kept so that its memory is reused.
    text: Vec<u8>,
    /// The last known mappings. Maps the first address to the end, and to the anonymous bytes.
    known: BTreeMap<u64, (u64, u64)>,
    threads: Paced,
}

impl Sampler {
    /// Makes a sampler of the process with this id.
    pub fn new(process: u32) -> Sampler {
        let ticks = sysconf(nix::unistd::SysconfVar::CLK_TCK).unwrap_or(100);
        Sampler {
            process,
            page_bytes: sysconf(nix::unistd::SysconfVar::PAGE_SIZE).unwrap_or(4096),
            ns_per_tick: 1_000_000_000 / ticks.max(1),
            smaps: Paced::default(),
            text: Vec::new(),
            known: BTreeMap::new(),
            threads: Paced::default(),
        }
    }

    /// Returns the current memory of the process. `None` if the process has ended.
    pub fn memory(&mut self) -> Option<Memory> {
        let stat = Stat::of(self.process)?;
        let (resident, shared) = proc::resident_pages(self.process)?;
        if resident == 0 {
            return None; // the process has ended, but its parent has not yet waited for it
        }
        let mut memory = Memory {
            rss: resident * self.page_bytes,
            anonymous: resident.saturating_sub(shared) * self.page_bytes,
            minor_faults: stat.field(10)?,
            major_faults: stat.field(12)?,
            user_ns: stat.field(14)? * self.ns_per_tick,
            system_ns: stat.field(15)? * self.ns_per_tick,
            ..Memory::default()
        };
        let (process, text) = (self.process, &mut self.text);
        let read = self.smaps.run(|| proc::read_smaps(process, text).then(|| Smaps::parse(text)));
        // If a process ends while its file is read, the file shows no mappings.
        if let Some(smaps) = read.flatten().filter(|smaps| smaps.pss > 0) {
            memory.pss = Some(smaps.pss);
            memory.huge = Some(smaps.huge);
            memory.mapped = Some(self.changed(smaps));
        }
        Some(memory)
    }

    /// Returns the changes since the mappings were last read.
    fn changed(&mut self, smaps: Smaps) -> Mapped {
        let Smaps { recorder, mappings, .. } = smaps;
        let now: BTreeMap<u64, (u64, u64)> =
            mappings.iter().map(|m| (m.start, (m.end, m.anonymous))).collect();
        let gone = self.known.iter().filter(|(start, _)| !now.contains_key(start));
        let gone = gone.map(|(&start, &(end, _))| Mapping { start, end, anonymous: 0 });
        let mut changes: Vec<Mapping> = gone.collect();
        let known = &self.known;
        let is_new = |m: &Mapping| known.get(&m.start) != Some(&(m.end, m.anonymous));
        changes.extend(mappings.into_iter().filter(is_new));
        self.known = now;
        Mapped { recorder, changes }
    }

    /// Returns the CPU time of each thread in nanoseconds, by thread id. Empty if it is too early
    /// to read so many threads again. If `last` is set, all threads are read.
    pub fn threads(&mut self, last: bool) -> Vec<(u32, u64)> {
        let process = self.process;
        if last {
            return cpu_of_threads(process);
        }
        self.threads.run(|| cpu_of_threads(process)).unwrap_or_default()
    }
}

/// Returns whether a thread of the process is running. The system shows a process as a zombie until
/// its parent waits for it, but also if only its first thread has exited.
pub fn is_alive(process: u32) -> bool {
    Stat::of(process).is_some_and(|stat| !stat.is_zombie() || stat.field(20).unwrap_or(1) > 1)
}

fn sysconf(variable: nix::unistd::SysconfVar) -> Option<u64> {
    nix::unistd::sysconf(variable).ok()??.try_into().ok()
}

fn cpu_of_threads(process: u32) -> Vec<(u32, u64)> {
    let cpu = |thread| Some((thread, proc::cpu_ns_of_thread(process, thread)?));
    proc::threads(process).into_iter().filter_map(cpu).collect()
}

/// Limits how often a function runs, so that it uses at most 1 % of a core in CPU time. Waiting for
/// a core on a busy machine does not count.
#[derive(Default)]
struct Paced {
    next: Option<Instant>,
}

impl Paced {
    const PAUSES: u32 = 99;

    fn run<T>(&mut self, action: impl FnOnce() -> T) -> Option<T> {
        let begin = Instant::now();
        if self.next.is_some_and(|next| begin < next) {
            return None;
        }
        let cpu = cpu_of_this_thread();
        let result = action();
        let took = cpu_of_this_thread().saturating_sub(cpu).max(Duration::from_micros(1));
        self.next = Some(Instant::now() + took * Self::PAUSES);
        Some(result)
    }
}

/// Returns the CPU time of the calling thread.
fn cpu_of_this_thread() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallard_measure::process::proc::{address_space_limit, Process};

    #[test]
    fn the_memory_of_this_process_is_read() {
        let memory = Sampler::new(std::process::id()).memory().unwrap();
        assert!(memory.rss > memory.anonymous && memory.anonymous > 0, "{memory:?}");
        assert!(memory.pss.is_some() && memory.minor_faults > 0, "{memory:?}");
    }

    #[test]
    fn mappings_are_reported_once_until_they_change() {
        let mut sampler = Sampler::new(std::process::id());
        let first = sampler.memory().unwrap();
        let mapped = first.mapped.clone().unwrap();
        let sum: u64 = mapped.changes.iter().map(|mapping| mapping.anonymous).sum();
        assert!(sum > 0 && sum < first.rss, "{first:?}");
        assert!(first.texts()[0].contains(" recorder=0 map="), "{:?}", first.texts());
        assert_eq!(sampler.memory().unwrap().mapped, None); // too early to read mappings again

        let smaps = |mappings: Vec<Mapping>| Smaps { mappings, ..Smaps::default() };
        let mapping = |start, anonymous| Mapping { start, end: start + 5, anonymous };
        let mut sampler = Sampler::new(0);
        let both = vec![mapping(10, 1), mapping(20, 1)];
        assert_eq!(sampler.changed(smaps(both.clone())).changes, both);
        assert_eq!(sampler.changed(smaps(both)).changes, []);
        let changes = sampler.changed(smaps(vec![mapping(20, 2), mapping(30, 3)])).changes;
        assert_eq!(changes, [mapping(10, 0), mapping(20, 2), mapping(30, 3)]);
    }

    #[test]
    fn mappings_that_do_not_fit_into_one_record_are_split_into_several() {
        let mapping = |start| Mapping { start, end: u64::MAX, anonymous: u64::MAX };
        for count in [0, 1, 1200, 1300, 65_530] {
            let changes: Vec<Mapping> = (0..count).map(|i| mapping(u64::MAX - i)).collect();
            let memory = Memory {
                rss: u64::MAX,
                pss: Some(u64::MAX),
                anonymous: u64::MAX,
                huge: Some(u64::MAX),
                minor_faults: u64::MAX,
                major_faults: u64::MAX,
                user_ns: u64::MAX,
                system_ns: u64::MAX,
                mapped: Some(Mapped { recorder: u64::MAX, changes }),
            };
            let texts = memory.texts();
            assert!(texts.iter().all(|text| text.len() <= TEXT_BYTES_MAX), "{count}");
            let (last, before) = texts.split_last().unwrap();
            assert!(last.starts_with("rss=") && before.iter().all(|t| t.starts_with("recorder=")));
            assert_eq!(texts.iter().map(|t| t.matches("map=").count() as u64).sum::<u64>(), count);
            assert!(texts.len() as u64 <= count / 1000 + 1, "{count}: {}", texts.len());
        }
    }

    #[test]
    fn an_exited_process_has_no_memory() {
        assert_eq!(Sampler::new(u32::MAX - 1).memory(), None);
    }

    #[test]
    fn a_zombie_process_is_not_alive_but_its_limits_can_be_read() {
        assert!(is_alive(std::process::id()));
        let mut shell = std::process::Command::new("sh");
        let mut child = shell.args(["-c", "ulimit -v 500000"]).spawn().unwrap();
        while is_alive(child.id()) {
            std::thread::yield_now();
        }
        assert_eq!(address_space_limit(Process::Id(child.id())), Some(500_000 * 1024));
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
        assert_eq!(address_space_limit(Process::Id(child.id())), None);
    }

    #[test]
    fn thread_names_come_from_the_system() {
        let threads = Sampler::new(std::process::id()).threads(false);
        assert!(threads.iter().any(|&(thread, _)| thread == std::process::id()), "{threads:?}");
    }
}
