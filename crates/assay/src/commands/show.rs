//! `assay show`: the tables of a run, from its directory alone.

use analysis::RunSettings;
use record::RunDir;
use report::TableStyle;

use crate::cli::{Format, ShowArgs};
use crate::outcome::{Exit, UsageError};
use crate::output::{json_text, print, style};
use crate::runs::{exit_of_reading, figures, keep_steps};

/// Prints the tables of a run.
pub fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let directory = RunDir::open(&args.run)?;
    let style = TableStyle {
        all_settings: args.settings,
        ..style()
    };
    if let Some(pair) = &args.between {
        return show_between(&directory, pair, args.format, style);
    }
    let run = directory.read_run()?;
    let (mut figures, _) = figures(std::slice::from_ref(&directory), |_| ())?;
    if !args.steps.is_empty() {
        keep_steps(&mut figures, &args.steps)?;
    }
    let named = |style| {
        report::tables_named(&run, &figures, &args.tables, style).map_err(|(unknown, known)| {
            let known = format!("tables here: {}", known.join(", "));
            UsageError::new(format!("the run has no table `{unknown}`"), Some(known))
        })
    };
    let text = match args.format {
        Format::Json | Format::Csv if !args.tables.is_empty() => {
            return Err(UsageError::new(
                "`--table` is for tables that people read",
                Some("`--format json` and `--format csv` have all figures".into()),
            )
            .into());
        }
        Format::Table if !args.tables.is_empty() => named(Some(style))?,
        Format::Markdown if !args.tables.is_empty() => named(None)?,
        Format::Table if args.summary => report::tables_summary(&run, &figures, style),
        Format::Table => report::tables(&run, &figures, style),
        Format::Json => json_text(&analysis::json(&run, &figures))?,
        Format::Csv => report::csv(&run, &figures),
        Format::Markdown => report::tables_markdown(&run, &figures, args.settings),
    };
    print(&text)?;
    Ok(exit_of_reading(&figures))
}

/// Prints in which settings two targets of a run differ.
fn show_between(
    directory: &RunDir,
    pair: &[String],
    format: Format,
    style: TableStyle,
) -> anyhow::Result<Exit> {
    let settings = RunSettings::read(directory)?;
    let (a, b) = pair_of(pair, settings.targets())?;
    let settings = settings.between(a, b);
    let text = match format {
        Format::Table => report::differences(&settings, style),
        Format::Json => json_text(&analysis::settings_json(&settings))?,
        Format::Csv | Format::Markdown => {
            return Err(UsageError::new(
                "what differs between two targets is no table of steps",
                Some("use `--format table` or `--format json`".into()),
            )
            .into());
        }
    };
    print(&text)?;
    Ok(Exit::Ok)
}

/// The two targets that were named, if there are such.
pub fn pair_of<'a>(
    pair: &'a [String],
    targets: impl Iterator<Item = &'a str>,
) -> anyhow::Result<(&'a str, &'a str)> {
    let targets: Vec<&str> = targets.collect();
    let [a, b] = pair else {
        unreachable!("the command line has two names or none");
    };
    for name in [a, b] {
        if !targets.contains(&name.as_str()) {
            return Err(UsageError::new(
                format!("`{name}` is no target"),
                Some(format!("targets here: {}", targets.join(", "))),
            )
            .into());
        }
    }
    Ok((a, b))
}
