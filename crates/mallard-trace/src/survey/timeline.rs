//! The bytes in use over time.

/// The bytes in use over time. The run is cut into equal parts. Each part has the moment at which the
/// most bytes were in use, so the peak of the program is one of the moments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The moments, in nanoseconds since the stream was opened, in their order. The last one may be
    /// equal to the one before it.
    pub t_ns: Vec<i64>,
    /// The bytes in use at each moment.
    pub live: Vec<f64>,
}

/// Finds the highest value in each part of a run.
pub(super) struct Highest {
    done: Timeline,
    /// Nanoseconds of a part.
    width: i64,
    /// The last part. All moments after its begin belong to it.
    last: i64,
    /// The part that is not done yet.
    part: i64,
    /// The value now.
    now: f64,
    /// The highest value of the part, with its moment. `None`: the part has no value of its own yet.
    highest: Option<(i64, f64)>,
}

impl Highest {
    /// Makes an empty timeline of a run from 0 to `end_ns`, with at most so many moments.
    pub fn new(end_ns: i64, moments: usize) -> Highest {
        // One more moment is that of the end.
        let parts = (moments.max(2) - 1) as i64;
        Highest {
            done: Timeline::default(),
            width: end_ns / parts + 1,
            last: parts - 1,
            part: 0,
            now: 0.0,
            highest: None,
        }
    }

    /// An event at this moment follows.
    #[inline]
    pub fn before(&mut self, t_ns: i64) {
        if t_ns / self.width > self.part && self.part < self.last && t_ns != i64::MAX {
            self.go_to((t_ns / self.width).min(self.last), t_ns);
        }
    }

    /// Ends the parts before `part`, in which the next event is at `t_ns`.
    #[cold]
    fn go_to(&mut self, part: i64, t_ns: i64) {
        while self.part < part {
            self.end_part();
            self.part += 1;
        }
        // Until the event, the part has the value that the part before it ended with.
        let begin = self.part * self.width;
        self.highest = (t_ns > begin).then_some((begin, self.now));
    }

    fn end_part(&mut self) {
        let (t_ns, live) = self.highest.take().unwrap_or((self.part * self.width, self.now));
        self.done.t_ns.push(t_ns);
        self.done.live.push(live);
    }

    /// The value is `live` from this moment on.
    #[inline]
    pub fn note(&mut self, t_ns: i64, live: f64) {
        self.now = live;
        match &mut self.highest {
            Some((_, highest)) if live <= *highest => {}
            // A damaged trace may have moments that are not in order.
            Some((at, highest)) => (*at, *highest) = (t_ns.max(*at), live),
            none => *none = Some((t_ns.max(self.part * self.width), live)),
        }
    }

    /// Ends the timeline at the moment of the last event. Its last value is the one after that event.
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

    /// Makes the timeline of some values.
    fn timeline(end_ns: i64, moments: usize, values: &[(i64, f64)]) -> Timeline {
        let mut highest = Highest::new(end_ns, moments);
        for &(t_ns, live) in values {
            highest.before(t_ns);
            highest.note(t_ns, live);
        }
        highest.finish(values.last().map_or(0, |value| value.0))
    }

    #[test]
    fn each_part_of_the_run_has_its_highest_value() {
        let values = [(1, 5.0), (2, 9.0), (3, 4.0), (10, 6.0), (25, 1.0), (29, 2.0)];
        let Timeline { t_ns, live } = timeline(29, 4, &values);
        assert_eq!(t_ns, [2, 10, 20, 29]);
        assert_eq!(live, [9.0, 6.0, 6.0, 2.0]);
    }

    #[test]
    fn a_part_without_events_keeps_the_value_before_it() {
        let Timeline { t_ns, live } = timeline(99, 11, &[(5, 1.0), (95, 3.0)]);
        assert_eq!(t_ns, [5, 10, 20, 30, 40, 50, 60, 70, 80, 95]);
        assert_eq!(live, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0]);
    }

    #[test]
    fn moments_beyond_the_end_that_the_manifest_names_belong_to_the_last_part() {
        let Timeline { t_ns, live } = timeline(1, 3, &[(0, 1.0), (1000, 7.0), (2000, 5.0)]);
        assert_eq!((t_ns, live), (vec![0, 1000, 2000], vec![1.0, 7.0, 5.0]));
        assert_eq!(timeline(0, 800, &[(0, 1.0)]).live, [1.0]);
        assert_eq!(timeline(0, 800, &[]).live, [0.0]);
        assert_eq!(timeline(0, 800, &[(0, 1.0), (0, 0.0)]).live, [1.0, 0.0]);
    }
}
