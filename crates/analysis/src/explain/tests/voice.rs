//! A title names what its figures show first: the cases of reports whose titles and tables
//! disagreed.

use super::super::accounting::WhyUnexplained;
use super::super::cause::PartShare;
use super::super::fsync_counts::FsyncCount;
use super::super::statement::HiddenCost;
use super::*;

/// Returns the hidden costs of a comparison.
fn hidden_costs(figures: &Figures) -> Vec<HiddenCost> {
    explained(figures, |it| match &it.statement {
        Statement::HiddenCost(hidden) => Some(hidden.clone()),
        _ => None,
    })
}

/// Sets throughput by repeat, so that it is too noisy to say.
fn with_rates(mut figures: Figures, target: &str, rates: [f64; 5]) -> Figures {
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == target) {
        let rate = rates[row.cell.repeat as usize - 1];
        row.metrics.insert("qps", Some(rate));
    }
    figures
}

/// MariaDB without `sync_binlog`: 2 fsyncs per commit became 0.00005, and own CPU fell by 76%.
#[test]
fn fsyncs_that_cease_come_before_the_cpu_that_follows_from_them() {
    let base = [("op_client_cpu_us", 400.0), ("fsyncs_per_commit", 2.0)];
    let target = [("op_client_cpu_us", 96.0), ("fsyncs_per_commit", 0.000_047)];
    let figures = repeated(&[
        cost("a.c", "update-index", 100.0, &base),
        cost("b.c", "update-index", 1_200.0, &target),
    ]);
    let figures = with_rates(figures, "b.c", [80.0, 4_000.0, 90.0, 150.0, 2_500.0]);

    let hidden = hidden_costs(&figures);
    let [HiddenCost { fsyncs: Some(FsyncCount { metric, count }), is_noisy: true, .. }] =
        hidden.as_slice()
    else {
        panic!("{hidden:?}");
    };
    assert_eq!(*metric, "fsyncs_per_commit");
    assert!(is_about(count.base, 2.0) && count.value < 0.001, "{count:?}");

    let finding = only(&figures, FindingKind::HiddenCost);
    let causes = finding.evidence.iter().filter(|figure| figure.is_cause);
    let names: Vec<&str> = causes.map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["fsyncs"]);
}

#[test]
fn without_fsyncs_that_cease_own_cpu_is_what_changed() {
    let base = [("op_client_cpu_us", 400.0), ("fsyncs_per_commit", 2.0)];
    let target = [("op_client_cpu_us", 96.0), ("fsyncs_per_commit", 1.0)];
    let figures = repeated(&[
        cost("a.c", "update-index", 100.0, &base),
        cost("b.c", "update-index", 1_200.0, &target),
    ]);
    let figures = with_rates(figures, "b.c", [80.0, 4_000.0, 90.0, 150.0, 2_500.0]);
    assert_eq!(hidden_costs(&figures)[0].fsyncs, None);

    // Where a setting lets one expect it, half as many are what changed.
    let figures = with_setting(figures, "log_bin", "ON", "OFF");
    let fsyncs = hidden_costs(&figures)[0].fsyncs.unwrap();
    assert!(is_about(fsyncs.count.base, 2.0) && is_about(fsyncs.count.value, 1.0), "{fsyncs:?}");

    // Throughput, which is too noisy to say, may seem to have fallen.
    let figures = with_rates(figures, "b.c", [40.0, 400.0, 45.0, 80.0, 250.0]);
    assert!(hidden_costs(&figures)[0].fsyncs.is_some());
}

/// On a busy host, a thread that does not sleep for fsyncs does not wait for a processor after each.
#[test]
fn a_part_that_saved_more_time_than_fsyncs_is_named_beside_them() {
    let larger_than_fsyncs = |cpu_wait_us: f64| -> Option<PartShare> {
        let base = [
            ("op_client_cpu_us", 40.0),
            ("op_fsync_us", 400.0),
            ("op_cpu_wait_us", cpu_wait_us),
            ("fsyncs_per_commit", 2.0),
        ];
        let target = [
            ("op_client_cpu_us", 40.0),
            ("op_fsync_us", 0.4),
            ("op_cpu_wait_us", 10.0),
            ("fsyncs_per_commit", 0.001),
        ];
        let rate =
            |parts: &[(&str, f64)]| 4e6 / (parts[..3].iter().map(|(_, us)| us).sum::<f64>() + 5.0);
        let figures = repeated(&[
            cost("a.c", "update-index", rate(&base), &base),
            cost("b.c", "update-index", rate(&target), &target),
        ]);

        let found = cause(&with_setting(figures, "sync_binlog", "1", "0"));
        let Cause::FsyncsPerCommit { larger, .. } = found else {
            panic!("{found:?}");
        };
        larger
    };

    let larger = larger_than_fsyncs(3_300.0).unwrap();
    assert_eq!(larger.part, FindingKind::ProcessorWait);
    assert!(is_about(larger.share, 3_290.0 / 3_690.0), "{larger:?}");
    assert_eq!(larger_than_fsyncs(100.0), None);
}

/// SQLite counts no fsyncs: devices count their flushes.
#[test]
fn flushes_that_cease_stand_for_fsyncs_that_are_not_counted() {
    let base = [("op_client_cpu_us", 137.0), ("flushes_per_commit", 1.0)];
    let target = [("op_client_cpu_us", 22.5), ("flushes_per_commit", 0.0)];
    let figures = repeated(&[
        cost("a.c", "update-index", 100.0, &base),
        cost("b.c", "update-index", 1_200.0, &target),
    ]);
    let figures = with_rates(figures, "b.c", [80.0, 4_000.0, 90.0, 150.0, 2_500.0]);
    let fsyncs = hidden_costs(&figures)[0].fsyncs.unwrap();
    assert_eq!(fsyncs.metric, "flushes_per_commit");
    assert!(is_about(fsyncs.count.base, 1.0) && fsyncs.count.value < 0.01, "{fsyncs:?}");
}

/// Returns MySQL 5.6 and 8.0 in turns, which measure own CPU, but not all parts of the time: an
/// insert takes 12 us of CPU and 16 us of time in 5.6, and 32 us of time in 8.0.
fn in_turns(cpu_us: f64) -> Figures {
    let base = [("op_client_cpu_us", 12.0)];
    let target = [("op_client_cpu_us", cpu_us)];
    let mut figures = repeated(&[
        cost("my56.files", "l.i0", 250_000.0, &base),
        cost("my80.capacity", "l.i0", 125_000.0, &target),
    ]);
    for row in &mut figures.rows {
        row.metrics.insert("op_unexplained_us", None);
    }
    figures
}

#[test]
fn cpu_that_is_most_of_a_change_is_its_cause_though_other_parts_are_unknown() {
    let changed = part(&in_turns(21.0));
    assert_eq!((changed.part, changed.detail), (FindingKind::Cpu, Some(Detail::ClientThreads)));
    assert!(is_about(changed.share, 9.0 / 16.0), "{changed:?}");
}

#[test]
fn a_change_without_a_cause_says_how_much_own_cpu_changed() {
    let figures = in_turns(18.0);
    assert_eq!(cause(&figures), Cause::Unexplained(WhyUnexplained::NotMeasured));
    let ratio = changed_case(&figures).own_cpu_ratio.unwrap();
    assert!((ratio - 1.5).abs() < 0.02, "{ratio}");

    // CPU that fell while an operation takes longer explains nothing of it.
    assert_eq!(changed_case(&in_turns(6.0)).own_cpu_ratio, None);
}

/// Commits must be shown to wait for fsyncs if no known setting says that they do.
#[test]
fn fsyncs_that_cease_are_a_cause_without_a_known_setting_if_waiting_shows_it() {
    let of = |fsync_us: f64, fsyncs: f64| {
        [
            ("op_client_cpu_us", 40.0),
            ("op_fsync_us", fsync_us),
            ("op_lock_us", 5.0),
            ("fsyncs_per_commit", fsyncs),
        ]
    };
    let (base, target) = (of(900.0, 1.0), of(0.5, 0.001));
    let figures = repeated(&[
        cost("a.c", "update-index", 4_000.0, &base),
        cost("b.c", "update-index", 50_000.0, &target),
    ]);
    let found = cause(&figures);
    let Cause::FsyncsPerCommit { settings, waiting: Some(share), .. } = &found else {
        panic!("{found:?}");
    };
    assert!(settings.is_empty() && *share > 0.9, "{found:?}");
}

/// SQLite with `synchronous` off: nearly half of the time that was saved is in no part, and waiting
/// for fsyncs varies too much, but devices have nothing to flush.
#[test]
fn a_setting_about_durability_is_expected_to_end_flushes() {
    let of = |cpu: f64, fsync: f64, flushes: f64| {
        [
            ("op_client_cpu_us", cpu),
            ("op_fsync_us", fsync),
            ("flushes_per_commit", flushes),
            ("op_unexplained_us", 100.0 * flushes),
        ]
    };
    let (base, target) = (of(113.0, 34.0, 1.0), of(18.9, 0.0, 0.0));
    let mut figures = repeated(&[
        cost("a.c", "update-index", 14_000.0, &base),
        cost("b.c", "update-index", 200_000.0, &target),
    ]);
    let unsteady = [0.0, 150.0, 3.0, 20.0, 0.0];
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == "a.c") {
        row.metrics.insert("op_fsync_us", Some(unsteady[row.cell.repeat as usize - 1]));
    }

    // Without the setting, own CPU is at least told.
    assert!(changed_case(&figures).own_cpu_ratio.is_some_and(|ratio| ratio < 0.2));

    let figures = with_setting(figures, "synchronous", "2", "0");
    let Cause::FsyncsPerCommit { metric, settings, .. } = cause(&figures) else {
        panic!("{:?}", cause(&figures));
    };
    assert_eq!((metric, settings[0].name.as_str()), ("flushes_per_commit", "synchronous"));
}

#[test]
fn background_cpu_that_changed_by_more_than_own_cpu_is_named_beside_it() {
    let named = |background_us: f64| -> (bool, Vec<String>) {
        let of = |server_us: f64, background_us: f64| {
            [
                ("op_client_cpu_us", 20.0),
                ("op_server_cpu_us", server_us),
                ("background_cpu_us_per_op", background_us),
            ]
        };
        let (base, target) = (of(75.0, 10.0), of(95.0, background_us));
        let figures = repeated(&[
            cost("a.c", "q100", 30_000.0, &base),
            cost("b.c", "q100", 25_000.0, &target),
        ]);

        let finding = only(&figures, FindingKind::Cpu);
        let marked = finding.evidence.iter().filter(|figure| figure.is_cause);
        let names = marked.map(|figure| figure.name.clone()).collect();
        (changed_case(&figures).background_cpu_us.is_some(), names)
    };

    assert_eq!(named(60.0), (true, vec!["own CPU".to_owned(), "background CPU".to_owned()]));
    assert_eq!(named(20.0), (false, vec!["own CPU".to_owned()]));
}

#[test]
fn a_size_of_reads_is_noise_where_its_verdict_shows_none_and_no_figure_where_reads_are_rare() {
    let size = |kb_per_op: [f64; 2]| -> Option<bool> {
        let of = |cpu_us: f64, kb: f64| {
            [("own_cpu_us_per_op", cpu_us), ("rpq", kb / 100.0), ("rkbpq", kb)]
        };
        let (base, mut target) = (of(100.0, kb_per_op[0]), of(150.0, kb_per_op[1]));
        // A third as large as in the base.
        target[1].1 *= 3.0;
        let mut figures =
            repeated(&[cost("a.c", "q100", 5000.0, &base), cost("b.c", "q100", 5000.0, &target)]);
        for row in &mut figures.rows {
            let of_target = [300.0, 20.0, 150.0, 30.0, 400.0][row.cell.repeat as usize - 1];
            let kb = if row.cell.target == "a.c" { 100.0 } else { of_target };
            row.metrics.insert("rareqsz", Some(kb));
        }

        let options = CompareOptions {
            base: "a.c".to_owned(),
            metrics: vec!["rareqsz".to_owned()],
            ..CompareOptions::default()
        };
        let findings = explain(&figures, &compare(&figures, &options));
        let mut figures_shown = findings.iter().flat_map(|finding| &finding.evidence);
        let of_reads = figures_shown.find(|figure| figure.name == "mean size of device reads");
        of_reads.map(|figure| figure.is_noise)
    };

    assert_eq!(size([2.0, 2.0]), Some(true));
    assert_eq!(size([0.02, 0.02]), None);
}

/// Repeats differ much from each other, and `b.c` has a twentieth of the base's figure in each.
#[test]
fn a_figure_that_is_compared_is_noise_by_its_verdict_and_another_by_its_own_interval() {
    let of_base = [1000.0, 5000.0, 9000.0, 2000.0, 20_000.0];
    let is_noise = |name: &str, metrics: &[&'static str], compared: &[&str]| {
        let of = |us: f64| [("own_cpu_us_per_op", us)];
        let (base, other) = (of(100.0), of(150.0));
        let costs = [cost("a.c", "q100", 5000.0, &base), cost("b.c", "q100", 5000.0, &other)];
        let mut figures = repeated(&costs);
        for row in &mut figures.rows {
            let repeat = row.cell.repeat as usize;
            let is_base = row.cell.target == "a.c";
            let share = if is_base { 1.0 } else { 0.05 + 0.0001 * repeat as f64 };
            for metric in metrics {
                row.metrics.insert(*metric, Some(share * of_base[repeat - 1]));
            }
        }

        let options = CompareOptions {
            base: "a.c".to_owned(),
            metrics: compared.iter().map(|metric| (*metric).to_owned()).collect(),
            ..CompareOptions::default()
        };
        let findings = explain(&figures, &compare(&figures, &options));
        let mut evidence = findings.iter().flat_map(|finding| &finding.evidence);
        let found = evidence.find(|figure| figure.name == name && figure.base.is_some());
        found.map(|figure| figure.is_noise)
    };

    let of_host = "CPU of the whole host";
    assert_eq!(is_noise(of_host, &["cpupq"], &["cpupq"]), Some(false));
    assert_eq!(is_noise(of_host, &["cpupq"], &[]), Some(true));

    // These are compared by another name.
    let switches = "context switches of the whole host";
    assert_eq!(is_noise(switches, &["cspq", "cs/o"], &["cs/o"]), Some(false));
    assert_eq!(is_noise("device reads", &["rpq", "r/o"], &["r/o"]), Some(false));

    // All of own CPU is that of the clients.
    let of_clients = ["op_client_cpu_us", "own_cpu_us_per_op"];
    assert_eq!(is_noise("client CPU", &of_clients, &[]), Some(false));

    // All clients do the main operation.
    let with_server = ["op_client_cpu_us", "op_server_cpu_us", "client_cpu_us_per_op"];
    assert_eq!(is_noise("client CPU", &with_server, &["client_cpu_us_per_op"]), Some(false));
    let of_main_alone = ["op_client_cpu_us", "op_server_cpu_us"];
    assert_eq!(is_noise("client CPU", &of_main_alone, &["client_cpu_us_per_op"]), Some(true));
}
