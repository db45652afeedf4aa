//! One thread: what it does at one moment, by its files in `/proc`.

use std::os::fd::OwnedFd;

use words::ConnectionState;

use super::Functions;
use crate::Proc;

/// A thread and its file `/proc/TID/syscall`.
#[derive(Default)]
pub(super) struct Thread {
    pub(super) tid: u32,
    file: Option<OwnedFd>,
    keep_open: bool,
    /// True once the file could not be read: the thread has ended, and its ID may belong to
    /// another thread.
    pub(super) has_ended: bool,
    /// The system call in which the thread waits for a message.
    idle_call: Option<SystemCall>,
}

impl Thread {
    pub(super) fn new(tid: u32, keep_open: bool) -> Self {
        Self { tid, keep_open, ..Self::default() }
    }

    /// Returns a thread that now waits for its first message. A different wait later is for
    /// something else.
    pub(super) fn idle(tid: u32, keep_open: bool, proc: &Proc, buffer: &mut Vec<u8>) -> Self {
        let mut thread = Self::new(tid, keep_open);
        thread.idle_call = thread.read(proc, buffer).and_then(|text| SystemCall::parse(&text));
        thread
    }

    /// Returns a thread that cannot be read.
    pub(super) fn unknown() -> Self {
        Self { has_ended: true, ..Self::default() }
    }

    fn read(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Option<String> {
        if self.has_ended {
            return None;
        }
        let name = format!("proc/{}/syscall", self.tid);
        let text = proc.read_at_once(&name, &mut self.file, self.keep_open, buffer);
        self.has_ended = text.is_err();
        text.ok().map(|text| text.into_owned())
    }

    /// Returns the activity of the thread; `None` if the thread cannot be read.
    pub(super) fn activity(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Option<Activity> {
        let text = self.read(proc, buffer)?;
        let activity = parse(&text)?;

        // PostgreSQL waits for its client with one event set, and for locks and other processes
        // with another.
        if activity == Activity::Message
            && let Some(idle_call) = self.idle_call.as_ref().filter(|call| call.uses_event_set())
            && let Some(call) = SystemCall::parse(&text).filter(SystemCall::uses_event_set)
            && call != *idle_call
        {
            return Some(Activity::State(ConnectionState::Lock));
        }
        Some(activity)
    }

    /// Returns a state with the kernel function in which the thread waits, if the kernel says so:
    /// `fsync:jbd2_log_wait_commit`.
    pub(super) fn described(
        &self,
        state: ConnectionState,
        functions: &mut Functions,
        proc: &Proc,
        buffer: &mut Vec<u8>,
    ) -> String {
        let name = state.name();
        if state == ConnectionState::Runnable {
            return name.to_owned();
        }

        let file = format!("proc/{}/wchan", self.tid);
        if let Ok(function) = proc.read(&file, buffer).as_deref().map(str::trim)
            && !matches!(function, "" | "0")
        {
            functions.insert(state, function.to_owned());
        }
        match functions.get(&state) {
            Some(function) => format!("{name}:{function}"),
            None => name.to_owned(),
        }
    }
}

/// A system call that blocks a thread.
#[derive(PartialEq, Eq)]
struct SystemCall {
    number: i64,
    first_argument: String,
}

impl SystemCall {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        Some(Self { number, first_argument: words.next()?.to_owned() })
    }

    /// Returns whether the first argument is an event set.
    fn uses_event_set(&self) -> bool {
        EVENT_SET_CALLS.contains(&self.number)
    }
}

const EVENT_SET_CALLS: &[i64] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// The activity of a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    State(ConnectionState),
    /// The thread waits for a message.
    Message,
}

/// Parses `/proc/TID/syscall`: `running`, or the number of a system call in decimal and its
/// arguments, or `-1` for a thread that is blocked outside of system calls, such as by a page
/// fault.
pub(super) fn parse(text: &str) -> Option<Activity> {
    use ConnectionState::{Fsync, Lock, Other, Read, Runnable, Sleep, Write};

    let first = text.split_ascii_whitespace().next()?;
    if first == "running" {
        return Some(Activity::State(Runnable));
    }

    let number: i64 = first.parse().ok()?;
    let state = match number {
        -1 => Read,
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_io_getevents
        | libc::SYS_io_uring_enter
        | libc::SYS_readahead => Read,
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_sync_file_range
        | libc::SYS_fallocate
        | libc::SYS_ftruncate => Write,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_msync | libc::SYS_syncfs => Fsync,
        libc::SYS_futex
        | libc::SYS_semop
        | libc::SYS_semtimedop
        | libc::SYS_fcntl
        | libc::SYS_flock => Lock,
        libc::SYS_clock_nanosleep | libc::SYS_nanosleep => Sleep,
        libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_ppoll
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_pselect6 => return Some(Activity::Message),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll | libc::SYS_epoll_wait | libc::SYS_select => return Some(Activity::Message),
        _ => Other,
    };
    Some(Activity::State(state))
}
