//! The remarks on one comparison, as values: computing decides what is true, and only the
//! [`Display`](fmt::Display) of a value puts it in words.

use std::fmt;

use record::Status;
use words::{Metric, counted};

use super::initial_tree::TreeDifference;
use crate::order::distinct;

/// The remark on repeats with too few turns.
const FEW_TURNS: &str =
    "repeats with too few turns to say what is typical are left out; longer steps have more turns";

/// The remark on repeats without a typical turn.
const IDLE_TURNS: &str = "repeats that did nothing in a fifth of all turns or more are left out, because no turn has a \
    typical CPU time";

/// A repeat of a target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RepeatName {
    /// The target, with its run where several are compared: `pg17.base, run 2`.
    pub target: String,
    pub number: u32,
}

/// A remark on one comparison: a repeat that was left out, or why a ratio, interval or verdict is
/// missing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reason {
    /// A repeat is absent from the comparison.
    Absent { repeat: RepeatName, why: Absence },
    /// Repeats are absent that have too few turns to say what is typical. Those of a short step are
    /// many, in each comparison others, so tables say it once and without their names.
    FewTurns,
    /// Repeats are absent that did nothing in a fifth of their turns, so that no turn has a typical CPU
    /// time. They have no names either.
    IdleTurns,
    /// In some repeat, either target did nothing in a fifth of its turns.
    NoTypicalTurn,
    /// The target does not have the step.
    NoStep { target: String },
    /// The target has the step, and the metric is not applicable to it.
    NotApplicable { target: String },
    /// All values of both targets are zero.
    AllZero,
    /// Some values are zero, or below.
    NotAboveZero,
    /// The target has one repeat that counts, and the other has several.
    OneRepeat { target: String },
    /// Base and target have no run in common, and at least one of them has only so many.
    OtherRuns { run_count: usize },
    /// The ratio differs between machines, so that each machine counts as one value.
    MachinesDiffer { machine_count: usize, repeat_count: usize },
    /// The repeats differ by less than the metric's resolution.
    TooCoarse { metric: String },
    /// Every repeat of one target is above every repeat of the other, and that is too little to
    /// show a change.
    Apart { above: String, below: String, repeat_count: usize },
    /// The threads of these targets cannot be told apart.
    WithoutThreads { targets: Vec<String> },
    /// The trees of the two targets differed when the step began.
    OtherTree(TreeDifference),
    /// A requirement has no ratio of value and bound.
    NoRatioToBound,
}

/// The reason for which a repeat is absent from a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Absence {
    /// The repeat's step is invalid for these reasons, or ended with this status if there are none.
    Invalid { status: Status, reasons: Vec<String> },
    /// A percentile needs more operations than the repeat has.
    TooFewOperations { metric: String, needed: u64 },
    /// The repeat's cell ended before the step. `None`: it was never started.
    StepMissing { status: Option<Status> },
    /// The other target has no repeat that ran next to this one.
    Unpaired,
    /// The same repeat of the other target was measured by another invocation.
    MeasuredApart { is_in_turns: bool },
}

/// Returns the sentences of some remarks. Those that differ only in the repeat share one: `pg17.base,
/// repeats 2 and 3 are left out: ...`.
pub(super) fn sentences(reasons: &[Reason]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut rest: Vec<&Reason> = reasons.iter().collect();
    while let Some(&first) = rest.first() {
        let (alike, others): (Vec<&Reason>, Vec<&Reason>) =
            rest.into_iter().partition(|reason| first.is_like(reason));
        rest = others;

        sentences.push(match first {
            Reason::Absent { repeat, why } => why.sentence(&RepeatNames::of(repeat, &alike)),
            _ => first.to_string(),
        });
    }
    sentences
}

/// The repeats of one target that a sentence is about.
struct RepeatNames<'r> {
    target: &'r str,
    numbers: Vec<u32>,
}

impl<'r> RepeatNames<'r> {
    fn one(repeat: &'r RepeatName) -> Self {
        Self { target: &repeat.target, numbers: vec![repeat.number] }
    }

    /// Returns the repeats of some remarks, all on the target of `first`.
    fn of(first: &'r RepeatName, remarks: &[&Reason]) -> Self {
        let mut numbers = Vec::new();
        for remark in remarks {
            if let Reason::Absent { repeat, .. } = remark {
                numbers.push(repeat.number);
            }
        }
        Self { target: &first.target, numbers: distinct(numbers) }
    }

    /// Returns the word that agrees with the number of repeats.
    fn form(&self, one: &'static str, several: &'static str) -> &'static str {
        if self.numbers.len() > 1 { several } else { one }
    }
}

impl fmt::Display for RepeatNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().map(u32::to_string).collect();
        let target = self.target;
        match numbers.as_slice() {
            [before @ .., last] if !before.is_empty() => {
                write!(f, "{target}, repeats {} and {last}", before.join(", "))
            }
            numbers => write!(f, "{target}, repeat {}", numbers.concat()),
        }
    }
}

impl Absence {
    /// Returns what there is to say about these repeats.
    fn sentence(&self, repeats: &RepeatNames<'_>) -> String {
        let why = match self {
            // A repeat without the step is not left out: there is nothing to leave out.
            Self::StepMissing { status: None } => {
                return format!("{repeats} {} not begun", repeats.form("has", "have"));
            }
            Self::StepMissing { status: Some(status) } => {
                return format!(
                    "{repeats} {} not have the step: {} {}",
                    repeats.form("does", "do"),
                    repeats.form("its cell", "their cells"),
                    end_of_cells(*status, repeats)
                );
            }

            Self::Invalid { status, reasons } if reasons.is_empty() => {
                ended(*status, repeats).to_owned()
            }
            Self::Invalid { reasons, .. } => reasons.join("; "),
            Self::TooFewOperations { metric, needed } => {
                format!("{metric} needs at least {needed} operations")
            }
            Self::Unpaired => {
                format!(
                    "the other target has no repeat that counts next to {}",
                    repeats.form("it", "them")
                )
            }
            Self::MeasuredApart { is_in_turns } => format!(
                "another invocation measured the other target's {}, so the two did not {}",
                repeats.form("repeat", "repeats"),
                if *is_in_turns { "take turns" } else { "run next to each other" }
            ),
        };

        format!("{repeats} {} left out: {why}", repeats.form("is", "are"))
    }
}

impl Reason {
    /// Returns whether another remark says the same, maybe of another repeat of the target.
    fn is_like(&self, other: &Self) -> bool {
        let (Self::Absent { repeat, why }, Self::Absent { repeat: other_repeat, why: other_why }) =
            (self, other)
        else {
            return self == other;
        };

        let names = RepeatNames::one(repeat);
        repeat.target == other_repeat.target && why.sentence(&names) == other_why.sentence(&names)
    }

    /// Returns whether the remark is that a repeat has not begun.
    pub(super) fn is_of_unbegun(&self) -> bool {
        matches!(self, Self::Absent { why: Absence::StepMissing { status: None }, .. })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { repeat, why } => f.write_str(&why.sentence(&RepeatNames::one(repeat))),
            Self::FewTurns => f.write_str(FEW_TURNS),
            Self::IdleTurns => f.write_str(IDLE_TURNS),

            // There is no figure, or no ratio of two.
            Self::NoStep { target } => write!(f, "{target} does not have the step"),
            Self::NotApplicable { target } => write!(f, "{target}: not applicable"),
            Self::NoTypicalTurn => f.write_str(
                "one of the two did nothing in a fifth of its turns or more, so no turn is typical",
            ),
            Self::AllZero => f.write_str("all repeats of both targets are zero"),
            Self::NotAboveZero => f.write_str("not above zero in every repeat: there is no ratio"),
            Self::NoRatioToBound => f.write_str(
                "a value or the bound is not above zero, so every repeat counts by itself",
            ),

            // The ratio has no interval, or a wide one.
            Self::OneRepeat { target } => write!(f, "{target} has one repeat that counts"),
            Self::OtherRuns { run_count } => write!(
                f,
                "base and target were measured by different runs, {run_count} of each: how much \
                 runs differ by themselves is not known, so there is no interval; measure both in \
                 one run, or three runs of each",
            ),
            Self::MachinesDiffer { machine_count, repeat_count } => write!(
                f,
                "the ratio differs between machines, so the interval rests on {machine_count} machines, not on {}",
                counted(*repeat_count, "repeat")
            ),

            // The figures say less than they seem to.
            Self::TooCoarse { metric } => f.write_str(too_coarse(metric)),
            Self::Apart { above, below, repeat_count } => {
                write!(f, "all {repeat_count} repeats of {above} are above all of {below}")
            }
            Self::WithoutThreads { targets } => write!(
                f,
                "the threads of {} cannot be told apart: this is the CPU of the clients and of the server's whole process, \
                 on both sides",
                targets.join(" and ")
            ),
            Self::OtherTree(difference) => difference.fmt(f),
        }
    }
}

/// Returns the end of the cells of repeats that lack the step.
fn end_of_cells(status: Status, repeats: &RepeatNames<'_>) -> &'static str {
    match status {
        Status::Complete => {
            repeats.form("has lost a part of its record", "have lost a part of their records")
        }
        Status::Failed | Status::Interrupted | Status::Incomplete => ended(status, repeats),
    }
}

/// Returns the end of steps, or of cells, that cannot be used.
fn ended(status: Status, repeats: &RepeatNames<'_>) -> &'static str {
    match status {
        Status::Failed => "failed",
        Status::Interrupted => repeats.form("was interrupted", "were interrupted"),
        Status::Incomplete => "did not finish",
        Status::Complete => repeats.form("is not valid", "are not valid"),
    }
}

/// Returns why more repeats of coarse figures don't help.
fn too_coarse(metric: &str) -> &'static str {
    if Metric::named(metric).is_some_and(Metric::is_operation_time) {
        "repeats differ by less than a bucket of the histogram, so more repeats would not help"
    } else {
        "repeats differ by less than the kernel's resolution of 10 ms: longer steps would tell more, and more repeats \
         would not"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_with_the_same_reason_share_a_sentence() {
        let absent = |number, why| {
            let repeat = RepeatName { target: "pg.a".into(), number };
            Reason::Absent { repeat, why }
        };
        let invalid = |number, reason: &str| {
            let (status, reasons) = (Status::Complete, vec![reason.into()]);
            absent(number, Absence::Invalid { status, reasons })
        };
        let missing = |number, status| absent(number, Absence::StepMissing { status });
        let reasons = [
            invalid(1, "rows are lost"),
            missing(4, None),
            invalid(2, "it ended early"),
            invalid(3, "rows are lost"),
            missing(5, None),
            Reason::AllZero,
            missing(6, Some(Status::Failed)),
        ];
        assert_eq!(
            sentences(&reasons),
            [
                "pg.a, repeats 1 and 3 are left out: rows are lost",
                "pg.a, repeats 4 and 5 have not begun",
                "pg.a, repeat 2 is left out: it ended early",
                "all repeats of both targets are zero",
                "pg.a, repeat 6 does not have the step: its cell failed",
            ]
        );
    }

    #[test]
    fn each_reason_agrees_with_the_number_of_its_repeats() {
        let missing = |status| Absence::StepMissing { status: Some(status) };
        let unusable = |status| Absence::Invalid { status, reasons: Vec::new() };

        let said = |why: &Absence, numbers: &[u32]| {
            let repeats = RepeatNames { target: "pg.a", numbers: numbers.to_vec() };
            let text = why.sentence(&repeats);
            text.strip_prefix(&repeats.to_string()).unwrap().to_owned()
        };
        let expected = [
            (
                missing(Status::Complete),
                " does not have the step: its cell has lost a part of its record",
                " do not have the step: their cells have lost a part of their records",
            ),
            (
                missing(Status::Interrupted),
                " does not have the step: its cell was interrupted",
                " do not have the step: their cells were interrupted",
            ),
            (
                unusable(Status::Complete),
                " is left out: is not valid",
                " are left out: are not valid",
            ),
            (
                Absence::Unpaired,
                " is left out: the other target has no repeat that counts next to it",
                " are left out: the other target has no repeat that counts next to them",
            ),
            (
                Absence::MeasuredApart { is_in_turns: true },
                " is left out: another invocation measured the other target's repeat, so the two did not take turns",
                " are left out: another invocation measured the other target's repeats, so the two did not take turns",
            ),
        ];
        for (why, one, several) in expected {
            assert_eq!(said(&why, &[1]), one);
            assert_eq!(said(&why, &[1, 2]), several);
        }
    }

    #[test]
    fn repeats_with_too_few_turns_share_a_sentence_whatever_their_target() {
        assert_eq!(
            sentences(&[Reason::FewTurns, Reason::IdleTurns, Reason::FewTurns]),
            [FEW_TURNS, IDLE_TURNS]
        );
    }
}
