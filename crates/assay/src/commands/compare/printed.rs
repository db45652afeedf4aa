//! The output formats of a comparison.

use report::{Comparison, json_text};

use crate::cli::Format;
use crate::output::style;

/// A comparison in an output format.
pub(super) enum Printed {
    Text(String),
    /// Lines with a header line.
    Lines(String),
    Json(serde_json::Value),
    /// All groups with one base.
    Across(serde_json::Value),
}

/// Formats the comparison of one group.
pub(super) fn formatted(format: Format, comparison: &Comparison<'_>) -> Printed {
    match format {
        Format::Table => Printed::Text(report::compared(comparison, style())),
        Format::Markdown => Printed::Text(report::compared_markdown(comparison)),
        Format::Csv => Printed::Lines(report::compared_csv(comparison)),
        Format::Json => Printed::Json(report::compared_json(comparison)),
    }
}

/// Formats the comparison of all targets with one base; `None` if the format has no place for it.
pub(super) fn across(format: Format, comparison: &Comparison<'_>) -> Option<Printed> {
    match format {
        Format::Table => Some(Printed::Text(report::across(comparison, style()))),
        Format::Markdown => Some(Printed::Text(report::across_markdown(comparison))),
        // A line of CSV has one base.
        Format::Csv => None,
        Format::Json => Some(Printed::Across(report::compared_json(comparison))),
    }
}

/// Joins several comparisons into one text.
pub(super) fn joined(mut all: Vec<Printed>) -> anyhow::Result<String> {
    if let [Printed::Json(json)] = all.as_slice() {
        return Ok(json_text(json)?);
    }

    // Only the first comparison of CSV keeps its header line.
    let (mut text, mut groups, mut across) = (String::new(), Vec::new(), None);
    for (index, printed) in all.drain(..).enumerate() {
        match printed {
            Printed::Text(next) if index > 0 => text += &format!("\n{next}"),
            Printed::Lines(next) if index > 0 => {
                text += next.split_once('\n').map_or("", |(_, lines)| lines);
            }
            Printed::Text(first) | Printed::Lines(first) => text = first,
            Printed::Json(json) => groups.push(json),
            Printed::Across(json) => across = Some(json),
        }
    }

    if groups.is_empty() {
        Ok(text)
    } else {
        Ok(json_text(&serde_json::json!({ "groups": groups, "across": across }))?)
    }
}
