//! The effects of factors: `assay compare --by`.

use analysis::{
    compare::{Effects, designed_effects},
    compat::VARIANT,
    figures::Figures,
    settings::{Factor, Factors},
};
use record::Run;
use runner::failure::UsageError;
use runner::similar::most_similar_first;

use super::{CompareRequest, options};
use crate::reading::retain_steps;

/// The argument that lists the factors.
pub(super) const LIST: &str = "?";
/// The argument that selects all factors.
const ALL: &str = "all";

/// The argument that selects all factors of a design.
const DESIGN: &str = "design";

/// The number of missing combinations that an error lists.
const LISTED_MAX: usize = 40;

/// An answer about factors.
pub enum FactorAnswer {
    /// The factors of the runs.
    Known(Factors),
    /// The effects of those that are wanted.
    Effects(Effects),
}

/// Returns the effects of the factors that a request names, or lists the factors. The figures then
/// have the steps to show.
///
/// # Errors
/// A factor is unknown, or its effect cannot be told from that of others.
pub fn by_factor(
    request: &CompareRequest,
    run: &Run,
    figures: &mut Figures,
    notes: Vec<String>,
) -> Result<FactorAnswer, UsageError> {
    let mut bases: Vec<String> = request.bases.iter().map(|base| base.target.clone()).collect();
    bases.extend(run.bases.iter().map(|base| base.target.clone()));
    bases.push(run.base.clone());

    let options = options(request, &run.base, figures);
    let designed = designed_effects(figures, &options);
    let known = match &designed {
        Some(effects) => Factors { factors: effects.factors.clone(), ..Factors::default() },
        None => Factors::find(&figures.settings.profiles, &bases),
    };

    if request.by.iter().any(|name| name == LIST) {
        return Ok(FactorAnswer::Known(known));
    }

    let mut effects = match designed {
        Some(effects) => selected(effects, &known, &request.by)?,
        None => {
            let wanted = select(known.clone(), &request.by)?;
            let mut effects = analysis::compare::effects(figures, wanted, &options);
            effects.notes.extend(note_on_base_only(&known, &effects));
            effects
        }
    };
    effects.notes.extend(notes);
    // Effects rest on all steps: only what is shown of them is cut.
    if !request.steps.is_empty() {
        retain_steps(figures, &request.steps);
    }

    Ok(FactorAnswer::Effects(effects))
}

/// Returns the effects of the `wanted` factors of a design.
fn selected(
    mut effects: Effects,
    known: &Factors,
    wanted: &[String],
) -> Result<Effects, UsageError> {
    if wanted.iter().any(|name| [ALL, DESIGN].contains(&name.as_str())) {
        return Ok(effects);
    }
    if let Some(name) = wanted.iter().find(|name| !is_known(known, name)) {
        return Err(unknown(known, name));
    }

    effects.rows.retain(|row| wanted.contains(&effects.factors[row.factor].name));
    Ok(effects)
}

/// Returns the `wanted` factors. Refuses a factor that lacks combinations, unless its levels were
/// measured one at a time.
fn select(known: Factors, wanted: &[String]) -> Result<Vec<Factor>, UsageError> {
    if wanted.iter().any(|name| name == DESIGN) {
        let message = "the run has no design: its plan lists the targets";
        let help = "add `[factors]` to the plan, or use `--by all`";
        return Err(UsageError::new(message, Some(help.into())));
    }
    if let Some(name) = wanted.iter().find(|name| !is_known(&known, name)) {
        return Err(unknown(&known, name));
    }
    // Two such targets would have the same place in the matrix.
    if let Some([first, second]) = known.alike.first() {
        let message = format!(
            "`{first}` and `{second}` have no factor in which they differ: same build, same declared settings, same \
             factors of the plan"
        );
        let help = "declare how they differ under `factors` in the plan, or compare without `--by`";
        return Err(UsageError::new(message, Some(help.into())));
    }

    let is_wanted = |factor: &Factor| {
        let mut wanted = wanted.iter();
        wanted.any(|name| name == ALL || factor.is_named(name))
    };
    let factors: Vec<Factor> = known.factors.into_iter().filter(is_wanted).collect();

    let mut usable = Vec::new();
    for factor in factors {
        if factor.is_full() {
            usable.push(factor);
        } else {
            usable.push(factor.one_at_a_time().ok_or_else(|| incomplete(&factor))?);
        }
    }
    Ok(usable)
}

/// Returns a note on the factors whose effects are known only with the base's values of others.
fn note_on_base_only(known: &Factors, effects: &Effects) -> Option<String> {
    let is_cut = |factor: &&Factor| {
        let of_all = known
            .factors
            .iter()
            .find(|known| (&known.engine, &known.name) == (&factor.engine, &factor.name));
        of_all.is_some_and(|known| !known.is_full())
    };
    let names: Vec<String> =
        effects.factors.iter().filter(is_cut).map(|factor| factor.label().to_owned()).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "each target differs from the base in one factor, so these effects are known only next to the base's values of the \
         other factors: {}",
        names.join(", ")
    ))
}

fn is_known(known: &Factors, name: &str) -> bool {
    let mut factors = known.factors.iter();
    factors.any(|factor| name == ALL || factor.is_named(name))
}

fn unknown(known: &Factors, name: &str) -> UsageError {
    if name == VARIANT {
        let message = "the workload of these runs has no variants to compare";
        let help = "add two or more to the plan: `[workload.X.variant.NAME]`";
        return UsageError::new(message, Some(help.into()));
    }

    if known.factors.is_empty() {
        let message = "these targets have no factors: targets of the same engine differ neither in their build nor in what \
                       their configs declare";
        let help = "`assay show RUN --between A B` shows all settings in which two targets differ";
        return UsageError::new(message, Some(help.into()));
    }

    let mut determined = known.determined.iter();
    if let Some((_, by)) = determined.find(|(determined, _)| determined == name) {
        let by = by.join(", ");
        let message = format!("`{name}` has no effect of its own: its value is determined by {by}");
        return UsageError::new(message, Some(format!("factors: {}", listed(known, name))));
    }

    UsageError::new(
        format!("unknown factor `{name}`"),
        Some(format!("factors, the most similar first: {}", listed(known, name))),
    )
}

/// Returns the factors with their levels, the most similar to `name` first.
fn listed(known: &Factors, name: &str) -> String {
    let mut factors: Vec<&Factor> = known.factors.iter().collect();
    most_similar_first(&mut factors, name, |factor| &factor.name);
    let text = |factor: &&Factor| format!("{} ({})", factor.name, factor.levels.join(", "));
    factors.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn incomplete(factor: &Factor) -> UsageError {
    let missing = factor.missing();
    let mut listed: Vec<String> = missing.iter().take(LISTED_MAX).cloned().collect();
    let more = missing.len() - listed.len();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }

    let count = match missing.len() {
        1 => "one is".to_owned(),
        count => format!("{count} are"),
    };
    let message = format!(
        "the effect of `{}` needs a target for each of its values with each combination of the other factors; \
         {count} missing:\n  {}",
        factor.name,
        listed.join("\n  ")
    );
    UsageError::new(message, Some("measure the missing targets, or compare without `--by`".into()))
}
