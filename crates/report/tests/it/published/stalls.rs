//! "Speedb vs RocksDB on a large server": what delayed and stopped writes in `overwrite`, and its
//! throughput.

use record::StepKind;

use super::{MeasuredStep, Published};

/// The numbers of times that writes were delayed and stopped, by reason, and the totals as printed.
struct Stalls {
    target: &'static str,
    /// The throughput of `overwrite`, if it is given.
    per_second: u64,
    /// l0-file-count-limit, memtable-limit, pending-compaction-bytes, total.
    delays: [u32; 4],
    stops: [u32; 4],
    /// cf-l0-file-count-limit-delays-with-ongoing-compaction: counted within the first of the
    /// delays.
    ongoing: u32,
}

const REASONS: [&str; 4] =
    ["l0-file-count-limit", "memtable-limit", "pending-compaction-bytes", "total"];
const ONGOING: &str = "cf-l0-file-count-limit-delays-with-ongoing-compaction";

const fn stalls(target: &'static str, per_second: u64, ongoing: u32, delays: [u32; 4]) -> Stalls {
    Stalls { target, per_second, delays, stops: [0; 4], ongoing }
}

const IOBUF: [Stalls; 2] = [
    stalls("speedb", 1, 1429, [1429, 0, 1131, 2560]),
    stalls("rocksdb", 1, 285, [285, 0, 12585, 12870]),
];

const IODIR: [Stalls; 2] =
    [stalls("speedb", 1, 5, [5, 22, 0, 27]), stalls("rocksdb", 1, 287, [287, 0, 687, 974])];

const UPDATE_1: [Stalls; 3] = [
    stalls("8.5.4", 277_795, 1089, [1089, 0, 1207, 2296]),
    stalls("9.9orig", 227_068, 285, [285, 0, 12585, 12870]),
    stalls("9.9hack", 241_260, 211, [211, 0, 10735, 10946]),
];

fn measured(stalls: &Stalls) -> MeasuredStep {
    let sorts = [("delays", stalls.delays), ("stops", stalls.stops)];
    let reasons = sorts.iter().flat_map(|(sort, counts)| {
        let each = REASONS.iter().zip(counts);
        each.map(move |(reason, count)| (format!("{reason}-{sort}"), *count))
    });
    let ongoing = (ONGOING.to_owned(), stalls.ongoing);
    let counters = reasons
        .chain([ongoing])
        .map(|(reason, count)| (format!("write_stall_count.{reason}"), f64::from(count)));
    MeasuredStep {
        step: "overwrite",
        kind: StepKind::Load,
        main_op: "put",
        seconds: 1.0,
        count: stalls.per_second,
        counters: counters.collect(),
        gauges: vec![("lsm_bytes", 1e12)],
        ..MeasuredStep::default()
    }
}

fn publish(columns: &[Stalls]) -> Published {
    let targets = columns.iter().map(|stalls| (stalls.target, vec![measured(stalls)]));
    Published::new("kv", 40, targets.collect())
}

#[track_caller]
fn check(columns: &[Stalls]) {
    let published = publish(columns);
    let table = published.table("Write stalls by reason", None);
    for stalls in columns {
        let printed: Vec<String> =
            [stalls.delays, stalls.stops].as_flattened().iter().map(u32::to_string).collect();
        assert_eq!(table[stalls.target], printed, "{}", stalls.target);
        let all = f64::from(stalls.delays[3] + stalls.stops[3]);
        let found = published.metric(stalls.target, "overwrite", "Nstall");
        assert_eq!(found, all, "{}", stalls.target);
    }
    for row in &published.figures.rows {
        let told = row.lsm.as_ref().unwrap().stalls[ONGOING];
        let of = columns.iter().find(|stalls| row.build == stalls.target);
        assert_eq!(told, f64::from(of.unwrap().ongoing), "{}", row.build);
    }
}

#[test]
fn totals_are_sums_of_what_is_not_counted_within_another() {
    check(&IOBUF);
    check(&IODIR);
    check(&UPDATE_1);
}

/// The page says that 9.9.3 reaches 82% of 8.5.4.
#[test]
fn the_throughput_of_overwrite() {
    let table = publish(&UPDATE_1).table("Throughput relative to 8.5.4", None);
    assert_eq!(table["overwrite"], ["0.82", "0.87"]);
}
