//! The events of engines' logs as marks on the seconds of a step's charts.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html as markup};
use record::LogEvent;
use serde_json::{Value, json};

use crate::model::matrix::{Matrix, StepHead};
use crate::model::text::clean;
use crate::printers::page::brief::numbered_lines;
use crate::printers::page::encode;

/// The maximum number of marks of a step. Of more events, the longest of each kind are marked.
const MARKS_MAX: usize = 300;
/// The maximum length of the text of a mark.
const TEXT_CHARS_MAX: usize = 140;

/// Returns the legend of a step's marks and their data; nothing without events.
pub(super) fn of_step(matrix: &Matrix<'_>, step: StepHead<'_>) -> Markup {
    let lines: Vec<(usize, &[LogEvent])> = numbered_lines(matrix, step)
        .filter_map(|line| Some((line.number, line.row.events.as_ref()?.all.as_slice())))
        .filter(|(_, events)| !events.is_empty())
        .collect();
    if lines.is_empty() {
        return markup! {};
    }

    let count: usize = lines.iter().map(|(_, events)| events.len()).sum();
    let per_line = (MARKS_MAX / lines.len()).max(1);
    let mut marks: Vec<LineMark<'_>> = Vec::new();
    for (line, events) in lines {
        let longest = longest_of_each_kind(events, per_line);
        marks.extend(longest.into_iter().map(|event| LineMark { line, event }));
    }

    let mut kinds: Vec<&str> = marks.iter().map(|mark| mark.event.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();

    markup! {
        p.note.marks {
            "Bars above a chart are events of the engine's log, from the top: " (clean(&kinds.join(", "))) "."
            @if marks.len() < count { " Of " (count) " events, the charts show " (marks.len()) ": the longest of each kind." }
        }

        script.marks type="application/json" { (PreEscaped(data(&kinds, &marks))) }
    }
}

/// An event with the number of its line.
struct LineMark<'e> {
    line: usize,
    event: &'e LogEvent,
}

/// Returns at most `count` events: as many of each kind as of any other, so that a few stalls are
/// not lost among many flushes.
fn longest_of_each_kind(events: &[LogEvent], count: usize) -> Vec<&LogEvent> {
    let mut longest: Vec<&LogEvent> = events.iter().collect();
    longest.sort_by_key(|event| std::cmp::Reverse(event.duration_ns));

    // First the longest of each kind, then the second of each, and so on.
    let mut seen_of_kind: BTreeMap<&str, usize> = BTreeMap::new();
    longest.sort_by_cached_key(|event| {
        let rank = seen_of_kind.entry(&event.kind).or_default();
        *rank += 1;
        *rank
    });

    longest.truncate(count);
    longest
}

/// Returns the kinds, and for each mark its line, second, duration in seconds, kind and text.
fn data(kinds: &[&str], marks: &[LineMark<'_>]) -> String {
    let mut shown: Vec<Value> = Vec::new();
    for LineMark { line, event } in marks {
        let kind = kinds.iter().position(|kind| *kind == event.kind);
        let text: String = clean(&event.text).chars().take(TEXT_CHARS_MAX).collect();
        let duration = event.duration_ns.map(|ns| seconds(ns as f64));
        shown.push(json!([line, seconds(event.unix_ns as f64), duration, kind, text]));
    }
    encode::json(json!({"kinds": kinds, "marks": shown}))
}

/// Converts nanoseconds to seconds with three decimals.
fn seconds(ns: f64) -> f64 {
    (ns / 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_rare_kind_are_marked_among_many_others() {
        let event = |kind: &str, duration_ns| LogEvent {
            kind: kind.into(),
            duration_ns,
            ..LogEvent::default()
        };
        let mut events: Vec<LogEvent> = (1..=100).map(|ns| event("flush", Some(ns))).collect();
        events.extend([event("write stop", None), event("write stop", None)]);
        let marked = longest_of_each_kind(&events, 10);
        let stops = marked.iter().filter(|event| event.kind == "write stop").count();
        assert_eq!((marked.len(), stops), (10, 2));
        assert_eq!(marked.iter().filter_map(|event| event.duration_ns).min(), Some(93));
    }

    #[test]
    fn a_mark_has_its_line_second_duration_and_kind() {
        let flush = LogEvent {
            unix_ns: 1_500_000_000,
            kind: "flush".into(),
            duration_ns: Some(250_000_000),
            text: "</script>".into(),
            ..LogEvent::default()
        };
        let stop =
            LogEvent { kind: "write stop".into(), unix_ns: -1_000_000, ..LogEvent::default() };
        let marks = [LineMark { line: 0, event: &flush }, LineMark { line: 2, event: &stop }];
        let data = data(&["flush", "write stop"], &marks);
        assert!(!data.contains("</script>"), "{data}");
        let data: Value = serde_json::from_str(&data).unwrap();
        let expected = json!({
            "kinds": ["flush", "write stop"],
            "marks": [[0, 1.5, 0.25, 0, "</script>"], [2, -0.001, null, 1, ""]],
        });
        assert_eq!(data, expected);
    }
}
