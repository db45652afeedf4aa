//! Settling, and what is counted meanwhile.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::Engine as _;
use engine::rocksdb::RocksDb;
use engine::{Counter, KeyValueEngine as _, KeyValueSession, LibraryConfig, SettleLimits};
use rustix::time::{ClockId, clock_gettime};

use super::{GO_ON, LIMITS, SMALL, config, key, on_each, small, value};

fn get(counters: &[Counter], name: &str) -> f64 {
    let found = counters.iter().find(|counter| counter.name == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {counters:#?}")).value
}

fn write(database: &RocksDb, keys: u64) {
    let mut session = database.connect();
    for n in 0..keys {
        // All over the keys, so that no file can be moved as it is.
        let n = n.wrapping_mul(7919) % keys;
        session.put(&key(n), &value(n)).unwrap();
    }
}

#[test]
fn settling_leaves_nothing_pending_and_the_first_level_empty() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        write(&database, 10_000);
        let settled = database.settle(true, LIMITS, &GO_ON).unwrap();
        let what: Vec<&str> = settled.actions.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(&what[..2], ["flush", "wait for compaction"]);
        assert!(what[2].starts_with("compact L0"), "{what:?}");
        let after = &settled.pending_after;
        for name in [
            "running_compaction_count",
            "running_flush_count",
            "compaction_pending",
            "level_file_count.0",
        ] {
            assert_eq!(get(after, name), 0.0, "{name}: {what:?}");
        }
        assert_eq!(settled.unfinished, [""; 0]);
        assert!(get(after, "level_count") >= 1.0);
        assert!(get(&settled.pending_before, "memtable_bytes") > 0.0);
        // The option that this changed for a while is back.
        let settings = database.settings().unwrap();
        let trigger = settings
            .iter()
            .find(|it| it.name.ends_with("level0_file_num_compaction_trigger"))
            .unwrap();
        assert_eq!(trigger.value, "4");
        assert_eq!(database.inspect().unwrap().keys, 10_000);
    });
}

#[test]
fn the_first_level_of_a_universal_tree_is_left_alone() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let mut set = SMALL.to_vec();
        set.push(("compaction_style", "kCompactionStyleUniversal"));
        let database = RocksDb::create(library, place.path(), &config(&set)).unwrap();
        write(&database, 1000);
        let settled = database.settle(true, LIMITS, &GO_ON).unwrap();
        assert!(settled.actions[2].what.contains("not applicable"), "{settled:?}");
    });
}

/// Four sorted runs, the trigger of compaction, each so much smaller than the one before it that
/// none are merged.
fn runs_at_the_trigger(database: &RocksDb) {
    for (run, keys) in [8000, 2000, 500, 100].into_iter().enumerate() {
        write(database, keys);
        let limits = SettleLimits {
            at_most: if run == 3 { Duration::ZERO } else { LIMITS.at_most },
            ..LIMITS
        };
        database.settle(false, limits, &GO_ON).unwrap();
    }
}

fn large_runs(style: (&'static str, &'static str)) -> LibraryConfig {
    let mut set = SMALL.to_vec();
    set.retain(|(name, _)| *name != "write_buffer_size");
    set.extend([("write_buffer_size", "16M"), style]);
    config(&set)
}

#[test]
fn a_compaction_that_is_pending_but_never_picked_is_not_waited_for() {
    on_each(|library| {
        for style in [
            ("compaction_style", "kCompactionStyleUniversal"),
            ("disable_auto_compactions", "true"),
        ] {
            let place = tempfile::tempdir().unwrap();
            let database = RocksDb::create(library, place.path(), &large_runs(style)).unwrap();
            runs_at_the_trigger(&database);
            let settled = database.settle(false, LIMITS, &GO_ON).unwrap();
            let after = &settled.pending_after;
            assert_eq!(get(after, "level_file_count.0"), 4.0, "{settled:?}");
            assert_eq!(get(after, "compaction_pending"), 1.0, "{settled:?}");
            assert_eq!(settled.actions[1].what, "wait for compaction: pending, but none starts");
            assert_eq!(settled.unfinished, [""; 0]);
        }
    });
}

#[test]
fn unfinished_work_of_settling_is_reported() {
    on_each(|library| {
        let no_time = SettleLimits { at_most: Duration::ZERO, ..LIMITS };
        let place = tempfile::tempdir().unwrap();
        let universal = large_runs(("compaction_style", "kCompactionStyleUniversal"));
        let database = RocksDb::create(library, place.path(), &universal).unwrap();
        runs_at_the_trigger(&database);
        let stop = AtomicBool::new(true);
        for (limits, stop, action, why) in [
            (no_time, &GO_ON, "not finished in time", "the time limit was reached"),
            (LIMITS, &stop, "stopped", "the wait was stopped"),
        ] {
            let settled = database.settle(false, limits, stop).unwrap();
            assert!(settled.actions[1].what.ends_with(action), "{settled:?}");
            let [said] = &settled.unfinished[..] else {
                panic!("{settled:?}");
            };
            // The library may still be ending its flush.
            let begins = format!("compaction is not finished, {why}: ");
            assert!(said.starts_with(&begins), "{said}");
            assert!(said.contains("a compaction pending"), "{said}");
        }
        drop(database);

        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        write(&database, 100);
        let settled = database.settle(true, no_time, &GO_ON).unwrap();
        assert_eq!(settled.actions[2].what, "compact L0: not begun");
        let (first, others) = settled.unfinished.split_first().unwrap();
        assert_eq!(first, "the first level is not empty; files left: 1");
        // The library may still be ending its flush.
        assert!(
            others.iter().all(|said| said.ends_with("time limit was reached: 1 flush running")),
            "{others:?}"
        );
        let settled = database.settle(true, LIMITS, &GO_ON).unwrap();
        assert_eq!(settled.unfinished, [""; 0]);
    });
}

#[test]
fn counters_move_with_the_load() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let with_statistics = LibraryConfig { statistics: true, ..config(&SMALL) };
        let database = RocksDb::create(library, place.path(), &with_statistics).unwrap();

        let mut observer = database.observer();
        let before = observer.counters().unwrap();
        write(&database, 20_000);
        database.settle(false, LIMITS, &GO_ON).unwrap();
        let mut session = database.connect();
        for n in 0..2000 {
            assert!(session.get(&key(n)).unwrap().is_some());
        }

        let after = observer.counters().unwrap();
        let moved = |name| get(&after, name) - get(&before, name);
        assert!(moved("ingested_bytes") >= 20_000.0 * 120.0);
        assert!(moved("wal_written_bytes") >= 20_000.0 * 120.0);
        assert!(moved("flush_written_bytes") > 0.0);
        assert!(moved("compaction_read_bytes") > 0.0);
        assert!(moved("compaction_written_bytes") > 0.0);
        assert!(moved("compaction_and_flush_count") > 0.0);
        assert!(moved("block_cache_hit_count") + moved("block_cache_miss_count") > 0.0);
        assert_eq!(moved("ticker.rocksdb.number.keys.written"), 20_000.0);

        assert!(get(&after, "sst_bytes") > 2_000_000.0);
        assert!(get(&after, "lsm_bytes") > 2_000_000.0);
        assert!(get(&after, "stall_seconds") >= 0.0);
        assert!(get(&after, "deepest_level") >= 1.0);
        for reason in ["l0-file-count-limit-delays", "memtable-limit-stops"] {
            get(&after, &format!("write_stall_count.{reason}"));
        }

        let mut names: Vec<&str> = after.iter().map(|counter| counter.name.as_str()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "a counter is given twice");
    });
}

#[test]
fn reading_each_second_is_cheap_and_never_goes_back() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        let mut observer = database.observer();
        let mut last = observer.sample().unwrap();
        let mut spent = Vec::new();
        for _ in 0..20 {
            write(&database, 500);
            // The processor's time: what else the machine does has no part in it.
            let began = clock_gettime(ClockId::ThreadCPUTime);
            let sampled = observer.sample().unwrap();
            let ended = clock_gettime(ClockId::ThreadCPUTime);
            spent.push(Duration::try_from(ended - began).unwrap());
            for counter in sampled.iter().filter(|it| it.cumulative) {
                if let Some(before) = last.iter().find(|it| it.name == counter.name) {
                    assert!(counter.value >= before.value, "{}", counter.name);
                }
            }
            last = sampled;
        }
        spent.sort_unstable();
        assert!(spent[spent.len() / 2].as_millis() < 20, "{spent:?}");
    });
}
