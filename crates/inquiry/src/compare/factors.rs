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
use words::without_section;

use super::{CompareRequest, options};

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
        Some(mut effects) => {
            effects.retain_factors(&which_are_wanted(&known, &request.by)?);
            effects
        }
        None => {
            let Selected { factors, are_wanted } = select(&known, &request.by)?;
            let mut effects = analysis::compare::effects(figures, factors, &options);
            effects.retain_factors(&are_wanted);
            effects.notes.extend(note_on_base_only(&known, &effects));
            effects
        }
    };
    effects.notes.extend(notes);
    // Effects rest on all steps: only what is shown of them is cut.
    if !request.steps.is_empty() {
        figures.retain_steps(&request.steps);
    }

    Ok(FactorAnswer::Effects(effects))
}

/// The factors whose effects are computed.
struct Selected {
    /// All that have the targets they need, so that a verdict does not depend on what else is asked.
    factors: Vec<Factor>,
    /// True for each of them that is wanted.
    are_wanted: Vec<bool>,
}

/// Returns the factors to compute, which have those of these `names`. Refuses one of these that lacks
/// combinations, unless its levels were measured one at a time.
fn select(known: &Factors, names: &[String]) -> Result<Selected, UsageError> {
    if names.iter().any(|name| name == DESIGN) {
        let message = "the run has no design: its plan lists the targets";
        let help = "add `[factors]` to the plan, or use `--by all`";
        return Err(UsageError::new(message, Some(help.into())));
    }

    let known_are_wanted = which_are_wanted(known, names)?;
    // Two such targets would have the same place in the matrix.
    if let Some([first, second]) = known.alike.first() {
        let message = format!(
            "`{first}` and `{second}` have no factor in which they differ: same build, same declared settings, same \
             factors of the plan"
        );
        let help = "declare how they differ under `factors` in the plan, or compare without `--by`";
        return Err(UsageError::new(message, Some(help.into())));
    }

    let mut selected = Selected { factors: Vec::new(), are_wanted: Vec::new() };
    for (factor, is_wanted) in known.factors.iter().zip(known_are_wanted) {
        let usable = if factor.is_full() { Some(factor.clone()) } else { factor.one_at_a_time() };
        match usable {
            Some(usable) => {
                selected.factors.push(usable);
                selected.are_wanted.push(is_wanted);
            }
            None if is_wanted => return Err(incomplete(factor)),
            None => {}
        }
    }
    Ok(selected)
}

/// Returns true for each known factor that one of these names means.
fn which_are_wanted(known: &Factors, names: &[String]) -> Result<Vec<bool>, UsageError> {
    let mut are_wanted = vec![false; known.factors.len()];
    for name in names {
        for index in named(known, name)? {
            are_wanted[index] = true;
        }
    }
    Ok(are_wanted)
}

/// Returns the indexes of the factors that a name means: of each engine the one that has it, else the
/// only one that has it without the section of the option.
fn named(known: &Factors, name: &str) -> Result<Vec<usize>, UsageError> {
    let all: Vec<usize> = (0..known.factors.len()).collect();
    if [ALL, DESIGN].contains(&name) && !all.is_empty() {
        return Ok(all);
    }

    let mut exact = all.clone();
    exact.retain(|index| known.factors[*index].is_named(name));
    if !exact.is_empty() {
        return Ok(exact);
    }

    let mut short = all;
    short.retain(|index| known.factors[*index].has_short_name(name));
    if short.is_empty() {
        return Err(unknown(known, name));
    }

    let factors: Vec<&Factor> = short.iter().map(|index| &known.factors[*index]).collect();
    let engines = analysis::distinct(factors.iter().map(|factor| &factor.engine));
    if engines.len() < factors.len() {
        return Err(ambiguous(name, &factors));
    }
    Ok(short)
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

/// Returns the error for a short name that several factors of an engine have.
fn ambiguous(name: &str, found: &[&Factor]) -> UsageError {
    let names: Vec<String> = found.iter().map(|factor| format!("`{}`", factor.name)).collect();
    let message = format!("`{name}` may be any of the factors {}", names.join(", "));
    UsageError::new(message, Some("give the whole name, in quotes".into()))
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
    let determined_by =
        determined.find(|(setting, _)| setting == name || without_section(setting) == name);
    if let Some((_, by)) = determined_by {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> Factors {
        let factor = |name: &&str| Factor {
            engine: "rocksdb".to_owned(),
            name: (*name).to_owned(),
            ..Factor::default()
        };
        Factors { factors: names.iter().map(factor).collect(), ..Factors::default() }
    }

    fn wanted(known: &Factors, name: &str) -> Result<Vec<bool>, String> {
        which_are_wanted(known, &[name.to_owned()]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_factor_may_be_named_without_its_section_if_no_other_has_that_name() {
        let sections = known(&["build", "[CFOptions] write_buffer_size"]);
        assert_eq!(wanted(&sections, "write_buffer_size"), Ok(vec![false, true]));
        assert_eq!(wanted(&sections, "[CFOptions] write_buffer_size"), Ok(vec![false, true]));
        assert_eq!(wanted(&sections, "all"), Ok(vec![true, true]));
        let unknown = wanted(&sections, "buffer_size").unwrap_err();
        assert!(unknown.starts_with("unknown factor"), "{unknown}");
        let without_any = wanted(&known(&[]), "all").unwrap_err();
        assert!(without_any.starts_with("these targets have no factors"), "{without_any}");

        let two = known(&["[CFOptions] size", "[DBOptions] size"]);
        let ambiguous = wanted(&two, "size").unwrap_err();
        assert!(ambiguous.contains("`[CFOptions] size`, `[DBOptions] size`"), "{ambiguous}");
        assert_eq!(wanted(&two, "[DBOptions] size"), Ok(vec![false, true]));
    }
}
