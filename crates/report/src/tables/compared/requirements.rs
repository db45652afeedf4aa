//! The requirements, each with its result for each target.

use analysis::compare::{Compared, Interval, Requirement, RequirementResult, RequirementVerdict};
use words::Decimals;

use crate::model::matrix::Keys;
use crate::model::metric::{decimals, unit_of};
use crate::model::number::fixed;
use crate::model::table::{Cell, Table, Tone};
use crate::model::worth::Footnotes;

/// Returns a table with a row for each requirement and target. It has no rows without requirements.
pub(crate) fn table(compared: &Compared) -> Table {
    let results = &compared.requirements;
    let keys = Keys::among(results.iter().map(|result| &result.cell));

    let lead = [vec!["requirement".to_owned()], keys.lead("target")].concat();
    let heads = ["measured", "unit", "repeats", "result"];
    let mut table = Table::new("requirements", "Requirements", lead, heads);

    let mut reasons = Footnotes::default();

    for result in results {
        let lead = [
            vec![result.requirement.text.clone()],
            keys.lead_of(&result.cell.target, &result.cell, 0),
        ];

        let mut verdict = Cell::toned(result.verdict.to_string(), tone(result.verdict));
        let place = format!("{}, {}", result.requirement.text, keys.label(&result.cell, 0));
        reasons.mark(&mut verdict, &result.reasons, place);

        let cells = vec![
            measured(result),
            Cell::plain(measured_unit(&result.requirement)),
            Cell::plain(result.values.len().to_string()),
            verdict,
        ];
        table.push(lead.concat(), cells);
    }

    table.notes.push(
        "met, missed: the whole interval of the mean is on one side of the bound; otherwise too noisy to say, and \
         without repeats a single run"
            .to_owned(),
    );
    table.notes.extend(reasons.notes_in("[", "]"));
    table
}

/// Returns the mean with its interval, or that there is none.
fn measured(result: &RequirementResult) -> Cell {
    match measured_text(result) {
        Some(text) => Cell::plain(text),
        None => Cell::not_applicable(),
    }
}

/// Returns the unit in which a requirement's figures are shown: that of its bound.
pub(crate) fn measured_unit(requirement: &Requirement) -> &str {
    match &requirement.given_unit {
        Some(unit) => &unit.name,
        None => unit_of(&requirement.metric),
    }
}

/// Returns the mean with its interval, in the unit of the bound: `4120 (4050-4190)`; `None` if nothing
/// was measured.
pub(crate) fn measured_text(result: &RequirementResult) -> Option<String> {
    let Requirement { metric, given_unit, .. } = &result.requirement;
    let (rule, size) = match given_unit {
        Some(unit) => (Decimals::Rate, unit.size),
        None => (decimals(metric), 1.0),
    };

    let mean = result.mean? / size;
    let Some(Interval { low, high, .. }) = result.interval else {
        return Some(fixed(mean, rule.of([mean])));
    };

    // The three have the same decimals, as many as the smallest needs.
    let bounds = [mean, low / size, high / size];
    let decimals = rule.of(bounds);
    let [mean_text, low_text, high_text] = bounds.map(|value| fixed(value, decimals));
    Some(format!("{mean_text} ({low_text}-{high_text})"))
}

fn tone(verdict: RequirementVerdict) -> Tone {
    match verdict {
        RequirementVerdict::Met => Tone::Plain,
        RequirementVerdict::Missed => Tone::Failed,
        RequirementVerdict::TooNoisy | RequirementVerdict::Single => Tone::Unjudged,
        RequirementVerdict::Invalid => Tone::Invalid,
        RequirementVerdict::NotApplicable => Tone::Absent,
    }
}
