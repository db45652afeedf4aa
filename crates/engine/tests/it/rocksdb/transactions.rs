//! Transactions of sessions.

use std::path::Path;
use std::sync::Arc;

use engine::rocksdb::{Library, RocksDb};
use engine::{
    ErrorClass, KeyValueEngine as _, KeyValueSession, LibraryConfig, TransactionKind,
    TransactionOptions,
};

use super::{SMALL, config, key, on_each, value};

const PROTECTED: [TransactionKind; 2] = [TransactionKind::Pessimistic, TransactionKind::Optimistic];

const OPTIONS: TransactionOptions =
    TransactionOptions { lock_timeout_ms: 1, takes_snapshot: false };

fn opened(library: &Arc<Library>, directory: &Path, kind: TransactionKind) -> RocksDb {
    let config = LibraryConfig { transactions: Some(kind), ..config(&SMALL) };
    let database = RocksDb::create(library, directory, &config).unwrap();
    assert!(!database.lacks().transactions);
    database
}

/// Reads a key and adds to its value, in a transaction that has begun.
fn add(session: &mut impl KeyValueSession, number: u64) -> Result<(), engine::Error> {
    let count = session.get_for_update(&key(number))?.map_or(0, |value| value[0]);
    session.put_in_transaction(&key(number), &[count + 1])
}

#[test]
fn a_transaction_is_written_at_its_commit_and_is_gone_after_its_rollback() {
    on_each(|library| {
        for kind in PROTECTED.into_iter().chain([TransactionKind::Unprotected]) {
            let place = tempfile::tempdir().unwrap();
            let database = opened(library, place.path(), kind);
            let mut session = database.connect();
            let mut other = database.connect();
            session.set_transactions(OPTIONS);
            session.put(&key(1), &value(1)).unwrap();

            for number in 0..3 {
                session.begin_transaction().unwrap();
                assert_eq!(session.get_for_update(&key(2)).unwrap().is_some(), number == 2);
                assert_eq!(session.get_for_update(&key(1)).unwrap(), Some(&value(1)[..]));
                session.put_in_transaction(&key(2), &value(number)).unwrap();
                assert_eq!(other.get(&key(2)).unwrap().is_some(), number == 2, "{kind:?}");
                match number {
                    0 => session.roll_back().unwrap(),
                    _ => session.commit().unwrap(),
                }
            }
            assert_eq!(other.get(&key(2)).unwrap(), Some(&value(2)[..]));

            // All else works on the same database.
            for number in 10..2000 {
                other.put(&key(number), &value(number)).unwrap();
            }
            database.flush().unwrap();
            if !database.lacks().range_deletions {
                other.delete_range(&key(10), &key(20)).unwrap();
            } else {
                (10..20).for_each(|number| other.delete(&key(number)).unwrap());
            }
            drop((session, other));
            assert_eq!(database.inspect().unwrap().keys, 1982);

            // A database is opened without transactions again.
            engine::Engine::stop(database).unwrap();
            let database = RocksDb::open(library, place.path(), &config(&SMALL)).unwrap();
            assert!(database.lacks().transactions && database.lacks().isolation);
            let mut session = database.connect();
            assert_eq!(session.get(&key(2)).unwrap(), Some(&value(2)[..]));
            assert!(session.begin_transaction().is_err());
        }
    });
}

#[test]
fn a_conflict_fails_in_the_way_of_its_kind_and_loses_no_update() {
    on_each(|library| {
        for kind in PROTECTED {
            let place = tempfile::tempdir().unwrap();
            let database = opened(library, place.path(), kind);
            assert!(!database.lacks().isolation);
            let (mut one, mut other) = (database.connect(), database.connect());
            one.set_transactions(OPTIONS);
            other.set_transactions(OPTIONS);

            one.begin_transaction().unwrap();
            other.begin_transaction().unwrap();
            add(&mut one, 1).unwrap();
            let class = match kind {
                TransactionKind::Pessimistic => add(&mut other, 1).unwrap_err().class,
                _ => {
                    add(&mut other, 1).unwrap();
                    other.commit().unwrap();
                    one.commit().unwrap_err().class
                }
            };
            let expected = match kind {
                TransactionKind::Pessimistic => ErrorClass::LockTimeout,
                _ => ErrorClass::Serialization,
            };
            assert_eq!(class, expected);
            assert!(class.is_transient());

            // The one that failed is made again.
            let (mut winner, mut loser) =
                if kind == TransactionKind::Pessimistic { (one, other) } else { (other, one) };
            loser.roll_back().unwrap();
            if kind == TransactionKind::Pessimistic {
                winner.commit().unwrap();
            }
            loser.begin_transaction().unwrap();
            add(&mut loser, 1).unwrap();
            loser.commit().unwrap();
            assert_eq!(winner.get(&key(1)).unwrap(), Some(&[2][..]), "{kind:?}");
        }
    });
}

#[test]
fn batches_in_the_place_of_transactions_lose_updates() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = opened(library, place.path(), TransactionKind::Unprotected);
        assert!(database.lacks().isolation);
        let (mut one, mut other) = (database.connect(), database.connect());
        one.begin_transaction().unwrap();
        other.begin_transaction().unwrap();
        add(&mut one, 1).unwrap();
        add(&mut other, 1).unwrap();
        one.commit().unwrap();
        other.commit().unwrap();
        assert_eq!(one.get(&key(1)).unwrap(), Some(&[1][..]));
    });
}

#[test]
fn with_a_snapshot_a_change_since_the_beginning_is_a_conflict() {
    on_each(|library| {
        for (kind, takes_snapshot) in
            PROTECTED.into_iter().flat_map(|kind| [(kind, false), (kind, true)])
        {
            let place = tempfile::tempdir().unwrap();
            let database = opened(library, place.path(), kind);
            let (mut one, mut other) = (database.connect(), database.connect());
            one.set_transactions(TransactionOptions { takes_snapshot, ..OPTIONS });
            one.put(&key(1), &[0]).unwrap();

            one.begin_transaction().unwrap();
            other.begin_transaction().unwrap();
            add(&mut other, 1).unwrap();
            other.commit().unwrap();
            let result = add(&mut one, 1).and_then(|()| one.commit());
            let class = result.err().map(|error| error.class);
            assert_eq!(class, takes_snapshot.then_some(ErrorClass::Serialization), "{kind:?}");
        }
    });
}
