//! The hot path of an engine that has keys and values and no SQL.

use crate::Error;

/// What a write leaves behind when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing is logged: what was not flushed is lost when the process ends badly.
    NoLog,
    /// It is in the log, which the operating system writes when it pleases: lost when the machine fails.
    #[default]
    Log,
    /// The log is on the device.
    LogSynced,
}

/// The way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first key that is not smaller than where it begins, upwards.
    Forward,
    /// From the last key that is not larger than where it begins, downwards.
    Reverse,
}

/// Which view of the data a scan is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// That of now: an iterator of its own is made, and given back at the end of the scan.
    Now,
    /// That of the last scan that was kept, if there is one that was not yet [released](KeyValueSession::release):
    /// its iterator is positioned anew and sees nothing of what was written since. Else that of now, which is kept.
    Kept,
}

/// A scan: seek, then up to so many entries.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// Where it begins.
    pub from: &'a [u8],
    /// Which way it goes.
    pub direction: Direction,
    /// Entries at most, the one that the seek finds included.
    pub limit: u64,
    /// What it sees.
    pub view: View,
    /// Whether each key is held against the one before. It need not be where the caller knows which keys there are.
    pub verifies_order: bool,
}

/// What a scan read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Entries.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// What an engine of keys and values holds, by a scan of all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFacts {
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// The smallest key; `None` where there is none.
    pub first: Option<Vec<u8>>,
    /// The largest key; `None` where there is none.
    pub last: Option<Vec<u8>>,
}

/// A load thread's way to an engine of keys and values: blocking, no locks, no allocation of its own.
///
/// A value that is read belongs to the engine and is borrowed until the session's next call. What the session holds
/// between calls for that (a pinned block, a kept iterator) goes with [`release`](Self::release).
pub trait KeyValueSession: Send + 'static {
    /// Called by a thread that is going to use the session, before its operations are measured: what the engine keeps
    /// for each thread is set here.
    fn enter_thread(&mut self) {}

    /// What the writes that follow leave behind; [`Durability::Log`] to begin with.
    fn set_durability(&mut self, durability: Durability);

    /// Writes one entry, whether the key is there or not.
    ///
    /// # Errors
    /// The engine's own, by class.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Removes a key, whether it is there or not: most engines don't look.
    ///
    /// # Errors
    /// The engine's own, by class.
    fn delete(&mut self, key: &[u8]) -> Result<(), Error>;

    /// Adds an entry to the batch. Talks to nobody.
    fn batch_put(&mut self, key: &[u8], value: &[u8]);

    /// Adds the removal of a key to the batch. Talks to nobody.
    fn batch_delete(&mut self, key: &[u8]);

    /// Entries and removals in the batch.
    fn batch_len(&self) -> u64;

    /// Writes the batch, all of it or nothing, and empties it. After a failure it is as it was: calling this again
    /// tries it again.
    ///
    /// # Errors
    /// The engine's own, by class.
    fn write_batch(&mut self) -> Result<(), Error>;

    /// Empties the batch without writing it.
    fn clear_batch(&mut self);

    /// The value of a key.
    ///
    /// # Errors
    /// The engine's own, by class.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error>;

    /// Reads several keys at once and says how many of them were there; the values are had by
    /// [`found`](Self::found), in the order of the keys.
    ///
    /// # Errors
    /// The engine's own, by class: that of the first key that failed.
    fn multi_get<'k>(&mut self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<u64, Error>;

    /// The value of the key at `index` of the last [`multi_get`](Self::multi_get); `None` where it was not there.
    fn found(&self, index: usize) -> Option<&[u8]>;

    /// Seeks, and gives `visit` each entry's key and value in turn. Where the scan [verifies](Scan::verifies_order)
    /// it, each key has to lie on the right side of the one before it, and the first one of where the scan begins.
    ///
    /// # Errors
    /// The engine's own, by class; [`crate::ErrorClass::Protocol`] when keys come out of order.
    fn scan(&mut self, scan: Scan<'_>, visit: impl FnMut(&[u8], &[u8])) -> Result<Scanned, Error>;

    /// Gives back the values and the iterator that the session holds.
    fn release(&mut self);
}
