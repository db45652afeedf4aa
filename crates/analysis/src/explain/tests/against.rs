//! What speaks against a finding.

use super::*;
use crate::Sla;

const COSTS: [&[(&str, f64)]; 2] = [
    &[
        ("cpupq", 100.0),
        ("client_cpu_us_per_op", 20.0),
        ("server_cpu_us_per_op", 75.0),
    ],
    &[
        ("cpupq", 150.0),
        ("client_cpu_us_per_op", 20.0),
        ("server_cpu_us_per_op", 125.0),
    ],
];

fn costs(step: &str) -> [Cost<'_>; 2] {
    [("a.c", 30_000.0, COSTS[0]), ("b.c", 20_000.0, COSTS[1])].map(|(target, rate, metrics)| Cost {
        target,
        step,
        clients: 4,
        rate,
        metrics,
    })
}

fn only(figures: &Figures) -> Finding {
    let mut findings = found(figures);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    findings.remove(0)
}

#[test]
fn nothing_speaks_against_repeats_that_took_turns() {
    assert_eq!(only(&repeated(&costs("q100"))).against, [] as [&str; 0]);
}

#[test]
fn repeats_that_did_not_take_turns_are_doubted() {
    let mut figures = repeated(&costs("q100"));
    figures.rows.sort_by(|a, b| a.target.cmp(&b.target));
    says(&only(&figures), &["base and target did not take turns"]);
}

#[test]
fn other_runs_are_doubted() {
    let mut figures = repeated(&costs("q100"));
    for row in &mut figures.rows {
        row.run = usize::from(row.target == "b.c");
    }
    figures.rows.sort_by_key(|row| row.run);
    let finding = only(&figures);
    says(&finding, &["measured in different runs"]);
    says_not(&finding, &["did not take turns"]);
}

#[test]
fn other_processes_steal_swap_and_memory_are_told_with_both_figures() {
    let mut figures = single(&costs("q100"));
    figures.rows[1].metrics.insert("cpupq", Some(194.0));
    let all = |value: f64| 100.0 * value;
    for (row, steal, pages, pressure) in [(0, 0.0, 0.0, 0.0), (1, 4e7, 50.0, 2e8)] {
        figures.rows[row].host_sums = BTreeMap::from([
            ("cpu_user_ns".to_owned(), all(1e9)),
            ("cpu_idle_ns".to_owned(), all(1e9)),
            ("cpu_steal_ns".to_owned(), all(steal)),
            ("swap_in_page_count".to_owned(), all(pages)),
            ("swap_out_page_count".to_owned(), all(0.0)),
            ("pressure_memory_some_ns".to_owned(), all(pressure)),
        ]);
    }
    says(
        &only(&figures),
        &[
            "up to 25% of the host's CPU was neither the client's nor the server's (5 -> 49 us per query, 9.80x)",
            "the hypervisor took processors away for 0 -> 1.96% of the time",
            "the host swapped: 0 -> 5000 pages",
            "threads waited for memory in 0 -> 20% of the time",
        ],
    );
}

#[test]
fn a_rate_of_writes_that_one_had_and_the_other_not_is_told() {
    let mut figures = single(&costs("q1000"));
    for (row, achieved) in [(0, 4000.0), (1, 3000.0)] {
        figures.rows[row].sla = Some(Sla {
            kind: "insert".to_owned(),
            target: 4000.0,
            achieved,
            met: achieved > 3800.0,
            ..Sla::default()
        });
    }
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::SlaMissed, FindingKind::Cpu]);
    says(
        &findings[1],
        &["b.c did not have the rate of writes that was asked for"],
    );
    says(
        &findings[0],
        &["b.c had 3000 of 4000 rows/s in q1000 (75.0%)."],
    );
}

#[test]
fn the_debt_of_the_step_before_is_told() {
    let mut figures = single(&costs("q100"));
    let mut before = figures.rows.clone();
    for (row, dead) in before.iter_mut().zip([200_000.0, 5_000_000.0]) {
        row.step = "l.i1".to_owned();
        row.reported = false;
        row.metrics = BTreeMap::from([("debt_dead_rows", Some(dead))]);
    }
    figures.rows = vec![
        before[0].clone(),
        figures.rows[0].clone(),
        before[1].clone(),
        figures.rows[1].clone(),
    ];
    says(
        &only(&figures),
        &["the step before left another debt: 200000 -> 5000000 dead rows, 25.0x"],
    );
}

#[test]
fn two_resources_that_changed_together_are_both_named() {
    let mut figures = single(&costs("q100"));
    for (row, kb) in [(0, 2.0), (1, 3.0)] {
        figures.rows[row].metrics.insert("rpq", Some(0.0));
        figures.rows[row].metrics.insert("wKB/o", Some(kb));
    }
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(
        &findings[0],
        &[
            "written 2 -> 3 KB, 1.50x changed with it: how the two share the change of a query can't be told",
        ],
    );
    says_not(&findings[0], &["this is CPU and not IO"]);
}
