//! Tells why the intervals of a step are as wide as they are.

use analysis::compare::{
    ComparedStep, FamilyCount, IntervalParts, NotBorrowed, Pairing, Verdict, interval_parts,
    metric_label,
};
use analysis::counted;
use analysis::figures::Looks;

use crate::model::comparison::Comparison;
use crate::model::number::{fixed, listed};
use crate::prose::at_load;
use crate::tables::compared::ratio_with_bounds;

/// The factor above which either side of an interval tells nothing.
const USELESS_FACTOR: f64 = 100.0;

/// The factor from which an error is called larger than the spread says.
const ENLARGED: f64 = 1.05;

/// The most repeats whose ratios are listed.
const LISTED: usize = 40;

/// Returns the chain from the repeats of a step to each of its intervals, as paragraphs of lines;
/// empty if the step has no interval.
pub fn why(comparison: &Comparison<'_>, step: &str) -> String {
    let mut paragraphs = Vec::new();
    for parts in interval_parts(comparison.compared, step) {
        let lines = [
            heading(comparison, &parts),
            line("repeats", &repeats(&parts)),
            line("spread", &spread(&parts)),
            line("borrowed", &borrowed(&parts)),
            line("error", &error(&parts)),
            line("level", &level(&parts)),
            line("interval", &interval(&parts)),
        ];
        paragraphs.push(lines.join("\n") + "\n");
    }
    paragraphs.join("\n")
}

fn line(name: &str, text: &str) -> String {
    format!("  {name:<9} {text}")
}

/// Returns the ratio with its verdict: `point-query, throughput: b.x is 0.98 (0.94-1.01) of a.x, too
/// noisy to say`.
fn heading(comparison: &Comparison<'_>, parts: &IntervalParts<'_>) -> String {
    let row = parts.row;
    let ratio = row.ratio.map(|ratio| ratio_with_bounds(ratio, row.interval));
    format!(
        "{}{}, {}: {} is {} of {}, {}",
        row.step,
        load(comparison, row),
        metric_label(&row.metric),
        row.cell.target,
        ratio.unwrap_or_default(),
        comparison.compared.base,
        verdict_text(row)
    )
}

/// Returns the verdict in the words of the tables, in which more of a cost is not slower.
fn verdict_text(row: &ComparedStep) -> String {
    match row.verdict {
        Verdict::Slower if !row.more_is_better => "costs more".to_owned(),
        Verdict::Faster if !row.more_is_better => "costs less".to_owned(),
        verdict => verdict.to_string(),
    }
}

/// Returns the variant and the number of clients, where steps were measured with several; otherwise
/// nothing.
fn load(comparison: &Comparison<'_>, row: &ComparedStep) -> String {
    let mut others = comparison.compared.rows.iter();
    if others.all(|other| other.cell.load() == row.cell.load()) {
        return String::new();
    }

    at_load(row.cell.variant.as_deref(), row.cell.clients)
}

/// Lists the ratio of each repeat.
fn repeats(parts: &IntervalParts<'_>) -> String {
    let row = parts.row;
    if row.pairing != Pairing::Paired {
        return format!(
            "{} of the target and {} of the base, not in pairs",
            row.values.len(),
            row.base_values.len()
        );
    }

    let mut ratios = Vec::new();
    for (value, base) in row.values.iter().zip(&row.base_values) {
        ratios.push(fixed(value.value / base.value, 3));
    }
    listed(&ratios, LISTED, " ")
}

/// Tells how much repeats differ, and what would help.
fn spread(parts: &IntervalParts<'_>) -> String {
    let own = parts.row.spread.unwrap_or(parts.spread);
    let from_repeats = format!("{} from repeat to repeat", precise(own));
    let Some(within) = parts.row.error_within else {
        return from_repeats;
    };

    let advice = match parts.row.longer_steps_help() {
        None => "too much, since the repeats agree too well for luck",
        Some(true) => "longer steps help",
        Some(false) => "more repeats help, longer steps don't",
    };
    format!("{from_repeats}; the turns of one repeat explain {}: {advice}", precise(within))
}

fn borrowed(parts: &IntervalParts<'_>) -> String {
    let Some(moderated) = parts.row.moderated else {
        let nothing = "nothing: the interval rests on its own repeats";
        return match parts.row.not_borrowed {
            Some(reason) => format!("{nothing}, since {}", reason_not_borrowed(reason)),
            None => nothing.to_owned(),
        };
    };
    if moderated.borrowed_freedom == 0.0 {
        return format!(
            "its turns make the spread {}: the repeats agree better than their turns can tell",
            precise(moderated.spread)
        );
    }

    let has_turns = parts.row.error_within.is_some() && !parts.row.contradicts_turns;
    let lenders = if has_turns { "its turns and the other steps" } else { "the other steps" };

    format!(
        "{lenders} make the spread {}, with {} degrees of freedom instead of {}",
        precise(moderated.spread),
        fixed(moderated.freedom, 1),
        fixed(moderated.freedom - moderated.borrowed_freedom, 1),
    )
}

/// Returns why a comparison borrows nothing.
fn reason_not_borrowed(reason: NotBorrowed) -> &'static str {
    match reason {
        NotBorrowed::FewRepeats => {
            "two repeats cannot show whether other steps have the same noise"
        }
        NotBorrowed::UnequalSizes => "base and target have different numbers of repeats",
        NotBorrowed::FewTurns => {
            "some repeat has too few turns to show its own noise; longer steps have more"
        }
        NotBorrowed::NoSample => {
            "its figures are rounded or all equal, or its ratio differs between machines"
        }
        NotBorrowed::FewLenders => "too few other steps know their noise",
        NotBorrowed::Unlike => {
            "the noise of the other steps differs too much, or the steps share their noise"
        }
    }
}

fn error(parts: &IntervalParts<'_>) -> String {
    let count = parts.row.repeats();
    let text =
        format!("{} for the mean of {}", precise(parts.error), counted(count as usize, "repeat"));

    let of_spread = parts.spread / f64::from(count).sqrt();
    if parts.error > ENLARGED * of_spread {
        text + ", more than the spread says: figures are rounded, or the machine may have drifted"
    } else {
        text
    }
}

/// Tells at which error rate the interval was made, and with whom it shares that.
fn level(parts: &IntervalParts<'_>) -> String {
    let looks = match parts.row.looks {
        Looks::Once => "looked at once",
        Looks::AnyTime | Looks::Growing => "looked at after each repeat",
        Looks::TimeUp | Looks::TimeUpAgain => "looked at when the time was up",
    };
    let level = precise(parts.level);
    let Some(FamilyCount { error_rate, comparison_count, shown_count }) = parts.family else {
        return format!("{level} for both ends, as any claim of equality has; {looks}");
    };

    if comparison_count == 1 {
        return format!("{level}, shared with no other comparison; {looks}");
    }

    format!(
        "{level} for this comparison: {comparison_count} share {}, and {}; {looks}",
        precise(error_rate),
        match shown_count {
            0 => "none shows a change".to_owned(),
            1 => "1 shows a change".to_owned(),
            count => format!("{count} show a change"),
        },
    )
}

fn interval(parts: &IntervalParts<'_>) -> String {
    let factor = (parts.standard_error_count * parts.error).exp();
    let reach = format!("{} standard errors to each side", fixed(parts.standard_error_count, 1));
    if factor > USELESS_FACTOR {
        let repeats = counted(parts.row.repeats() as usize, "repeat");
        return format!("{reach}, a factor of more than 100: no useful interval with {repeats}");
    }
    format!("{reach}: {}", precise(factor - 1.0))
}

/// Formats a share with three significant digits, in percent.
fn precise(share: f64) -> String {
    let percent = 100.0 * share;
    let decimals = (2.0 - percent.abs().max(1e-3).log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{}%", fixed(percent, decimals))
}

#[cfg(test)]
mod tests {
    use analysis::compare::{ModeratedSpread, Sample};

    use super::*;

    /// Returns what is said about the spread of a row, on which other steps, that lend so much
    /// freedom, and turns had an effect; `None`: the interval rests on the repeats.
    fn said(row: ComparedStep, borrowed_freedom: Option<f64>) -> [String; 2] {
        let moderated = borrowed_freedom.map(|borrowed_freedom| ModeratedSpread {
            spread: 0.018,
            freedom: 2.0 + borrowed_freedom,
            borrowed_freedom,
        });
        let row = ComparedStep { moderated, ..row };
        let parts = IntervalParts {
            row: &row,
            spread: 0.018,
            error: 0.01,
            standard_error_count: 4.0,
            level: 0.05,
            family: None,
        };
        [spread(&parts), borrowed(&parts)]
    }

    #[test]
    fn a_comparison_that_borrows_nothing_says_why() {
        let short =
            ComparedStep { not_borrowed: Some(NotBorrowed::FewTurns), ..ComparedStep::default() };
        let [_, lent] = said(short, None);
        assert_eq!(
            lent,
            "nothing: the interval rests on its own repeats, since some repeat has too few turns to show its own \
             noise; longer steps have more"
        );
    }

    #[test]
    fn an_interval_that_tells_nothing_has_no_percentage() {
        let value = Sample { run: 0, repeat: 1, value: 1.0 };
        let row = ComparedStep {
            values: vec![value; 2],
            base_values: vec![value; 2],
            ..ComparedStep::default()
        };
        let parts = |error| IntervalParts {
            row: &row,
            spread: 0.1,
            error,
            standard_error_count: 267.4,
            level: 0.001,
            family: None,
        };
        assert_eq!(
            interval(&parts(0.07)),
            "267.4 standard errors to each side, a factor of more than 100: no useful interval with 2 repeats"
        );
        assert_eq!(interval(&parts(0.0001)), "267.4 standard errors to each side: 2.71%");
    }

    #[test]
    fn more_of_a_cost_is_not_called_slower() {
        let grown = ComparedStep { verdict: Verdict::Slower, ..ComparedStep::default() };
        assert_eq!(verdict_text(&grown), "costs more");
        let slower = ComparedStep { more_is_better: true, ..grown };
        assert_eq!(verdict_text(&slower), "slower");
    }

    #[test]
    fn turns_are_named_where_they_had_a_part_in_the_spread() {
        let without_turns = ComparedStep { spread: Some(0.03), ..ComparedStep::default() };
        let in_turns = ComparedStep { error_within: Some(0.02), ..without_turns.clone() };
        let by_luck = ComparedStep { spread: Some(0.01), ..in_turns.clone() };
        let contradicted =
            ComparedStep { spread: Some(0.001), contradicts_turns: true, ..in_turns.clone() };

        let [_, lent] = said(by_luck, Some(0.0));
        assert!(lent.starts_with("its turns make the spread 1.80%:"), "{lent}");
        let [advice, lent] = said(in_turns.clone(), Some(3.0));
        assert!(lent.starts_with("its turns and the other steps make the spread"), "{lent}");
        assert!(
            advice.ends_with("explain 2.00%: more repeats help, longer steps don't"),
            "{advice}"
        );
        let [_, lent] = said(without_turns, Some(3.0));
        assert!(lent.starts_with("the other steps make the spread 1.80%, with 5.0"), "{lent}");
        let [_, lent] = said(in_turns, None);
        assert!(lent.ends_with("rests on its own repeats"), "{lent}");

        let [advice, lent] = said(contradicted, Some(3.0));
        assert!(lent.starts_with("the other steps make the spread"), "{lent}");
        assert!(
            advice.ends_with("too much, since the repeats agree too well for luck"),
            "{advice}"
        );
    }
}
