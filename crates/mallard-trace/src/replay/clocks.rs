//! Vector clocks, which show the ops of other threads that are certainly done before the next op of
//! a thread.
//!
//! A clock is incomplete, because a thread stores positions only of the threads that it waited for
//! last. A missing position only causes an unnecessary wait.

/// The maximum number of other threads in a thread's clock.
const OTHERS_MAX: usize = 32;
/// The maximum number of positions that a clock has for each other thread.
const PAST_MAX: usize = 8;

/// The positions that one other thread has certainly reached.
struct Known {
    other: usize,
    /// Pairs of positions (own, theirs), the oldest first. Before this thread passes its position
    /// `own`, the other thread has certainly reached its position `theirs`. Both positions grow
    /// from pair to pair.
    past: Vec<(u64, u64)>,
}

/// The vector clocks of all threads.
#[derive(Default)]
pub(super) struct Clocks {
    /// The positions of other threads, for each thread. The thread that was waited for last is last
    /// in the list.
    threads: Vec<Vec<Known>>,
}

impl Clocks {
    /// Adds a thread, whose clock is empty.
    pub fn add_thread(&mut self) {
        self.threads.push(Vec::new());
    }

    /// Returns whether `other` has certainly reached `position` before the next op of `thread`.
    pub fn knows(&self, thread: usize, other: usize, position: u64) -> bool {
        let known = self.threads[thread].iter().rev().find(|known| known.other == other);
        known.and_then(|known| known.past.last()).is_some_and(|&(_, value)| value >= position)
    }

    /// Records that `thread`, at its position `at`, has waited until `other` has reached
    /// `position`. Everything that `other` had waited for before that position is then also done
    /// before the next op of `thread`.
    pub fn wait(&mut self, thread: usize, at: u64, other: usize, position: u64) {
        let of_other = self.threads[other].iter().filter(|known| known.other != thread);
        let at_position = |known: &Known| {
            let past = known.past.iter().rev().find(|&&(since, _)| since <= position)?;
            Some((known.other, past.1))
        };
        let learned: Vec<(usize, u64)> = of_other.filter_map(at_position).collect();
        for (third, value) in learned {
            self.learn(thread, at, third, value);
        }
        self.learn(thread, at, other, position);
    }

    fn learn(&mut self, thread: usize, at: u64, other: usize, value: u64) {
        let all = &mut self.threads[thread];
        let mut known = match all.iter().position(|known| known.other == other) {
            Some(index) => all.remove(index),
            None => {
                if all.len() == OTHERS_MAX {
                    all.remove(0);
                }
                Known { other, past: Vec::new() }
            }
        };
        if known.past.last().is_none_or(|&(_, last)| last < value) {
            if known.past.len() == PAST_MAX {
                known.past.remove(0);
            }
            known.past.push((at, value));
        }
        all.push(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(threads: usize) -> Clocks {
        let mut clocks = Clocks::default();
        (0..threads).for_each(|_| clocks.add_thread());
        clocks
    }

    #[test]
    fn a_vector_clock_contains_the_positions_that_its_thread_has_waited_for() {
        let mut clocks = clocks(2);
        assert!(!clocks.knows(0, 1, 1));
        clocks.wait(0, 5, 1, 7);
        assert!(clocks.knows(0, 1, 7) && clocks.knows(0, 1, 3));
        assert!(!clocks.knows(0, 1, 8) && !clocks.knows(1, 0, 1));
    }

    #[test]
    fn a_wait_also_transfers_what_the_other_thread_had_waited_for() {
        let mut clocks = clocks(3);
        clocks.wait(1, 10, 2, 100);
        clocks.wait(1, 20, 2, 200);
        clocks.wait(0, 1, 1, 9); // before thread 1 had waited
        assert!(!clocks.knows(0, 2, 1));
        clocks.wait(0, 2, 1, 15);
        assert!(clocks.knows(0, 2, 100) && !clocks.knows(0, 2, 101));
        clocks.wait(0, 3, 1, 20);
        assert!(clocks.knows(0, 2, 200));
    }

    #[test]
    fn a_discarded_position_counts_as_not_waited_for() {
        let mut clocks = clocks(OTHERS_MAX + 2);
        for other in 1..OTHERS_MAX + 2 {
            clocks.wait(0, other as u64, other, 1);
        }
        assert!(!clocks.knows(0, 1, 1) && clocks.knows(0, 2, 1));
        for position in 1..20 {
            clocks.wait(1, 10 * position, 2, position);
        }
        clocks.wait(0, 99, 1, 25);
        // Thread 1 stores only its last 8 waits for thread 2, which were at its positions 120 to
        // 190. So thread 0 does not learn that thread 1, at its position 20, waited until thread 2
        // had reached position 2.
        assert!(!clocks.knows(0, 2, 2));
    }
}
