//! `assay show`: prints the tables of a run from its directory.

mod between;

use std::borrow::Cow;

use analysis::figures::Figures;
use inquiry::reading::{engine_statuses, figures, keep_steps};
use record::{Run, RunDir};
use report::{TableStyle, json_text};
use runner::failure::UsageError;
use runner::similar::{ListedNames, did_you_mean};

use self::between::show_between;
use crate::cli::{Format, ShowArgs};
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::{print, style};

/// The table with the engine's own text about its state.
const ENGINE_STATUS: &str = "engine-status";

/// Prints the tables of a run.
pub fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let directory = RunDir::open(&args.run)?;
    let style = TableStyle {
        all_settings: args.settings,
        each_repeat: args.each,
        markdown: args.format == Format::Markdown,
        ..style()
    };
    if let Some(pair) = &args.between {
        return show_between(&directory, pair, args.format, style);
    }

    let run = directory.read_run()?;
    // The series of seconds are kept, unlike in a comparison: some tables show them.
    let (all_figures, _) = figures(std::slice::from_ref(&directory), |_| ())?;
    let mut figures = Cow::Borrowed(&all_figures);
    if !args.steps.is_empty() {
        keep_steps(figures.to_mut(), &args.steps)?;
    }

    let has_names = !args.tables.is_empty();
    let text = match args.format {
        Format::Json | Format::Csv if has_names => {
            return Err(UsageError::new(
                "`--table` needs `--format table` or `--format markdown`",
                Some("remove `--table`: JSON and CSV always contain all figures".into()),
            )
            .into());
        }
        Format::Table | Format::Markdown if has_names => {
            named_tables(&directory, &run, &figures, &all_figures, args, style)?
        }
        // Verdicts rest on all steps, whichever are shown.
        Format::Table if args.summary => {
            report::tables_summary(&run, &all_figures, &args.steps, style)
        }
        Format::Table if args.all || args.settings || !args.steps.is_empty() => {
            report::tables_of_steps(&run, &all_figures, &args.steps, style)
        }
        Format::Table => report::tables_overview(&run, &figures, style),
        Format::Json => json_text(&report::run_json(&run, &figures))?,
        Format::Csv => report::csv(&run, &figures),
        Format::Markdown => report::tables_of_steps(&run, &all_figures, &args.steps, style),
    };

    print(&text)?;
    Ok(exit_of_reading(&all_figures, &[directory.path()]))
}

/// Formats the tables with the names of the arguments. `figures` has only the chosen steps.
fn named_tables(
    directory: &RunDir,
    run: &Run,
    figures: &Figures,
    all_figures: &Figures,
    args: &ShowArgs,
    style: TableStyle,
) -> anyhow::Result<String> {
    let mut names = args.tables.clone();
    names.retain(|name| name != ENGINE_STATUS);

    let mut text = String::new();
    if names.len() < args.tables.len() {
        let texts = engine_statuses(directory, run, &args.steps)?;
        if texts.is_empty() {
            let what = "no selected step has an engine status";
            let help = "only MySQL, MariaDB, RocksDB and Speedb report one; check the names given with `--step`";
            return Err(UsageError::new(what, Some(help.into())).into());
        }
        text = report::verbatim(&texts, style);
    }

    if !names.is_empty() {
        match report::tables_named(run, figures, &names, style) {
            Ok(tables) => text += &tables,
            Err((unknown, known)) => {
                let of_other_steps = no_table_of_steps(run, all_figures, &args.steps, &unknown);
                return Err(of_other_steps.unwrap_or_else(|| no_table(&unknown, known)).into());
            }
        }
    }

    Ok(text)
}

/// Returns the error that a run has no table with this name.
fn no_table(unknown: &str, mut known: Vec<String>) -> UsageError {
    known.push(ENGINE_STATUS.into());
    let help = did_you_mean(&mut known, unknown, "tables", ListedNames::All);
    UsageError::new(format!("the run has no table `{unknown}`"), help)
}

/// Returns the error that the chosen steps lack a table that other steps of the run have; `None` if
/// no step has it.
fn no_table_of_steps(
    run: &Run,
    all_figures: &Figures,
    chosen: &[String],
    name: &str,
) -> Option<UsageError> {
    if chosen.is_empty() {
        return None;
    }

    let steps = report::steps_with_table(run, all_figures, name);
    if steps.is_empty() {
        return None;
    }

    let message = match chosen {
        [step] => format!("step `{step}` has no table `{name}`"),
        _ => format!("the chosen steps have no table `{name}`"),
    };
    let help = format!("`{name}` is a table of the steps `{}`", steps.join("`, `"));
    Some(UsageError::new(message, Some(help)))
}
