//! Texts that the libraries of several versions wrote after the same small load, with statistics
//! on.

use super::*;

struct Texts {
    family: &'static str,
    database: &'static str,
}

macro_rules! texts {
    ($version:literal) => {
        Texts {
            family: include_str!(concat!("fixtures/", $version, "/cfstats.txt")),
            database: include_str!(concat!("fixtures/", $version, "/dbstats.txt")),
        }
    };
}

fn value(counters: &[Counter], name: &str) -> f64 {
    let found: Vec<f64> = counters
        .iter()
        .filter(|counter| counter.name == name)
        .map(|counter| counter.value)
        .collect();
    assert_eq!(found.len(), 1, "`{name}` in {counters:#?}");
    found[0]
}

fn holds(counters: &[Counter], expected: &[(&str, f64)]) {
    for (name, expected) in expected {
        let found = value(counters, name);
        let is_close = (found - expected).abs() <= expected.abs() * 1e-9;
        assert!(is_close, "`{name}` is {found}, not {expected}");
    }
}

#[test]
fn levels_are_read_by_the_names_of_the_columns() {
    holds(
        &family(texts!("rocksdb-6.29.5").family),
        &[
            ("level_file_count.0", 2.0),
            ("level_bytes.0", 177.01 * 1024.0),
            ("level_file_count.2", 53.0),
            ("level_bytes.2", 3.37 * 1024.0 * 1024.0),
            ("level_score.1", 1.1),
            ("level_compaction_and_flush_seconds.1", 6.75),
            ("level_compaction_read_bytes.2", 0.1 * 1024.0 * 1024.0 * 1024.0),
            ("level_compaction_and_flush_written_bytes.2", 0.0),
            ("file_count", 124.0),
            ("lsm_bytes", 7.78 * 1024.0 * 1024.0),
            ("compaction_and_flush_seconds", 19.13),
            ("compaction_and_flush_cpu_seconds", 2.81),
            ("compaction_and_flush_count", 399.0),
            ("deepest_level", 3.0),
            ("flush_written_bytes", 0.012 * 1024.0 * 1024.0 * 1024.0),
            ("compaction_and_flush_written_bytes", 4.47 * 20.2 * 1024.0 * 1024.0),
            ("compaction_read_bytes", 4.09 * 20.2 * 1024.0 * 1024.0),
        ],
    );
    holds(
        &family(texts!("rocksdb-10.2.1").family),
        &[
            ("level_file_count.6", 114.0),
            ("level_bytes.6", 5.95 * 1024.0 * 1024.0),
            ("compaction_and_flush_seconds", 12.40),
            ("compaction_and_flush_cpu_seconds", 1.35),
            ("deepest_level", 6.0),
        ],
    );
    holds(
        &family(texts!("rocksdb-6.0.1").family),
        &[
            ("compaction_and_flush_seconds", 5.08),
            ("compaction_and_flush_cpu_seconds", 0.96),
            ("level_file_count.1", 4.0),
        ],
    );
}

#[test]
fn a_column_more_moves_nothing() {
    // Since 10.3 there is one more before the write amplification.
    let text = texts!("rocksdb-10.10.1").family;
    assert!(text.contains("WPreComp(GB)"));
    holds(
        &family(text),
        &[
            ("level_file_count.6", 80.0),
            ("level_bytes.0", 119.97 * 1024.0),
            ("level_score.5", 16.7),
            ("compaction_and_flush_seconds", 6.05),
            ("compaction_and_flush_cpu_seconds", 0.84),
            ("compaction_and_flush_count", 277.0),
        ],
    );
}

#[test]
fn blobs_that_compaction_read_and_wrote_are_in_the_row_of_sums() {
    let text = texts!("rocksdb-10.10.1").family;
    let row = text.lines().find(|line| line.starts_with(" Sum")).unwrap();
    let none = row.trim_end().strip_suffix("0.0       0.0").unwrap();
    let some = text.replace(row, &format!("{none}0.5       2.5"));
    let gib = 1024.0 * 1024.0 * 1024.0;
    holds(&family(&some), &[("blob_read_bytes", 0.5 * gib), ("blob_written_bytes", 2.5 * gib)]);
    // Versions without blobs in the tree don't tell.
    let counters = family(texts!("rocksdb-6.0.1").family);
    assert!(!counters.iter().any(|it| it.name.starts_with("blob_")));
}

#[test]
fn reasons_of_stalls_have_one_name_in_all_versions() {
    let reasons = |counters: &[Counter]| -> Vec<(String, f64)> {
        let mut found: Vec<_> = counters
            .iter()
            .filter_map(|counter| {
                let name = counter.name.strip_prefix("write_stall_count.")?;
                Some((name.to_string(), counter.value))
            })
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    };
    let old = reasons(&family(texts!("rocksdb-6.29.5").family));
    let new = reasons(&family(texts!("rocksdb-10.2.1").family));
    let names = |of: &[(String, f64)]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&old), names(&new));
    assert_eq!(new.len(), OLD_REASONS.len(), "{new:?}");
    for text in [
        texts!("rocksdb-6.0.1"),
        texts!("rocksdb-7.10.2"),
        texts!("speedb-2.8.0"),
        texts!("rocksdb-10.10.1"),
    ] {
        assert_eq!(names(&reasons(&family(text.family))), names(&new));
    }
    holds(
        &family(texts!("rocksdb-6.29.5").family),
        &[
            ("write_stall_count.l0-file-count-limit-delays", 244.0),
            ("write_stall_count.cf-l0-file-count-limit-delays-with-ongoing-compaction", 15.0),
            ("write_stall_count.l0-file-count-limit-stops", 6.0),
            ("write_stall_count.memtable-limit-stops", 149.0),
            ("write_stall_count.pending-compaction-bytes-stops", 0.0),
        ],
    );
    holds(
        &family(texts!("speedb-2.8.0").family),
        &[
            ("write_stall_count.l0-file-count-limit-delays", 239.0),
            ("write_stall_count.memtable-limit-stops", 175.0),
        ],
    );
}

/// The totals of "Speedb vs RocksDB": they leave out the rows that are counted within others.
#[test]
fn totals_of_stalls_leave_out_those_that_are_counted_within_others() {
    for (sort, [first_level, memtable, pending], total) in [
        ("delays", [1429.0, 0.0, 1131.0], 2560.0),
        ("delays", [285.0, 0.0, 12_585.0], 12_870.0),
        ("stops", [5.0, 22.0, 0.0], 27.0),
        ("stops", [287.0, 687.0, 0.0], 974.0),
    ] {
        let within = format!("cf-l0-file-count-limit-{sort}-with-ongoing-compaction");
        let mut counters = vec![
            Counter::gauge("other", 9.0),
            Counter::cumulative(format!("{STALLS}l0-file-count-limit-{sort}"), first_level),
            Counter::cumulative(format!("{STALLS}memtable-limit-{sort}"), memtable),
            Counter::cumulative(format!("{STALLS}pending-compaction-bytes-{sort}"), pending),
            Counter::cumulative(format!("{STALLS}{within}"), first_level / 2.0),
            Counter::cumulative(format!("{STALLS}write-buffer-manager-limit-stops"), 5.0),
        ];
        add_stall_totals(&mut counters);
        let added: Vec<_> = counters[6..].iter().map(|it| (it.label(), it.value)).collect();
        assert_eq!(added, [(Some(format!("total-{sort}").as_str()), total)]);
    }
}

#[test]
fn rounded_bytes_tell_by_how_much_they_may_be_off() {
    let of = |uptime: f64| finer("1.00 GB, 10.00 MB/s", Some(uptime)).unwrap();
    // After an hour the sum says more; soon after the start the rate: 100 s x 0.005 MB/s, and 0.05
    // s of 10 MB/s.
    assert_eq!(of(3600.0), (GIB, 0.005 * GIB));
    assert_eq!(of(100.0), (1000.0 * MIB, MIB));
}

#[test]
fn all_versions_report_the_time_of_stalls_and_the_log() {
    holds(
        &database(texts!("rocksdb-6.29.5").database),
        &[
            ("uptime_seconds", 20.2),
            ("stall_seconds", 16.463),
            ("stall_percent", 81.5),
            ("wal_sync_count", 0.0),
            ("ingested_bytes", 0.62 * 20.2 * 1024.0 * 1024.0),
            ("wal_written_bytes", 0.62 * 20.2 * 1024.0 * 1024.0),
        ],
    );
    holds(
        &database(texts!("speedb-2.8.0").database),
        &[("stall_seconds", 4.017), ("stall_percent", 51.2)],
    );
    for text in [
        texts!("rocksdb-6.0.1"),
        texts!("rocksdb-7.10.2"),
        texts!("rocksdb-9.9.3"),
        texts!("rocksdb-10.2.1"),
        texts!("rocksdb-10.10.1"),
    ] {
        assert!(value(&database(text.database), "stall_seconds") > 0.0);
    }
}

#[test]
fn tickers_are_exact_and_histograms_are_none() {
    let counters = tickers(include_str!("fixtures/rocksdb-6.29.5/tickers.txt"));
    holds(
        &counters,
        &[
            ("ticker.rocksdb.stall.micros", 16_463_004.0),
            ("stall_seconds", 16.463_004),
            ("wait_seconds.WAL sync", 0.0),
            ("block_cache_hit_count", 8006.0),
            ("block_cache_miss_count", 15_922.0),
            ("compaction_read_bytes", 86_153_238.0),
            ("compaction_written_bytes", 82_057_301.0),
            ("flush_written_bytes", 12_674_181.0),
            ("ingested_bytes", 13_080_000.0),
        ],
    );
    assert!(counters.iter().all(|it| !it.name.contains("P50")));
    let synced = "rocksdb.wal.file.sync.micros P50 : 1.0 COUNT : 2 SUM : 25\n";
    holds(&tickers(synced), &[("wait_seconds.WAL sync", 25e-6)]);
    assert!(counters.iter().all(|it| it.name != "ticker.rocksdb.db.write.stall"));
    // The texts say the same, less exactly.
    let told = family(texts!("rocksdb-6.29.5").family);
    let told = value(&told, "compaction_and_flush_written_bytes");
    assert!((told / (82_057_301.0 + 12_674_181.0) - 1.0).abs() < 0.01);
}

#[test]
fn of_sum_and_rate_the_one_that_was_rounded_less_is_taken() {
    // After 20 s hundredths of a MB/s say more than hundredths of a GB; after a day they say less.
    let bytes = |text, uptime| finer(text, uptime).map(|(bytes, _)| bytes);
    let after = |seconds| bytes("0.09 GB write, 4.47 MB/s write, 0.08 GB read", Some(seconds));
    assert_eq!(after(20.0), Some(4.47 * 20.0 * MIB));
    assert_eq!(after(86_400.0), Some(0.09 * GIB));
    assert_eq!(bytes("1.5 GB", Some(1.0)), Some(1.5 * GIB));
    assert_eq!(finer("none", None), None);
}

#[test]
fn other_texts_give_no_counters() {
    for text in ["", "\n\n", "Level\n L0", "Stalls(count): x", "Uptime(secs): soon"] {
        assert_eq!(family(text), [], "{text}");
        assert_eq!(database(text), [], "{text}");
        assert_eq!(tickers(text), [], "{text}");
    }
}
