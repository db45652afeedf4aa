//! Remarks of a comparison on itself, as values: computing decides what is true, and only the
//! [`Display`](fmt::Display) of a value puts it in words.

use std::fmt;

use record::Status;
use words::{Metric, counted};

use super::concerned::SomeComparisons;
use super::family::FamilyParts;
use super::initial_tree::TreeDifference;
use super::shown::ShownChanges;
use crate::order::distinct;

/// The recommended minimum of repeats: with fewer, bursts of noise look like changes
/// (`docs/statistics.md`).
pub(super) const REPEATS_ADVISED: usize = 5;

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
    /// The repeat has too few turns to say what is typical.
    FewTurns,
    /// The repeat did nothing in a fifth of its turns, so that no turn has a typical CPU time.
    IdleTurns,
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
            Self::FewTurns => format!(
                "{} too few turns to say what is typical; longer steps have more",
                repeats.form("it has", "they have")
            ),
            Self::IdleTurns => format!(
                "{} did nothing in a fifth of all turns or more, so no turn has a typical CPU time",
                repeats.form("it", "they")
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

/// The note on targets with a single repeat.
const SINGLE_RUN: &str = "a single run has no interval, so a difference may be noise: the seconds of a run are not independent repeats";

/// The note on repeats that were added until enough was known.
const OPEN_ENDED: &str = "repeats were added while earlier ones could be seen: intervals hold at any time, and are \
    wider than those of a number of repeats that was chosen in advance";

/// The note on repeats that were added until the time was up.
const TIME_UP: &str = "repeats were added until the time was up: intervals are a little wider than those of a number of \
    repeats that was chosen in advance, because the looks before had a part of the error rate";

/// The note on small changes between two builds.
const LAYOUT: &str = "two builds of one source can differ by 2% in speed, because their code lies elsewhere in memory: \
    a change that small need not be one of the source";

/// The note on a drift that the order of repeats cannot show.
const HIDDEN_DRIFT: &str = "each run or invocation has only one repeat, so whatever the machine does in each of them \
    again, such as slowing down from the start, counts as a change";

/// The note on a design whose targets have one repeat each.
const SINGLE_REPEAT_OF_DESIGN: &str = "each target was measured once, so intervals assume that most factors have no \
    effect; with two repeats or more they rest on the noise of repeats";

/// A remark on all comparisons together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Note {
    /// No result of the base is valid.
    NoBase { base: String },
    /// Some comparison has a single repeat, and therefore no interval.
    SingleRun,
    /// Some base and target did not take turns; `None` if no comparison did.
    NotInTurns { has_several_machines: bool, comparisons: Option<SomeComparisons> },
    /// Some comparisons have fewer repeats than [`REPEATS_ADVISED`], from `fewest` to `most`; `None`
    /// if each has.
    FewRepeats { fewest: u32, most: u32, comparisons: Option<SomeComparisons> },
    /// Repeats were added while earlier ones could be seen.
    OpenEnded,
    /// Repeats were added until the time was up.
    TimeUp,
    /// Changes between two builds are so small that the layout of code may make them.
    Layout,
    /// The order of some pairs hides a drift: see [`super::drift::is_hidden`].
    HiddenDrift,
    /// The changes that a family shows, at the level of each of its comparisons.
    Family {
        family: String,
        comparison_count: usize,
        shown: ShownChanges,
        /// The lowest and the highest level at which a part of the family was decided.
        level_min: f64,
        level_max: f64,
        /// The parts that were decided at levels of their own.
        parts: FamilyParts,
    },
    /// The combinations of a factor that differ from the mean of all.
    Interactions { family: String, comparison_count: usize, shown_count: usize },
    /// The interactions of a design that are shown.
    DesignInteractions { family: String, comparison_count: usize, shown_count: usize },
    /// The targets of a design were measured once.
    SingleRepeatOfDesign,
    /// Cells used databases that other cells had loaded; those of a target in all of its repeats, or
    /// another one in each.
    SharedLoads { cell_count: usize, of: usize, are_repeats_alike: bool },
    /// Cells had copies of databases that were kept after a measured step.
    KeptAfter(KeptAfter),
    /// A target opened databases that another had loaded. Times are the shortest and the longest.
    Upgrade { target: String, loader: String, upgrade_s: Option<[f64; 2]>, open_s: [f64; 2] },
}

/// Cells that had copies of databases for the steps after one, at which a run had kept them.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptAfter {
    pub(super) cell_count: usize,
    pub(super) of: usize,
    pub(super) step: String,
    /// The run.
    pub(super) made_by: String,
}

impl fmt::Display for KeptAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cell_count, of, step, made_by } = self;
        write!(
            f,
            "for the steps after {step}, {cell_count} of {of} cells have copies of databases that run {made_by} kept then: \
             intervals don't say how other such databases differ"
        )
    }
}

/// Returns what intervals say if cells shared loads.
fn what_intervals_hold_for(are_repeats_alike: bool) -> &'static str {
    if are_repeats_alike {
        "intervals hold for these databases, not for how they differ from load to load"
    } else {
        "the targets of a repeat share its load"
    }
}

/// Returns what looks like a change of the target if base and target did not take turns.
fn changes_of_others(has_several_machines: bool) -> &'static str {
    if has_several_machines {
        "changes of the machine, and differences between machines, look"
    } else {
        "changes of the machine look"
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Too little was measured, or in the wrong order.
            Self::NoBase { base } => write!(
                f,
                "no result of the base {base} is valid, so there is nothing to compare with"
            ),
            Self::SingleRun => f.write_str(SINGLE_RUN),
            Self::NotInTurns { has_several_machines, comparisons } => write!(
                f,
                "where base and target did not take turns, or too few of their repeats are pairs{}, {} like changes of the \
                 target",
                in_parentheses(comparisons.as_ref()),
                changes_of_others(*has_several_machines)
            ),
            Self::FewRepeats { fewest, most, comparisons } => write!(
                f,
                "with {} repeats{}, a few bursts of noise can look like a change: use at least {REPEATS_ADVISED}",
                range_text(*fewest, *most),
                in_parentheses(comparisons.as_ref())
            ),
            Self::HiddenDrift => f.write_str(HIDDEN_DRIFT),
            Self::Layout => f.write_str(LAYOUT),

            // How sure the verdicts are.
            Self::OpenEnded => f.write_str(OPEN_ENDED),
            Self::TimeUp => f.write_str(TIME_UP),
            Self::Family { family, comparison_count, shown, level_min, level_max, parts } => {
                write!(
                    f,
                    "{} of {family}: {shown}; the confidence of each interval is {}",
                    counted(*comparison_count, "comparison"),
                    confidence(*level_min, *level_max, *parts),
                )
            }

            // Where the databases came from.
            Self::SharedLoads { cell_count, of, are_repeats_alike } => write!(
                f,
                "{cell_count} of {of} cells began with a copy of a database that another cell had loaded, and did not load: {}",
                what_intervals_hold_for(*are_repeats_alike)
            ),
            Self::KeptAfter(kept) => write!(f, "{kept}"),
            Self::Upgrade { target, loader, upgrade_s, open_s } => {
                write!(f, "{target} opened the database that {loader} had loaded: ")?;
                if let Some([shortest, longest]) = upgrade_s {
                    write!(f, "the upgrade took {shortest:.1} to {longest:.1} s, and ")?;
                }
                write!(f, "the start took {:.1} to {:.1} s", open_s[0], open_s[1])
            }

            // Effects of factors, and their interactions.
            Self::SingleRepeatOfDesign => f.write_str(SINGLE_REPEAT_OF_DESIGN),
            Self::DesignInteractions { family, comparison_count, shown_count } => write!(
                f,
                "interactions of factors on {family}: {shown_count} of {comparison_count} are shown"
            ),
            Self::Interactions { family, comparison_count, shown_count } => write!(
                f,
                "{family}: a combination differs from the mean of all in {shown_count} of {}",
                counted(*comparison_count, "comparison")
            ),
        }
    }
}

/// Formats the confidence of intervals that were decided at these levels.
fn confidence(level_min: f64, level_max: f64, parts: FamilyParts) -> String {
    let high = percent(1.0 - level_min);
    let low = percent(1.0 - level_max);
    if level_min < level_max {
        format!("{low}% to {high}%, {}", parts.depends_on())
    } else {
        format!("{low}%")
    }
}

/// Formats the smallest and the largest of some numbers: `2 to 4`.
fn range_text(fewest: u32, most: u32) -> String {
    if fewest < most { format!("{fewest} to {most}") } else { fewest.to_string() }
}

/// Returns the comparisons that a note concerns, if these are not all: ` (throughput in scan)`.
fn in_parentheses(comparisons: Option<&SomeComparisons>) -> String {
    comparisons.map_or(String::new(), |some| format!(" ({some})"))
}

/// Formats a share in percent with three significant digits, but with all of its nines: `5`,
/// `0.152`, `99.848`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let small = percent.min(100.0 - percent);
    let decimals =
        if small > 0.0 { (2.0 - small.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };

    let text = format!("{percent:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
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
                Absence::FewTurns,
                " is left out: it has too few turns to say what is typical; longer steps have more",
                " are left out: they have too few turns to say what is typical; longer steps have more",
            ),
            (
                Absence::IdleTurns,
                " is left out: it did nothing in a fifth of all turns or more, so no turn has a typical CPU time",
                " are left out: they did nothing in a fifth of all turns or more, so no turn has a typical CPU time",
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
    fn percentages_keep_their_digits() {
        let levels = [0.05, 0.05 / 33.0, 1.0 - 0.05 / 33.0, 0.95, 0.03, 1.0].map(percent);
        assert_eq!(levels, ["5", "0.152", "99.848", "95", "3", "100"]);
    }
}
