//! The tests that are there without a definition, in the form in which plans define theirs, and the orders in which
//! they are run.

use std::sync::LazyLock;

use crate::diagnostic::Place;
use crate::document;
use crate::reader::Context;
use crate::tree::{Node, Value};

use super::read::TestText;

macro_rules! tests {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("tests/", $name, ".toml")))),*]
    };
}

/// The microbenchmarks, then sysbench's own tests.
const TEXTS: [(&str, &str); 38] = tests![
    "point-query",
    "random-points",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-pk",
    "range-notcovered-pk",
    "range-covered-si",
    "range-notcovered-si",
    "scan",
    "read-only",
    "read-only-simple",
    "read-only-sum",
    "read-only-order",
    "read-only-distinct",
    "read-only-count",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write",
    "delete",
    "insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "select_random_points",
    "select_random_ranges",
    "bulk_insert",
];

/// All of them.
pub(crate) static TESTS: LazyLock<Vec<TestText>> = LazyLock::new(|| {
    TEXTS
        .iter()
        .filter_map(|(name, text)| test(name, text))
        .collect()
});

/// Takes one. What is wrong with it is for those who write it.
fn test(name: &str, text: &str) -> Option<TestText> {
    let node = Node {
        value: Value::Table(document::read(text).ok()?),
        place: Place::Nowhere,
    };
    TestText::new(&mut Context::new(text), name, name, Place::Nowhere, node)
}

/// A list that is soon done: something of each group.
pub(crate) const SHORT: &[&str] = &[
    "load",
    "index",
    "settle",
    "point-query",
    "random-points",
    "range-notcovered-si",
    "read-only",
    "update-index",
    "update-nonindex",
    "read-write",
    "insert",
];

/// 42 tests, of which 15 run before the writes and again after them: 2023 to April 2025.
pub(crate) const CLASSIC: &[&str] = &[
    "load",
    "index",
    "point-query.warm",
    "settle",
    "point-query.pre",
    "random-points.range10.pre",
    "random-points.range100.pre",
    "random-points.range1000.pre",
    "read-only.range10.pre",
    "read-only.range100.pre",
    "read-only.range10000.pre",
    "points-covered-pk.pre",
    "points-notcovered-pk.pre",
    "points-covered-si.pre",
    "points-notcovered-si.pre",
    "range-covered-pk.pre",
    "range-notcovered-pk.pre",
    "range-covered-si.pre",
    "range-notcovered-si.pre",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write.range10",
    "read-write.range100",
    "settle.2",
    "read-only.range10",
    "read-only.range100",
    "read-only.range10000",
    "point-query",
    "random-points.range10",
    "random-points.range100",
    "random-points.range1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-pk",
    "range-notcovered-pk",
    "range-covered-si",
    "range-notcovered-si",
    "scan",
    "delete",
    "insert",
];

/// Since April 2025.
pub(crate) const CURRENT: &[&str] = &[
    "load",
    "index",
    "point-query.warm",
    "settle",
    "scan.warmpre",
    "point-query.pre",
    "range-notcovered-si.pre",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write.range10",
    "read-write.range100",
    "settle.2",
    "scan.warm",
    "scan",
    "read-only.range10",
    "read-only.range100",
    "read-only.range10000",
    "read-only-simple",
    "read-only-sum",
    "read-only-order",
    "read-only-distinct",
    "read-only-count",
    "point-query",
    "random-points.range10",
    "random-points.range100",
    "random-points.range1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "range-covered-pk",
    "range-notcovered-pk",
    "points-covered-si.warm",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-si",
    "range-notcovered-si",
    "delete",
    "insert",
];

#[cfg(test)]
mod tests {
    use super::super::read::Setting;
    use super::super::{Draw, Expression, Group, Piece, Slot, TableChoice, Test};
    use super::super::{Known, OrderOf, Sort};
    use super::*;
    use crate::Workload;
    use crate::spec::{Distribution, Plan, Sysbench, SysbenchStep, SysbenchStepKind};
    use crate::step::{StepName, StepSort};
    use crate::wording::quoted;

    fn plan(workload: &str) -> (Plan, Sysbench) {
        let text = format!("[workload.sysbench]\n{workload}\n[build.x]\nnull = \"bundled\"\n");
        let (plan, warnings) = crate::parse("p.toml", &text, &[]).unwrap_or_else(|errors| {
            panic!("{}", crate::render(&errors, "p.toml", &text, &[], false))
        });
        assert_eq!(warnings, []);
        let Workload::Sysbench(sysbench) = plan.variants[0].workload.clone() else {
            panic!()
        };
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
    fn all_are_understood() {
        let setting = Setting {
            rows: 10_000,
            tables: 8,
            clients: 4,
            prepared: true,
        };
        for (name, text) in TEXTS {
            let mut cx = Context::new(text);
            let mut test = test(name, text).unwrap();
            test.read(&mut cx, &setting);
            let said = crate::render(&cx.diagnostics, name, text, &[], false);
            assert!(test.trusted && cx.diagnostics.is_empty(), "{said}");
        }
    }

    /// Queries per event and the group of each test, as published.
    const PUBLISHED: [(&str, u64, Group); 27] = [
        ("point-query", 1, Group::Point),
        ("random-points", 1, Group::Point),
        ("hot-points", 1, Group::Point),
        ("points-covered-pk", 1, Group::Point),
        ("points-covered-si", 1, Group::Point),
        ("points-notcovered-pk", 1, Group::Point),
        ("points-notcovered-si", 1, Group::Point),
        ("range-covered-pk", 1, Group::Range1),
        ("range-covered-si", 1, Group::Range1),
        ("range-notcovered-pk", 1, Group::Range1),
        ("range-notcovered-si", 1, Group::Range1),
        ("scan", 1, Group::Range1),
        ("read-only", 16, Group::Range2),
        ("read-only-simple", 13, Group::Range2),
        ("read-only-sum", 13, Group::Range2),
        ("read-only-order", 13, Group::Range2),
        ("read-only-distinct", 13, Group::Range2),
        ("read-only-count", 1, Group::Range2),
        ("update-inlist", 1, Group::Write),
        ("update-index", 1, Group::Write),
        ("update-nonindex", 1, Group::Write),
        ("update-one", 1, Group::Write),
        ("update-zipf", 1, Group::Write),
        ("write-only", 6, Group::Write),
        ("read-write", 20, Group::Write),
        ("delete", 1, Group::Write),
        ("insert", 1, Group::Write),
    ];

    #[test]
    fn queries_and_groups_are_as_published() {
        let names: Vec<String> = PUBLISHED.iter().map(|(name, ..)| quoted(name)).collect();
        let steps = format!("steps = [\"load\", \"index\", {}]", names.join(", "));
        let (_, sysbench) = plan(&steps);
        let got: Vec<_> = runs(&sysbench)
            .iter()
            .map(|(_, test)| {
                (
                    test.name.as_str(),
                    test.queries_per_event() as u64,
                    test.group,
                )
            })
            .collect();
        let expected: Vec<_> = PUBLISHED.to_vec();
        assert_eq!(got, expected);
        // Those that are published are all but sysbench's own.
        let own = |name: &&str| name.contains('_');
        let others = TEXTS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !own(name));
        assert_eq!(others.count(), PUBLISHED.len());
    }

    #[test]
    fn sysbenchs_own_tests_are_as_it_has_them() {
        let own = [
            ("oltp_point_select", 1),
            ("oltp_read_only", 16),
            ("oltp_read_write", 20),
            ("oltp_write_only", 6),
            ("oltp_update_index", 1),
            ("oltp_update_non_index", 1),
            ("oltp_insert", 1),
            ("oltp_delete", 1),
            ("select_random_points", 1),
            ("select_random_ranges", 1),
            ("bulk_insert", 1),
        ];
        let names: Vec<String> = own.iter().map(|(name, _)| quoted(name)).collect();
        let (_, sysbench) = plan(&format!(
            "steps = [\"load\", \"index\", {}]",
            names.join(", ")
        ));
        let got: Vec<_> = runs(&sysbench)
            .iter()
            .map(|(_, test)| (test.name.as_str(), test.queries_per_event() as u64))
            .collect();
        assert_eq!(got, own);
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
        assert_eq!(
            (bulk.count, bulk.own.integers, bulk.own.texts),
            (1000, 1, 2)
        );
        assert!(!bulk.prepared);
        assert!(matches!(bulk.text.as_slice(), [.., Piece::Rows(row), _] if row.len() == 8));
    }

    /// Reported tests, in their order, and how many there are before the first write.
    fn order(name: &str) -> (Vec<String>, usize) {
        let (_, sysbench) = plan(&format!("order = \"{name}\""));
        let runs = runs(&sysbench);
        let first_write = runs
            .iter()
            .position(|(_, test)| test.group == Group::Write)
            .unwrap();
        let names = |runs: &[(&SysbenchStep, &Test)]| {
            let reported = runs.iter().filter(|(step, _)| {
                matches!(step.kind, SysbenchStepKind::Run { reported: true, .. })
            });
            reported
                .map(|(step, _)| step.name.clone())
                .collect::<Vec<_>>()
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
        assert_eq!(CLASSIC.len(), 42 + 5);
    }

    #[test]
    fn the_current_order_has_38_tests() {
        let runs = CURRENT
            .iter()
            .filter(|name| !["load", "index", "settle", "settle.2"].contains(name));
        assert_eq!(runs.count(), 38);
        // Of 33 that are published, `scan.warm` is not reported here; both of `.pre` are.
        let (names, before) = order("current");
        assert_eq!((names.len(), before), (34, 2));
        assert_eq!(names.first().unwrap(), "point-query.pre");
        assert_eq!(names.last().unwrap(), "insert");
    }

    #[test]
    fn tests_last_as_long_as_their_kind() {
        let (_, sysbench) = plan(
            "order = \"current\"\nread-time = \"300s\"\nwrite-time = \"600s\"\nwarmup = \"5s\"",
        );
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

    /// What is said of a plan whose last lines define the test `mine`.
    fn said(mine: &str) -> String {
        let text = format!(
            "clients = [1, 4]\nbuild.x.null = \"bundled\"\n[workload.sysbench]\nrows = 1000\nsteps = [\"load\", \"index\", \"mine\"]\n\
             test.mine = {{ group = \"write\", statement = [{{ {mine} }}] }}\n"
        );
        match crate::parse("p.toml", &text, &[]) {
            Ok((_, warnings)) => {
                assert_eq!(warnings, []);
                String::new()
            }
            Err(errors) => crate::render(&errors, "p.toml", &text, &[], false),
        }
    }

    #[test]
    fn a_test_that_could_fail_where_it_runs_is_refused_before() {
        for (parameters, message) in [
            (
                "first = \"id\", x = \"rows / (first - 500)\"",
                "is between -499 and 500",
            ),
            (
                "first = \"k\", x = \"9223372036854775000 + first\"",
                "a number that 64 bits don't hold",
            ),
            (
                "first = \"id\", x = \"uniform(first + rows, rows)\"",
                "a least of 1001 above a most of 1000",
            ),
            ("x = \"100 / (3 - thread)\"", "is between 0 and 3"),
            ("first = \"id\", x = \"rows / (first + 500)\"", ""),
            ("x = \"100 / (4 - thread)\"", ""),
        ] {
            let said = said(&format!(
                "sql = \"SELECT {{x}}\", parameters = {{ {parameters} }}"
            ));
            assert!(said.contains(message), "{parameters}: {said}");
            assert_eq!(said.is_empty(), message.is_empty(), "{parameters}: {said}");
        }
    }

    #[test]
    fn queries_commits_and_deletes_of_an_event_are_those_it_has_on_average() {
        let of = |test: &str| {
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
        assert_eq!(of(&all), (8.0, 3.0, None));
        let transaction = "test.mine.transaction = true\n";
        assert_eq!(of(&format!("{transaction}{all}")), (10.0, 1.0, None));
        let mixed = statements([
            "repeat = 2",
            "repeat = 3, weight = 6",
            "weight = 3",
            "weight = 1",
        ]);
        assert_eq!(of(&mixed), (2.0 + 2.2, 0.4, None));
        assert_eq!(of(&format!("{transaction}{mixed}")), (4.0 + 2.2, 0.4, None));
        let reads = "test.mine.statement = [{ sql = \"SELECT 1\" }]";
        assert_eq!(of(&format!("{transaction}{reads}")), (3.0, 0.0, None));
        let delete = "test.mine.statement = [{ sql = \"DELETE FROM {table} WHERE id = 1\", rows = { least = 0, most = 1 }, repeat = 3 }]";
        assert_eq!(of(delete), (3.0, 3.0, Some(3.0)));
    }

    #[test]
    fn rows_are_not_told_by_what_each_row_of_values_has() {
        let values = "sql = \"INSERT INTO {table} (k) VALUES {values}\", values = \"({n})\", count = 2, parameters = { n = \"k\" }";
        assert_eq!(said(&format!("{values}, rows = 2")), "");
        let said = said(&format!("{values}, rows = \"n\""));
        assert!(said.contains("unknown name `n`"), "{said}");
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
    fn a_number_that_is_none_of_an_arguments_is_not_suggested_again() {
        let text = "[workload.sysbench]\nsteps = [\"load\", \"index\", \"hot-points.range010\"]\n[build.x]\nnull = \"bundled\"\n";
        let (_, warnings) = crate::parse("p.toml", text, &[]).unwrap();
        let said = crate::render(&warnings, "p.toml", text, &[], false);
        assert!(said.contains("sets no argument"), "{said}");
        assert!(said.contains("without zeros before it"), "{said}");
        assert!(!said.contains("did you mean"), "{said}");
    }

    #[test]
    fn a_distribution_has_an_exponent() {
        for (text, exponent) in [("zipfian(1.1)", 1.1), ("zipfian", 0.8)] {
            let (plan, sysbench) = plan(&format!("distribution = \"{text}\""));
            let runs = runs(&sysbench);
            assert!(runs.iter().all(|(step, _)| matches!(step.kind,
                SysbenchStepKind::Run { distribution, .. } if distribution == Distribution::Zipfian { exponent })));
            let key = "workload.sysbench.step.insert.distribution";
            let noted = plan.resolved.iter().find(|it| it.key == key).unwrap();
            assert_eq!(noted.value, format!("\"zipfian({exponent})\""));
            assert!(noted.origin.starts_with("plan:2:"));
        }
    }

    #[test]
    fn names_of_steps_are_those_of_tests() {
        let known = Known {
            own: Vec::new(),
            order: OrderOf::Short,
            secondary_index: true,
        };
        let run = |text: &str| {
            let step = StepName::<Sort>::parse(text, &known)?;
            match step.sort {
                Sort::Run { test, argument } => {
                    Some((known.test(test)?.name.clone(), argument.map(|it| it.1)))
                }
                _ => None,
            }
        };
        let is = |name: &str, argument| Some((name.to_owned(), argument));
        assert_eq!(run("scan.warmpre"), is("scan", None));
        assert_eq!(run("read-only.range10.pre"), is("read-only", Some(10)));
        assert_eq!(
            run("select_random_ranges.delta7"),
            is("select_random_ranges", Some(7))
        );
        for text in [
            "",
            "range",
            "read-only.range10.a.b",
            "read-only.rangex.y",
            "Scan",
            "scan.",
        ] {
            assert!(run(text).is_none(), "{text}");
        }
        for steps in [SHORT, CLASSIC, CURRENT] {
            assert!(
                steps
                    .iter()
                    .all(|name| StepName::<Sort>::parse(name, &known).is_some())
            );
        }
        let without = Known {
            secondary_index: false,
            ..known
        };
        assert!(!Sort::defaults(&without).contains(&"index"));
    }
}
