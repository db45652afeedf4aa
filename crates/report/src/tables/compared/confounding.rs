//! Effects that a design cannot tell apart: the interactions that an effect may be instead.

use analysis::{
    compare::{Clarity, Effects, MixedInteraction},
    settings::Factor,
};

use crate::model::number::percent;
use crate::model::table::{Cell, Table};

/// The most interactions that are listed for an effect.
const LISTED_MAX: usize = 8;
/// A share that is nearly 1 needs no figure.
const WHOLE: f64 = 0.99;

const NOTE: &str = "an effect is that of the factor plus those of these interactions. Most interactions are small, and an \
     interaction of factors that have no effect is rare. `assay augment` measures the opposite targets, which tells them \
     apart";

/// Returns a line for each factor with the interactions that its effect may be instead; `None` if
/// effects are clear of them.
pub(super) fn table(effects: &Effects) -> Option<Table> {
    let design = effects.design.as_ref().filter(|design| design.clarity == Clarity::Mixed)?;
    let names: Vec<&str> = effects.factors.iter().map(Factor::label).collect();

    let title = "What the design cannot tell apart";
    let mut table = Table::new("confounding", title, vec!["effect of".into()], ["may also be"]);

    for (name, mixed) in names.iter().zip(&design.mixed) {
        table.push(vec![(*name).to_owned()], vec![Cell::plain(listed(mixed, &names))]);
    }

    table.notes.push(NOTE.to_owned());
    Some(table)
}

/// Lists interactions: `-a × b, c × d`, or only their number if they are many.
fn listed(mixed: &[MixedInteraction], names: &[&str]) -> String {
    if mixed.is_empty() {
        return "nothing else".to_owned();
    }
    if mixed.len() > LISTED_MAX {
        let largest = mixed.iter().map(|mixed| mixed.share.abs()).fold(0.0, f64::max);
        return format!("up to {} of each of {} interactions", percent(largest), mixed.len());
    }

    let mut parts = Vec::new();
    for MixedInteraction { factors: [a, b], share } in mixed {
        let sign = if *share < 0.0 { "-" } else { "" };
        let size =
            if share.abs() > WHOLE { String::new() } else { format!("{:.2} of ", share.abs()) };
        parts.push(format!("{sign}{size}{} × {}", names[*a], names[*b]));
    }
    parts.join(", ")
}
