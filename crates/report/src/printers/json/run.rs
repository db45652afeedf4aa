//! The figures of a run as JSON.

use analysis::figures::{Figures, Remark, Row};
use record::Run;
use serde_json::{Value, json};

use crate::prose::remarks;

/// Returns the figures of a run as [`analysis::json()`] does, with the `remarks` of each row.
pub fn run_json(run: &Run, figures: &Figures) -> Value {
    let mut value = analysis::json(run, figures);

    let profiled = figures.profiled.iter().map(|step| &step.row);
    let exact = figures.exact.iter().map(|step| &step.row);
    let rows: Vec<&Row> = figures.rows.iter().chain(profiled).chain(exact).collect();

    if let Some(objects) = value["rows"].as_array_mut() {
        for (object, row) in objects.iter_mut().zip(rows) {
            object["remarks"] = row.remarks.iter().map(remark_json).collect();
        }
    }
    value
}

fn remark_json(remark: &Remark) -> Value {
    json!({
        "code": remark.code(),
        "text": remarks::text(remark),
        "here": remarks::size(remark),
    })
}
