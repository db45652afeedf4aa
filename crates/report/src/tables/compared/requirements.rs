//! The requirements, each with its result for each target.

use analysis::compare::{Compared, Interval, RequirementResult, RequirementVerdict};

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
            Cell::plain(unit_of(&result.requirement.metric)),
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

/// Returns the mean with its interval: `4120 (4050-4190)`.
fn measured(result: &RequirementResult) -> Cell {
    let Some(mean) = result.mean else {
        return Cell::not_applicable();
    };
    let rule = decimals(&result.requirement.metric);
    let Some(Interval { low, high, .. }) = result.interval else {
        return Cell::plain(fixed(mean, rule.of([mean])));
    };

    // The three have the same decimals, as many as the smallest needs.
    let decimals = rule.of([mean, low]);
    let [mean_text, low_text, high_text] = [mean, low, high].map(|value| fixed(value, decimals));
    Cell::plain(format!("{mean_text} ({low_text}-{high_text})"))
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
