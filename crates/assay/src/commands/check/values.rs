//! Every value of a plan with its origin, and its cells, for `assay check --all`.

use std::fmt::Write as _;

use plan::Plan;

/// The largest width of the column of values; longer values move their origin to the right.
const VALUE_WIDTH_MAX: usize = 40;

/// Returns every value and its origin, and the selected cells in their order.
pub(super) fn values_and_cells(plan: &Plan, cells: &[plan::Cell]) -> String {
    let mut text = String::from("\nvalues:\n");
    let key_width = plan.resolved.iter().map(|resolved| resolved.key.len()).max().unwrap_or(0);
    let longest = plan.resolved.iter().map(|resolved| resolved.value.chars().count()).max();
    let value_width = longest.unwrap_or(0).min(VALUE_WIDTH_MAX);
    for resolved in &plan.resolved {
        let (key, value, origin) = (&resolved.key, &resolved.value, &resolved.origin);
        let _ = writeln!(text, "  {key:key_width$} = {value:value_width$}  # {origin}");
    }

    let _ = writeln!(text, "\ncells, in this order:");
    let names: Vec<String> = cells.iter().map(|cell| name_of(plan, cell)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (cell, name) in cells.iter().zip(&names) {
        let _ = writeln!(
            text,
            "  {name:name_width$}  clients {}  repeat {}",
            cell.clients, cell.repeat
        );
    }

    text
}

/// Returns the target of a cell, with the variant if there is one.
fn name_of(plan: &Plan, cell: &plan::Cell) -> String {
    let target = &plan.targets[cell.target].name;
    match &plan.variants[cell.variant].name {
        Some(variant) => format!("{target}  {variant}"),
        None => target.clone(),
    }
}
