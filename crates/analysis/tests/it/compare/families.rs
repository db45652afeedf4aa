//! Which comparisons are decided together.

use analysis::compare::{CompareOptions, Verdict, compare, costs};
use analysis::figures::{Figures, Row};

use super::machine::BASE;
use super::simulated::options;
use super::verdicts::{in_turns, notes, of};

#[test]
fn no_verdict_depends_on_what_else_is_asked_for() {
    let mut rows = in_turns(&[(1000.0, 1000.0); 4]);
    for (index, row) in rows.iter_mut().enumerate() {
        let is_base = row.cell.target == BASE;
        let noise = 1.0 + 0.07 * (index / 2 % 3) as f64;
        for metric in ["cache_mb", "stall%", "stall_s", "levels"] {
            row.metrics.insert(metric, Some(100.0 * noise));
        }
        row.metrics.insert("rareqsz", Some(if is_base { 100.0 } else { 80.0 } * noise));
        row.metrics.insert("flush_gb", Some(if is_base { 100.0 } else { 120.0 } * noise));
    }
    let figures = Figures { rows, ..Figures::default() };

    let judged = |asked: &[&str], metric: &str| {
        let mut options = options();
        options.metrics = costs(&figures);
        options.shown_metrics = asked.iter().map(|name| (*name).to_owned()).collect();
        let compared = compare(&figures, &options);
        let row = compared.rows.iter().find(|row| row.metric == metric).unwrap();
        (row.verdict, row.interval)
    };
    for metric in ["rareqsz", "flush_gb"] {
        let alone = judged(&[metric], metric);
        assert!(alone.0.is_change(), "{metric}: {alone:?}");
        let others = ["cache_mb", "stall%", "stall_s", "levels", metric];
        assert_eq!(judged(&others, metric), alone, "{metric}");
    }
}

/// Five repeats in turns, of which each metric of the target has these logarithms of its ratio.
fn with_costs(costs: &[(&'static str, [f64; 5])]) -> Figures {
    let mut rows = in_turns(&[(1000.0, 1000.0); 5]);
    for row in &mut rows {
        let is_base = row.cell.target == BASE;
        for (metric, logarithms) in costs {
            let logarithm = logarithms[row.cell.repeat as usize - 1];
            let ratio = if is_base { 1.0 } else { logarithm.exp() };
            row.metrics.insert(*metric, Some(100.0 * ratio));
        }
    }
    Figures { rows, ..Figures::default() }
}

const NOISE: [f64; 5] = [0.10, -0.12, 0.08, -0.05, 0.02];

#[test]
fn a_note_counts_the_verdict_that_cpu_of_clients_shares_with_own_cpu() {
    // The p-value is about 4%: enough for one comparison, and not for one of three.
    let own_cpu = [0.03, 0.05, 0.00, 0.07, 0.03];
    let figures = with_costs(&[
        ("own_cpu_us_per_op", own_cpu),
        ("client_cpu_us_per_op", own_cpu),
        ("cs/o", NOISE),
        ("rKB/o", NOISE.map(|logarithm| -logarithm)),
    ]);
    let metrics = ["client_cpu_us_per_op", "cs/o", "rKB/o"];
    let options = CompareOptions { metrics: metrics.map(str::to_owned).to_vec(), ..options() };

    let compared = compare(&figures, &options);
    assert_eq!(of(&compared, "client_cpu_us_per_op").verdict, Verdict::Slower);
    let note = "3 comparisons of costs: 1 shows a change (client_cpu ";
    assert!(notes(&compared, note), "{:?}", compared.notes);
}

#[test]
fn device_columns_are_counted_only_where_a_table_has_them() {
    let figures = with_costs(&[("rareqsz", NOISE)]);
    let is_counted = |asked: &[&str]| {
        let shown_metrics = asked.iter().map(|metric| (*metric).to_owned()).collect();
        let metrics = vec!["rareqsz".to_owned()];
        let options = CompareOptions { metrics, shown_metrics, ..options() };
        notes(&compare(&figures, &options), "1 comparison of device columns: none shows a change")
    };
    assert!(!is_counted(&[]));
    assert!(is_counted(&["rareqsz"]));
}

/// Five repeats, in which a metric changed by a factor of about e.
const CHANGED: [f64; 5] = [1.0, 1.02, 0.98, 1.01, 0.99];

#[test]
fn a_note_says_how_many_of_the_comparisons_and_changes_tables_have() {
    let mut figures = with_costs(&[("rareqsz", CHANGED), ("util%", NOISE), ("cs/o", NOISE)]);
    for row in with_costs(&[("cs/o", CHANGED)]).rows {
        figures.rows.push(Row { step: "point".to_owned(), ..row });
    }

    let notes_of_steps = |steps: &[&str]| {
        let metrics = ["rareqsz", "util%", "cs/o"].map(str::to_owned).to_vec();
        let steps = steps.iter().map(|step| (*step).to_owned()).collect();
        compare(&figures, &CompareOptions { metrics, steps, ..options() }).notes
    };
    let has_note = |notes: &[String], text: &str| notes.iter().any(|note| note.starts_with(text));

    let of_all = notes_of_steps(&[]);
    let device =
        "2 comparisons of device columns, of which tables have 1: 1 shows a change (rareqsz ";
    assert!(has_note(&of_all, device), "{of_all:?}");
    assert!(has_note(&of_all, "2 comparisons of costs: 1 shows a change (cs/o "), "{of_all:?}");

    let of_scan = notes_of_steps(&["scan"]);
    let of_costs =
        "2 comparisons of costs, of which tables have 1: 1 shows a change, which no table shows;";
    assert!(has_note(&of_scan, of_costs), "{of_scan:?}");
    assert!(has_note(&of_scan, device), "{of_scan:?}");

    let of_point = notes_of_steps(&["point"]);
    assert!(!of_point.iter().any(|note| note.contains("device columns")), "{of_point:?}");
}

#[test]
fn a_note_on_repeats_names_comparisons_that_tables_have() {
    let mut figures = with_costs(&[("rareqsz", NOISE)]);
    for row in figures.rows.iter_mut().filter(|row| row.cell.repeat > 3) {
        row.metrics.remove("rareqsz");
    }

    let is_noted = |asked: &[&str]| {
        let shown_metrics = asked.iter().map(|metric| (*metric).to_owned()).collect();
        let metrics = vec!["rareqsz".to_owned()];
        let options = CompareOptions { metrics, shown_metrics, ..options() };
        notes(&compare(&figures, &options), "with 3 repeats (rareqsz in scan), ")
    };
    assert!(!is_noted(&[]));
    assert!(is_noted(&["rareqsz"]));
}
