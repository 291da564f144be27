//! Computes what a plan saves in an unchanged program compared with the plan's control, and what
//! the plan's decisions cost.

use crate::output::units::{percent, percents};
use crate::rounds::measured::Measured;
use crate::rounds::subject::Figures;
use crate::verdict::paired::{Differences, Interval};
use serde_json::{json, Value};
use std::path::PathBuf;

/// The name of the plan in tables.
pub const PLAN: &str = "plan";
/// The name of the plan's control in tables. The control makes the same decisions as the plan, and
/// allocates all blocks from malloc.
pub const CONTROL: &str = "plan control";

/// A plan among the candidates of a comparison.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The file of the plan.
    pub file: PathBuf,
    /// The index of the candidate that the plan is.
    pub plan: usize,
    /// The index of the candidate that is the plan's control.
    pub control: usize,
}

/// What a plan does, as shares of the CPU time of the program without it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// What the plan saves compared with its control.
    pub saving: Interval,
    /// What the control costs compared with the program, which is the cost of deciding.
    pub deciding: Interval,
}

impl Planned {
    /// Computes the effect of the plan. `None` if the plan or its control was not measured.
    pub fn effect(&self, measured: &Measured) -> Option<Effect> {
        let cpu = |figures: &Figures| figures.cpu_ns;
        let ran = |of: &&Measured| {
            [self.plan, self.control].iter().all(|index| of.alive().contains(index))
        };
        // Returns the difference in CPU time between two candidates, as a share of the base.
        let share = |from: Option<usize>, to: usize| {
            let fresh = measured.fresh.as_deref().filter(ran);
            let pairs = [Some(measured), fresh].into_iter().flatten().flat_map(|of| {
                let [base, from, to] = [0, from.map_or(0, |from| from + 2), to + 2]
                    .map(|column| of.columns[column].iter().map(cpu));
                let pair =
                    |(base, (from, to)): (f64, (f64, f64))| (base, (base - (from - to)).max(0.0));
                base.zip(from.zip(to)).map(pair).collect::<Vec<_>>()
            });
            Some(Differences::of(pairs)?.interval())
        };
        if !ran(&measured) {
            return None;
        }
        let saving = share(Some(self.control), self.plan)?;
        let cost = share(None, self.control)?;
        let deciding = Interval { saving: -cost.saving, low: -cost.high, high: -cost.low };
        Some(Effect { saving, deciding })
    }

    /// Returns lines about the plan for the text output.
    pub fn lines(&self, measured: &Measured) -> String {
        let Some(Effect { saving, deciding }) = self.effect(measured) else {
            return format!(
                "  {PLAN}: its saving is unknown, because the plan or its control was not measured\n"
            );
        };
        format!(
            "  {PLAN}: saves {} of the CPU time against its control ({}), which makes the same decisions\n  \
             {CONTROL}: deciding where blocks come from costs {} of the CPU time ({})\n",
            percent(saving.saving),
            percents(saving.low, saving.high),
            percent(deciding.saving),
            percents(deciding.low, deciding.high)
        )
    }

    /// Returns the plan as JSON.
    pub fn json(&self, measured: &Measured) -> Value {
        let effect = self.effect(measured);
        json!({
            "file": self.file,
            "saving": effect.map(|effect| effect.saving),
            "deciding": effect.map(|effect| effect.deciding),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_compared_with_its_control_and_the_control_with_the_program() {
        let mut measured = Measured::nothing(3);
        for noise in [0.0, 1.0, -1.0, 0.5, -0.5, 0.2, -0.2] {
            for (column, cpu) in [100.0, 100.0, 90.0, 65.0, 105.0].into_iter().enumerate() {
                let figures = Figures { cpu_ns: cpu + noise, ..Figures::default() };
                measured.columns[column].push(figures);
            }
        }
        let planned = Planned { file: "a.plan".into(), plan: 1, control: 2 };
        let effect = planned.effect(&measured).unwrap();
        assert!((effect.saving.saving - 0.4).abs() < 0.01, "{effect:?}");
        assert!((effect.deciding.saving - 0.05).abs() < 0.01, "{effect:?}");
        assert!(effect.deciding.low <= 0.05 && effect.deciding.high >= 0.05);
        // Without runs of the control, confirmation runs show nothing about the plan.
        let mut fresh = Measured::nothing_of(&[1], 3);
        let figures = |column| Figures {
            cpu_ns: [100.0, 100.0, 0.0, 10.0, 0.0][column],
            ..Figures::default()
        };
        (0..5).for_each(|column| fresh.columns[column] = vec![figures(column); 50]);
        measured.fresh = Some(Box::new(fresh));
        assert_eq!(planned.effect(&measured), Some(effect));
        measured.broken[2] = Some("it crashed".to_string());
        assert_eq!(planned.effect(&measured), None);
    }
}
