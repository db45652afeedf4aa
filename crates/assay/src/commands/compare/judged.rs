//! The judgments of `--gate` and `--require`, and the exit code.

use analysis::compare::{BaseGroup, Compared};
use inquiry::compare::{Judged, Runs, Sides, gate, lines_of, requirements};
use report::{Judgement, JudgementOutcome};

use crate::cli::CompareArgs;
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::eprint_line;

/// The judgments of all groups.
pub(super) struct JudgedGroups {
    pub(super) judgements: Vec<Judgement>,
    /// The exit code that says most.
    pub(super) exit: Exit,
}

/// Judges the comparisons of all groups as the arguments ask, and prints the results to stderr.
pub(super) fn judge(
    args: &CompareArgs,
    runs: &Runs,
    sides: &Sides,
    groups: &[BaseGroup],
    comparisons: &[Compared],
) -> JudgedGroups {
    let mut exits = Vec::new();
    let mut judgements = Vec::new();
    for (group, compared) in groups.iter().zip(comparisons) {
        if !args.gate {
            // Without a gate, only damage to the records counts.
            exits.push(exit_of_reading(&group.figures, &runs.paths));
            continue;
        }

        let mut lines = lines_of(&runs.recorded, sides);
        lines.retain(|line| group.name.is_none() || group.has_target(&line.key.target));
        let figures = &group.figures;
        let steps = gate::judged_steps(&args.thresholds, compared);
        exits.push(print_judged(&gate::judge(&steps, runs, figures, &lines)));
        judgements.extend(gate::judgements(&steps, figures, &lines));
    }

    for compared in comparisons {
        exits.push(print_judged(&requirements::judge(&compared.requirements)));
        judgements.extend(requirements::judgements(&compared.requirements));
    }

    JudgedGroups { judgements, exit: most_telling(&exits) }
}

/// Prints a judgment to stderr, and returns its exit code.
fn print_judged(judged: &Judged) -> Exit {
    for line in &judged.lines {
        eprint_line!("{line}");
    }

    match judged.outcome {
        JudgementOutcome::Failed => Exit::Regressed,
        JudgementOutcome::Undecided => Exit::Invalid,
        JudgementOutcome::Passed => Exit::Ok,
    }
}

/// Returns the exit code that says most: what is shown to be worse outweighs what is not certain.
fn most_telling(exits: &[Exit]) -> Exit {
    let order = [Exit::Regressed, Exit::Invalid, Exit::Failed];
    order.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Ok)
}
