//! The tables of a comparison of targets, or of the levels of factors.
//!
//! The tables of a single run have a line for each cell. Here all repeats of a target are one line
//! ([`RepeatedLine`]), because verdicts are about targets, not repeats.
//!
//! ```text
//! Comparison ─► Board ─┬─ relative   ratios to the base, with intervals and verdicts
//!    │                 ├─ one_target all of these in one table, if one target is compared
//!    │                 ├─ all_steps  the mean of all steps, which ends a table of throughput
//!    │                 ├─ costs      what an operation costs, with the ratio to the base
//!    │                 └─ notes      the changes that could be shown, and the repeats for more
//!    ├─ work                         what an operation costs in instructions
//!    ├─ waits, system_calls, plans,
//!    │  functions                    where the time went, and why
//!    ├─ requirements                 what a target must reach, whatever the base does
//!    └─ noise                        a target compared with itself
//! FactorEffects ─┬─ effects           the same for factors, by their levels
//!                └─ confounding       what a design of few targets cannot tell apart
//! ```

mod all_steps;
mod board;
mod confounding;
mod costs;
pub(crate) mod effects;
pub(crate) mod functions;
pub(crate) mod noise;
mod notes;
mod one_target;
mod plans;
mod relative;
pub(crate) mod requirements;
mod system_calls;
mod waits;
mod work;

use crate::model::comparison::Comparison;
use crate::model::table::Table;

pub(crate) use board::{Board, RepeatedLine};
pub use relative::ratio_with_bounds;
pub(crate) use relative::{ratio_cell, tone};

/// Returns the tables of throughput relative to the base. A single target has one table of all
/// metrics instead.
pub(crate) fn verdicts(board: &Board<'_>) -> Vec<Table> {
    let of_one_target = one_target::tables(board);
    with_figures(of_one_target.unwrap_or_else(|| relative::throughput(board)))
}

/// Returns the tables of the throughput of all targets, relative to the base of the first group.
pub(crate) fn across(comparison: &Comparison<'_>) -> Vec<Table> {
    let mut tables = with_figures(relative::throughput(&Board::new(comparison)));
    for table in &mut tables {
        table.id += "-across";
        table.title += ", all targets";
    }
    tables
}

/// Returns the tables of the other metrics that have verdicts, unless [`verdicts`] has them.
pub(crate) fn other_verdicts(board: &Board<'_>) -> Vec<Table> {
    if board.has_one_target() {
        return Vec::new();
    }
    with_figures(relative::others(board))
}

/// Returns the tables of what an operation costs, with the ratio to the base.
pub(crate) fn costs(board: &Board<'_>) -> Vec<Table> {
    with_figures(costs::tables(board))
}

/// Returns the tables of exact work, if there are exact cells.
pub(crate) fn work(comparison: &Comparison<'_>) -> Vec<Table> {
    work::tables(comparison)
}

/// Returns the table of waits of sessions that changed, if any did.
pub(crate) fn waits(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(vec![waits::table(comparison)])
}

/// Returns the table of system calls whose numbers changed, if any did.
pub(crate) fn system_calls(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(vec![system_calls::table(comparison)])
}

/// Returns the table of statements whose plans differ, if there are any.
pub(crate) fn plans(comparison: &Comparison<'_>) -> Vec<Table> {
    with_figures(vec![plans::table(comparison.compared)])
}

fn with_figures(mut tables: Vec<Table>) -> Vec<Table> {
    tables.retain(Table::has_figures);
    tables
}
