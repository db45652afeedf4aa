//! What is said of how two targets, or two runs of one, differ.

use super::*;
use crate::OneSided;

const CHEAP: &[(&str, f64)] = &[
    ("cpupq", 100.0),
    ("client_cpu_us_per_op", 20.0),
    ("server_cpu_us_per_op", 75.0),
];
const DEAR: &[(&str, f64)] = &[
    ("cpupq", 150.0),
    ("client_cpu_us_per_op", 20.0),
    ("server_cpu_us_per_op", 125.0),
];
/// As dear, and the server does none of it.
const BUSY: &[(&str, f64)] = &[
    ("cpupq", 150.0),
    ("client_cpu_us_per_op", 20.0),
    ("server_cpu_us_per_op", 76.0),
];

fn costs(dear: &'static [(&'static str, f64)]) -> [Cost<'static>; 2] {
    [("a.c", 30_000.0, CHEAP), ("b.c", 20_000.0, dear)].map(|(target, rate, metrics)| Cost {
        target,
        step: "q100",
        clients: 4,
        rate,
        metrics,
    })
}

fn only(mut figures: Figures, comparison: Comparison) -> Finding {
    figures.settings.differences = vec![comparison];
    let mut findings = found(&figures);
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn undeclared(name: &str) -> OneSided {
    OneSided {
        name: name.to_owned(),
        value: "3".to_owned(),
        mark: Mark::Undeclared,
    }
}

#[test]
fn settings_beside_the_version_make_it_impossible_to_say() {
    let mut comparison = apart(
        ("a.c", "17.2"),
        ("b.c", "18.1"),
        &[
            ("io_method", "sync", "worker"),
            ("effective_io_concurrency", "1", "16"),
        ],
    );
    comparison.settings[1].mark = Mark::Undeclared;
    comparison.only_b = vec![undeclared("io_workers")];
    let finding = only(repeated(&costs(DEAR)), comparison.clone());
    says(
        &finding,
        &[
            "The two differ in version (17.2 -> 18.1), in 1 setting that the plan declares, io_method (sync -> worker) and \
             in 1 more that the plan does not declare, such as defaults; 1 setting is in 18.1 alone.",
            "settings differ beside the version: which of them it is can't be told from this",
        ],
    );

    // The same target twice.
    comparison.identical = true;
    let finding = only(repeated(&costs(DEAR)), comparison);
    says(&finding, &["nothing is known in which the two differ"]);
}

#[test]
fn settings_that_one_version_alone_has_are_a_part_of_the_version() {
    let mut comparison = apart(("a.c", "15.3"), ("b.c", "17.2"), &[]);
    comparison.only_a = vec![undeclared("old_snapshot_threshold")];
    comparison.only_b = vec![undeclared("event_triggers"), undeclared("summarize_wal")];
    let finding = only(repeated(&costs(DEAR)), comparison.clone());
    says(
        &finding,
        &[
            "The two differ in version alone: 15.3 -> 17.2; 1 setting is in 15.3 alone and 2 in 17.2 alone, and none that \
             both have differs.",
        ],
    );
    says_not(&finding, &["which of them it is", "beside the version"]);

    // Seen from the other side.
    let mut figures = repeated(&costs(DEAR));
    figures.rows.reverse();
    let finding = only(figures, comparison.clone());
    says(
        &finding,
        &["17.2 -> 15.3; 2 settings are in 17.2 alone and 1 in 15.3 alone"],
    );

    // One version knows the same settings everywhere: there they are differences like any other.
    comparison.b_version = comparison.a_version.clone();
    let finding = only(repeated(&costs(DEAR)), comparison);
    says(
        &finding,
        &[
            "The two differ in 3 settings that the plan does not declare",
            "several settings differ: which of them it is can't be told from this",
        ],
    );
}

#[test]
fn two_builds_of_one_version_are_not_the_same() {
    let mut comparison = apart(("a.c", "17.2"), ("b.c", "17.2"), &[]);
    (comparison.a_build, comparison.b_build) = ("o2".to_owned(), "o3".to_owned());
    let finding = only(repeated(&costs(DEAR)), comparison.clone());
    says(&finding, &["The two differ in build alone: o2 -> o3."]);
    says_not(&finding, &["the same in build", "nothing is known"]);

    // Nor is one setting beside it all that differs.
    let beside = apart(("a.c", "17.2"), ("b.c", "17.2"), &[("jit", "on", "off")]);
    comparison.settings = beside.settings;
    let finding = only(repeated(&costs(DEAR)), comparison);
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
    let jit = || apart(("a.c", "17.2"), ("b.c", "17.2"), &[("jit", "on", "off")]);
    let alone = "The two differ in jit (on -> off) alone";
    let sure = format!("{alone}: the difference is this setting.");
    let open = format!("{alone}. ");
    let finding = only(repeated(&costs(DEAR)), jit());
    assert!(finding.text.ends_with(&sure), "{}", finding.text);

    let chance = only(single(&costs(DEAR)), jit());
    let host = only(repeated(&costs(BUSY)), jit());
    assert_eq!(host.kind, FindingKind::HostBusy);
    let mut figures = repeated(&costs(DEAR));
    figures.rows.sort_by(|a, b| a.target.cmp(&b.target));
    let no_turns = only(figures, jit());
    for finding in [chance, host, no_turns] {
        let text = format!("{} ", finding.text);
        assert!(text.ends_with(&open), "{text}");
    }
}

/// Two targets in two runs, as they are where runs are compared: `target` is the run, and the variant has the target.
fn by_run(rates: [(&'static str, f64, f64); 2]) -> Figures {
    let mut rows = Vec::new();
    for (config, base, other) in rates {
        for (run, rate, metrics) in [(0, base, CHEAP), (1, other, DEAR)] {
            for step in ["q100", "q500"] {
                let cost = Cost {
                    target: ["run 1", "run 2"][run],
                    step,
                    clients: 1,
                    rate,
                    metrics,
                };
                rows.push(Row {
                    run,
                    build: "pg".to_owned(),
                    config: config.to_owned(),
                    variant: Some(format!("pg.{config}")),
                    ..row(&cost, 1)
                });
            }
        }
    }
    Figures {
        rows,
        ..Figures::default()
    }
}

fn of_target(target: &str, base: &str, other: &str, settings: &[(&str, &str, &str)]) -> Comparison {
    Comparison {
        target: Some(target.to_owned()),
        ..apart(("run 1", base), ("run 2", other), settings)
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
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(
        &findings[0],
        &[
            "run 2: up to 33% slower in q100 and q500 of pg.b",
            "The two differ in jit (on -> off) alone.",
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
            "Of pg.b the two differ in jit (on -> off) alone. Of pg.a the two differ in version alone: 15.3 -> 15.18.",
        ],
    );

    // A setting without effect is that of its target alone.
    let mut figures = by_run([("a", 30_000.0, 30_000.0), ("b", 30_000.0, 30_000.0)]);
    figures.settings.differences = vec![of_target("pg.b", "17.2", "17.2", &[("jit", "on", "off")])];
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::NoEffect]);
    says(
        &findings[0],
        &[
            "run 2 of pg.b differs in jit (on -> off) from run 1",
            "in any of 2 comparisons",
        ],
    );
}
