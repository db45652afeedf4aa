//! `assay compare`: shows which targets are faster or slower than a base, how certain that is, and
//! why. It reads only run directories.

mod ci;
mod factors;
mod judged;
mod printed;

use analysis::compare::{BaseGroup, Compared, groups_by_base};
use analysis::figures::Figures;
use inquiry::compare::{
    CompareRequest, Explained, Prepared, Sides, explained, open, options, prepare, sources,
};
use record::Run;
use report::{Across, ComparedRun, Comparison};

use self::factors::print_factors;
use self::judged::judge;
use self::printed::{Printed, formatted, joined};
use crate::cli::{CompareArgs, METRIC_LIST};
use crate::exit::Exit;
use crate::output::{print, print_note, style};

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
    // Variants take the place of targets, unless other factors are asked for as well.
    let has_factors = !args.by.is_empty() && !matches!(prepared.sides, Sides::Variants(_));
    if has_factors {
        factors::check(args)?;
        return print_factors(args.format, &request, &sources, prepared);
    }

    let Prepared { shown, figures, notes, sides } = prepared;
    let across = across(args, &request, &sources, &shown, &figures);
    let mut groups = groups_by_base(shown, figures);

    let ComparedGroups { comparisons, mut printed, markdown } =
        compare_groups(args, &request, &sources, &notes, &mut groups);
    printed.extend(across);
    print(&joined(printed)?)?;

    let judged = judge(args, &runs, &sides, &groups, &comparisons);

    let run = &runs.recorded[0].run;
    let path = run.plan.path.as_deref().unwrap_or("assay");
    let plan = ci::Plan { name: &run.name, path };
    ci::write(args, plan, &judged.judgements, &markdown)?;

    Ok(judged.exit)
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
        let Explained { compared, effects, findings } =
            explained(request, run, figures, notes.to_vec());
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
