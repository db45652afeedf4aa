//! How two targets, or two runs of one, are said to differ.

use super::*;
use crate::OneSidedSetting;

const CHEAP: &[(&str, f64)] = &[
    ("op_client_cpu_us", 20.0),
    ("op_server_cpu_us", 75.0),
    ("op_cpu_wait_us", 1.0),
];
const DEAR: &[(&str, f64)] = &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 140.0)];
/// As slow, and waiting for a processor.
const BUSY: &[(&str, f64)] = &[
    ("op_client_cpu_us", 20.0),
    ("op_server_cpu_us", 76.0),
    ("op_cpu_wait_us", 80.0),
];

fn costs(dear: &'static [(&'static str, f64)]) -> [Cost<'static>; 2] {
    [
        cost("a.c", "q100", 30_000.0, CHEAP),
        cost("b.c", "q100", 20_000.0, dear),
    ]
}

#[track_caller]
fn explained(mut figures: Figures, comparison: Comparison) -> Finding {
    figures.settings.differences = vec![comparison];
    let mut findings = found(&figures);
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn undeclared(name: &str) -> OneSidedSetting {
    OneSidedSetting {
        name: name.to_owned(),
        value: "3".to_owned(),
        mark: DifferenceKind::Undeclared,
        role: None,
    }
}

#[test]
fn settings_beside_the_version_make_it_impossible_to_say() {
    let mut comparison = differing(
        ("a.c", "17.2"),
        ("b.c", "18.1"),
        &[
            ("io_method", "sync", "worker"),
            ("effective_io_concurrency", "1", "16"),
        ],
    );
    comparison.settings[1].mark = DifferenceKind::Undeclared;
    comparison.only_b = vec![undeclared("io_workers")];
    let finding = explained(repeated(&costs(DEAR)), comparison.clone());
    says(
        &finding,
        &[
            "The two differ in version (17.2 -> 18.1), in 1 setting that the plan declares, io_method (sync -> worker) and \
             in 1 more that the plan does not declare, such as defaults (1 setting is in 18.1 alone).",
            "settings differ beside the version: the comparison does not tell which of them causes the change",
        ],
    );

    // The same target twice.
    comparison.identical = true;
    let finding = explained(repeated(&costs(DEAR)), comparison);
    says(&finding, &["no difference between the two is known"]);
}

#[test]
fn settings_that_one_version_alone_has_are_a_part_of_the_version() {
    let mut comparison = differing(("a.c", "15.3"), ("b.c", "17.2"), &[]);
    comparison.only_a = vec![undeclared("old_snapshot_threshold")];
    comparison.only_b = vec![undeclared("event_triggers"), undeclared("summarize_wal")];
    let finding = explained(repeated(&costs(DEAR)), comparison.clone());
    says(
        &finding,
        &[
            "The two differ in version alone, 15.3 -> 17.2 (1 setting is in 15.3 alone and 2 in 17.2 alone; the settings that both have are equal).",
        ],
    );
    says_not(&finding, &["which of them", "beside the version"]);

    // Seen from the other side.
    let mut figures = repeated(&costs(DEAR));
    figures.rows.reverse();
    let finding = explained(figures, comparison.clone());
    says(
        &finding,
        &["17.2 -> 15.3 (2 settings are in 17.2 alone and 1 in 15.3 alone"],
    );

    // One version knows the same settings everywhere: there they are differences like any other.
    comparison.b_version = comparison.a_version.clone();
    let finding = explained(repeated(&costs(DEAR)), comparison);
    says(
        &finding,
        &[
            "The two differ in 3 settings that the plan does not declare",
            "several settings differ: the comparison does not tell which of them causes the change",
        ],
    );
}

#[test]
fn two_builds_of_one_version_are_not_the_same() {
    let mut comparison = differing(("a.c", "17.2"), ("b.c", "17.2"), &[]);
    (comparison.a_build, comparison.b_build) = ("o2".to_owned(), "o3".to_owned());
    let finding = explained(repeated(&costs(DEAR)), comparison.clone());
    says(&finding, &["The two differ in build alone, o2 -> o3."]);
    says_not(&finding, &["the same build", "no difference"]);

    // Nor is one setting beside it all that differs.
    let beside = differing(("a.c", "17.2"), ("b.c", "17.2"), &[("jit", "on", "off")]);
    comparison.settings = beside.settings;
    let finding = explained(repeated(&costs(DEAR)), comparison);
    says(
        &finding,
        &[
            "The two differ in build (o2 -> o3) and in 1 setting that the plan declares, jit (on -> off).",
            "settings differ beside the build",
        ],
    );
}

#[test]
fn one_setting_is_the_difference_only_where_chance_and_the_host_are_not() {
    let jit = || differing(("a.c", "17.2"), ("b.c", "17.2"), &[("jit", "on", "off")]);
    let alone = "The two differ in jit (on -> off) alone";
    let sure = format!("{alone}, which makes the difference.");
    let open = format!("{alone}.");
    let finding = explained(repeated(&costs(DEAR)), jit());
    assert!(finding.text.ends_with(&sure), "{}", finding.text);

    let host = explained(repeated(&costs(BUSY)), jit());
    assert_eq!(host.kind, FindingKind::HostBusy);
    let mut figures = repeated(&costs(DEAR));
    figures
        .rows
        .sort_by(|a, b| a.cell.target.cmp(&b.cell.target));
    let no_turns = explained(figures, jit());
    for finding in [host, no_turns] {
        assert!(finding.text.ends_with(&open), "{}", finding.text);
    }
}

/// Two targets in two runs, as they are where runs are compared: `target` is the run, and the variant has the target.
fn by_run(rates: [(&'static str, f64, f64); 2]) -> Figures {
    let mut figures = Figures::default();
    for (config, base, other) in rates {
        let both = [("run 1", base, CHEAP), ("run 2", other, DEAR)];
        for step in ["q100", "q500"] {
            let costs = both.map(|(target, rate, metrics)| cost(target, step, rate, metrics));
            figures
                .rows
                .extend(repeated(&costs).rows.into_iter().map(|row| Row {
                    run: usize::from(row.cell.target == "run 2"),
                    build: "pg".to_owned(),
                    config: config.to_owned(),
                    cell: record::CellKey {
                        variant: Some(format!("pg.{config}")),
                        ..row.cell.clone()
                    },
                    ..row
                }));
        }
    }
    figures
}

fn of_target(target: &str, base: &str, other: &str, settings: &[(&str, &str, &str)]) -> Comparison {
    Comparison {
        target: Some(target.to_owned()),
        ..differing(("run 1", base), ("run 2", other), settings)
    }
}

#[test]
fn what_differs_between_runs_is_said_of_the_target_that_changed() {
    let mut figures = by_run([("a", 30_000.0, 30_000.0), ("b", 30_000.0, 20_000.0)]);
    figures.settings.differences = vec![
        of_target("pg.a", "15.3", "15.18", &[]),
        of_target("pg.b", "17.2", "17.2", &[("jit", "on", "off")]),
    ];
    let findings = found(&figures);
    // Of `pg.a` throughput is the same.
    assert_eq!(
        kinds(&findings),
        [FindingKind::Cpu, FindingKind::HiddenCost]
    );
    says(
        &findings[0],
        &[
            "run 2: up to 1.50x slower in q100 and q500 of pg.b: more CPU per operation",
            "; the two differ in jit (on -> off) alone.",
        ],
    );
    says_not(&findings[0], &["15.18"]);

    // Where both changed, each by its own doing.
    let mut figures = by_run([("a", 30_000.0, 25_000.0), ("b", 30_000.0, 20_000.0)]);
    figures.settings.differences = vec![
        of_target("pg.a", "15.3", "15.18", &[]),
        of_target("pg.b", "17.2", "17.2", &[("jit", "on", "off")]),
    ];
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(
        &findings[0],
        &[
            "; the two pg.b differ in jit (on -> off) alone; the two pg.a differ in version alone, 15.3 -> 15.18.",
        ],
    );

    // A setting without effect is that of its target alone.
    let mut figures = by_run([("a", 30_000.0, 30_000.0), ("b", 30_000.0, 30_000.0)]);
    figures.settings.differences = vec![of_target("pg.b", "17.2", "17.2", &[("jit", "on", "off")])];
    let findings = found(&figures);
    // `pg.a` costs more CPU at the same throughput.
    assert_eq!(
        kinds(&findings),
        [FindingKind::HiddenCost, FindingKind::NoEffect]
    );
    says(
        &findings[1],
        &[
            "From run 1 only one setting is known to differ: run 2 of pg.b in jit (on -> off).",
            "in any of 2 comparisons",
        ],
    );
}
