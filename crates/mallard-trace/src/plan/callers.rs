//! Finds the callers of malloc whose return address alone determines the rule. For all other
//! callers, finds the number of frames that distinguishes call stacks of different rules.

use super::format::{Answer, Caller, Choice, Place, PlanStack, FRAMES_MAX};
use super::places::PlacedStack;
use std::collections::BTreeMap;

/// A recorded call stack, and the allocator that the plan chooses for its blocks.
pub(super) struct Chosen {
    pub stack: PlacedStack,
    pub choice: Choice,
    /// Number of blocks that the call stack has allocated.
    pub blocks: i64,
}

/// The callers and call stacks of a plan.
#[derive(Default)]
pub(super) struct Callers {
    pub callers: Vec<Caller>,
    pub stacks: Vec<PlanStack>,
    /// The number of blocks for which the plan makes another choice than the rules. Their call
    /// stacks have the same first 64 frames as call stacks of that other choice.
    pub mixed: i64,
    /// Number of blocks whose call stacks are not in the plan, because the addresses of their
    /// frames are unknown.
    pub unplaced: i64,
}

impl Callers {
    pub fn of(all: Vec<Chosen>) -> Callers {
        let mut found = Callers::default();
        let mut by_caller: BTreeMap<Place, Vec<Chosen>> = BTreeMap::new();
        for chosen in all {
            match chosen.stack.frames.first() {
                Some(&caller) => by_caller.entry(caller).or_default().push(chosen),
                None => found.unplaced += chosen.blocks,
            }
        }
        for (place, of_caller) in by_caller {
            let first = of_caller[0].choice;
            if of_caller.iter().all(|chosen| chosen.choice == first) {
                found.callers.push(Caller { place, answer: Answer::Same(first) });
            } else {
                found.add(place, of_caller);
            }
        }
        found
    }

    /// Adds a caller with call stacks of different choices.
    fn add(&mut self, place: Place, mut all: Vec<Chosen>) {
        all.sort_by(|a, b| a.stack.frames.cmp(&b.stack.frames));
        let frames = frames_needed(&all);
        let mut groups: BTreeMap<&[Place], BTreeMap<Choice, i64>> = BTreeMap::new();
        for Chosen { stack, choice, blocks } in &all {
            let known = stack.frames.len().min(frames);
            if known < frames && !stack.is_whole {
                self.unplaced += blocks;
                continue;
            }
            *groups.entry(&stack.frames[..known]).or_default().entry(*choice).or_default() +=
                blocks;
        }
        let mut stacks = Vec::new();
        for (frames, choices) in groups {
            let most = choices.iter().max_by_key(|(_, blocks)| **blocks);
            let Some((&choice, &blocks)) = most else { continue };
            self.mixed += choices.values().sum::<i64>() - blocks;
            stacks.push(PlanStack { frames: frames.to_vec(), choice });
        }
        let first = stacks.first().map(|stack| stack.choice);
        let answer = match first {
            // If even 64 frames do not distinguish the call stacks, the plan has one choice for the
            // caller.
            Some(first) if stacks.iter().all(|stack| stack.choice == first) => Answer::Same(first),
            _ => {
                self.stacks.extend(stacks);
                Answer::ByStack(frames as u32)
            }
        };
        self.callers.push(Caller { place, answer });
    }
}

/// Returns the smallest number of frames, from 2 to 64, that distinguishes call stacks with
/// different choices. The call stacks are sorted.
fn frames_needed(sorted: &[Chosen]) -> usize {
    // In a sorted list, the longest shared prefix is always that of two neighbours.
    let shared = |pair: &[Chosen]| {
        let [a, b] = [&pair[0], &pair[1]].map(|chosen| chosen.stack.frames.iter());
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let differing = sorted.windows(2).filter(|pair| pair[0].choice != pair[1].choice);
    differing.map(|pair| shared(pair) + 1).max().unwrap_or(2).clamp(2, FRAMES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(frames: &[u64], choice: Choice, blocks: i64) -> Chosen {
        let frames = frames.iter().map(|&address| Place { module: 0, address }).collect();
        Chosen { stack: PlacedStack { frames, is_whole: true }, choice, blocks }
    }

    /// The addresses of callers with their answers, and the addresses of frames of call stacks with
    /// their choices.
    type Shown = (Vec<(u64, Answer)>, Vec<(Vec<u64>, Choice)>);

    /// Returns the callers and call stacks of a plan.
    fn of(all: Vec<Chosen>) -> Shown {
        let found = Callers::of(all);
        let stack = |of: &PlanStack| (of.frames.iter().map(|f| f.address).collect(), of.choice);
        let callers = found.callers.iter().map(|of| (of.place.address, of.answer)).collect();
        (callers, found.stacks.iter().map(stack).collect())
    }

    const A: Choice = Choice::Rule(0);
    const B: Choice = Choice::Rule(1);

    #[test]
    fn a_caller_with_one_possible_allocator_needs_no_call_stacks_in_the_plan() {
        let all =
            vec![chosen(&[2, 5], A, 1), chosen(&[1, 5], Choice::Malloc, 1), chosen(&[2, 6], A, 1)];
        let callers = vec![(1, Answer::Same(Choice::Malloc)), (2, Answer::Same(A))];
        assert_eq!(of(all), (callers, vec![]));
    }

    #[test]
    fn a_plan_stores_the_fewest_frames_that_distinguish_its_call_stacks() {
        let all = vec![
            chosen(&[1, 2, 3, 9], A, 1),
            chosen(&[1, 2, 4, 9], B, 1),
            chosen(&[1, 2, 3, 8], A, 1),
            chosen(&[1, 5], Choice::Malloc, 1),
            chosen(&[1, 2], B, 1),
        ];
        let stacks = vec![
            (vec![1, 2], B),
            (vec![1, 2, 3], A),
            (vec![1, 2, 4], B),
            (vec![1, 5], Choice::Malloc),
        ];
        assert_eq!(of(all), (vec![(1, Answer::ByStack(3))], stacks));
    }

    #[test]
    fn among_indistinguishable_call_stacks_the_allocator_of_most_blocks_is_chosen() {
        let found =
            Callers::of(vec![chosen(&[1, 2], A, 3), chosen(&[1, 2], B, 5), chosen(&[1, 3], A, 1)]);
        assert_eq!(found.callers[0].answer, Answer::ByStack(3));
        assert_eq!(found.stacks[0].choice, B);
        assert_eq!(found.mixed, 3);
        let long = |last, choice| {
            let frames: Vec<u64> = (1..70).chain([last]).collect();
            chosen(&frames, choice, 1 + last as i64)
        };
        let found = Callers::of(vec![long(100, A), long(200, B)]);
        assert_eq!(found.callers[0].answer, Answer::Same(B));
        assert_eq!((found.stacks.len(), found.mixed), (0, 101));
    }

    #[test]
    fn a_call_stack_with_an_unknown_next_frame_is_omitted_from_a_plan() {
        let mut cut = chosen(&[1, 2], B, 7);
        cut.stack.is_whole = false;
        let found = Callers::of(vec![cut, chosen(&[1, 2, 3], A, 1), chosen(&[1, 2, 4], B, 1)]);
        assert_eq!(found.callers[0].answer, Answer::ByStack(3));
        assert_eq!((found.stacks.len(), found.unplaced), (2, 7));
    }
}
