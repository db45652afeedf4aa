//! `assay show`: prints the tables of a run from its directory.

use analysis::RunSettings;
use record::RunDir;
use report::TableStyle;

use crate::cli::{Format, ShowArgs};
use crate::outcome::{Exit, UsageError, did_you_mean};
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
    let named_tables = |style| {
        report::tables_named(&run, &figures, &args.tables, style).map_err(|(unknown, mut known)| {
            let help = did_you_mean(&mut known, &unknown, "tables");
            UsageError::new(format!("the run has no table `{unknown}`"), help)
        })
    };
    let text = match args.format {
        Format::Json | Format::Csv if !args.tables.is_empty() => {
            return Err(UsageError::new(
                "`--table` needs `--format table` or `--format markdown`",
                Some("remove `--table`: JSON and CSV always contain all figures".into()),
            )
            .into());
        }
        Format::Table if !args.tables.is_empty() => named_tables(Some(style))?,
        Format::Markdown if !args.tables.is_empty() => named_tables(None)?,
        Format::Table if args.summary => report::tables_summary(&run, &figures, style),
        Format::Table => report::tables(&run, &figures, style),
        Format::Json => json_text(&analysis::json(&run, &figures))?,
        Format::Csv => report::csv(&run, &figures),
        Format::Markdown => report::tables_markdown(&run, &figures, args.settings),
    };
    print(&text)?;
    Ok(exit_of_reading(&figures))
}

/// Prints how the settings of two targets of a run differ.
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
                "`--between` needs `--format table` or `--format json`",
                Some("remove `--format`, or choose one of these".into()),
            )
            .into());
        }
    };
    print(&text)?;
    Ok(Exit::Ok)
}

/// Returns the two targets of `--between`, which must be among `targets`.
pub fn pair_of<'a>(
    pair: &'a [String],
    targets: impl Iterator<Item = &'a str>,
) -> anyhow::Result<(&'a str, &'a str)> {
    let mut targets: Vec<&str> = targets.collect();
    let [a, b] = pair else {
        unreachable!("the command line has two names or none");
    };
    for name in [a, b] {
        if !targets.contains(&name.as_str()) {
            let help = did_you_mean(&mut targets, name, "targets");
            return Err(UsageError::new(format!("unknown target `{name}`"), help).into());
        }
    }
    Ok((a, b))
}
