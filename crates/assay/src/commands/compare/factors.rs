//! `assay compare --by`: the effects of factors.

use analysis::{Factor, Factors, Figures};
use record::Run;
use report::{ComparedRun, FactorEffects};

use super::options;
use crate::cli::{CompareArgs, Format};
use crate::outcome::{Exit, UsageError, most_alike_first};
use crate::output::{json_text, print, style};
use crate::runs::exit_of_reading;

/// Asks for the list of factors.
const LIST: &str = "?";
/// Asks for the effects of all.
const ALL: &str = "all";

/// Combinations that a refusal names; more are counted.
const NAMED_MAX: usize = 40;

/// Prints the effects of the factors that are asked for, or which there are.
pub fn by_factor(
    args: &CompareArgs,
    run: &Run,
    runs: &[ComparedRun<'_>],
    figures: &Figures,
    notes: Vec<String>,
) -> anyhow::Result<Exit> {
    let given = args.bases.iter().map(|base| base.target.clone());
    let bases: Vec<String> = given.chain([run.base.clone()]).collect();
    let found = Factors::find(&figures.settings.profiles, &bases);
    if args.by.iter().any(|name| name == LIST) {
        print(&report::factors(&found, style()))?;
        return Ok(Exit::Ok);
    }
    let options = options(args, &run.base, figures);
    let mut effects = analysis::effects(figures, chosen(found, &args.by)?, &options);
    effects.notes.extend(notes);
    let shown = FactorEffects {
        run,
        runs,
        figures,
        effects: &effects,
    };
    let text = match args.format {
        Format::Table => report::effects(&shown, style()),
        Format::Markdown => report::effects_markdown(&shown),
        Format::Csv => report::effects_csv(&shown),
        Format::Json => json_text(&report::effects_json(&shown))?,
    };
    print(&text)?;
    Ok(exit_of_reading(figures))
}

/// Returns the factors that are asked for, each of which has all of its combinations.
fn chosen(found: Factors, wanted: &[String]) -> Result<Vec<Factor>, UsageError> {
    if let Some(name) = wanted.iter().find(|name| !is_known(&found, name)) {
        return Err(unknown(&found, name));
    }
    if let Some([first, second]) = found.alike.first() {
        return Err(UsageError::new(
            format!(
                "`{first}` and `{second}` differ in no setting that a config declares, in no factor that the plan names, and \
                 not in their build"
            ),
            Some(
                "name what they differ in by `factors` in a plan, or compare them without `--by`"
                    .into(),
            ),
        ));
    }
    let is_wanted = |factor: &Factor| {
        let mut wanted = wanted.iter();
        wanted.any(|name| name == ALL || factor.is_named(name))
    };
    let factors: Vec<Factor> = found.factors.into_iter().filter(is_wanted).collect();
    if let Some(factor) = factors.iter().find(|factor| !factor.is_full()) {
        return Err(incomplete(factor));
    }
    Ok(factors)
}

fn is_known(found: &Factors, name: &str) -> bool {
    let mut factors = found.factors.iter();
    factors.any(|factor| name == ALL || factor.is_named(name))
}

fn unknown(found: &Factors, name: &str) -> UsageError {
    if found.factors.is_empty() {
        let message = "these targets have no factors: nothing that a config declares, nor the build, differs between targets \
                       of one engine";
        return UsageError::new(
            message,
            Some("`assay show RUN --between A B` says what does".into()),
        );
    }
    let mut determined = found.determined.iter();
    if let Some((_, by)) = determined.find(|(determined, _)| determined == name) {
        return UsageError::new(
            format!(
                "`{name}` has no effect of its own: its value follows from {}",
                by.join(", ")
            ),
            Some(format!("factors: {}", listed(found, name))),
        );
    }
    UsageError::new(
        format!("unknown factor `{name}`"),
        Some(format!(
            "factors, the nearest first: {}",
            listed(found, name)
        )),
    )
}

/// The factors with their levels, those first whose names are the most like `name`.
fn listed(found: &Factors, name: &str) -> String {
    let mut factors: Vec<&Factor> = found.factors.iter().collect();
    most_alike_first(&mut factors, name, |factor| &factor.name);
    let told = |factor: &&Factor| format!("{} ({})", factor.name, factor.levels.join(", "));
    factors.iter().map(told).collect::<Vec<_>>().join("; ")
}

fn incomplete(factor: &Factor) -> UsageError {
    let missing = factor.missing();
    let mut told: Vec<String> = missing.iter().take(NAMED_MAX).cloned().collect();
    let more = missing.len() - told.len();
    told.extend((more > 0).then(|| format!("and {more} more")));
    UsageError::new(
        format!(
            "the effect of `{}` takes a target for each of its values in each combination of the other factors, and \
             {} missing:\n  {}",
            factor.name,
            match missing.len() {
                1 => "one is".to_owned(),
                count => format!("{count} are"),
            },
            told.join("\n  ")
        ),
        Some("measure these as well, or compare the targets without `--by`".into()),
    )
}
