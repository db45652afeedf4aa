//! Checks of one session: keys, values, scans and batches.

use std::ops::Bound;

use anyhow::Context as _;
use engine::custom::{CustomEngine, CustomSession};
use engine::{Direction, Engine as _, KeyValueEngine as _, KeyValueSession as _};
use words::Random;

use crate::Verdict;
use crate::model::{Change, Entries, History, KEY_COUNT, key};
use crate::place::{DatabasePlace, connect, difference, scanned, shown, value_of, wrong};

/// The operations that fill a database.
pub(crate) const OPERATIONS: u64 = 1500;

/// The sizes of keys and values that are tried.
const KEY_SIZES: [usize; 6] = [1, 2, 16, 100, 255, 500];
const VALUE_SIZES: [usize; 8] = [0, 1, 100, 4095, 4096, 65_536, 1 << 20, 8 << 20];

/// The entries that a scan of a part reads.
const PART: usize = 5;

/// Writes changes, as a batch if the adapter has batches.
pub(crate) fn write(
    session: &mut CustomSession,
    changes: &[Change],
    has_batches: bool,
) -> anyhow::Result<()> {
    for Change { key, value } in changes {
        match value {
            Some(value) if has_batches => session.batch_put(key, value),
            None if has_batches => session.batch_delete(key),
            Some(value) => session.put(key, value).context("an entry cannot be written")?,
            None => session.delete(key).context("a key cannot be removed")?,
        }
    }
    if has_batches {
        session.write_batch().context("a batch cannot be written")?;
    }
    Ok(())
}

/// Fills a database with operations, and returns what it should have then.
pub(crate) fn fill(place: &DatabasePlace, database: &CustomEngine) -> anyhow::Result<Entries> {
    let has_batches = !database.lacks().batches;
    let history = History::new(place.seed, has_batches);
    let mut session = connect(database)?;
    for operation in 0..OPERATIONS {
        write(&mut session, &history.changes(operation), has_batches)?;
    }
    Ok(history.after(OPERATIONS))
}

pub(crate) fn reads(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let has_batches = !database.lacks().batches;
    let history = History::new(place.seed, has_batches);
    let mut random = Random::stream(place.seed, &[1]);
    let mut entries = Entries::new();
    let mut session = connect(&database)?;

    for operation in 0..OPERATIONS {
        write(&mut session, &history.changes(operation), has_batches)?;
        history.apply(operation, &mut entries);

        let key = key(random.below(KEY_COUNT));
        let found = value_of(&mut session, &key)?;
        match (found, entries.get(&key)) {
            (Some(found), Some(wanted)) if found != *wanted => {
                let what = wrong(&found, wanted);
                return Ok(Verdict::failed(format!("the key {} has {what}", shown(&key))));
            }
            (None, Some(_)) => {
                return Ok(Verdict::failed(format!("the key {} is missing", shown(&key))));
            }
            (Some(_), None) => {
                let why = format!("the key {} should not be there", shown(&key));
                return Ok(Verdict::failed(why));
            }
            _ => {}
        }
    }
    compared(&mut session, &entries)
}

/// Compares all of a database with what should be in it.
fn compared(session: &mut CustomSession, entries: &Entries) -> anyhow::Result<Verdict> {
    Ok(difference(session, entries)?.map_or(Verdict::Passed, Verdict::Failed))
}

pub(crate) fn deletes(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let mut entries = fill(place, &database)?;
    let mut session = connect(&database)?;

    session.delete(b"no such key").context("a missing key cannot be removed")?;
    for number in (0..KEY_COUNT).step_by(3) {
        let key = key(number);
        for _ in 0..2 {
            session.delete(&key).with_context(|| format!("{} cannot be removed", shown(&key)))?;
        }
        if value_of(&mut session, &key)?.is_some() {
            return Ok(Verdict::failed(format!("the removed key {} is still there", shown(&key))));
        }
        entries.remove(&key);
    }
    compared(&mut session, &entries)
}

pub(crate) fn sizes(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let mut session = connect(&database)?;
    let mut random = Random::stream(place.seed, &[2]);
    let mut entries = Entries::new();
    let keys = KEY_SIZES.map(|size| (size, 100));
    let values = VALUE_SIZES.map(|size| (20, size));
    for (key_size, value_size) in keys.into_iter().chain(values) {
        let mut bytes = |size| (0..size).map(|_| random.next_u64() as u8).collect::<Vec<u8>>();
        let (key, value) = (bytes(key_size), bytes(value_size));
        session.put(&key, &value).with_context(|| {
            format!("a key of {key_size} bytes with a value of {value_size} cannot be written")
        })?;
        let Some(found) = value_of(&mut session, &key)? else {
            let why = format!("the key of {key_size} bytes with {value_size} is missing");
            return Ok(Verdict::failed(why));
        };
        if found != value {
            let what = wrong(&found, &value);
            return Ok(Verdict::failed(format!("a key of {key_size} bytes has {what}")));
        }
        entries.insert(key, value);
    }
    compared(&mut session, &entries)
}

pub(crate) fn scans(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let mut session = connect(&database)?;
    if !scanned(&mut session, &[], Direction::Forward, 10)?.is_empty() {
        return Ok(Verdict::failed("a scan of an empty database returned an entry"));
    }
    let entries = fill(place, &database)?;

    // Also between keys, and beyond the first and the last.
    let mut starts: Vec<Vec<u8>> = (0..KEY_COUNT).map(key).collect();
    starts.extend([vec![], vec![0], vec![0xff; 40]]);
    for start in &starts {
        let from = (Bound::Included(start.clone()), Bound::Unbounded);
        let wanted: Vec<_> = entries.range(from).take(PART).collect();
        if let Some(why) = differs(&mut session, start, Direction::Forward, &wanted)? {
            return Ok(Verdict::Failed(why));
        }
        if database.lacks().reverse_scans {
            continue;
        }
        let to = (Bound::Unbounded, Bound::Included(start.clone()));
        let wanted: Vec<_> = entries.range(to).rev().take(PART).collect();
        if let Some(why) = differs(&mut session, start, Direction::Reverse, &wanted)? {
            return Ok(Verdict::Failed(why));
        }
    }
    compared(&mut session, &entries)
}

/// Compares a part of a scan with what should be there; `None` if they are equal.
fn differs(
    session: &mut CustomSession,
    start: &[u8],
    direction: Direction,
    wanted: &[(&Vec<u8>, &Vec<u8>)],
) -> anyhow::Result<Option<String>> {
    let found = scanned(session, start, direction, PART as u64)?;
    let are_equal = found.iter().map(|(key, value)| (key, value)).eq(wanted.iter().copied());
    if are_equal {
        return Ok(None);
    }
    let way = match direction {
        Direction::Forward => "upward",
        Direction::Reverse => "downward",
    };
    let keys =
        |keys: Vec<String>| if keys.is_empty() { "nothing".to_owned() } else { keys.join(" ") };
    let returned = keys(found.iter().map(|(key, _)| shown(key)).collect());
    let expected = keys(wanted.iter().map(|(key, _)| shown(key)).collect());
    Ok(Some(format!(
        "a scan {way} from {} returned {returned} instead of {expected}",
        shown(start)
    )))
}

pub(crate) fn batches(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    if database.lacks().batches {
        return Ok(Verdict::NotApplicable("the adapter has no atomic batches".into()));
    }
    let mut session = connect(&database)?;
    let put = |key: &[u8], value: &[u8]| Change { key: key.into(), value: Some(value.into()) };
    let remove = |key: &[u8]| Change { key: key.into(), value: None };

    // Of several changes of a key, the last one counts.
    let mut changes = vec![
        put(b"twice", b"first"),
        put(b"removed", b"x"),
        remove(b"restored"),
        put(b"twice", b"second"),
        remove(b"removed"),
        put(b"restored", b"y"),
    ];
    let mut entries = Entries::new();
    entries.insert(b"twice".into(), b"second".into());
    entries.insert(b"restored".into(), b"y".into());
    for number in 0..10_000_u32 {
        let key = [b"n", &number.to_be_bytes()[..]].concat();
        changes.push(put(&key, &number.to_le_bytes()));
        entries.insert(key, number.to_le_bytes().into());
    }
    write(&mut session, &changes, true)?;
    compared(&mut session, &entries)
}

pub(crate) fn several(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    if database.lacks().reads_of_several {
        return Ok(Verdict::NotApplicable("the adapter cannot read several keys at once".into()));
    }
    let entries = fill(place, &database)?;
    let mut session = connect(&database)?;
    let mut random = Random::stream(place.seed, &[3]);

    for count in 0..100 {
        let keys: Vec<Vec<u8>> = (0..count).map(|_| key(random.below(KEY_COUNT))).collect();
        let lent = keys.iter().map(Vec::as_slice);
        let found = session.multi_get(lent).context("several keys cannot be read")?;

        let mut there = 0;
        for (index, key) in keys.iter().enumerate() {
            let wanted = entries.get(key).map(Vec::as_slice);
            there += u64::from(wanted.is_some());
            if session.found(index) != wanted {
                let why = format!("the key {} of {count} has another value", shown(key));
                return Ok(Verdict::failed(why));
            }
        }
        if found != there {
            return Ok(Verdict::failed(format!("{found} of {count} keys exist, not {there}")));
        }
    }

    session.release();
    drop(session);
    database.stop()?;
    Ok(Verdict::Passed)
}
