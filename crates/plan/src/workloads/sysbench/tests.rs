//! Tests of the built-in tests and lists of steps, and of tests that plans define.

use super::builtin::{Builtin, TEXT};
use super::*;
use crate::spec::sysbench::{Draw, Expression, Group, Piece, Slot, TableChoice, Test};
use crate::spec::{Plan, Workload};

fn plan(workload: &str) -> (Plan, Sysbench) {
    let text = format!("[workload.sysbench]\n{workload}\n[build.x]\nnull = \"bundled\"\n");
    let (plan, warnings) = crate::parse("p.toml", &text, &[])
        .unwrap_or_else(|errors| panic!("{}", crate::render(&errors, "p.toml", &text, &[], false)));
    assert_eq!(warnings, []);
    let Workload::Sysbench(sysbench) = plan.variants[0].workload.clone() else { panic!() };
    (plan, sysbench)
}

fn runs(sysbench: &Sysbench) -> Vec<(&SysbenchStep, &Test)> {
    let runs = sysbench.steps.iter().filter_map(|step| match &step.kind {
        SysbenchStepKind::Run { test, .. } => Some((step, test)),
        _ => None,
    });
    runs.collect()
}

#[test]
fn every_built_in_test_is_valid() {
    let setting = Setting { rows: 10_000, tables: 8, clients: 4, prepared: true };
    let mut cx = Context::new(TEXT);
    for test in &mut Builtin::read(&mut cx).tests {
        test.read(&mut cx, &setting);
        let shown = crate::render(&cx.diagnostics, "builtin.toml", TEXT, &[], false);
        assert!(test.is_valid && cx.diagnostics.is_empty(), "{shown}");
    }
}

/// Tests with their group and their queries per event, as published; the last ones are sysbench's
/// own.
const PUBLISHED: [(Group, f64, &str); 13] = [
    (Group::Point, 1.0, "point-query random-points hot-points"),
    (Group::Point, 1.0, "points-covered-pk points-covered-si"),
    (Group::Point, 1.0, "points-notcovered-pk points-notcovered-si"),
    (Group::Range1, 1.0, "range-covered-pk range-covered-si scan"),
    (Group::Range1, 1.0, "range-notcovered-pk range-notcovered-si"),
    (Group::Range2, 16.0, "read-only oltp_read_only"),
    (Group::Range2, 13.0, "read-only-simple read-only-sum"),
    (Group::Range2, 13.0, "read-only-order read-only-distinct"),
    (Group::Range2, 1.0, "read-only-count"),
    (Group::Write, 1.0, "update-inlist update-index update-nonindex"),
    (Group::Write, 1.0, "update-one update-zipf delete insert"),
    (Group::Write, 6.0, "write-only oltp_write_only"),
    (Group::Write, 20.0, "read-write oltp_read_write"),
];

/// The workload with a step for every built-in test.
fn every_test() -> Sysbench {
    let names = BUILTIN.tests.iter().map(|test| quoted(&test.name));
    let names: Vec<String> = names.collect();
    plan(&format!("steps = [\"load\", \"index\", {}]", names.join(", "))).1
}

#[test]
fn queries_and_groups_are_as_published() {
    let sysbench = every_test();
    let mut runs = runs(&sysbench);
    assert_eq!(runs.len(), 38);
    for (group, queries, names) in PUBLISHED {
        for name in names.split_whitespace() {
            let at = runs.iter().position(|(_, test)| test.name == name).unwrap();
            let (_, test) = runs.remove(at);
            assert_eq!((test.group, test.queries_per_event()), (group, queries), "{name}");
        }
    }
    // All others are sysbench's own, with one statement.
    for (_, test) in runs {
        assert!(test.name.contains('_') && test.queries_per_event() == 1.0, "{}", test.name);
    }
}

#[test]
fn sysbenchs_own_tests_are_as_it_has_them() {
    let sysbench = every_test();
    let runs = runs(&sysbench);
    let statement = |name: &str| {
        let (_, test) = runs.iter().find(|(_, test)| test.name == name).unwrap();
        (test.table, test.statements[0].clone())
    };
    let (table, points) = statement("select_random_points");
    assert_eq!(table, TableChoice::First);
    assert!(points.prepared);
    assert_eq!(points.own.draws, [(0, Draw::Keys(10))]);
    let (_, ranges) = statement("select_random_ranges");
    assert_eq!(ranges.own.integers, 20);
    let last = Draw::Value(Expression::Drawn(Slot::Own(18), 5));
    assert_eq!(ranges.own.draws.last(), Some(&(19, last)));
    let (table, bulk) = statement("bulk_insert");
    assert_eq!(table, TableChoice::Thread);
    assert_eq!((bulk.count, bulk.own.integers, bulk.own.texts), (1000, 1, 2));
    assert!(!bulk.prepared);
    assert!(matches!(bulk.text.as_slice(), [.., Piece::Rows(row), _] if row.len() == 8));
}

/// Reported tests, in their order, and their number before the first write.
fn order(name: &str) -> (Vec<String>, usize) {
    let (_, sysbench) = plan(&format!("order = \"{name}\""));
    let runs = runs(&sysbench);
    let first_write = runs.iter().position(|(_, test)| test.group == Group::Write).unwrap();
    let names = |runs: &[(&SysbenchStep, &Test)]| {
        let reported = runs
            .iter()
            .filter(|(step, _)| matches!(step.kind, SysbenchStepKind::Run { reported: true, .. }));
        reported.map(|(step, _)| step.name.clone()).collect::<Vec<_>>()
    };
    (names(&runs), names(&runs[..first_write]).len())
}

#[test]
fn the_classic_order_has_42_tests() {
    let (names, before) = order("classic");
    assert_eq!((names.len(), before), (42, 15));
    assert!(names[..15].iter().all(|name| name.ends_with(".pre")));
    assert!(names[15..].iter().all(|name| !name.ends_with(".pre")));
    let writes: Vec<&str> = names[15..23].iter().map(String::as_str).collect();
    assert_eq!(
        writes,
        [
            "update-inlist",
            "update-index",
            "update-nonindex",
            "update-one",
            "update-zipf",
            "write-only",
            "read-write.range10",
            "read-write.range100",
        ]
    );
    assert_eq!(names[23], "read-only.range10");
    assert_eq!(names[39], "scan");
    assert_eq!(names[40..], ["delete", "insert"]);
    assert_eq!(BUILTIN.order(StepList::Classic).len(), 42 + 5);
}

#[test]
fn the_current_order_has_38_tests() {
    let no_tests = ["load", "index", "settle", "settle.2"];
    let steps = BUILTIN.order(StepList::Current).iter();
    let runs = steps.filter(|name| !no_tests.contains(&name.as_str()));
    assert_eq!(runs.count(), 38);
    // Of 33 that are published, `scan.warm` is not reported here; both of `.pre` are.
    let (names, before) = order("current");
    assert_eq!((names.len(), before), (34, 2));
    assert_eq!(names.first().unwrap(), "point-query.pre");
    assert_eq!(names.last().unwrap(), "insert");
}

#[test]
fn tests_last_as_long_as_their_kind() {
    let (_, sysbench) =
        plan("order = \"current\"\nread-time = \"300s\"\nwrite-time = \"600s\"\nwarmup = \"5s\"");
    let times = |name: &str| {
        let step = sysbench.steps.iter().find(|step| step.name == name);
        match step.unwrap().kind {
            SysbenchStepKind::Run { time, warmup, .. } => (time.as_secs(), warmup.as_secs()),
            _ => panic!(),
        }
    };
    assert_eq!(times("read-only.range10"), (300, 5));
    assert_eq!(times("update-index"), (600, 5));
    assert_eq!(times("write-only"), (300, 5));
    assert_eq!(times("scan.warm"), (60, 0));
    assert_eq!(times("scan.warmpre"), (60, 0));
}

#[test]
fn arguments_are_in_the_name_or_in_the_table_of_a_step() {
    let (_, sysbench) = plan(
        "steps = [\"load\", \"index\", \"hot-points\", \"hot-points.range7\", \"hot-points.range8.pre\", \"hot-points.x\"]\n\
         step.\"hot-points.x\".range = 9",
    );
    let counts: Vec<_> = runs(&sysbench)
        .iter()
        .map(|(_, test)| match &test.statements[0].own.draws[0] {
            (0, Draw::Consecutive(Expression::Integer(50_001), count)) => *count,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(counts, [100, 7, 8, 9]);
}

#[test]
fn queries_commits_and_deletes_of_an_event_are_means() {
    let means = |test: &str| {
        let steps = "steps = [\"load\", \"index\", \"mine\"]\ntest.mine.group = \"write\"";
        let (_, sysbench) = plan(&format!("{steps}\n{test}"));
        let runs = runs(&sysbench);
        let test = runs[0].1;
        let (queries, commits) = (test.queries_per_event(), test.commits_per_event());
        (queries, commits, test.deletes_per_event())
    };
    let statements = |keys: [&str; 4]| {
        let [reads, more, update, insert] = keys;
        format!(
            "test.mine.statement = [{{ {reads}, sql = \"SELECT 1\" }}, {{ {more}, sql = \"SELECT 2\" }}, \
             {{ {update}, sql = \"UPDATE {{table}} SET k = 1\" }}, {{ {insert}, sql = \"INSERT INTO {{table}} (k) VALUES (1)\" }}]"
        )
    };
    let all = statements(["repeat = 2", "repeat = 3", "repeat = 1", "repeat = 2"]);
    assert_eq!(means(&all), (8.0, 3.0, None));
    let transaction = "test.mine.transaction = true\n";
    assert_eq!(means(&format!("{transaction}{all}")), (10.0, 1.0, None));
    let mixed = statements(["repeat = 2", "repeat = 3, weight = 6", "weight = 3", "weight = 1"]);
    assert_eq!(means(&mixed), (2.0 + 2.2, 0.4, None));
    assert_eq!(means(&format!("{transaction}{mixed}")), (4.0 + 2.2, 0.4, None));
    let reads = "test.mine.statement = [{ sql = \"SELECT 1\" }]";
    assert_eq!(means(&format!("{transaction}{reads}")), (3.0, 0.0, None));
    let delete = "test.mine.statement = [{ sql = \"DELETE FROM {table} WHERE id = 1\", rows = { least = 0, most = 1 }, repeat = 3 }]";
    assert_eq!(means(delete), (3.0, 3.0, Some(3.0)));
}

#[test]
fn a_suffix_that_names_an_argument_is_no_warm_up() {
    let (_, sysbench) = plan(
        "steps = [\"load\", \"index\", \"mine.warmth5\", \"mine.warmth5.warm\"]\n\
         test.mine = { group = \"point\", arguments = { warmth = 1 }, statement = [{ sql = \"SELECT {warmth}\" }] }",
    );
    let reported: Vec<bool> = runs(&sysbench)
        .iter()
        .map(|(step, _)| matches!(step.kind, SysbenchStepKind::Run { reported: true, .. }))
        .collect();
    assert_eq!(reported, [true, false]);
}

#[test]
fn a_suffix_with_a_bad_number_gets_no_suggestion() {
    let text = "[workload.sysbench]\nsteps = [\"load\", \"index\", \"hot-points.range010\"]\n[build.x]\nnull = \"bundled\"\n";
    let (_, warnings) = crate::parse("p.toml", text, &[]).unwrap();
    let shown = crate::render(&warnings, "p.toml", text, &[], false);
    assert!(shown.contains("sets no argument"), "{shown}");
    assert!(shown.contains("without leading zeros"), "{shown}");
    assert!(!shown.contains("did you mean"), "{shown}");
}

#[test]
fn a_distribution_has_an_exponent() {
    for (text, exponent) in [("zipfian(1.1)", 1.1), ("zipfian", 0.8)] {
        let (plan, sysbench) = plan(&format!("distribution = \"{text}\""));
        let runs = runs(&sysbench);
        assert!(runs.iter().all(|(step, _)| matches!(step.kind,
            SysbenchStepKind::Run { distribution, .. } if distribution == Distribution::Zipfian { exponent })));
        let key = "workload.sysbench.step.insert.distribution";
        let noted = plan.resolved.iter().find(|value| value.key == key).unwrap();
        assert_eq!(noted.value, format!("\"zipfian({exponent})\""));
        assert!(noted.origin.starts_with("plan:2:"));
    }
}

#[test]
fn names_of_steps_are_those_of_tests() {
    let known = Known { own: Vec::new(), order: StepList::Short, secondary_index: true };
    let run = |text: &str| {
        let step = StepName::<Kind>::parse(text, &known)?;
        match step.kind {
            Kind::Run { test, argument } => {
                Some((known.test(test)?.name.clone(), argument.map(|(_, value)| value)))
            }
            _ => None,
        }
    };
    let is = |name: &str, argument| Some((name.to_owned(), argument));
    assert_eq!(run("scan.warmpre"), is("scan", None));
    assert_eq!(run("read-only.range10.pre"), is("read-only", Some(10)));
    assert_eq!(run("select_random_ranges.delta7"), is("select_random_ranges", Some(7)));
    for text in ["", "range", "read-only.range10.a.b", "read-only.rangex.y", "Scan", "scan."] {
        assert!(run(text).is_none(), "{text}");
    }
    for (_, order) in StepList::NAMES {
        let mut steps = BUILTIN.order(*order).iter();
        assert!(steps.len() > 10);
        assert!(steps.all(|name| StepName::<Kind>::parse(name, &known).is_some()));
    }
    let without = Known { secondary_index: false, ..known };
    assert!(!Kind::defaults(&without).contains(&"index"));
}
