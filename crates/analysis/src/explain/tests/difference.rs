//! The differences between two targets, or between two runs of one.

use super::*;
use crate::explain::difference::OtherBuild;
use crate::settings::OneSidedSetting;

const CHEAP: &[(&str, f64)] =
    &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 75.0), ("op_cpu_wait_us", 1.0)];
const DEAR: &[(&str, f64)] = &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 140.0)];
/// As slow, and waiting for a processor.
const BUSY: &[(&str, f64)] =
    &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 76.0), ("op_cpu_wait_us", 80.0)];

fn costs(dear: &'static [(&'static str, f64)]) -> [Cost<'static>; 2] {
    [cost("a.c", "q100", 30_000.0, CHEAP), cost("b.c", "q100", 20_000.0, dear)]
}

/// Returns the differences in the only change, and whether a setting makes it.
#[track_caller]
fn difference(mut figures: Figures, comparison: Comparison) -> (TargetDifference, bool) {
    figures.settings.differences = vec![comparison];
    let mut changes = differences(&figures);
    assert_eq!(changes.len(), 1, "{changes:?}");
    let (mut differences, is_sure) = changes.remove(0);
    assert_eq!(differences.len(), 1, "{differences:?}");
    (differences.remove(0), is_sure)
}

/// Returns a build, the names of declared settings, and the number of others that differ.
#[track_caller]
fn known(difference: TargetDifference) -> (Option<OtherBuild>, Vec<String>, usize) {
    let TargetDifference::Known { build, declared, undeclared, .. } = difference else {
        panic!("{difference:?}");
    };
    let names = declared.into_iter().map(|setting| setting.name);
    (build, names.collect(), undeclared)
}

/// Returns two builds, and the number of settings that each alone has.
fn builds(has_other_version: bool, names: [&str; 2], own: [usize; 2]) -> Option<OtherBuild> {
    Some(OtherBuild {
        base: names[0].to_owned(),
        target: names[1].to_owned(),
        has_other_version,
        only_base: own[0],
        only_target: own[1],
    })
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
fn settings_that_differ_with_the_version_are_a_caveat() {
    let mut comparison = differing(
        ("a.c", "17.2"),
        ("b.c", "18.1"),
        &[("io_method", "sync", "worker"), ("effective_io_concurrency", "1", "16")],
    );
    comparison.settings[1].mark = DifferenceKind::Undeclared;
    comparison.only_b = vec![undeclared("io_workers")];
    let (found, _) = difference(repeated(&costs(DEAR)), comparison.clone());
    let (has_other_version, only) = (true, None);
    assert_eq!(found.caveat(), Some(Caveat::OtherSettings { has_other_version, only }));
    let versions = builds(true, ["17.2", "18.1"], [0, 1]);
    assert_eq!(known(found), (versions, vec!["io_method".to_owned()], 1));

    // The same target twice.
    comparison.identical = true;
    let (found, _) = difference(repeated(&costs(DEAR)), comparison);
    assert!(found.is_nothing(), "{found:?}");
}

#[test]
fn settings_that_only_one_version_has_belong_to_the_version() {
    let mut comparison = differing(("a.c", "15.3"), ("b.c", "17.2"), &[]);
    comparison.only_a = vec![undeclared("old_snapshot_threshold")];
    comparison.only_b = vec![undeclared("event_triggers"), undeclared("summarize_wal")];
    let (found, _) = difference(repeated(&costs(DEAR)), comparison.clone());
    assert_eq!(found.caveat(), None);
    let versions = builds(true, ["15.3", "17.2"], [1, 2]);
    assert_eq!(known(found), (versions, Vec::new(), 0));

    // Seen from the other side.
    let mut figures = repeated(&costs(DEAR));
    figures.rows.reverse();
    let (found, _) = difference(figures, comparison.clone());
    let versions = builds(true, ["17.2", "15.3"], [2, 1]);
    assert_eq!(known(found), (versions, Vec::new(), 0));

    // One version knows the same settings everywhere: there they are differences like any other.
    comparison.b_version = comparison.a_version.clone();
    let (found, _) = difference(repeated(&costs(DEAR)), comparison);
    assert_eq!(found.caveat(), Some(Caveat::SeveralSettings));
    assert_eq!(known(found), (None, Vec::new(), 3));
}

#[test]
fn two_builds_of_one_version_are_not_the_same() {
    let mut comparison = differing(("a.c", "17.2"), ("b.c", "17.2"), &[]);
    (comparison.a_build, comparison.b_build) = ("o2".to_owned(), "o3".to_owned());
    let (found, _) = difference(repeated(&costs(DEAR)), comparison.clone());
    assert_eq!(found.caveat(), None);
    let both = || builds(false, ["o2", "o3"], [0, 0]);
    assert_eq!(known(found), (both(), Vec::new(), 0));

    // Nor is one setting beside it all that differs.
    let concurrent = differing(("a.c", "17.2"), ("b.c", "17.2"), &[("jit", "on", "off")]);
    comparison.settings = concurrent.settings;
    let (found, _) = difference(repeated(&costs(DEAR)), comparison.clone());
    let (has_other_version, only) = (false, Some("jit".to_owned()));
    assert_eq!(found.caveat(), Some(Caveat::OtherSettings { has_other_version, only }));
    assert_eq!(known(found), (both(), vec!["jit".to_owned()], 0));

    // The setting is named even if the plan does not declare it.
    comparison.settings[0].mark = DifferenceKind::Undeclared;
    let (found, _) = difference(repeated(&costs(DEAR)), comparison);
    let caveat = Caveat::OtherSettings { has_other_version, only: Some("jit".to_owned()) };
    assert_eq!(found.caveat(), Some(caveat));
    assert_eq!(known(found), (both(), Vec::new(), 1));
}

#[test]
fn one_setting_is_the_difference_only_where_chance_and_the_host_are_not() {
    let jit = || differing(("a.c", "17.2"), ("b.c", "17.2"), &[("jit", "on", "off")]);
    let (found, is_sure) = difference(repeated(&costs(DEAR)), jit());
    assert!(found.only_setting().is_some() && is_sure);

    let host = repeated(&costs(BUSY));
    only(&host, FindingKind::HostBusy);
    let mut no_turns = repeated(&costs(DEAR));
    no_turns.rows.sort_by(|a, b| a.cell.target.cmp(&b.cell.target));
    for figures in [host, no_turns] {
        let (found, is_sure) = difference(figures, jit());
        assert!(found.only_setting().is_some() && !is_sure);
    }
}

/// Two targets in runs of two kinds, as they are where runs are compared: `target` is the kind of run,
/// and the variant has the target. There are several runs of each kind, with one repeat each.
fn by_run(rates: [(&'static str, f64, f64); 2]) -> Figures {
    let mut figures = Figures::default();
    for (config, base, other) in rates {
        let both = [("run 1", base, CHEAP), ("run 2", other, DEAR)];
        for step in ["q100", "q500"] {
            let costs = both.map(|(target, rate, metrics)| cost(target, step, rate, metrics));
            figures.rows.extend(repeated(&costs).rows.into_iter().map(|row| Row {
                run: 2 * row.cell.repeat as usize + usize::from(row.cell.target == "run 2"),
                build: "pg".to_owned(),
                config: config.to_owned(),
                cell: record::CellKey { variant: Some(format!("pg.{config}")), ..row.cell.clone() },
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
fn differences_between_runs_belong_to_the_target_that_changed() {
    let mut figures = by_run([("a", 30_000.0, 30_000.0), ("b", 30_000.0, 20_000.0)]);
    figures.settings.differences = vec![
        of_target("pg.a", "15.3", "15.18", &[]),
        of_target("pg.b", "17.2", "17.2", &[("jit", "on", "off")]),
    ];
    let findings = found(&figures);
    // Of `pg.a` throughput is the same.
    assert_eq!(kinds(&findings), [FindingKind::Cpu, FindingKind::HiddenCost]);
    let names = |figures: &Figures| {
        let all = explained(figures, |it| match &it.statement {
            Statement::Change(change) => Some(
                change
                    .differences
                    .iter()
                    .map(|of_target| {
                        (of_target.shared.clone().unwrap(), of_target.difference.clone())
                    })
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        });
        let of_one = all.into_iter().flatten();
        of_one.map(|(target, it)| (target, known(it))).collect::<Vec<_>>()
    };
    let jit = || ("pg.b".to_owned(), (None, vec!["jit".to_owned()], 0));
    assert_eq!(names(&figures), [jit()]);

    // Where both changed, each by its own doing.
    let mut figures = by_run([("a", 30_000.0, 25_000.0), ("b", 30_000.0, 20_000.0)]);
    figures.settings.differences = vec![
        of_target("pg.a", "15.3", "15.18", &[]),
        of_target("pg.b", "17.2", "17.2", &[("jit", "on", "off")]),
    ];
    assert_eq!(kinds(&found(&figures)), [FindingKind::Cpu]);
    let versions = builds(true, ["15.3", "15.18"], [0, 0]);
    let version = ("pg.a".to_owned(), (versions, Vec::new(), 0));
    assert_eq!(names(&figures), [jit(), version]);

    // A setting without effect is that of its target alone.
    let mut figures = by_run([("a", 30_000.0, 30_000.0), ("b", 30_000.0, 30_000.0)]);
    figures.settings.differences = vec![of_target("pg.b", "17.2", "17.2", &[("jit", "on", "off")])];
    // Both cost more CPU at the same throughput.
    assert_eq!(kinds(&found(&figures)), [FindingKind::HiddenCost]);

    let cheap = row(&cost("run 2", "q100", 30_000.0, CHEAP), 1);
    for row in figures.rows.iter_mut().filter(|row| row.config == "b") {
        row.metrics.clone_from(&cheap.metrics);
    }
    let findings = found(&figures);
    // Now `pg.a` alone does.
    assert_eq!(kinds(&findings), [FindingKind::HiddenCost, FindingKind::NoEffect]);
    let without = explained(&figures, |it| match &it.statement {
        Statement::NoEffect(it) => Some((it.settings[0].who.clone(), it.comparison_count)),
        _ => None,
    });
    assert_eq!(without, [("run 2 of pg.b".to_owned(), 2)]);
}
