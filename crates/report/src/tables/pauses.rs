//! The times for which clients wait around transactions, as users who read and type.

use record::OpPause;
use words::Decimals;

use crate::model::matrix::Matrix;
use crate::model::number::fixed;
use crate::model::table::{Cell, Table};

/// Returns the think and keying times around each kind of operation: a line for each step and kind.
/// Empty if no client waits.
pub(crate) fn pauses(matrix: &Matrix<'_>) -> Table {
    let lead = ["step", "operation"].map(str::to_owned).to_vec();
    let heads = ["keying\ns", "mean think\ns"];
    let title = "Terminals: the keying time before each operation, and the think time after it";
    let mut table = Table::new("pauses", title, lead, heads.map(str::to_owned));

    for step in matrix.measured() {
        // All targets and repeats have the same.
        let mut listed: Vec<(&str, &OpPause)> = Vec::new();
        for row in matrix.rows_of(step) {
            for (kind, pause) in &row.pauses {
                if !listed.contains(&(kind.as_str(), pause)) {
                    listed.push((kind, pause));
                }
            }
        }

        for (kind, pause) in listed {
            let lead = vec![step.name.to_owned(), kind.to_owned()];
            table.push(lead, [pause.keying_ns, pause.think_ns_mean].map(seconds).to_vec());
        }
    }
    table
}

fn seconds(ns: u64) -> Cell {
    let seconds = ns as f64 / 1e9;
    Cell::plain(fixed(seconds, Decimals::Milliseconds.of([seconds])))
}
