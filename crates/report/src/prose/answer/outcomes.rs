//! The outcomes of several targets: which are faster, slower, equal or too noisy to say, and by how
//! much.

use analysis::compare::Interval;
use analysis::explain::{Change, ChangeOfAll, TargetAnswer};

use super::{AnswerWriter, IS, Verb, WAS};
use crate::prose::numbers::{factor_within, list_up_to};

/// The number of targets of an outcome that are named.
const TARGETS_NAMED: usize = 3;

impl AnswerWriter<'_> {
    /// Says of each outcome which of some targets have it, those with the largest change first: `b.x
    /// and c.x are faster in some steps (up to 91x)`, `d.x is too noisy to say`.
    pub(super) fn outcomes(&self, targets: &[&TargetAnswer], steps: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for outcome in TargetOutcome::ALL {
            let mut with_it = targets.to_vec();
            with_it.retain(|target| TargetOutcome::of(target) == outcome);
            if with_it.is_empty() {
                continue;
            }

            with_it.sort_by(|a, b| largest_size(b).total_cmp(&largest_size(a)));
            let verb = outcome.verb().of(with_it.len());
            let what = self.what(outcome, &with_it, steps);
            texts.push(format!("{} {verb}{what}", self.who(&with_it)));
        }
        texts
    }

    /// Names targets, or says that they are all.
    fn who(&self, targets: &[&TargetAnswer]) -> String {
        let count = targets.len();
        if count < self.answer.targets.len() {
            let names: Vec<&str> = targets.iter().map(|target| target.target.as_str()).collect();
            return list_up_to(&names, TARGETS_NAMED);
        }
        if count == 2 { "both".to_owned() } else { format!("all {count}") }
    }

    /// Returns what follows the verb about targets with an outcome in this number of steps.
    fn what(&self, outcome: TargetOutcome, targets: &[&TargetAnswer], steps: usize) -> String {
        let equal = self.equal();
        let noun = self.noun();
        let in_some = if steps == 1 { String::new() } else { format!(" in some {noun}s") };

        let all = || targets.iter().copied();
        let gains = size_text(all().flat_map(|target| &target.faster).map(Ratio::of));
        let losses = size_text(all().flat_map(|target| &target.slower).map(Ratio::of));
        let means =
            size_text(all().filter_map(|target| target.together.as_ref()).map(Ratio::of_all));

        match outcome {
            TargetOutcome::Faster => format!(" faster{in_some}{gains}"),
            TargetOutcome::Slower => format!(" slower{in_some}{losses}"),
            TargetOutcome::Both => format!(" faster{in_some}{gains} and slower in others{losses}"),
            TargetOutcome::FasterTogether => format!(" faster over all {noun}s together{means}"),
            TargetOutcome::SlowerTogether => format!(" slower over all {noun}s together{means}"),
            TargetOutcome::Equal => equal,
            TargetOutcome::PartlyEqual => format!("{equal}{in_some}"),
            TargetOutcome::TooNoisy => " too noisy to say".to_owned(),
            TargetOutcome::PartlyTooNoisy => format!("{equal}{in_some} and too noisy in others"),
            TargetOutcome::Single => " measured once".to_owned(),
            TargetOutcome::NotCompared => " not compared".to_owned(),
        }
    }
}

/// A ratio that is shown to differ from 1.
#[derive(Clone, Copy)]
struct Ratio {
    value: f64,
    interval: Option<Interval>,
}

impl Ratio {
    fn of(change: &Change) -> Self {
        Self { value: change.ratio, interval: change.interval }
    }

    fn of_all(all: &ChangeOfAll) -> Self {
        Self { value: all.ratio, interval: Some(all.interval) }
    }

    /// Returns the distance from no change.
    fn size(self) -> f64 {
        self.value.ln().abs()
    }
}

/// Returns the size of the largest of some changes: ` (1.25x)` of a single one, ` (up to 91x)` of
/// several; empty without any.
fn size_text(ratios: impl Iterator<Item = Ratio>) -> String {
    let ratios: Vec<Ratio> = ratios.collect();
    let Some(largest) = ratios.iter().max_by(|a, b| a.size().total_cmp(&b.size())) else {
        return String::new();
    };
    let up_to = if ratios.len() > 1 { "up to " } else { "" };
    format!(" ({up_to}{})", factor_within(largest.value, largest.interval))
}

/// Returns the size of the largest change of a target, or of all its steps together; 0 if none is
/// shown.
fn largest_size(target: &TargetAnswer) -> f64 {
    let of_step = target.largest().map(Change::size);
    let of_all = target.together.as_ref().map(|all| Ratio::of_all(all).size());
    of_step.or(of_all).unwrap_or(0.0)
}

/// The outcome of all comparisons of a target together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetOutcome {
    Faster,
    Slower,
    Both,
    /// No step shows a change, and all of them together do.
    FasterTogether,
    SlowerTogether,
    Equal,
    /// Equal in some steps; the others were measured once, or not compared.
    PartlyEqual,
    TooNoisy,
    PartlyTooNoisy,
    Single,
    NotCompared,
}

impl TargetOutcome {
    /// In the order in which a sentence tells them.
    const ALL: [Self; 11] = [
        Self::Faster,
        Self::Slower,
        Self::Both,
        Self::FasterTogether,
        Self::SlowerTogether,
        Self::Equal,
        Self::PartlyEqual,
        Self::TooNoisy,
        Self::PartlyTooNoisy,
        Self::Single,
        Self::NotCompared,
    ];

    fn of(target: &TargetAnswer) -> Self {
        // A change in any step outweighs what the other steps don't show.
        if !target.faster.is_empty() && !target.slower.is_empty() {
            return Self::Both;
        }
        if !target.faster.is_empty() {
            return Self::Faster;
        }
        if !target.slower.is_empty() {
            return Self::Slower;
        }

        if let Some(all) = &target.together {
            return if all.ratio < 1.0 { Self::SlowerTogether } else { Self::FasterTogether };
        }

        match (target.equal, target.too_noisy) {
            (0, 0) if target.single.is_empty() => Self::NotCompared,
            (0, 0) => Self::Single,
            (equal, 0) if equal < target.comparison_count() => Self::PartlyEqual,
            (_, 0) => Self::Equal,
            (0, _) => Self::TooNoisy,
            _ => Self::PartlyTooNoisy,
        }
    }

    fn verb(self) -> Verb {
        match self {
            Self::Faster
            | Self::Slower
            | Self::Both
            | Self::FasterTogether
            | Self::SlowerTogether
            | Self::Equal
            | Self::PartlyEqual
            | Self::TooNoisy
            | Self::PartlyTooNoisy
            | Self::NotCompared => IS,
            Self::Single => WAS,
        }
    }
}
