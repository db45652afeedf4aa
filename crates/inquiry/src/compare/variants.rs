//! `--by variant`: compares the variants of a workload with each other.

use analysis::compat::{self, Recorded, VARIANT, VariantSides};
use analysis::figures::Figures;
use record::{GroupBase, Run};
use runner::failure::UsageError;
use runner::similar::{ListedNames, did_you_mean};

use super::CompareRequest;
use super::arguments::Base;
use super::factors::LIST;

/// Returns the variants that take the place of targets in a comparison: those of a request that
/// names no other factor, or of runs that have nothing else to compare.
pub(super) fn to_compare(runs: &[Recorded], request: &CompareRequest) -> Option<VariantSides> {
    let sides = VariantSides::of(runs.iter().map(|recorded| &recorded.run));
    let is_asked = request.by == [VARIANT] && sides.names.len() > 1;
    let is_all_there_is = request.by.is_empty() && sides.are_all_there_is();
    (is_asked || is_all_there_is).then_some(sides)
}

/// Returns the variants that are a factor in a request: it names them beside other factors, or lists
/// all factors.
pub(super) fn as_factor(runs: &[Recorded], request: &CompareRequest) -> Option<VariantSides> {
    let is_named = request.by.iter().any(|name| name == VARIANT || name == LIST);
    let sides = VariantSides::of(runs.iter().map(|recorded| &recorded.run));
    (is_named && sides.are_listed && sides.names.len() > 1).then_some(sides)
}

/// Makes each variant of a target a target of its own, with the bases of a request. See
/// [`compat::with_variant_as_factor`].
///
/// # Errors
/// The variants cannot be compared.
pub(super) fn with_factor(
    mut run: Run,
    figures: &mut Figures,
    sides: &VariantSides,
    bases: &[Base],
) -> Result<Run, UsageError> {
    for Base { group, target } in bases {
        let group = group.clone().unwrap_or_default();
        run.bases.push(GroupBase { group, target: target.clone() });
    }
    Ok(compat::with_variant_as_factor(&run, figures, sides)?)
}

/// Turns the variants of some runs into targets. The base is the first one, unless one is given. See
/// [`compat::by_variant`].
///
/// # Errors
/// The variants cannot be compared, or the base is none of them.
pub fn by_variant(
    runs: &[Recorded],
    figures: &mut Figures,
    sides: &VariantSides,
    bases: &[Base],
) -> Result<Run, UsageError> {
    let base = match bases {
        [] => None,
        [Base { group: None, target }] => Some(target.as_str()),
        _ => {
            let help = format!("give one `--base` without a group: {}", sides.names.join(", "));
            return Err(UsageError::new("all variants have the same base", Some(help)));
        }
    };

    if let Some(unknown) = base.filter(|base| !sides.names.iter().any(|name| name == base)) {
        let mut names: Vec<&str> = sides.names.iter().map(String::as_str).collect();
        let help = did_you_mean(&mut names, unknown, "variants", ListedNames::MostSimilar);
        return Err(UsageError::new(format!("unknown variant `{unknown}` in `--base`"), help));
    }

    let first = runs.first().map(|first| first.run.clone()).unwrap_or_default();
    Ok(compat::by_variant(&first, figures, sides, base)?)
}
