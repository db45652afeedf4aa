//! `assay compare`: shows which targets are faster or slower than a base, how sure that is, and
//! why. It reads only run directories.

mod ci;
mod printed;

use analysis::compare::{BaseGroup, Compared, groups_by_base};
use analysis::figures::Figures;
use inquiry::compare::factors::{FactorAnswer, by_factor};
use inquiry::compare::{
    CompareRequest, Judged, Prepared, compared_with, gate, lines_of, open, options, prepare,
    requirements, sources,
};
use record::Run;
use report::{Across, ComparedRun, Comparison, FactorEffects, JudgementOutcome, json_text};

use self::printed::{Printed, formatted, joined};
use crate::cli::{CompareArgs, Format, METRIC_LIST};
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::{eprint_line, print, print_note, style};

/// Compares the targets of some runs.
pub fn compare(args: &CompareArgs) -> anyhow::Result<Exit> {
    if args.metrics.iter().any(|name| name == METRIC_LIST) {
        print(&report::metric_list(style()))?;
        return Ok(Exit::Ok);
    }

    ci::check(args)?;
    let request = args.request();
    let (directories, runs) = open(&request)?;
    let prepared = prepare(&directories, &runs.recorded, &request, &print_note)?;
    let sources = sources(&runs);
    if !args.by.is_empty() {
        return print_factors(args.format, &request, &sources, prepared);
    }

    let Prepared { shown, figures, notes } = prepared;
    // With `--by-step`, targets are steps. The gate names them after the groups have taken `shown`.
    let shown_targets: Vec<String> = if args.by_step.is_empty() {
        Vec::new()
    } else {
        shown.targets.iter().map(|target| target.name.clone()).collect()
    };
    let across = across(args, &request, &sources, &shown, &figures);
    let mut groups = groups_by_base(shown, figures);

    let ComparedGroups { comparisons, mut printed, markdown } =
        compare_groups(args, &request, &sources, &notes, &mut groups);
    printed.extend(across);
    print(&joined(printed)?)?;

    let mut exits = Vec::new();
    let mut judgements = Vec::new();
    for (group, compared) in groups.iter().zip(&comparisons) {
        if !args.gate {
            // Without a gate, only damage to the records counts.
            exits.push(exit_of_reading(&group.figures));
            continue;
        }

        let mut lines = lines_of(&runs.recorded, args.by_run, &shown_targets);
        lines.retain(|line| group.name.is_none() || group.has_target(&line.key.target));
        let figures = &group.figures;
        let judged = gate::judge(&args.thresholds, &runs, figures, compared, &lines);
        exits.push(print_judged(&judged));
        judgements.extend(gate::judgements(&args.thresholds, figures, compared, &lines));
    }

    for compared in &comparisons {
        exits.push(print_judged(&requirements::judge(&compared.requirements)));
        judgements.extend(requirements::judgements(&compared.requirements));
    }

    let run = &runs.recorded[0].run;
    let path = run.plan.path.as_deref().unwrap_or("assay");
    let plan = ci::Plan { name: &run.name, path };
    ci::write(args, plan, &judgements, &markdown)?;

    Ok(most_telling(&exits))
}

/// Returns the table of all targets with the base of the first group, as the format shows it; `None`
/// if there is one group, or the format has no place for it.
fn across(
    args: &CompareArgs,
    request: &CompareRequest,
    runs: &[ComparedRun<'_>],
    shown: &Run,
    figures: &Figures,
) -> Option<Printed> {
    if shown.bases.is_empty() || args.why.is_some() {
        return None;
    }

    let across = Across::new(figures, options(request, &shown.base, figures));
    let comparison = Comparison { runs, ..across.comparison(shown, figures) };
    printed::across(args.format, &comparison)
}

/// The comparisons of all groups, and how they are shown.
struct ComparedGroups {
    comparisons: Vec<Compared>,
    printed: Vec<Printed>,
    /// All comparisons for a file of Markdown; empty if none is wanted.
    markdown: String,
}

/// Compares the targets of each group with its base.
fn compare_groups(
    args: &CompareArgs,
    request: &CompareRequest,
    sources: &[ComparedRun<'_>],
    notes: &[String],
    groups: &mut [BaseGroup],
) -> ComparedGroups {
    let mut all =
        ComparedGroups { comparisons: Vec::new(), printed: Vec::new(), markdown: String::new() };
    for BaseGroup { run, figures, .. } in groups {
        // Effects rest on all steps, of which `compared_with` leaves those to show.
        let options = options(request, &run.base, figures);
        let effects = report::effects_of_matrices(figures, &options);
        let compared = compared_with(request, run, figures, notes.to_vec());
        let findings = analysis::explain::explain(figures, &compared);

        let comparison = Comparison {
            run,
            runs: sources,
            figures,
            compared: &compared,
            effects: &effects,
            findings: &findings,
        };
        all.printed.push(match &args.why {
            Some(step) => Printed::Text(report::why(&comparison, step)),
            None => formatted(args.format, &comparison),
        });
        if args.markdown.is_some() {
            all.markdown += &report::compared_markdown(&comparison);
        }
        all.comparisons.push(compared);
    }

    all
}

/// Prints the effects of factors, or which there are.
fn print_factors(
    format: Format,
    request: &CompareRequest,
    runs: &[ComparedRun<'_>],
    prepared: Prepared,
) -> anyhow::Result<Exit> {
    let Prepared { shown, mut figures, notes } = prepared;
    let effects = match by_factor(request, &shown, &mut figures, notes)? {
        FactorAnswer::Known(factors) => {
            print(&report::factors(&factors, style()))?;
            return Ok(Exit::Ok);
        }
        FactorAnswer::Effects(effects) => effects,
    };

    let shown = FactorEffects { run: &shown, runs, figures: &figures, effects: &effects };
    print(&match format {
        Format::Table => report::effects(&shown, style()),
        Format::Markdown => report::effects_markdown(&shown),
        Format::Csv => report::effects_csv(&shown),
        Format::Json => json_text(&report::effects_json(&shown))?,
    })?;
    Ok(exit_of_reading(&figures))
}

/// Prints a judgement to stderr, and returns its exit code.
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
