//! The rules by which `mallard advise` recommends changes, as data. Each rule has conditions, a
//! strategy to measure, and the text of its card.
//!
//! `condition` decides whether a rule applies.

pub mod condition;

#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;

use super::facts::Facts;
use super::reason::Refusal;
use condition::Condition::{self, *};
use condition::Subject;
use mallard_trace::regions::Region;
use mallard_trace::replay::Strategy;
use serde::Serialize;

/// The minimum number of instances of a region for wink-out.
const INSTANCES_MIN: u64 = 30;
/// The minimum number of different inputs of a region for wink-out.
const INPUTS_MIN: u64 = 2;

/// What a card asks the reader to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// To give a part of the program an allocator that is destroyed when that part ends.
    Convert,
    /// To give a structure or a type of object a pool.
    Pool,
    /// To use another malloc.
    Switch,
    /// To set an environment variable.
    Set,
    /// To correct the program, because no allocator helps.
    Fix,
    /// To change nothing.
    Leave,
    /// To change nothing yet, because the measurements do not decide.
    Undecided,
}

impl Action {
    /// Returns the word for the action in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Action::Convert => "convert",
            Action::Pool => "pool",
            Action::Switch => "switch",
            Action::Set => "set",
            Action::Fix => "fix",
            Action::Leave => "leave",
            Action::Undecided => "undecided",
        }
    }

    /// Returns whether the action changes the program or how it is started.
    pub fn is_change(self) -> bool {
        !matches!(self, Action::Leave | Action::Undecided)
    }

    /// Returns a rank for the work that the change needs. Among changes that save about the same,
    /// the change with the least work comes first.
    pub fn effort(self) -> u8 {
        match self {
            Action::Leave | Action::Undecided => 0,
            Action::Set => 1,
            Action::Switch => 2,
            Action::Fix | Action::Pool | Action::Convert => 3,
        }
    }
}

/// The kind of subject that a rule is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Each region.
    Region,
    /// Each site.
    Site,
    /// Each measured malloc.
    Malloc,
    /// Each measured setting of the malloc.
    Variable,
    /// The whole program.
    Program,
}

/// A rule, which recommends a kind of change under some conditions.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name in JSON and SARIF, which never changes.
    pub id: &'static str,
    /// The kind of change that the card recommends.
    pub action: Action,
    /// The parts of a program to which the rule is applied.
    pub about: About,
    /// The number of the strategy that is measured, such as 4 for AS4. 0 for a rule without a
    /// strategy.
    pub strategy: usize,
    /// The conditions that must all hold.
    pub when: &'static [Condition],
    /// The title of the card. `{function}`, `{what}` and `{allocator}` are replaced.
    pub title: &'static str,
    /// Why the change may help, in a sentence.
    pub why: &'static str,
    /// The risks of the change.
    pub hazards: &'static [&'static str],
    /// The further risks in C++ and Rust, which have destructors and containers.
    pub hazards_of_objects: &'static [&'static str],
}

const OBSERVED: &str =
    "that no block outlives its call was observed, not proven: another input may keep \
                        one longer";
const GROWS: &str =
    "each container stores a pointer to its allocator, so objects that hold strings or \
                     vectors grow by 8 bytes for each of these; a replay does not show that cost";
const NO_FREES: &str =
    "functions that free blocks do not run: code that closes a file, unlocks or counts must not be in them";
const DESTRUCTORS: &str = "destructors do not run, either";
const GUARDED: &str = "for tests, mallard::guarded around the allocator stops the program at the \
                       first access to freed memory";
const ONE_THREAD: &str = "the allocator is for one thread at a time: all blocks of a call must be \
                          freed by its thread";
const LIFETIME: &str =
    "the allocator must be created before everything that uses it, and destroyed \
                        afterwards";
const OTHER_MACHINES: &str = "another machine or input may show another saving: repeat the \
                              measurement where the program runs";

const POOL_LIVES: &str = "the measured pool lives as long as the program; a new pool for each \
                          call saves much less";

/// All rules, in the order of the documentation.
pub const RULES: [Rule; 12] = [
    Rule {
        id: "wink-out-arena",
        action: Action::Convert,
        about: About::Region,
        strategy: 4,
        when: &[
            WholeRun,
            NoForeignFrees,
            NoEscapes,
            Instances(INSTANCES_MIN),
            Inputs(INPUTS_MIN),
            UtilisationFrom(0.25),
        ],
        title: "Give each call of {function} an arena, and drop its memory as a whole",
        why:
            "An arena allocates by moving a pointer, and one call returns all memory. No block is freed \
              individually.",
        hazards: &[OBSERVED, NO_FREES],
        hazards_of_objects: &[DESTRUCTORS, GUARDED, GROWS],
    },
    Rule {
        id: "arena",
        action: Action::Convert,
        about: About::Region,
        strategy: 3,
        when: &[WholeRun, NoForeignFrees, NoEscapes, Instances(2), UtilisationFrom(0.25)],
        title: "Give each call of {function} an arena",
        why: "An arena allocates by moving a pointer, and its free does nothing. The code that frees blocks \
              does not change.",
        hazards: &[OBSERVED, LIFETIME],
        hazards_of_objects: &[GUARDED, GROWS],
    },
    Rule {
        id: "wink-out-multipool-over-arena",
        action: Action::Convert,
        about: About::Region,
        strategy: 12,
        when: &[
            WholeRun,
            NoForeignFrees,
            NoEscapes,
            Instances(INSTANCES_MIN),
            Inputs(INPUTS_MIN),
            UtilisationBelow(0.9),
        ],
        title: "Give each call of {function} a multipool in an arena, and drop its memory as a whole",
        why:
            "The multipool reuses freed blocks while the call runs, and the arena returns all memory \
              when the call ends.",
        hazards: &[OBSERVED, NO_FREES],
        hazards_of_objects: &[DESTRUCTORS, GUARDED, GROWS],
    },
    Rule {
        id: "multipool-over-arena",
        action: Action::Convert,
        about: About::Region,
        strategy: 11,
        when: &[NoForeignFrees, EscapesUpTo(0.5), Instances(2), UtilisationBelow(0.9)],
        title: "Give each call of {function} a multipool in an arena",
        why: "The multipool reuses freed blocks while the call runs, and the arena keeps them together. \
              The code that frees blocks does not change.",
        hazards: &[
            "blocks that outlive the call must be copied to the heap before the call ends",
            LIFETIME,
            ONE_THREAD,
        ],
        hazards_of_objects: &[GROWS],
    },
    Rule {
        id: "multipool",
        action: Action::Pool,
        about: About::Site,
        strategy: 7,
        when: &[
            NoForeignFrees,
            Blocks(1000),
            FreedFrom(0.5),
            UtilisationBelow(0.5),
            SeveralSizesOrContainer,
            VariationUpTo(5.0),
        ],
        title: "Give {what} a multipool that outlives its calls",
        why: "Blocks of few sizes come and go: a multipool reuses them in a few instructions, \
              and keeps them together.",
        hazards: &[POOL_LIVES, LIFETIME, ONE_THREAD],
        hazards_of_objects: &[GROWS],
    },
    Rule {
        id: "object-pool",
        action: Action::Pool,
        about: About::Site,
        strategy: 7,
        when: &[
            NoForeignFrees,
            Blocks(1000),
            FreedFrom(0.5),
            UtilisationBelow(0.5),
            OneSize,
            NoContainer,
        ],
        title: "Give the objects that {function} makes an object pool that outlives its calls",
        why: "All blocks have one size and come and go: a pool of that size reuses them in a \
              few instructions.",
        hazards: &[POOL_LIVES, "the pool must outlive its objects", ONE_THREAD],
        hazards_of_objects: &[],
    },
    Rule {
        id: "malloc-switch",
        action: Action::Switch,
        about: About::Malloc,
        strategy: 0,
        when: &[GainsTime, MemoryStays],
        title: "Start the program with {allocator}",
        why: "The whole program gets another malloc. Its code does not change.",
        hazards: &[OTHER_MACHINES],
        hazards_of_objects: &[],
    },
    Rule {
        id: "glibc-variables",
        action: Action::Set,
        about: About::Variable,
        strategy: 0,
        when: &[GainsTime, MemoryStays],
        title: "Set {allocator}",
        why: "The program keeps its malloc, with another setting. No change is smaller.",
        hazards: &[OTHER_MACHINES],
        hazards_of_objects: &[],
    },
    Rule {
        id: "fragmented-after-peak",
        action: Action::Switch,
        about: About::Malloc,
        strategy: 0,
        when: &[HeldFrom(0.25), GainsMemory, TimeStays],
        title: "Start the program with {allocator}, to save memory",
        why: "The malloc keeps memory that the program does not use any more.",
        hazards: &[OTHER_MACHINES],
        hazards_of_objects: &[],
    },
    Rule {
        id: "leak",
        action: Action::Fix,
        about: About::Site,
        strategy: 0,
        when: &[ToTheEnd, Grows, NeverFreedFrom(0.9), LiveFrom(0.1)],
        title: "Look at what {function} allocates: its memory only grows",
        why: "No allocator helps, because the blocks stay in use.",
        hazards: &["a cache, or data that is needed until the end, looks the same in a trace"],
        hazards_of_objects: &[],
    },
    Rule {
        id: "leave-it",
        action: Action::Leave,
        about: About::Program,
        strategy: 0,
        when: &[],
        title: "Leave the allocator as it is",
        why: "No change that was considered saves enough to be worth the work.",
        hazards: &[],
        hazards_of_objects: &[],
    },
    Rule {
        id: "undecided",
        action: Action::Undecided,
        about: About::Program,
        strategy: 0,
        when: &[],
        title: "Not decided",
        why: "The measurements do not show whether a change would help.",
        hazards: &[],
        hazards_of_objects: &[],
    },
];

/// Finds the rule with an ID.
pub fn rule(id: &str) -> Option<&'static Rule> {
    static ALL: [Rule; 12] = RULES;
    ALL.iter().find(|rule| rule.id == id)
}

/// Returns whether a rule with wink-out applies to a region.
pub fn may_wink_out(facts: &Facts, region: &Region) -> bool {
    let subject = Subject::Region(region);
    let is_for_regions = |rule: &&Rule| rule.about == About::Region && rule.winks_out();
    RULES.iter().filter(is_for_regions).any(|rule| rule.applies(facts, &subject))
}

impl Rule {
    /// Returns whether the rule applies to a subject.
    pub fn applies(&self, facts: &Facts, subject: &Subject) -> bool {
        self.when.iter().all(|condition| condition.holds(facts, subject))
    }

    /// Returns why safety conditions fail, in the order of the conditions. Returns nothing if all
    /// safety conditions hold.
    pub fn failures<'a>(
        &'a self,
        facts: &'a Facts,
        subject: &'a Subject,
    ) -> impl Iterator<Item = Refusal> + 'a {
        let failed = self.when.iter().filter(|condition| !condition.holds(facts, subject));
        failed.filter_map(|condition| condition.failure(facts, subject))
    }

    /// Returns sentences for the conditions, with the figures of the subject.
    pub fn reasons(&self, facts: &Facts, subject: &Subject) -> Vec<String> {
        self.when.iter().filter_map(|condition| condition.sentence(facts, subject)).collect()
    }

    /// Returns the strategy that is measured. `None` for a rule without a strategy.
    pub fn strategy(&self) -> Option<Strategy> {
        Strategy::new(self.strategy)
    }

    /// Returns whether the strategy skips destructors.
    pub fn winks_out(&self) -> bool {
        self.strategy().is_some_and(Strategy::winks_out)
    }
}
