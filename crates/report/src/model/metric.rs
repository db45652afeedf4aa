//! A metric by its name: its unit, its decimals and its meaning.

use analysis::compare::{THROUGHPUT, metric_label};
use words::{Decimals, Metric, capitalized};

/// Returns the unit of a metric; empty for a plain number.
fn unit(metric: &str) -> &'static str {
    Metric::named(metric).map_or("", |metric| metric.unit)
}

/// Returns the unit of a metric, or `/s` for throughput, whose unit depends on the step.
pub(crate) fn unit_of(metric: &str) -> &'static str {
    if metric == THROUGHPUT { "/s" } else { unit(metric) }
}

/// Returns the decimals with which a metric is shown.
pub(crate) fn decimals(metric: &str) -> Decimals {
    Metric::named(metric).map_or(Decimals::Rate, |metric| metric.decimals)
}

/// Returns the subject of a table: a metric, and the group of steps if there is one. Names of
/// metrics are not capitalized.
pub(crate) fn subject(group: Option<&str>, metric: &str) -> String {
    let label = metric_label(metric);
    match group {
        Some(group) => format!("{group}: {label}"),
        None if Metric::named(label).is_some() => label.to_string(),
        None => capitalized(label),
    }
}

/// Explains a metric's name, if neither the name nor its label does.
pub(crate) fn meaning(metric: &str) -> Option<String> {
    let known = Metric::named(metric).filter(|_| metric_label(metric) == metric)?;
    if known.meaning.is_empty() {
        return None;
    }

    let mut text = format!("{metric}: {}", known.meaning);
    // Published names that others would take for times of operations.
    if let Some(time) = Metric::named(&format!("response_{metric}")) {
        text += &format!("; for the time of operations, compare `{}`", time.name);
    }
    Some(text)
}
