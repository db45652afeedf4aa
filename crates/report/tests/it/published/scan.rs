//! "Fixing some of the InnoDB scan perf regressions in a MySQL fork": the tables of `scan` on three
//! servers.

use record::StepKind;

use super::{MeasuredStep, Published};

/// One line of an absolute table: cpu/o, cs/o, r/o, rKB/o, wKB/o, o/s, and the target.
type Absolute = ([f64; 6], &'static str);

/// One line of a relative table, as it is printed.
type Relative = ([&'static str; 6], &'static str);

const NAMES: [&str; 6] = ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s"];

/// The duration of a step, at which counts are whole numbers.
const SECONDS: f64 = 1000.0;

/// Returns the counters on a server with this number of processors that give these quotients.
fn measured(processors: f64, figures: [f64; 6]) -> MeasuredStep {
    let [cpu, switches, reads, read_kb, written_kb, rate] = figures;
    let count = rate * SECONDS;
    let all_ns = processors * SECONDS * 1e9;
    let busy_ns = cpu * rate / 100.0 * all_ns;
    let whole = |grown: f64| grown.round() as i64;
    MeasuredStep {
        step: "scan",
        kind: StepKind::Query,
        main_op: "event",
        group: Some("range-1"),
        seconds: SECONDS,
        count: count as u64,
        host: vec![
            ("cpu_user_ns", whole(busy_ns)),
            ("cpu_nice_ns", 0),
            ("cpu_system_ns", 0),
            ("cpu_irq_ns", 0),
            ("cpu_softirq_ns", 0),
            ("cpu_idle_ns", whole(all_ns - busy_ns)),
            ("cpu_iowait_ns", 0),
            ("cpu_steal_ns", 0),
            ("context_switch_count", whole(switches * count)),
            ("disk_read_count", whole(reads * count)),
            ("disk_read_bytes", whole(read_kb * count * 1024.0)),
            ("disk_write_count", 0),
            ("disk_write_bytes", whole(written_kb * count * 1024.0)),
        ],
        ..MeasuredStep::default()
    }
}

/// The page has two other rules: it shows `1` without decimals if both values are 0, and `inf` for
/// a base of 0, where Assay shows no ratio.
fn as_here(printed: &str) -> &str {
    match printed {
        "1" => "1.00",
        "inf" => "n/a",
        other => other,
    }
}

#[track_caller]
fn check(processors: u32, clients: u32, absolute: &[Absolute], relative: &[Relative]) {
    let targets =
        absolute.iter().map(|(figures, name)| (*name, vec![measured(processors.into(), *figures)]));
    let published = Published::new("sysbench", clients, targets.collect());
    for (figures, target) in absolute {
        for (name, figure) in NAMES.iter().zip(figures) {
            let found = published.metric(target, "scan", name);
            let digits = if *name == "cpu/o" { 6 } else { 3 };
            assert_eq!(
                format!("{found:.digits$}"),
                format!("{figure:.digits$}"),
                "{name} of {target}"
            );
        }
    }
    let base = absolute[0].1;
    let costs =
        published.table(&format!("Cost per query in tests relative to {base}"), Some("scan"));
    assert_eq!(costs.len(), relative.len(), "{costs:?}");
    let throughput = published.table(&format!("Throughput in tests relative to {base}"), None);
    for (column, (printed, target)) in relative.iter().enumerate() {
        assert_eq!(costs[*target], printed.map(as_here), "{target}");
        assert_eq!(throughput["scan"][column], printed[5], "{target}");
    }
}

#[test]
fn dell32() {
    check(
        32,
        24,
        &[
            ([0.093496, 3.256, 0.0, 0.0, 0.006, 246.0], "my8028"),
            ([0.106105, 4.065, 0.0, 0.0, 0.006, 225.0], "my8040"),
            ([0.113878, 4.344, 0.0, 0.0, 0.006, 208.0], "my8040adv_pre"),
            ([0.101104, 3.978, 0.0, 0.0, 0.006, 228.0], "my8040adv_post"),
        ],
        &[
            (["1.13", "1.25", "1", "1", "1.00", "0.91"], "my8040"),
            (["1.22", "1.33", "1", "1", "1.00", "0.85"], "my8040adv_pre"),
            (["1.08", "1.22", "1", "1", "1.00", "0.93"], "my8040adv_post"),
        ],
    );
}

#[test]
fn ax162_s() {
    check(
        48,
        40,
        &[
            ([0.018767, 0.552, 0.0, 0.0, 0.052, 872.0], "my8028"),
            ([0.022533, 0.800, 0.0, 0.0, 0.013, 725.0], "my8040"),
            ([0.022499, 0.808, 0.0, 0.001, 0.034, 727.0], "my8040adv_pre"),
            ([0.019305, 0.731, 0.0, 0.0, 0.03, 851.0], "my8040adv_post"),
        ],
        &[
            (["1.20", "1.45", "1", "1", "0.25", "0.83"], "my8040"),
            (["1.20", "1.46", "1", "inf", "0.65", "0.83"], "my8040adv_pre"),
            (["1.03", "1.32", "1", "1", "0.58", "0.98"], "my8040adv_post"),
        ],
    );
}

#[test]
fn bee() {
    check(
        8,
        1,
        &[
            ([0.222553, 2.534, 0.0, 0.001, 0.035, 55.0], "my8028"),
            ([0.285792, 7.622, 0.0, 0.0, 0.041, 43.0], "my8040"),
            ([0.246404, 6.475, 0.0, 0.0, 0.036, 50.0], "my8040adv_post"),
        ],
        &[
            (["1.28", "3.01", "1", "0.00", "1.17", "0.78"], "my8040"),
            (["1.11", "2.56", "1", "0.00", "1.03", "0.91"], "my8040adv_post"),
        ],
    );
}
