//! The list of metrics that can be compared.

use words::{Better, Metric};

use crate::model::table::{Cell, Table};

/// Returns a table of all metrics that can be compared, with their units and meanings.
pub(crate) fn table() -> Table {
    let lead = ["metric", "unit", "better", "meaning"].map(str::to_owned).to_vec();
    let mut table = Table::new("metrics", "Metrics that can be compared", lead, [""]);
    let throughput = ["throughput", "/s", "more", "rows, queries or events of a step per second"];
    // The meaning is the last column on the left; there are no figures.
    table.push(throughput.map(str::to_owned).to_vec(), vec![Cell::default()]);

    for metric in Metric::all() {
        let better = match metric.better {
            Better::More => "more",
            Better::Less => "less",
        };
        let [name, unit, better] = [metric.name, metric.unit, better].map(str::to_owned);
        table.push(vec![name, unit, better, meaning(metric)], vec![Cell::default()]);
    }

    table.notes.push(
        "Times are those of the step's main kind of operation. A colon selects another kind: \
         `response_p99:insert`; `assay show RUN` lists the kinds"
            .to_owned(),
    );
    table.notes.push("`docs/metrics.md` has the formulas".to_owned());
    table
}

/// Returns the meaning of a metric's name, or else the first part of its formula.
fn meaning(metric: &Metric) -> String {
    if !metric.meaning.is_empty() {
        return metric.meaning.to_owned();
    }
    let formula = metric.formula().map_or("", |formula| formula.text);
    let formula = without_links(formula).replace('`', "");
    formula.split([';', ':']).next().unwrap_or_default().trim().to_owned()
}

/// Replaces Markdown links by their texts.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;

    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link.split_once("](").and_then(|(name, after)| Some((name, after.split_once(')')?.1)))
        {
            Some((name, after)) => {
                plain.push_str(name);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_that_can_be_compared_is_listed_with_its_meaning() {
        let list = table();
        for metric in Metric::all() {
            assert!(list.rows.iter().any(|row| row.lead[0] == metric.name), "{}", metric.name);
            assert!(!meaning(metric).is_empty(), "{}", metric.name);
        }
        assert_eq!(without_links("a [b](c.md#d), e [f"), "a b, e [f");
    }
}
