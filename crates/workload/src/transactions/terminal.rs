//! The waits of a client that is a terminal: think times after transactions, and keying times before
//! them.

use plan::transactions::Pause;

use crate::Random;

/// Draws the waits of one client.
pub(super) struct Terminal {
    /// The waits around each part of the test's mix.
    pauses: Vec<Pause>,
    random: Random,
    /// The last part; `None` before the first transaction.
    last: Option<usize>,
    /// The time before the prepared transaction.
    pub(super) pause_ns: u64,
}

impl Terminal {
    /// Returns the waits of a client before its first transaction. `random` draws nothing else, so
    /// that transactions are the same with and without waits.
    pub(super) fn new(pauses: Vec<Pause>, random: Random) -> Self {
        Self { pauses, random, last: None, pause_ns: 0 }
    }

    /// Draws the time before a transaction of this part. Before the first one, the client thinks as
    /// after one, so that not all clients begin at once.
    #[inline]
    pub(super) fn prepare(&mut self, part: usize) {
        let before = self.last.replace(part).unwrap_or(part);
        let think_ns = self.pauses[before].think_ns(self.random.fraction());
        let keying_ns = self.pauses[part].keying.as_nanos() as u64;
        self.pause_ns = think_ns + keying_ns;
    }
}
