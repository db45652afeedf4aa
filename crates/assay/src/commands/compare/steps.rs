//! `--by-step`: which steps are compared with which.

use analysis::compat::{self, StepPair};
use analysis::{Figures, distinct};
use record::Run;

use crate::cli::StepPattern;
use crate::outcome::{UsageError, most_alike_first};

/// Stands for the name of any step.
const ANY: &str = "X";

/// Makes targets of the steps that are asked for; see [`compat::by_step`].
pub fn by_step(
    run: &Run,
    figures: &mut Figures,
    asked: &[StepPattern],
) -> Result<(Run, Vec<String>), UsageError> {
    let rows = figures.rows.iter().chain(&figures.missing);
    let steps = distinct(rows.map(|row| row.step.as_str()));
    let mut pairs: Vec<StepPair> = Vec::new();
    for pattern in asked {
        let found = match pattern.is_of_suffixes() {
            true => of_suffixes(pattern, &steps)?,
            false => vec![of_names(pattern, asked, &steps)?],
        };
        pairs.extend(found);
    }
    let bases = distinct(pairs.iter().map(|pair| &pair.labels[0]));
    if let [first, second, ..] = bases[..] {
        return Err(UsageError::new(
            format!("`--by-step` has two bases, `{first}` and `{second}`"),
            Some("give the command once for each".into()),
        ));
    }
    Ok(compat::by_step(run, figures, &pairs)?)
}

/// Returns the pairs of all steps that have both suffixes.
fn of_suffixes(pattern: &StepPattern, steps: &[&str]) -> Result<Vec<StepPair>, UsageError> {
    let StepPattern { base, other } = pattern;
    let pair = |step: &&str| {
        let name = step.strip_suffix(base.as_str())?;
        let beside = format!("{name}{other}");
        steps.contains(&beside.as_str()).then(|| StepPair {
            labels: [format!("{ANY}{base}"), format!("{ANY}{other}")],
            steps: [(*step).to_owned(), beside],
            name: name.to_owned(),
        })
    };
    let pairs: Vec<StepPair> = steps.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        return Err(UsageError::new(
            format!("the run has no steps `{ANY}{base}` and `{ANY}{other}`"),
            Some(format!("steps here: {}", steps.join(", "))),
        ));
    }
    Ok(pairs)
}

/// Returns the pair of two steps that are named.
fn of_names(
    pattern: &StepPattern,
    asked: &[StepPattern],
    steps: &[&str],
) -> Result<StepPair, UsageError> {
    let both = [pattern.base.clone(), pattern.other.clone()];
    if let Some(unknown) = both.iter().find(|step| !steps.contains(&step.as_str())) {
        let mut alike = steps.to_vec();
        most_alike_first(&mut alike, unknown, |name| name);
        return Err(UsageError::new(
            format!("the run has no step `{unknown}`"),
            Some(format!(
                "steps here, the nearest first: {}",
                alike.join(", ")
            )),
        ));
    }
    // All that are compared with one base are one step: what their names have in common.
    let of_base = asked.iter().filter(|it| it.base == pattern.base);
    let mut name = pattern.base.as_str();
    for other in of_base.map(|it| &it.other) {
        let alike = name.chars().zip(other.chars());
        let length = alike.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8());
        name = &name[..length.sum()];
    }
    let name = match name.trim_end_matches('.') {
        "" => &pattern.base,
        name => name,
    };
    Ok(StepPair {
        labels: both.clone(),
        name: name.to_owned(),
        steps: both,
    })
}
