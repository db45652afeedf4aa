//! Measures a thread between two moments: the CPU time, the wait for a processor, and the events
//! that the processor counts. That means reading `/proc` and kernel counters, which takes time, so
//! a meter begins before the first operation of a connection and ends after the last.

use rustix::time::{ClockId, clock_gettime};
use words::ThreadUse;

use crate::processor_events::{EventGroup, HARDWARE_EVENTS};

/// Measures one thread from [`begin`](Self::begin) to [`end`](Self::end).
pub struct ThreadMeter {
    tid: u32,
    began: SchedStat,
    events: Option<EventGroup>,
}

impl ThreadMeter {
    /// Starts to measure the thread `tid`; `None` if there is no such thread, or the kernel keeps
    /// no `/proc/TID/schedstat`.
    pub fn begin(tid: u32) -> Option<Self> {
        Some(Self {
            tid,
            events: EventGroup::begin(tid, &HARDWARE_EVENTS),
            began: SchedStat::now(tid)?,
        })
    }

    /// Returns the use since the beginning; `None` if the thread has ended.
    pub fn end(self) -> Option<ThreadUse> {
        let ended = SchedStat::now(self.tid)?;
        Some(ThreadUse {
            cpu_ns: ended.cpu_ns.checked_sub(self.began.cpu_ns)?,
            cpu_wait_ns: ended.cpu_wait_ns.checked_sub(self.began.cpu_wait_ns)?,
            events: self.events.and_then(EventGroup::end).unwrap_or_default(),
        })
    }
}

/// Returns the time that the calling thread has waited for a processor while runnable, in
/// nanoseconds; 0 if the kernel does not say.
pub fn own_cpu_wait_ns() -> u64 {
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    SchedStat::now(tid.cast_unsigned()).map_or(0, |stat| stat.cpu_wait_ns)
}

/// The first two fields of `/proc/TID/schedstat`, which any user may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SchedStat {
    cpu_ns: u64,
    cpu_wait_ns: u64,
}

impl SchedStat {
    fn now(tid: u32) -> Option<Self> {
        Self::parse(&fs_err::read_to_string(format!("/proc/{tid}/schedstat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace().map(str::parse);
        Some(Self { cpu_ns: fields.next()?.ok()?, cpu_wait_ns: fields.next()?.ok()? })
    }
}

/// Returns the CPU time of the calling thread, in nanoseconds.
pub(crate) fn own_cpu_ns() -> u64 {
    let total = clock_gettime(ClockId::ThreadCPUTime);
    total.tv_sec as u64 * 1_000_000_000 + total.tv_nsec as u64
}

/// CPU time of the calling thread, divided into user and kernel mode.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadCpu {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
}

impl ThreadCpu {
    /// Reads the CPU time so far. The sum is exact; the division is the kernel's estimate by ticks.
    pub(crate) fn now() -> Self {
        let total_ns = own_cpu_ns();
        let (user, system) = thread_ticks().unwrap_or((1, 0));
        let user_ns =
            (u128::from(total_ns) * u128::from(user) / u128::from((user + system).max(1))) as u64;
        Self { user_ns, system_ns: total_ns - user_ns }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

/// Returns the user and system ticks of the calling thread: fields 14 and 15 of its `stat`. The
/// name before them may hold anything.
fn thread_ticks() -> Option<(u64, u64)> {
    let stat = fs_err::read_to_string("/proc/thread-self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    fn own_tid() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
    }

    /// Works until the thread has used so much CPU time.
    fn work(cpu_ns: u64) {
        let spent = || {
            let now = ThreadCpu::now();
            now.user_ns + now.system_ns
        };
        let began = spent();
        while spent() - began < cpu_ns {
            black_box((0..1000_u64).map(black_box).sum::<u64>());
        }
    }

    #[test]
    fn a_meter_sees_the_cpu_time_of_its_thread() {
        let meter = ThreadMeter::begin(own_tid()).unwrap();
        work(20_000_000);
        let used = meter.end().unwrap();
        // Both count the same time, by different readings.
        assert!((20_000_000..40_000_000).contains(&used.cpu_ns), "{used:?}");
    }

    #[test]
    fn a_thread_that_has_ended_has_no_figures() {
        let (send, tid) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(own_tid()).unwrap();
            let _ = wait.recv();
        });
        let tid = tid.recv().unwrap();
        let meter = ThreadMeter::begin(tid).unwrap();
        drop(go);
        thread.join().unwrap();
        // The kernel tells those who wait for a thread before it removes the thread.
        while std::path::Path::new(&format!("/proc/{tid}")).exists() {
            std::thread::yield_now();
        }
        assert_eq!(meter.end(), None);
    }

    #[test]
    fn recorded_schedstats_are_read() {
        let read = SchedStat::parse("52030455 1200345 173\n");
        let expected = SchedStat { cpu_ns: 52_030_455, cpu_wait_ns: 1_200_345 };
        assert_eq!(read, Some(expected));
        assert_eq!(SchedStat::parse("0\n"), None);
    }
}
