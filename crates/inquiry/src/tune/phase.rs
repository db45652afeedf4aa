//! Measures a phase of a tuning: as a run of the plan with other targets, to which repeats are added
//! until all is decided.

use analysis::figures::{Figures, Looks};
use analysis::tune::{Contender, Levels, Phase, PhaseResult, ScreenedLevel, without};
use anyhow::Context as _;
use plan::{Designed, Plan};
use record::{Run, RunDir};
use runner::{PlanRequest, RepeatsRequest, RunOutcome, RunRequest};

use super::log::Question;
use crate::search::{Judged, Measurement, REPEATS_FIRST, repeat_count};

/// The fewest repeats of a screening: one has no error of its own.
const SCREENING_REPEATS_MIN: u32 = 2;

/// A phase to measure.
pub(super) struct Measuring<'a> {
    pub phase: &'a Phase,
    pub question: &'a Question,
    pub plan: &'a Plan,
    pub designed: &'a Designed,
}

impl Measurement for Measuring<'_> {
    type Result = PhaseResult;

    fn first(&self) -> anyhow::Result<RunRequest> {
        let mut sets = self.question.searched.sets.clone();
        sets.push(self.steps());

        let repeats = match self.phase {
            Phase::Screening => self.plan.repeats.max(SCREENING_REPEATS_MIN),
            Phase::Race(levels) | Phase::Verification(levels) => {
                // The plan's own design has all factors; a race has combinations of its own.
                sets.retain(|set| !set.starts_with("design."));
                sets.push("design.kind=\"listed\"".to_owned());
                sets.push(self.combinations(levels));
                REPEATS_FIRST
            }
        };

        let plan = Some(self.question.searched.plan.clone());
        Ok(RunRequest {
            plan: PlanRequest { plan, sets },
            repeats: Some(RepeatsRequest::Count(repeats)),
            ..RunRequest::default()
        })
    }

    fn only(&self) -> Vec<String> {
        Vec::new()
    }

    fn judge(&self, outcome: &RunOutcome) -> anyhow::Result<Judged<PhaseResult>> {
        let result = self.result(&outcome.directory, &outcome.run)?;
        let repeats = repeat_count(&outcome.run);
        Ok(if is_decided(&result, repeats) {
            Judged::Decided(result)
        } else {
            Judged::Open(result)
        })
    }
}

impl Measuring<'_> {
    /// Returns the change of the plan by which it ends with the last step that decides.
    fn steps(&self) -> String {
        let workload = &self.plan.variants[0].workload;
        let steps = workload.steps();
        let deciding = self.question.goal.steps();
        let last = steps.iter().rposition(|step| deciding.contains(&step.name));

        let kept = steps.iter().take(last.map_or(steps.len(), |last| last + 1));
        let names: Vec<&str> = kept.map(|step| step.name).collect();
        format!("workload.{}.steps=[\"{}\"]", workload.name(), names.join("\",\""))
    }

    /// Returns the change of the plan that lists the combinations of the phase.
    fn combinations(&self, levels: &Levels) -> String {
        let mut all = vec![levels.clone()];
        // Each level proves that it is needed by what its removal costs.
        if matches!(self.phase, Phase::Race(_)) {
            for factor in (0..levels.len()).filter(|factor| levels[*factor] > 0) {
                all.push(without(levels, factor));
            }
        }

        // The base is always a target.
        all.retain(|combination| combination.iter().any(|level| *level > 0));

        let tables: Vec<String> = all.iter().map(|levels| self.table(levels)).collect();
        format!("design.combinations=[{}]", tables.join(", "))
    }

    /// Formats a combination as a table: `{ wal_compression = "lz4" }`.
    fn table(&self, levels: &Levels) -> String {
        let mut entries = Vec::new();
        for (factor, level) in self.designed.factors.iter().zip(levels) {
            if *level > 0 {
                let value = plan::quoted(&factor.levels[*level]);
                entries.push(format!("{} = {value}", plan::key_part(&factor.name)));
            }
        }

        format!("{{ {} }}", entries.join(", "))
    }

    /// Returns what was measured so far.
    fn result(&self, directory: &RunDir, run: &Run) -> anyhow::Result<PhaseResult> {
        let mut figures: Figures = analysis::figures::figures(std::slice::from_ref(directory))?;

        let goal = &self.question.goal;
        let steps: Vec<String> = goal.steps().into_iter().map(str::to_owned).collect();
        figures.retain_steps(&steps);
        // A phase is judged after each repeat.
        figures.looks = Looks::AnyTime;

        let design = run.design.as_ref().context("the run has no design")?;
        let result = match self.phase {
            Phase::Screening => goal.screened(&figures).map(PhaseResult::Screened),
            Phase::Race(levels) => goal.raced(&figures, design, levels).map(PhaseResult::Raced),
            Phase::Verification(levels) => {
                goal.verified(&figures, design, levels).map(PhaseResult::Verified)
            }
        };
        result.context("the combinations were not measured: see the run's report")
    }
}

/// Returns whether more repeats than these would change nothing.
fn is_decided(result: &PhaseResult, repeats: u32) -> bool {
    match result {
        PhaseResult::Screened(levels) => {
            levels.iter().all(|level| level.is_decided() || is_given_up(level, repeats))
        }
        PhaseResult::Raced(race) => {
            race.worst_for_bound.is_some() || race.without.iter().all(Contender::is_decided)
        }
        PhaseResult::Verified(gain) => gain.is_verified(),
    }
}

/// Returns whether a level has so many repeats and still cannot be compared.
fn is_given_up(level: &ScreenedLevel, repeats: u32) -> bool {
    level.interval.is_none() && repeats >= REPEATS_FIRST
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::tune::RatioInterval;

    #[test]
    fn a_screening_goes_on_until_each_level_helps_or_a_gain_is_ruled_out() {
        let wide = RatioInterval { low: 0.47, high: 3.4 };
        let open = ScreenedLevel { ratio: 1.3, interval: Some(wide), ..ScreenedLevel::default() };
        let helps = ScreenedLevel { helps: true, ..open.clone() };
        let ruled_out = ScreenedLevel { is_ruled_out: true, ..open.clone() };
        let is_end = |levels: &[&ScreenedLevel], repeats| {
            let levels = levels.iter().map(|level| (*level).clone()).collect();
            is_decided(&PhaseResult::Screened(levels), repeats)
        };
        assert!(!is_end(&[&helps, &open], 2));
        assert!(!is_end(&[&helps, &open], 11));
        assert!(is_end(&[&helps, &ruled_out], 2));

        let without = ScreenedLevel { interval: None, ..open.clone() };
        assert!(!is_end(&[&without], 2));
        assert!(is_end(&[&without], 3), "nothing can be compared");
        assert!(!is_end(&[&without, &open], 3));
        assert!(!is_end(&[&without, &ruled_out], 2));
        assert!(is_end(&[&without, &ruled_out], 3), "the other level is decided");
    }
}
