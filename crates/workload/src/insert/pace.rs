//! Keeps a client's inserts and deletes in step if they have no rate.
//!
//! Otherwise the faster of the two connections would run away: a deleter could empty the table.
//! Neither gets more than eight commits ahead of the other, which is the length of the queues of
//! the original client. Each side writes its own progress once a commit; the other reads it once a
//! commit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Next;
use crate::cache_padded::CachePadded;

const AHEAD_MAX: u64 = 8;
/// A side that had to wait continues only when the other is this close: one wait serves several
/// commits.
const AHEAD_RESUME: u64 = 4;

#[derive(Debug, Default)]
struct Progress {
    /// The commits that each side has done.
    commits: [CachePadded<AtomicU64>; 2],
    /// The flags of the sides that wait: one for each, since one may start to wait while the other
    /// is still waking up.
    waiting: [CachePadded<AtomicBool>; 2],
    lock: Mutex<()>,
    changed: Condvar,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let _guard = self.lock();
        self.changed.notify_all();
    }
}

/// One of the two sides.
#[derive(Debug)]
pub(super) struct Pace {
    shared: Arc<Progress>,
    side: usize,
    /// This side had to wait and must not continue yet.
    is_held: bool,
}

impl Pace {
    pub(super) fn pair() -> [Self; 2] {
        let shared = Arc::new(Progress::default());
        [0, 1].map(|side| Self { shared: Arc::clone(&shared), side, is_held: false })
    }

    /// Reports that this side has done `commits` so far; returns whether it may do the next one
    /// now.
    pub(super) fn may_continue(&mut self, commits: u64) -> bool {
        let shared = &*self.shared;
        shared.commits[self.side].0.store(commits, SeqCst);

        let theirs = shared.commits[1 - self.side].0.load(SeqCst);
        if shared.waiting[1 - self.side].0.load(SeqCst)
            && theirs < commits.saturating_add(AHEAD_RESUME)
        {
            shared.wake();
        }

        self.is_held = self.is_ahead(if self.is_held { AHEAD_RESUME } else { AHEAD_MAX });
        !self.is_held
    }

    fn is_ahead(&self, limit: u64) -> bool {
        let ours = self.shared.commits[self.side].0.load(SeqCst);
        let theirs = self.shared.commits[1 - self.side].0.load(SeqCst);
        ours >= theirs.saturating_add(limit)
    }

    /// Reports that this side is done, so that the other no longer waits for it.
    pub(super) fn end(&self) {
        self.shared.commits[self.side].0.store(u64::MAX, SeqCst);
        self.shared.wake();
    }

    /// Waits until the other side has caught up, or for `at_most`.
    pub(super) fn wait(&self, at_most: Duration) {
        let shared = &*self.shared;
        let guard = shared.lock();

        // The other side stores its progress before it reads `waiting`. This side stores `waiting`
        // before it reads the other's progress. So at least one of them sees the other's store, and
        // no wake-up is lost.
        shared.waiting[self.side].0.store(true, SeqCst);
        let waited =
            shared.changed.wait_timeout_while(guard, at_most, |()| self.is_ahead(AHEAD_RESUME));
        drop(waited);
        shared.waiting[self.side].0.store(false, SeqCst);
    }
}

/// The number of commits of one connection, in step with another if there is a pace.
#[derive(Debug)]
pub(super) struct CommitQuota {
    /// The number to do; `None` means until the step ends.
    commits: Option<u64>,
    begun: u64,
    pace: Option<Pace>,
}

impl CommitQuota {
    pub(super) fn new(commits: Option<u64>, pace: Option<Pace>) -> Self {
        Self { commits, begun: 0, pace }
    }

    /// Returns whether the next commit may begin.
    #[inline]
    pub(super) fn poll(&mut self) -> Next {
        let is_done = self.commits == Some(self.begun);
        if let Some(pace) = &mut self.pace {
            if is_done {
                pace.end();
            } else if !pace.may_continue(self.begun) {
                return Next::Later;
            }
        }
        if is_done { Next::Done } else { Next::Ready(0) }
    }

    /// Counts the beginning of the next commit.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.begun += 1;
    }

    /// Waits until it is worth [polling](Self::poll) again, but not longer than `at_most`.
    pub(super) fn wait(&self, at_most: Duration) {
        if let Some(pace) = &self.pace {
            pace.wait(at_most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_side_gets_far_ahead() {
        const COMMITS: u64 = 20_000;
        let counts = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            for (side, mut pace) in Pace::pair().into_iter().enumerate() {
                let counts = &counts;
                scope.spawn(move || {
                    for commits in 0..COMMITS {
                        while !pace.may_continue(commits) {
                            pace.wait(Duration::from_secs(10));
                        }
                        let other = counts[1 - side].load(SeqCst);
                        assert!(commits <= other + AHEAD_MAX, "{commits} against {other}");
                        counts[side].fetch_add(1, SeqCst);
                    }
                    pace.end();
                });
            }
        });
    }

    #[test]
    fn a_side_that_has_ended_does_not_block_the_other() {
        let [mut left, right] = Pace::pair();
        assert!(!left.may_continue(100));
        right.end();
        assert!(left.may_continue(100));
    }
}
