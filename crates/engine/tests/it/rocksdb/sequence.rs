//! The writes and reads of a session.

use engine::Engine as _;
use engine::rocksdb::RocksDb;
use engine::{
    Direction, Durability, KeyValueEngine as _, KeyValueSession, LibraryConfig, MergeOperator, Scan,
};

use super::{SMALL, config, key, on_each, small, value};

fn scan(from: &[u8], direction: Direction, limit: u64) -> Scan<'_> {
    Scan { from, direction, limit, verifies_order: true }
}

#[test]
fn what_is_written_is_read() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        let mut session = database.connect();
        for durability in [Durability::None, Durability::Process, Durability::Machine] {
            session.set_durability(durability);
            session.put(&key(1), &value(1)).unwrap();
        }
        session.put(b"empty", b"").unwrap();
        assert_eq!(session.get(&key(1)).unwrap(), Some(&value(1)[..]));
        assert_eq!(session.get(b"empty").unwrap(), Some(&[][..]));
        assert_eq!(session.get(&key(2)).unwrap(), None);
        session.delete(&key(1)).unwrap();
        assert_eq!(session.get(&key(1)).unwrap(), None);
        session.delete(&key(1)).unwrap();
    });
}

#[test]
fn the_newest_of_merged_values_counts() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let merging = LibraryConfig { merges: Some(MergeOperator::Put), ..config(&SMALL) };
        let database = RocksDb::create(library, place.path(), &merging).unwrap();
        assert!(!database.lacks().merges);
        let mut session = database.connect();
        session.put(&key(1), &value(1)).unwrap();
        for number in 2..5 {
            session.merge(&key(1), &value(number)).unwrap();
            session.merge(&key(number), &value(number)).unwrap();
            if number == 3 {
                database.flush().unwrap();
            }
        }
        assert_eq!(session.get(&key(1)).unwrap(), Some(&value(4)[..]));
        assert_eq!(session.get(&key(3)).unwrap(), Some(&value(3)[..]));

        let mut found = Vec::new();
        let all = scan(&[], Direction::Forward, 10);
        session.scan(all, |_, value| found.push(value.to_vec())).unwrap();
        assert_eq!(found, [value(4), value(2), value(3), value(4)]);
        session.delete(&key(1)).unwrap();
        assert_eq!(session.get(&key(1)).unwrap(), None);
    });
}

#[test]
fn merged_numbers_are_added() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let operator = Some(MergeOperator::Uint64Add);
        let adding = LibraryConfig { merges: operator, ..config(&SMALL) };
        let database = RocksDb::create(library, place.path(), &adding).unwrap();
        assert!(!database.lacks().merges);
        let mut session = database.connect();
        session.put(&key(1), &7_u64.to_le_bytes()).unwrap();
        for addend in [1, 10, u64::MAX] {
            session.merge(&key(1), &addend.to_le_bytes()).unwrap();
            if addend == 10 {
                database.flush().unwrap();
            }
        }
        assert_eq!(session.get(&key(1)).unwrap(), Some(&17_u64.to_le_bytes()[..]));
    });
}

#[test]
fn a_range_is_deleted_up_to_its_end() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        assert!(database.lacks().merges, "nobody asked for merges");
        let mut session = database.connect();
        for number in 0..20 {
            session.put(&key(number), &value(number)).unwrap();
        }
        session.delete_range(&key(5), &key(15)).unwrap();
        session.put(&key(9), &value(90)).unwrap();

        let mut found = Vec::new();
        let all = scan(&[], Direction::Forward, 30);
        session.scan(all, |key, _| found.push(key.to_vec())).unwrap();
        let expected: Vec<_> =
            (0..5).chain([9]).chain(15..20).map(|number| key(number).to_vec()).collect();
        assert_eq!(found, expected);
    });
}

#[test]
fn files_are_taken_over_whole_and_nothing_is_left_of_them() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        let mut session = database.connect();
        // More than the 64 MiB of one file.
        let large = vec![b'x'; 1 << 20];
        for number in 0..70 {
            session.write_file(&key(number), &large).unwrap();
        }
        assert_eq!(database.inspect().unwrap().keys, 0);
        let before = fs_err::read_dir(place.path()).unwrap().count();
        session.ingest().unwrap();
        assert_eq!(database.inspect().unwrap().keys, 70);
        assert_eq!(fs_err::read_dir(place.path()).unwrap().count(), before - 1);
        assert_eq!(session.get(&key(69)).unwrap(), Some(&large[..]));

        // A second time, also over keys that exist.
        session.write_file(&key(3), b"new").unwrap();
        session.ingest().unwrap();
        assert_eq!(session.get(&key(3)).unwrap(), Some(&b"new"[..]));

        // Keys must ascend.
        session.write_file(&key(5), b"").unwrap();
        assert!(session.write_file(&key(4), b"").is_err());
    });
}

#[test]
fn a_batch_is_written_whole_and_emptied() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        let mut session = database.connect();
        session.put(&key(9), &value(9)).unwrap();
        for n in 0..4 {
            session.batch_put(&key(n), &value(n));
        }
        session.batch_delete(&key(9));
        assert_eq!(session.batch_len(), 5);
        assert_eq!(session.get(&key(0)).unwrap(), None);
        session.write_batch().unwrap();
        assert_eq!(session.batch_len(), 0);
        session.batch_put(&key(10), b"never");
        session.clear_batch();
        session.write_batch().unwrap();
        let facts = database.inspect().unwrap();
        assert_eq!(facts.keys, 4);
        assert_eq!(facts.bytes, 4 * 120);
        assert_eq!(facts.first.as_deref(), Some(&key(0)[..]));
        assert_eq!(facts.last.as_deref(), Some(&key(3)[..]));
    });
}

#[test]
fn several_keys_are_read_at_once_in_their_order() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        let mut session = database.connect();
        for n in (0..2000).step_by(2) {
            session.put(&key(n), &value(n)).unwrap();
        }
        session.put(&key(5000), b"").unwrap();
        let wanted: Vec<u64> = vec![1998, 3, 0, 7, 1000, 5000, 0];
        let flat: Vec<u8> = wanted.iter().flat_map(|&n| key(n)).collect();
        for _ in 0..3 {
            assert_eq!(session.multi_get(flat.chunks_exact(20)).unwrap(), 5);
            for (index, &n) in wanted.iter().enumerate() {
                let expected = (n % 2 == 0).then(|| value(n));
                let expected = match n {
                    5000 => Some(&[][..]),
                    _ => expected.as_ref().map(|value| &value[..]),
                };
                assert_eq!(session.found(index), expected, "{n}");
            }
            assert_eq!(session.found(wanted.len()), None);
        }
        assert_eq!(session.multi_get([]).unwrap(), 0);
        assert_eq!(session.found(0), None);
    });
}

#[test]
fn scans_go_both_ways_in_order() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        let mut session = database.connect();
        for n in (0..5000).step_by(10) {
            session.put(&key(n), &value(n)).unwrap();
        }
        let mut keys = Vec::new();
        let scanned = session
            .scan(scan(&key(15), Direction::Forward, 3), |key, _| keys.push(key.to_vec()))
            .unwrap();
        assert_eq!((scanned.entries, scanned.bytes), (3, 360));
        assert_eq!(keys, [key(20), key(30), key(40)]);
        keys.clear();
        session
            .scan(scan(&key(15), Direction::Reverse, 3), |key, _| keys.push(key.to_vec()))
            .unwrap();
        assert_eq!(keys, [key(10), key(0)]);
        let beyond = session.scan(scan(&key(9999), Direction::Forward, 3), |_, _| {});
        assert_eq!(beyond.unwrap().entries, 0);
        assert_eq!(session.scan(scan(b"", Direction::Forward, 0), |_, _| {}).unwrap().entries, 0);
    });
}

#[test]
fn sessions_of_several_threads_work_side_by_side() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = RocksDb::create(library, place.path(), &config(&SMALL)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let mut session = database.connect();
                scope.spawn(move || {
                    for n in 0..2000 {
                        let n = n * 4 + thread;
                        session.put(&key(n), &value(n)).unwrap();
                        assert_eq!(session.get(&key(n)).unwrap(), Some(&value(n)[..]));
                    }
                });
            }
        });
        assert_eq!(database.inspect().unwrap().keys, 8000);
        database.stop().unwrap();
    });
}
