//! `assay compare --by`: the effects of factors.

use inquiry::compare::factors::{FactorAnswer, by_factor};
use inquiry::compare::{CompareRequest, Prepared};
use report::{ComparedRun, FactorEffects, json_text};
use runner::failure::UsageError;

use crate::cli::{CompareArgs, Format};
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::{print, style};

/// Refuses arguments that need comparisons of targets: effects are not judged.
///
/// # Errors
/// The first such argument.
pub(super) fn check(args: &CompareArgs) -> Result<(), UsageError> {
    let needs_targets = [
        ("--gate", args.gate),
        ("--require", !args.requirements.is_empty()),
        ("--junit", args.junit.is_some()),
        ("--markdown", args.markdown.is_some()),
        ("--annotations", args.annotations.is_some()),
        ("--why", args.why.is_some()),
    ];
    let Some((name, _)) = needs_targets.into_iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };

    let message = format!("`--by` shows the effects of factors, which `{name}` does not know");
    let help = format!("remove `--by` to compare targets, or remove `{name}`");
    Err(UsageError::new(message, Some(help)))
}

/// Prints the effects of factors, or which there are.
pub(super) fn print_factors(
    format: Format,
    request: &CompareRequest,
    runs: &[ComparedRun<'_>],
    prepared: Prepared,
) -> anyhow::Result<Exit> {
    let Prepared { shown, mut figures, notes, .. } = prepared;
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
    let directories: Vec<&str> = runs.iter().map(|source| source.name.as_str()).collect();
    Ok(exit_of_reading(&figures, &directories))
}
