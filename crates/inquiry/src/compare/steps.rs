//! `--by-step`: compares steps of the same cell with each other.

use analysis::compat::{self, StepPair};
use analysis::{distinct, figures::Figures};
use record::Run;
use runner::failure::UsageError;

use super::arguments::StepPattern;
use crate::reading::unknown_step;

/// The placeholder for the name of any step.
const ANY: &str = "X";

/// Turns the steps that match the patterns into targets; see [`compat::by_step`].
pub fn by_step(
    run: &Run,
    figures: &mut Figures,
    patterns: &[StepPattern],
) -> Result<(Run, Vec<String>), UsageError> {
    let rows = figures.rows.iter().chain(&figures.missing);
    let steps = distinct(rows.map(|row| row.step.as_str()));

    let mut pairs: Vec<StepPair> = Vec::new();
    for pattern in patterns {
        let matching = if pattern.has_suffixes() {
            pairs_by_suffix(pattern, &steps)?
        } else {
            vec![pair_by_name(pattern, patterns, &steps)?]
        };
        pairs.extend(matching);
    }

    // All targets of a comparison have the same base.
    let bases = distinct(pairs.iter().map(|pair| &pair.labels[0]));
    if let [first, second, ..] = bases[..] {
        return Err(UsageError::new(
            format!("`--by-step` needs one base, but `{first}` and `{second}` are given"),
            Some("run the command once for each base".into()),
        ));
    }

    Ok(compat::by_step(run, figures, &pairs)?)
}

/// Returns the pairs of all steps that have both suffixes.
fn pairs_by_suffix(pattern: &StepPattern, steps: &[&str]) -> Result<Vec<StepPair>, UsageError> {
    let StepPattern { base, other } = pattern;
    let mut pairs: Vec<StepPair> = Vec::new();
    for step in steps {
        let Some(name) = step.strip_suffix(base.as_str()) else { continue };
        let partner = format!("{name}{other}");
        if steps.contains(&partner.as_str()) {
            pairs.push(StepPair {
                labels: [format!("{ANY}{base}"), format!("{ANY}{other}")],
                steps: [(*step).to_owned(), partner],
                name: name.to_owned(),
            });
        }
    }

    if pairs.is_empty() {
        return Err(UsageError::new(
            format!("the run has no pair of steps `{ANY}{base}` and `{ANY}{other}`"),
            Some(format!("available steps: `{}`", steps.join("`, `"))),
        ));
    }

    Ok(pairs)
}

/// Returns the pair of the two steps that a pattern names.
fn pair_by_name(
    pattern: &StepPattern,
    patterns: &[StepPattern],
    steps: &[&str],
) -> Result<StepPair, UsageError> {
    let both = [pattern.base.clone(), pattern.other.clone()];
    if let Some(unknown) = both.iter().find(|step| !steps.contains(&step.as_str())) {
        return Err(unknown_step(unknown, steps.to_vec()));
    }

    // The steps that are compared with one base are shown as one, by the common beginning of their
    // names.
    let with_base = patterns.iter().filter(|other| other.base == pattern.base);
    let mut name = pattern.base.as_str();
    for other in with_base.map(|pattern| &pattern.other) {
        let pairs = name.chars().zip(other.chars());
        let length = pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8());
        name = &name[..length.sum()];
    }

    let name = match name.trim_end_matches('.') {
        "" => &pattern.base,
        name => name,
    };

    Ok(StepPair { labels: both.clone(), name: name.to_owned(), steps: both })
}
