//! Checks of several sessions, and of threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Context as _;
use engine::custom::CustomSession;
use engine::{Direction, Engine as _, Error, KeyValueSession as _, Scan};

use crate::Verdict;
use crate::data::fill;
use crate::place::{self, DatabasePlace, connect, difference, shown, value_of};

/// The threads that work side by side, and the keys that each writes.
const THREADS: u64 = 4;
const KEYS_EACH: u64 = 1000;
/// The attempts at a write that conflicts with others.
const ATTEMPTS_MAX: u32 = 100_000;

pub(crate) fn independent(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let entries = fill(place, &database)?;
    let (mut first, mut second) = (connect(&database)?, connect(&database)?);
    // Outside of all keys that the scan reads.
    let other = [0xff; 8];
    let mut keys = entries.keys().cycle();

    let mut found = Vec::new();
    let mut failure = None;
    let scan = Scan {
        from: &[],
        direction: Direction::Forward,
        limit: entries.len() as u64,
        verifies_order: false,
    };
    let scanned = first.scan(scan, |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        let step = disturb(&mut second, keys.next().map_or(&[0], Vec::as_slice), &other);
        failure = failure.take().or(step.err());
    });
    if let Some(error) = failure {
        return Err(error.context("a session cannot work while another session scans"));
    }
    scanned.context("a scan while another session read and wrote")?;
    if !found.iter().map(|(key, value)| (key, value)).eq(entries.iter()) {
        let why = "a scan returned other entries while another session read and wrote";
        return Ok(Verdict::failed(why));
    }

    // What one session was lent stays while others work.
    for (key, wanted) in entries.iter().take(50) {
        let lent = first.get(key)?;
        disturb(&mut second, key, &other)?;
        if lent != Some(wanted.as_slice()) {
            let why = format!(
                "the value of {} changed while its session held it and another one worked",
                shown(key)
            );
            return Ok(Verdict::Failed(why));
        }
        // A writer may have to wait for what other sessions hold.
        first.release();
    }
    Ok(Verdict::Passed)
}

/// Reads a key, scans from it, and writes another one.
fn disturb(session: &mut CustomSession, key: &[u8], other: &[u8]) -> anyhow::Result<()> {
    value_of(session, key)?;
    place::scanned(session, key, Direction::Forward, 3)?;
    session.put(other, key).context("an entry cannot be written")?;
    Ok(())
}

pub(crate) fn fresh(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let (mut writer, mut reader) = (connect(&database)?, connect(&database)?);
    for number in 0..200_u32 {
        let value = number.to_le_bytes();
        writer.put(b"key", &value)?;
        if value_of(&mut reader, b"key")?.as_deref() != Some(&value) {
            let why = "a read did not see what another session had written before";
            return Ok(Verdict::failed(why));
        }
        writer.put(b"key", &[])?;
        let seen = place::scanned(&mut reader, b"key", Direction::Forward, 1)?;
        if seen.first().is_none_or(|(_, value)| !value.is_empty()) {
            let why = "a scan did not see what another session had written before";
            return Ok(Verdict::failed(why));
        }
        writer.delete(b"key")?;
        if value_of(&mut reader, b"key")?.is_some() {
            let why = "a read did not see what another session had removed before";
            return Ok(Verdict::failed(why));
        }
    }
    Ok(Verdict::Passed)
}

pub(crate) fn threads(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let writers = u64::from(database.capabilities().writers_max).min(THREADS);
    let writing = AtomicU64::new(writers);

    // Before any thread, because those that read wait for all that write.
    let mut sessions = Vec::new();
    for _ in 0..THREADS {
        sessions.push(connect(&database)?);
    }

    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for (thread, mut session) in (0..THREADS).zip(sessions) {
            let writing = &writing;
            handles.push(scope.spawn(move || {
                let mut work = Ok(());
                if thread < writers {
                    let _end = EndOfWrites { writing };
                    work = write_keys(&mut session, thread);
                }
                let read = work.and_then(|()| read_keys(&mut session, writing));
                read.with_context(|| format!("thread {thread} of {THREADS}"))
            }));
        }

        let mut first = Ok(());
        for handle in handles {
            let ended = handle.join().unwrap_or_else(|_| anyhow::bail!("a thread panicked"));
            first = first.and(ended);
        }
        first
    })?;

    let mut entries = crate::model::Entries::new();
    for thread in 0..writers {
        entries.extend((0..KEYS_EACH).map(|number| {
            let key = thread_key(thread, number);
            (key.clone(), key.repeat(3))
        }));
    }
    let mut session = connect(&database)?;
    let why = difference(&mut session, &entries)?;
    Ok(why.map_or(Verdict::Passed, |why| {
        Verdict::Failed(format!("after {writers} threads had written: {why}"))
    }))
}

fn thread_key(thread: u64, number: u64) -> Vec<u8> {
    // The threads' keys alternate.
    format!("{number:08}-{thread}").into_bytes()
}

fn write_keys(session: &mut CustomSession, thread: u64) -> anyhow::Result<()> {
    for number in 0..KEYS_EACH {
        let key = thread_key(thread, number);
        retried(|| session.put(&key, &key.repeat(3)))?;
        let found = value_of(session, &key)?;
        anyhow::ensure!(
            found == Some(key.repeat(3)),
            "the key {} is not what this thread has just written",
            shown(&key)
        );
    }
    Ok(())
}

/// Counts a thread that writes as one that has written, even if it panics.
struct EndOfWrites<'a> {
    /// The number of threads that still write.
    writing: &'a AtomicU64,
}

impl Drop for EndOfWrites<'_> {
    fn drop(&mut self) {
        self.writing.fetch_sub(1, Relaxed);
    }
}

/// Reads keys of all threads, until none of them writes.
fn read_keys(session: &mut CustomSession, writing: &AtomicU64) -> anyhow::Result<()> {
    loop {
        let is_last = writing.load(Relaxed) == 0;
        for (key, value) in place::scanned(session, &[], Direction::Forward, 500)? {
            anyhow::ensure!(value == key.repeat(3), "the key {} has another value", shown(&key));
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Repeats a write while it conflicts with others.
fn retried(mut write: impl FnMut() -> Result<(), Error>) -> anyhow::Result<()> {
    for _ in 0..ATTEMPTS_MAX {
        match write() {
            Err(error) if error.class.is_transient() => std::thread::yield_now(),
            other => return Ok(other?),
        }
    }
    anyhow::bail!("a write conflicted with others {ATTEMPTS_MAX} times")
}

pub(crate) fn moves(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let mut session = connect(&database)?;
    session.put(b"here", b"1")?;
    value_of(&mut session, b"here")?;
    let moved = std::thread::spawn(move || -> anyhow::Result<CustomSession> {
        session.put(b"there", b"2")?;
        value_of(&mut session, b"here")?;
        place::scanned(&mut session, &[], Direction::Forward, 10)?;
        Ok(session)
    });
    let session = moved.join().unwrap_or_else(|_| anyhow::bail!("the thread panicked"))?;
    // Closed by a third thread.
    let closed = std::thread::spawn(move || drop(session));
    closed.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?;

    let mut session = connect(&database)?;
    let found = place::scanned(&mut session, &[], Direction::Forward, 10)?;
    if found.len() != 2 {
        return Ok(Verdict::failed(format!("{} entries are there, not 2", found.len())));
    }
    Ok(Verdict::Passed)
}
