//! Explains a comparison: what changed, by how much, how certain that is, why, and the caveats.
//!
//! ```text
//! Compared ─► case ─► accounting ─► cause ───► explanation ─► Finding
//!             both    where the     what may   a statement    what it is about,
//!             sides   time goes     be called  of one rule    sorted by weight
//!             of a                  a cause
//!             step                  caveats
//! ```
//!
//! * [`explain()`] returns [`Finding`]s, the most important first. Each has a [`FindingKind`] and
//!   [`Evidence`].
//! * [`Answer`] sums up all verdicts for a reader who reads nothing else.
//!
//! A wrong cause does more harm than none, so a rule names a cause only if it makes up enough of
//! the change, by measurements of its own, and only of a change that has a verdict. `thresholds`
//! has all limits in one place, each with its reason.
//!
//! A finding has a [`Statement`](statement::Statement) and caveats as values. The crate `report` puts
//! them in words, in `prose/findings/`. Tests can therefore check what a rule found, whatever the
//! sentence is.
//!
//! `docs/findings.md` states the rules.

mod accounting;
mod alone;
mod answer;
mod apart;
mod case;
mod case_facts;
mod cause;
mod caveats;
mod change;
mod clients;
mod conflicts;
mod counters;
mod difference;
mod disk_floor;
mod evidence;
mod explanation;
mod factor_answer;
mod finding;
mod fsync_counts;
mod gap;
mod hidden_cost;
mod machines;
mod measured_once;
mod no_effect;
mod response;
mod shown_costs;
pub mod statement;
mod swings;
mod thresholds;
mod typical;
mod witnesses;

use crate::compare::{Compared, THROUGHPUT};
use crate::figures::Figures;
use crate::figures::index::RowIndex;
use case::{Case, Context};
use explanation::Explanation;

pub use alone::UnshownSequence;
pub use answer::{Answer, Change, ChangeOfAll, TargetAnswer};
pub use apart::Apart;
pub use factor_answer::{FactorAnswer, WithoutEffect};
pub use finding::{ChangeCause, Direction, Evidence, FINDINGS_SHOWN_MAX, Finding, FindingKind};
pub use gap::Cost;
pub use shown_costs::ShownCost;

/// Explains a comparison, the most important finding first. Only a change with a verdict has a
/// cause. Steps that were measured once, are too noisy or are invalid have none.
pub fn explain(figures: &Figures, compared: &Compared) -> Vec<Finding> {
    let index = RowIndex::new(figures);
    let context = Context::new(figures, &index, compared);
    let cases = cases(context);

    let mut findings = Vec::new();
    for explanation in explanations(context, &cases) {
        findings.extend(Finding::new(&compared.base, explanation));
    }
    findings.sort_by(Finding::importance);
    findings
}

/// Returns the compared steps that have figures on both sides.
fn cases(context: Context<'_>) -> Vec<Case<'_>> {
    let throughput = context.compared.rows.iter().filter(|row| row.metric == THROUGHPUT);
    throughput.filter_map(|row| Case::new(context, row)).collect()
}

/// Applies all rules.
fn explanations<'a>(context: Context<'a>, cases: &'a [Case<'a>]) -> Vec<Explanation<'a>> {
    let mut explanations = change::explain(context, cases);
    explanations.extend(clients::bound(cases));
    explanations.extend(clients::unfair(context));
    explanations.extend(clients::missed_rates(context));
    explanations.extend(disk_floor::explain(context));
    explanations.extend(alone::explain(context));
    explanations.extend(swings::explain(context));
    explanations.extend(no_effect::explain(context, cases));
    explanations.extend(response::explain(cases));
    explanations.extend(hidden_cost::explain(context, cases));
    explanations.extend(measured_once::facts(cases));
    explanations.extend(machines::variance(cases));
    explanations.extend(witnesses::explain(context, cases));
    explanations
}

#[cfg(test)]
mod tests;
