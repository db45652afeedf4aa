//! What each kind of connection of the key-value sequence does.

use std::any::Any;
use std::sync::Arc;

use engine::{Direction, Error, KeyValueSession, Outcome, Scan, View};

use super::Account;
use super::data::{self, Choices, Data, Fault, Version};
use super::witness::Witness;
use crate::{Kind, Next, Program, Random};

/// The names of the kinds of operation, as they are recorded.
pub mod kinds {
    use crate::Kind;

    /// One entry is written.
    pub const PUT: Kind = Kind("put");
    /// The value of one key is read.
    pub const GET: Kind = Kind("get");
    /// The values of several keys are read at once.
    pub const MULTIGET: Kind = Kind("multiget");
    /// A seek, and the entries that follow.
    pub const SCAN: Kind = Kind("scan");
}

/// No outcome has so many rows: what is expected when a value is wrong.
const NONE_IS_RIGHT: (u64, u64) = (u64::MAX, u64::MAX);

/// One connection: what it is decides what it does.
pub enum Connection<S> {
    /// Writes all keys in their order.
    Loader(Loader<S>),
    /// Overwrites random keys.
    Writer(Writer<S>),
    /// Reads a random key.
    Getter(Getter<S>),
    /// Reads several random keys at once.
    MultiGetter(MultiGetter<S>),
    /// Scans from a random key.
    Scanner(Scanner<S>),
}

macro_rules! each {
    ($connection:expr, $inner:ident => $body:expr) => {
        match $connection {
            Connection::Loader($inner) => $body,
            Connection::Writer($inner) => $body,
            Connection::Getter($inner) => $body,
            Connection::MultiGetter($inner) => $body,
            Connection::Scanner($inner) => $body,
        }
    };
}

impl<S> Connection<S> {
    fn witness(&self) -> Option<&Witness> {
        match self {
            Self::Loader(_) | Self::Writer(_) => None,
            Self::Getter(getter) => Some(&getter.witness),
            Self::MultiGetter(getter) => Some(&getter.witness),
            Self::Scanner(scanner) => Some(&scanner.witness),
        }
    }
}

impl<S: KeyValueSession> Program for Connection<S> {
    fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Loader(_) | Self::Writer(_) => &[kinds::PUT],
            Self::Getter(_) => &[kinds::GET],
            Self::MultiGetter(_) => &[kinds::MULTIGET],
            Self::Scanner(_) => &[kinds::SCAN],
        }
    }

    fn begin(&mut self) {
        each!(self, inner => inner.session.enter_thread());
    }

    #[inline]
    fn prepare(&mut self) -> Next {
        each!(self, inner => inner.prepare())
    }

    #[inline]
    fn execute(&mut self) -> Result<Outcome, Error> {
        let rows = each!(self, inner => inner.execute())?;
        Ok(Outcome { rows, value: None })
    }

    #[inline]
    fn expected_rows(&self) -> (u64, u64) {
        let expected = match self {
            Self::Loader(_) | Self::Writer(_) => return (1, 1),
            Self::Getter(_) => 1,
            Self::MultiGetter(getter) => getter.numbers.len() as u64,
            Self::Scanner(scanner) => scanner.expected,
        };
        match self.witness() {
            Some(witness) if !witness.holds() => NONE_IS_RIGHT,
            _ => (expected, expected),
        }
    }

    fn account(&mut self, _: u64) -> Result<Box<dyn Any>, Error> {
        let account = match self {
            Self::Loader(loader) => Account::Loaded(loader.written),
            Self::Writer(writer) => Account::Wrote {
                begun: writer.begun,
                written: writer.written,
            },
            Self::Getter(Getter { witness, .. })
            | Self::MultiGetter(MultiGetter { witness, .. })
            | Self::Scanner(Scanner { witness, .. }) => Account::Read(witness.verified()),
        };
        Ok(Box::new(account))
    }
}

/// An entry that is about to be written.
pub(super) struct Entry {
    data: Arc<Data>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Entry {
    pub(super) fn new(data: &Arc<Data>) -> Self {
        Self {
            key: data.key_buffer(),
            value: data.value_buffer(),
            data: Arc::clone(data),
        }
    }

    #[inline]
    fn set(&mut self, number: u64, version: Version) {
        self.data.set_key(number, &mut self.key);
        self.data.set_value(number, version, &mut self.value);
    }
}

/// Writes all keys in their order.
pub struct Loader<S> {
    pub(super) session: S,
    pub(super) entry: Entry,
    pub(super) step: u32,
    /// The number of the next key.
    pub(super) next: u64,
    /// Writes that succeeded.
    pub(super) written: u64,
}

impl<S: KeyValueSession> Loader<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let number = self.next;
        if number == self.entry.data.keys {
            return Next::Done;
        }
        self.next += 1;
        let version = Version {
            step: self.step,
            writer: 0,
            sequence: number,
        };
        self.entry.set(number, version);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<u64, Error> {
        self.session.put(&self.entry.key, &self.entry.value)?;
        self.written += 1;
        Ok(1)
    }
}

/// Overwrites random keys.
pub struct Writer<S> {
    pub(super) session: S,
    pub(super) entry: Entry,
    pub(super) choices: Choices,
    pub(super) step: u32,
    pub(super) writer: u32,
    /// Writes to do; `None`: until the step ends.
    pub(super) quota: Option<u64>,
    /// Writes begun.
    pub(super) begun: u64,
    /// Writes that succeeded.
    pub(super) written: u64,
}

impl<S: KeyValueSession> Writer<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let sequence = self.begun;
        if self.quota == Some(sequence) {
            return Next::Done;
        }
        self.begun += 1;
        let version = Version {
            step: self.step,
            writer: self.writer,
            sequence,
        };
        self.entry.set(self.choices.get(sequence), version);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<u64, Error> {
        self.session.put(&self.entry.key, &self.entry.value)?;
        self.written += 1;
        Ok(1)
    }
}

/// Reads a random key.
pub struct Getter<S> {
    pub(super) session: S,
    pub(super) random: Random,
    pub(super) witness: Witness,
    pub(super) key: Vec<u8>,
    pub(super) number: u64,
    pub(super) is_sampled: bool,
}

impl<S: KeyValueSession> Getter<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        self.number = self.random.below(self.witness.data.keys);
        self.is_sampled = self.witness.begin(self.random.next_u64());
        self.witness.data.set_key(self.number, &mut self.key);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<u64, Error> {
        let value = self.session.get(&self.key)?;
        Ok(self.witness.see(self.number, value, self.is_sampled).into())
    }
}

/// Reads several random keys at once.
pub struct MultiGetter<S> {
    pub(super) session: S,
    pub(super) random: Random,
    pub(super) witness: Witness,
    /// One after the other.
    pub(super) keys: Vec<u8>,
    pub(super) numbers: Vec<u64>,
    /// Which of them is sampled.
    pub(super) sampled: Option<usize>,
}

impl<S: KeyValueSession> MultiGetter<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let data = &self.witness.data;
        let keys = self.keys.chunks_exact_mut(data.key_size);
        for (number, key) in self.numbers.iter_mut().zip(keys) {
            *number = self.random.below(data.keys);
            data.set_key(*number, key);
        }
        let is_sampled = self.witness.begin(self.random.next_u64());
        self.sampled = is_sampled.then(|| self.random.below(self.numbers.len() as u64) as usize);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<u64, Error> {
        let key_size = self.witness.data.key_size;
        self.session.multi_get(self.keys.chunks_exact(key_size))?;
        let mut rows = 0;
        for (index, &number) in self.numbers.iter().enumerate() {
            let value = self.session.found(index);
            let is_sampled = self.sampled == Some(index);
            rows += u64::from(self.witness.see(number, value, is_sampled));
        }
        Ok(rows)
    }
}

/// Scans from a random key.
pub struct Scanner<S> {
    pub(super) session: S,
    pub(super) random: Random,
    pub(super) witness: Witness,
    pub(super) direction: Direction,
    pub(super) limit: u64,
    pub(super) key: Vec<u8>,
    pub(super) number: u64,
    /// Entries that there are from there on, up to the limit.
    pub(super) expected: u64,
    /// Which of them is sampled.
    pub(super) sampled: Option<u64>,
}

impl<S: KeyValueSession> Scanner<S> {
    #[inline]
    fn prepare(&mut self) -> Next {
        let keys = self.witness.data.keys;
        self.number = self.random.below(keys);
        let there = match self.direction {
            Direction::Forward => keys - self.number,
            Direction::Reverse => self.number + 1,
        };
        self.expected = self.limit.min(there);
        let is_sampled = self.witness.begin(self.random.next_u64());
        self.sampled = is_sampled.then(|| self.random.below(self.expected));
        self.witness.data.set_key(self.number, &mut self.key);
        Next::Ready(0)
    }

    #[inline]
    fn execute(&mut self) -> Result<u64, Error> {
        let scan = Scan {
            from: &self.key,
            direction: self.direction,
            limit: self.limit,
            view: View::Now,
            // Each entry has to be the next number's, which says more.
            verifies_order: false,
        };
        let (mut index, mut rows) = (0, 0);
        let (witness, sampled) = (&mut self.witness, self.sampled.unwrap_or(u64::MAX));
        let sizes = (witness.data.key_size, witness.data.value_size);
        let step = match self.direction {
            Direction::Forward => 1,
            Direction::Reverse => u64::MAX,
        };
        let mut number = self.number;
        let scanned = self.session.scan(scan, |key, value| {
            // All keys exist: each entry is the next number's.
            let is_next = data::number_of(key) == Some(number);
            if is_next && (key.len(), value.len()) == sizes && index != sampled {
                rows += 1;
            } else if witness.data.is_key(number, key) {
                rows += u64::from(witness.see(number, Some(value), index == sampled));
            } else {
                witness.note(number, Fault::OutOfPlace);
            }
            index += 1;
            number = number.wrapping_add(step);
        })?;
        if scanned.entries < self.expected {
            self.witness.note(number, Fault::Missing);
        }
        Ok(rows)
    }
}
