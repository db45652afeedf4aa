//! Which comparisons are decided together.

use analysis::compare::{compare, costs};
use analysis::figures::Figures;

use super::machine::BASE;
use super::simulated::options;
use super::verdicts::in_turns;

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
