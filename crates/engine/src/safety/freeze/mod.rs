//! Freezes a program that assay started, with all its processes, and thaws it again.
//!
//! The targets of a comparison take turns within a step. The ones that wait are frozen, so that
//! their background work falls into their own turns.
//!
//! A program is frozen by one of two means:
//!
//! - **A control group of version 2**, which freezes all its processes at once. A group that limits
//!   the program serves for this too. Otherwise, the program's processes move to a new group when
//!   the freezer is made.
//! - **SIGSTOP** for each process, where assay cannot create such a group. It needs no rights, but
//!   it takes longer, and the program's parents could see it.
//!
//! The freezer of version 1 is not used. SIGKILL does not end a process that it has frozen, so
//! such a process could outlive assay and the guard forever. The two means above leave SIGKILL its
//! effect.
//!
//! Nothing stays frozen. The guard thaws the program before it ends it, which it does when assay is
//! killed. A keeper thaws the program when the guard is killed, and the kernel's signal to the
//! program then has its effect. A [`Freezer`] refuses to freeze a program that is about to end.

mod group;
mod keeper;
mod signals;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::safety::guard::{Deadline, Guarded, Hold, open_pidfd};
use group::GroupMeans;
use keeper::Keeper;
use signals::SignalMeans;

/// The time within which all processes must be frozen. Only a process in an uninterruptible call,
/// such as a flush to a slow disk, needs long.
const FREEZE_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of looks between which the thread only lets others run. Then it sleeps.
const YIELDS: u32 = 20;

/// The time between two looks after that.
const PAUSE: Duration = Duration::from_micros(50);

/// The means by which a program is frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freezing {
    /// A control group of version 2.
    ControlGroup,
    /// SIGSTOP for each process.
    Signals {
        /// The reason why there is no control group.
        reason: String,
    },
}

impl fmt::Display for Freezing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ControlGroup => f.write_str("control group of version 2"),
            Self::Signals { reason } => write!(f, "SIGSTOP, without a control group: {reason}"),
        }
    }
}

/// Freezes and thaws a guarded program. Dropping it thaws the program.
#[derive(Debug)]
pub struct Freezer {
    means: Means,
    how: Freezing,
    /// See [`Guarded::is_ending`].
    is_ending: Arc<Mutex<bool>>,
    /// A descriptor that becomes readable at the end of the guard.
    guard: OwnedFd,
    _keeper: Keeper,
}

#[derive(Debug)]
enum Means {
    Group(GroupMeans),
    Signals(SignalMeans),
}

impl Means {
    /// Freezes what is not frozen yet. Returns true when everything is.
    fn advance(&mut self) -> io::Result<bool> {
        match self {
            Self::Group(group) => group.advance(),
            Self::Signals(signals) => signals.advance(),
        }
    }

    fn thaw(&mut self) -> io::Result<()> {
        match self {
            Self::Group(group) => group.thaw(),
            Self::Signals(signals) => {
                signals.thaw();
                Ok(())
            }
        }
    }
}

impl Freezer {
    /// Returns a freezer of a program, with the best means that this machine allows.
    ///
    /// # Errors
    /// The program has ended, or the kernel is older than 5.3.
    pub fn of(guarded: &Guarded) -> io::Result<Self> {
        match GroupMeans::prepare(guarded) {
            Ok(group) => Self::new(guarded, Means::Group(group), Freezing::ControlGroup),
            Err(reason) => Self::by_signals(guarded, reason),
        }
    }

    /// Returns a freezer of a program that uses SIGSTOP, for the given reason.
    ///
    /// # Errors
    /// The errors of [`Freezer::of`].
    pub fn by_signals(guarded: &Guarded, reason: impl Into<String>) -> io::Result<Self> {
        let means = Means::Signals(SignalMeans::new(guarded.guard_pid()));
        Self::new(guarded, means, Freezing::Signals { reason: reason.into() })
    }

    fn new(guarded: &Guarded, means: Means, how: Freezing) -> io::Result<Self> {
        let hold = match &means {
            Means::Group(group) => group.hold(),
            Means::Signals(_) => Hold::Signals,
        };
        guarded.announce(&hold)?;
        let guard = open_pidfd(guarded.guard_pid())?;
        let keeper = Keeper::start(guarded, hold)?;
        Ok(Self { means, how, is_ending: guarded.is_ending(), guard, _keeper: keeper })
    }

    /// Returns the means by which the program is frozen.
    pub fn how(&self) -> &Freezing {
        &self.how
    }

    /// Freezes the program. Returns when none of its processes runs any more.
    ///
    /// # Errors
    /// The program is about to end, or a process was not frozen in time. Then nothing is frozen.
    pub fn freeze(&mut self) -> io::Result<()> {
        let frozen = self.freeze_all();
        if frozen.is_err() {
            let _ = self.means.thaw();
        }
        frozen
    }

    fn freeze_all(&mut self) -> io::Result<()> {
        let deadline = Deadline::after(FREEZE_TIMEOUT);
        let mut looks = 0;

        while !self.advance()? {
            if deadline.has_passed() {
                let seconds = FREEZE_TIMEOUT.as_secs();
                let what = format!("a process was not frozen within {seconds} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }

            looks += 1;
            if looks < YIELDS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PAUSE);
            }
        }

        // The keeper may have thawed the program just before it was frozen.
        self.check_guard()
    }

    fn advance(&mut self) -> io::Result<bool> {
        let is_ending = self.is_ending.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_ending {
            return Err(io::Error::other("the program is about to end"));
        }
        self.check_guard()?;
        self.means.advance()
    }

    /// Fails if the guard has ended. Then the program ends too, unless it is frozen.
    fn check_guard(&self) -> io::Result<()> {
        let mut fds = [PollFd::from_borrowed_fd(self.guard.as_fd(), PollFlags::IN)];
        let has_ended = poll(&mut fds, Some(&Timespec::default()))? > 0;
        if has_ended {
            return Err(io::Error::other("the program or its guard has ended"));
        }
        Ok(())
    }

    /// Thaws the program. Does nothing if it is not frozen.
    ///
    /// # Errors
    /// The kernel's.
    pub fn thaw(&mut self) -> io::Result<()> {
        self.means.thaw()
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        // Fails only if the group is gone, and then its processes are too.
        let _ = self.thaw();
    }
}
