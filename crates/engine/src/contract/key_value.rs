//! The hot path of an engine with keys and values instead of SQL.

use words::Durability;

use crate::error::Error;

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending, from the first key that is not below the start.
    Forward,
    /// Descending, from the last key that is not above the start.
    Reverse,
}

/// A scan of the current data: a seek, then a number of entries.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// The key at which the scan starts.
    pub from: &'a [u8],
    /// The direction.
    pub direction: Direction,
    /// The maximum number of entries, including the one that the seek finds.
    pub limit: u64,
    /// The order of the keys is checked. A caller that knows the keys need not check it.
    pub verifies_order: bool,
}

/// The treatment of the transactions of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// The longest wait for a lock, in milliseconds.
    pub lock_timeout_ms: u32,
    /// A transaction takes a snapshot when it begins. It fails if a key was changed since then, not
    /// only since it read the key.
    pub takes_snapshot: bool,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// The number of entries.
    pub entries: u64,
    /// The size of their keys and values.
    pub bytes: u64,
}

/// Facts about all keys in a database, from a full scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFacts {
    /// The number of keys.
    pub keys: u64,
    /// The size of all keys and values.
    pub bytes: u64,
    /// The smallest key; `None` in an empty database.
    pub first: Option<Vec<u8>>,
    /// The largest key; `None` in an empty database.
    pub last: Option<Vec<u8>>,
}

/// A load thread's session with a key-value engine. It blocks, takes no locks and does not
/// allocate.
///
/// A value that is read belongs to the engine, and is borrowed until the session's next call.
/// [`release`](Self::release) frees what the session holds between calls for that, such as a pinned
/// block.
pub trait KeyValueSession: Send + 'static {
    /// Prepares the calling thread, which is going to use the session, before its operations are
    /// measured. Sets the engine's per-thread state.
    fn enter_thread(&mut self) {}

    /// Sets the durability of the following writes. The default is that of the config, or
    /// [`Durability::Process`].
    fn set_durability(&mut self, durability: Durability);

    /// Writes an entry, whether or not the key exists.
    ///
    /// # Errors
    /// An error of the engine.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Merges a value into a key, whether or not the key exists. The operator of the database says which
    /// value the key then has ([`MergeOperator`](words::MergeOperator)).
    ///
    /// # Errors
    /// An error of the engine; always, if it cannot merge values.
    fn merge(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Error> {
        Err(Error::other("the engine cannot merge values"))
    }

    /// Removes a key, whether or not it exists. Most engines don't check that.
    ///
    /// # Errors
    /// An error of the engine.
    fn delete(&mut self, key: &[u8]) -> Result<(), Error>;

    /// Removes all keys from `from` up to `end`, but not `end` itself, with one call.
    ///
    /// # Errors
    /// An error of the engine; always, if it cannot delete a range.
    fn delete_range(&mut self, _from: &[u8], _end: &[u8]) -> Result<(), Error> {
        Err(Error::other("the engine cannot delete a range of keys"))
    }

    /// Writes an entry into a sorted file outside of the database, for [`ingest`](Self::ingest). The
    /// keys of one ingestion ascend.
    ///
    /// # Errors
    /// An error of the engine; always, if it cannot take over files.
    fn write_file(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Error> {
        Err(Error::other("the engine cannot take over sorted files"))
    }

    /// Makes all files that [`write_file`](Self::write_file) wrote part of the database, atomically.
    ///
    /// # Errors
    /// An error of the engine; always, if it cannot take over files.
    fn ingest(&mut self) -> Result<(), Error> {
        Err(Error::other("the engine cannot take over sorted files"))
    }

    /// Sets the options of the following transactions.
    fn set_transactions(&mut self, _options: TransactionOptions) {}

    /// Begins a transaction, in which [`get_for_update`](Self::get_for_update) and
    /// [`put_in_transaction`](Self::put_in_transaction) take part. The one before must have ended.
    ///
    /// # Errors
    /// An error of the engine; always, if the database has no transactions.
    fn begin_transaction(&mut self) -> Result<(), Error> {
        Err(no_transactions())
    }

    /// Returns the value of a key. If others change the key before the commit, they wait, or the
    /// commit fails.
    ///
    /// # Errors
    /// An error of the engine. After a transient one, [roll back](Self::roll_back) and begin again.
    fn get_for_update(&mut self, _key: &[u8]) -> Result<Option<&[u8]>, Error> {
        Err(no_transactions())
    }

    /// Writes an entry when the transaction is committed.
    ///
    /// # Errors
    /// As those of [`get_for_update`](Self::get_for_update).
    fn put_in_transaction(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Error> {
        Err(no_transactions())
    }

    /// Commits the transaction. After a transient error, nothing of it is in the database.
    ///
    /// # Errors
    /// As those of [`get_for_update`](Self::get_for_update).
    fn commit(&mut self) -> Result<(), Error> {
        Err(no_transactions())
    }

    /// Ends the transaction without its writes.
    ///
    /// # Errors
    /// An error of the engine.
    fn roll_back(&mut self) -> Result<(), Error> {
        Err(no_transactions())
    }

    /// Adds an entry to the batch, without a call to the engine's storage.
    fn batch_put(&mut self, key: &[u8], value: &[u8]);

    /// Adds the removal of a key to the batch, without a call to the engine's storage.
    fn batch_delete(&mut self, key: &[u8]);

    /// Returns the number of entries and removals in the batch.
    fn batch_len(&self) -> u64;

    /// Writes the batch atomically, and empties it. After a failure the batch is unchanged, so
    /// another call retries it.
    ///
    /// # Errors
    /// An error of the engine.
    fn write_batch(&mut self) -> Result<(), Error>;

    /// Empties the batch without writing it.
    fn clear_batch(&mut self);

    /// Returns the value of a key.
    ///
    /// # Errors
    /// An error of the engine.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error>;

    /// Reads several keys at once. Returns the number of those that exist; [`found`](Self::found)
    /// returns their values, in the same order.
    ///
    /// # Errors
    /// An error of the engine, for the first key that failed.
    fn multi_get<'k>(&mut self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<u64, Error>;

    /// Returns the value of the key at `index` in the last [`multi_get`](Self::multi_get); `None`
    /// if it does not exist.
    fn found(&self, index: usize) -> Option<&[u8]>;

    /// Seeks, and calls `visit` with each entry's key and value in turn. Checks the order of the
    /// keys if the scan [asks for it](Scan::verifies_order).
    ///
    /// # Errors
    /// An error of the engine; [`crate::ErrorClass::Protocol`] when a key is out of order.
    fn scan(&mut self, scan: Scan<'_>, visit: impl FnMut(&[u8], &[u8])) -> Result<Scanned, Error>;

    /// Releases the values that the session holds.
    fn release(&mut self);
}

fn no_transactions() -> Error {
    Error::other("the database has no transactions")
}
