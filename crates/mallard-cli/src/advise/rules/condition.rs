//! Conditions of rules. A condition compares a figure of a region, a site, a candidate or the program
//! with a limit.

use crate::advise::candidate::{Candidate, Kind};
use crate::advise::code::Made;
use crate::advise::facts::{Facts, Site};
use crate::advise::reason::{Gap, Refusal};
use mallard_measure::output::units::{bytes, count, percent, plural};
use mallard_measure::verdict::Verdict;
use mallard_trace::names::{is_standard, short};
use mallard_trace::regions::Region;
use mallard_trace::replay::End;

/// A change that saves CPU time may need at most this multiple of the previous memory.
pub const MEMORY_RATIO_MAX: f64 = 1.5;
/// If a change needs at least this multiple of the previous memory, the user has to choose.
pub const MEMORY_TRADE: f64 = 1.1;
/// The smallest difference of memory that counts, in bytes.
pub const MEMORY_NOISE: u64 = 1 << 20;
/// A malloc may need this many bytes more than `MEMORY_RATIO_MAX` allows, because a small program
/// that needs some MiB more is still small. A plan may need only `MEMORY_NOISE` bytes more, because
/// it competes with other plans.
const MEMORY_SMALL: u64 = 16 << 20;
/// The smallest saving of a change for memory, as a share of the peak.
const MEMORY_GAIN_MIN: f64 = 0.1;
/// The smallest saving of a change for memory, and the smallest leak that counts, in bytes.
const MEMORY_BYTES_MIN: u64 = 4 << 20;

/// The part of a program to which a condition is applied.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A region.
    Region(&'a Region),
    /// A site.
    Site(&'a Site),
    /// A measured malloc or setting.
    Candidate(&'a Candidate),
    /// The program.
    Program,
}

/// A condition. Limits are inclusive: `Instances(30)` holds for 30 instances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// The trace shows the whole run.
    WholeRun,
    /// The trace shows the whole run, or all events of a process that was already running when the
    /// recording began.
    ToTheEnd,
    /// No thread frees a block that another thread has allocated.
    NoForeignFrees,
    /// No block outlives its instance, whatever ends the instances.
    NoEscapes,
    /// At most this share of the blocks outlives its instance.
    EscapesUpTo(f64),
    /// The region has at least this many instances with a known end.
    Instances(u64),
    /// The region has at least this many different inputs.
    Inputs(u64),
    /// The property U (utilisation) is at least this value.
    UtilisationFrom(f64),
    /// The property U (utilisation) is below this value.
    UtilisationBelow(f64),
    /// The property V (variation) is at most this many bits.
    VariationUpTo(f64),
    /// All blocks have one size.
    OneSize,
    /// The blocks have different sizes, or belong to a container, which cannot use a pool for one
    /// size.
    SeveralSizesOrContainer,
    /// The blocks do not belong to a container.
    NoContainer,
    /// The site has at least this many blocks.
    Blocks(i64),
    /// At least this share of the blocks is freed while the program runs.
    FreedFrom(f64),
    /// At least this share of the blocks is never freed.
    NeverFreedFrom(f64),
    /// The live bytes of the site only grow.
    Grows,
    /// The live bytes of the function's growing sites are at least this share of the live bytes at
    /// the peak.
    LiveFrom(f64),
    /// Free memory that the malloc holds is at least this share of the resident memory.
    HeldFrom(f64),
    /// The candidate saves enough CPU time.
    GainsTime,
    /// The candidate does not need much more CPU time.
    TimeStays,
    /// The candidate saves enough memory.
    GainsMemory,
    /// The candidate does not need much more memory.
    MemoryStays,
}

use Condition::*;

impl Condition {
    /// Returns whether the condition holds.
    pub fn holds(self, facts: &Facts, subject: &Subject) -> bool {
        match subject {
            _ if self == WholeRun => facts.validity.is_empty(),
            _ if self == ToTheEnd => facts.validity.iter().all(|gap| *gap == Gap::Beginning),
            Subject::Region(region) => self.holds_for_region(facts, region),
            Subject::Site(site) => self.holds_for_site(facts, site),
            Subject::Candidate(of) => self.holds_for_candidate(facts, of),
            Subject::Program => false,
        }
    }

    fn holds_for_region(self, facts: &Facts, of: &Region) -> bool {
        match self {
            NoForeignFrees => of.foreign_frees == 0,
            NoEscapes => twins(facts, of).all(|twin| twin.escapes == 0),
            EscapesUpTo(share) => of.escapes as f64 <= share * of.blocks as f64,
            Instances(least) => finished(of) >= least,
            Inputs(least) => of.inputs >= least,
            UtilisationFrom(least) => of.utilisation >= least,
            UtilisationBelow(limit) => of.utilisation < limit,
            VariationUpTo(bits) => of.variation_bits <= bits,
            OneSize => of.sizes == 1,
            Blocks(least) => of.blocks as i64 >= least,
            _ => false,
        }
    }

    fn holds_for_site(self, facts: &Facts, of: &Site) -> bool {
        let figures = &of.figures;
        let allocs = figures.allocs.max(1) as f64;
        match self {
            NoForeignFrees => figures.cross_thread_frees == 0,
            UtilisationFrom(least) => utilisation(of) >= least,
            UtilisationBelow(limit) => utilisation(of) < limit,
            VariationUpTo(bits) => figures.v.value.is_some_and(|v| v <= bits),
            OneSize => has_one_size(facts, of),
            SeveralSizesOrContainer => !has_one_size(facts, of) || is_of_container(of),
            NoContainer => !is_of_container(of),
            Blocks(least) => figures.allocs >= least,
            FreedFrom(share) => figures.frees as f64 >= share * allocs,
            NeverFreedFrom(share) => figures.live_allocs as f64 >= share * allocs,
            Grows => of.is_growing,
            LiveFrom(share) => {
                let live = growing_bytes(facts, of);
                live >= MEMORY_BYTES_MIN
                    && live as f64 >= share * facts.memory.live_peak.max(1) as f64
            }
            _ => false,
        }
    }

    fn holds_for_candidate(self, facts: &Facts, of: &Candidate) -> bool {
        let gain = facts.min_gain;
        match self {
            GainsTime => of.cpu.verdict == Verdict::Gain && of.cpu.saving >= gain,
            TimeStays => of.cpu.verdict != Verdict::Loss || of.cpu.saving >= -gain,
            GainsMemory => {
                let (memory, (before, after)) = of.memory_saving();
                memory.verdict == Verdict::Gain
                    && memory.saving >= MEMORY_GAIN_MIN
                    && before.saturating_sub(after) >= MEMORY_BYTES_MIN
            }
            MemoryStays => !is_too_large(of),
            HeldFrom(share) => held_share(facts).is_some_and(|held| held >= share),
            _ => false,
        }
    }

    /// Returns a sentence for a card that names the condition as a reason, with the figures of the
    /// subject. Returns `None` for a condition that has no such sentence.
    pub fn sentence(self, facts: &Facts, subject: &Subject) -> Option<String> {
        match subject {
            Subject::Region(region) => self.of_region(region),
            Subject::Site(site) => self.of_site(facts, site),
            Subject::Candidate(_) => self.of_program(facts),
            Subject::Program => None,
        }
    }

    /// Returns why a safety condition fails. Safety conditions keep the program from using blocks
    /// after their memory is freed. `None` for all other conditions.
    pub fn failure(self, facts: &Facts, subject: &Subject) -> Option<Refusal> {
        Some(match (self, subject) {
            (WholeRun, _) => Refusal::PartOfRun(facts.validity.first().cloned()),
            (NoForeignFrees, Subject::Region(of)) => Refusal::ForeignFrees(of.foreign_frees),
            (NoForeignFrees, Subject::Site(of)) => {
                Refusal::ForeignFrees(of.figures.cross_thread_frees.max(0) as u64)
            }
            (NoEscapes | EscapesUpTo(_), Subject::Region(of)) => escapes(facts, of),
            (Instances(needed), Subject::Region(of)) => {
                Refusal::FewCalls { seen: finished(of), needed }
            }
            (Inputs(needed), Subject::Region(of)) => Refusal::FewInputs { seen: of.inputs, needed },
            _ => return None,
        })
    }

    fn of_region(self, of: &Region) -> Option<String> {
        let calls = count(finished(of));
        Some(match self {
            NoEscapes => format!(
                "none of its {} outlived its call in {calls} calls with {}: observed, not proven",
                plural(of.blocks, "block"),
                plural(of.inputs, "different input")
            ),
            EscapesUpTo(_) if of.escapes > 0 => format!(
                "{} of {} outlived their call, so each block has to be freed as before",
                count(of.escapes),
                plural(of.blocks, "block")
            ),
            EscapesUpTo(_) => format!(
                "none of its {} outlived its call in {calls} calls",
                plural(of.blocks, "block")
            ),
            UtilisationFrom(_) => format!(
                "{} of what a call allocates is in use at its peak (U {:.2}), so not reusing freed \
                 blocks wastes little memory",
                percent(of.utilisation),
                of.utilisation
            ),
            UtilisationBelow(_) => format!(
                "{} of the bytes that a call allocates could reuse freed blocks \
                 (U {:.2})",
                percent((1.0 - of.utilisation).max(0.0)),
                of.utilisation
            ),
            _ => return None,
        })
    }

    fn of_site(self, facts: &Facts, of: &Site) -> Option<String> {
        let figures = &of.figures;
        let allocs = figures.allocs.max(0) as u64;
        Some(match self {
            UtilisationBelow(_) => format!(
                "{} allocated in all, at most {} of them in use at the same time (U {:.2})",
                bytes(figures.bytes.max(0) as u64),
                bytes(figures.peak_bytes.max(0) as u64),
                utilisation(of)
            ),
            Blocks(_) => {
                let freed = figures.frees.max(0) as f64 / allocs.max(1) as f64;
                format!("{}, of which {} are freed again", plural(allocs, "block"), percent(freed))
            }
            OneSize => format!("all blocks have {}", bytes(figures.size_max.max(0) as u64)),
            VariationUpTo(_) => {
                format!("there are few sizes (V {:.1} bits)", figures.v.value.unwrap_or(0.0))
            }
            LiveFrom(_) => {
                let live = growing_bytes(facts, of);
                let share = live as f64 / facts.memory.live_peak.max(1) as f64;
                format!(
                    "{} in use at the end, {} of what was in use at the peak",
                    bytes(live),
                    percent(share.min(1.0))
                )
            }
            NeverFreedFrom(_) => format!(
                "{} of its {} were never freed, and their number grew until the end",
                count(figures.live_allocs.max(0) as u64),
                plural(allocs, "block")
            ),
            _ => return None,
        })
    }

    fn of_program(self, facts: &Facts) -> Option<String> {
        match self {
            HeldFrom(_) => held_share(facts).map(|held| {
                format!(
                    "{} of the resident memory, averaged over time, was held by the malloc without live \
                     blocks in it",
                    percent(held)
                )
            }),
            _ => None,
        }
    }
}

/// Returns the number of instances with a known end.
pub fn finished(of: &Region) -> u64 {
    of.instances.saturating_sub(of.unfinished)
}

/// Returns the regions of the same function as `of`. These regions differ in the event that ends
/// their instances. Regions that the program marks count as well. The authors of marks usually
/// choose the name of the function, with or without its scopes.
fn twins<'a>(facts: &'a Facts, of: &'a Region) -> impl Iterator<Item = &'a Region> {
    let same = move |twin: &&Region| {
        let is_namesake = match (twin.ends == End::Exact, of.ends == End::Exact) {
            (true, false) => names(&twin.function, &of.shown),
            (false, true) => names(&of.function, &twin.shown),
            _ => false,
        };
        twin.function == of.function || is_namesake
    };
    facts.regions.iter().filter(same).chain([of])
}

/// Returns whether the blocks of a site belong to a container. An unknown function of the standard
/// library counts as a container, because the program cannot change what this function calls.
fn is_of_container(of: &Site) -> bool {
    of.made.map_or(is_standard(&of.function), Made::is_container)
}

/// Returns whether the name of a mark stands for a function. For example, `f` and `ns::f` stand for
/// `int ns::f<…>[abi:cxx11]`.
pub fn names(mark: &str, function: &str) -> bool {
    let mut depth = 0;
    let outside = |c: &char| {
        depth += i32::from(*c == '<');
        let is_outside = depth == 0;
        depth -= i32::from(*c == '>');
        is_outside
    };
    let name: String = function.chars().filter(outside).collect();
    let end = name.find(['(', '[', '.']).unwrap_or(name.len());
    let name = name[..end].trim_end_matches("::").rsplit(' ').next().unwrap_or_default();
    name == mark || name.strip_suffix(mark).is_some_and(|scopes| scopes.ends_with("::"))
}

/// Returns the blocks that outlive their instance, as a reason against a plan.
fn escapes(facts: &Facts, of: &Region) -> Refusal {
    let worst = twins(facts, of).max_by_key(|twin| twin.escapes).unwrap_or(of);
    // Several functions may have the same short name, for example the instances of one template.
    let mut functions: Vec<String> = Vec::new();
    for function in worst.escape_sites.iter().map(|site| short(&site.function)) {
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    functions.truncate(2);
    Refusal::Escapes { blocks: worst.escapes, functions }
}

/// Returns the property U (utilisation) of a site.
fn utilisation(of: &Site) -> f64 {
    let computed = of.figures.peak_bytes as f64 / of.figures.bytes.max(1) as f64;
    of.figures.u.value.unwrap_or(computed.min(1.0))
}

/// Returns whether the function of a site allocates blocks of one size only, on all of its call
/// stacks. All call stacks must have that size, because a plan gives them one pool.
fn has_one_size(facts: &Facts, of: &Site) -> bool {
    let size = of.figures.size_min;
    let same = facts.sites.iter().filter(|site| site.function == of.function);
    same.chain([of]).all(|site| (site.figures.size_min, site.figures.size_max) == (size, size))
}

/// Returns the live bytes at the end, summed over all growing sites of the function that owns a
/// site.
pub fn growing_bytes(facts: &Facts, of: &Site) -> u64 {
    let same = |site: &&Site| site.is_growing && site.owner.function == of.owner.function;
    let others = facts.sites.iter().filter(same);
    let sum: i64 = others.map(|site| site.figures.live_bytes).sum();
    sum.max(of.figures.live_bytes).max(0) as u64
}

/// Returns whether a candidate saves time but needs so much memory that the user must choose.
pub fn is_a_trade(of: &Candidate) -> bool {
    let (before, after) = of.peak_bytes;
    after as f64 > MEMORY_TRADE * before as f64 && more_bytes(of) > MEMORY_NOISE
}

/// Returns how many more bytes a candidate needs at its peak.
pub fn more_bytes(of: &Candidate) -> u64 {
    of.peak_bytes.1.saturating_sub(of.peak_bytes.0)
}

/// Returns whether a candidate needs so much memory that its saving of time hardly counts.
pub fn is_too_large(of: &Candidate) -> bool {
    let (before, after) = of.peak_bytes;
    let room = if of.kind == Kind::Strategy { MEMORY_NOISE } else { MEMORY_SMALL };
    after as f64 > MEMORY_RATIO_MAX * before as f64 + room as f64
}

/// Returns the share of the resident memory that is free memory held by the malloc (fragmented or
/// retained), averaged over time. `None` if this share is unknown or is only a few bytes.
pub fn held_share(facts: &Facts) -> Option<f64> {
    let summary = &facts.memory.summary;
    let parts = &summary.mean.parts;
    let held = parts.fragmented.saturating_add(parts.kept);
    let all = parts.resident.saturating_sub(parts.recorder).max(1);
    let counts = summary.moments > 0 && held >= MEMORY_BYTES_MIN as i64;
    counts.then(|| held as f64 / all as f64)
}
