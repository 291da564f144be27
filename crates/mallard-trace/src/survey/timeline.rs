//! Computes the bytes in use over time.

/// The bytes in use over time. The run is divided into parts of equal length. For each part, the
/// timeline has the moment with the most bytes in use, so that the timeline includes the peak of
/// the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The moments in time order, in nanoseconds since the stream was opened. The last two moments
    /// may be equal.
    pub t_ns: Vec<i64>,
    /// The bytes in use at each moment.
    pub live: Vec<f64>,
}

/// Finds the maximum of the bytes in use in each part of a run.
#[derive(Default)]
pub(super) struct Highest {
    done: Timeline,
    /// The length of a part in nanoseconds.
    width: i64,
    /// The index of the last part, to which all later moments belong, too.
    last: i64,
    /// The index of the current part.
    part: i64,
    /// The bytes in use now.
    now: f64,
    /// The moment with the most bytes in use in the current part, and the number of bytes. `None`
    /// if the part has no value yet.
    highest: Option<(i64, f64)>,
}

impl Highest {
    /// Makes an empty timeline of a run from 0 to `end_ns`, with at most `moments` moments.
    pub fn new(end_ns: i64, moments: usize) -> Highest {
        // One moment is reserved for the end.
        let parts = (moments.max(2) - 1) as i64;
        Highest { width: end_ns / parts + 1, last: parts - 1, ..Highest::default() }
    }

    /// Finishes the parts that end before the next event, whose time is `t_ns`.
    #[inline]
    pub fn before(&mut self, t_ns: i64) {
        if t_ns / self.width > self.part && self.part < self.last && t_ns != i64::MAX {
            self.go_to((t_ns / self.width).min(self.last), t_ns);
        }
    }

    /// Finishes all parts before `part`. The next event is in `part`, at `t_ns`.
    #[cold]
    fn go_to(&mut self, part: i64, t_ns: i64) {
        while self.part < part {
            self.end_part();
            self.part += 1;
        }
        // From the begin of the part until the event, the value is that of the end of the previous
        // part.
        let begin = self.part * self.width;
        self.highest = (t_ns > begin).then_some((begin, self.now));
    }

    fn end_part(&mut self) {
        let (t_ns, live) = self.highest.take().unwrap_or((self.part * self.width, self.now));
        self.done.t_ns.push(t_ns);
        self.done.live.push(live);
    }

    /// Sets the bytes in use from the moment `t_ns` on.
    #[inline]
    pub fn note(&mut self, t_ns: i64, live: f64) {
        self.now = live;
        match &mut self.highest {
            Some((_, highest)) if live <= *highest => {}
            // The moments of a corrupt trace may be out of order.
            Some((at, highest)) => (*at, *highest) = (t_ns.max(*at), live),
            none => *none = Some((t_ns.max(self.part * self.width), live)),
        }
    }

    /// Ends the timeline at the last event. The last value is the value after that event.
    pub fn finish(mut self, last_ns: i64) -> Timeline {
        self.end_part();
        let (last_t, last) = (self.done.t_ns.last().copied(), self.done.live.last().copied());
        let end = last_t.map_or(last_ns, |last| last.max(last_ns));
        if last_t != Some(end) || last != Some(self.now) {
            self.done.t_ns.push(end);
            self.done.live.push(self.now);
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a timeline from a list of values.
    fn timeline(end_ns: i64, moments: usize, values: &[(i64, f64)]) -> Timeline {
        let mut highest = Highest::new(end_ns, moments);
        for &(t_ns, live) in values {
            highest.before(t_ns);
            highest.note(t_ns, live);
        }
        highest.finish(values.last().map_or(0, |value| value.0))
    }

    #[test]
    fn each_interval_of_the_timeline_has_its_highest_value() {
        let values = [(1, 5.0), (2, 9.0), (3, 4.0), (10, 6.0), (25, 1.0), (29, 2.0)];
        let Timeline { t_ns, live } = timeline(29, 4, &values);
        assert_eq!(t_ns, [2, 10, 20, 29]);
        assert_eq!(live, [9.0, 6.0, 6.0, 2.0]);
    }

    #[test]
    fn a_timeline_interval_without_events_repeats_the_previous_value() {
        let Timeline { t_ns, live } = timeline(99, 11, &[(5, 1.0), (95, 3.0)]);
        assert_eq!(t_ns, [5, 10, 20, 30, 40, 50, 60, 70, 80, 95]);
        assert_eq!(live, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0]);
    }

    #[test]
    fn times_after_the_end_in_the_manifest_belong_to_the_last_timeline_interval() {
        let Timeline { t_ns, live } = timeline(1, 3, &[(0, 1.0), (1000, 7.0), (2000, 5.0)]);
        assert_eq!((t_ns, live), (vec![0, 1000, 2000], vec![1.0, 7.0, 5.0]));
        assert_eq!(timeline(0, 800, &[(0, 1.0)]).live, [1.0]);
        assert_eq!(timeline(0, 800, &[]).live, [0.0]);
        assert_eq!(timeline(0, 800, &[(0, 1.0), (0, 0.0)]).live, [1.0, 0.0]);
    }
}
