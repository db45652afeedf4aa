//! The remarks on all comparisons together, as values, like those on a single one in `reason`.

use std::fmt;

use words::counted;

use super::concerned::SomeComparisons;
use super::family::FamilyParts;
use super::shown::ShownChanges;

/// The recommended minimum of repeats: with fewer, bursts of noise look like changes
/// (`docs/statistics.md`).
pub(super) const REPEATS_ADVISED: usize = 5;

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
        /// The number of them that tables have.
        table_count: usize,
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
            Self::Family {
                family,
                comparison_count,
                table_count,
                shown,
                level_min,
                level_max,
                parts,
            } => {
                write!(f, "{} of {family}", counted(*comparison_count, "comparison"))?;
                if table_count < comparison_count {
                    write!(f, ", of which tables have {table_count}")?;
                }
                write!(
                    f,
                    ": {shown}; the confidence of each interval is {}",
                    confidence(*level_min, *level_max, *parts)
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
    fn percentages_keep_their_digits() {
        let levels = [0.05, 0.05 / 33.0, 1.0 - 0.05 / 33.0, 0.95, 0.03, 1.0].map(percent);
        assert_eq!(levels, ["5", "0.152", "99.848", "95", "3", "100"]);
    }
}
