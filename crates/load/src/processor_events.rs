//! Counts events of a thread with the processor's counters, all in the same time.

use std::os::fd::AsRawFd;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware};
use perf_event::{Builder, Counter, ReadFormat};
use rustix::process::{Resource, getrlimit};
use words::ProcessorEvents;

/// The place of an event's count.
type Place = fn(&mut ProcessorEvents) -> &mut Option<u64>;
/// An event, with the place of its count.
type CountedEvent = (fn() -> Builder<'static>, Place);

/// The events, the most useful first: where a processor has too few counters, the last ones are
/// missing.
pub(crate) const HARDWARE_EVENTS: [CountedEvent; 5] = [
    (|| Builder::new(Hardware::INSTRUCTIONS), |counts| &mut counts.instructions),
    (|| Builder::new(Hardware::CPU_CYCLES), |counts| &mut counts.cycles),
    (|| Builder::new(Hardware::CACHE_MISSES), |counts| &mut counts.cache_misses),
    (|| Builder::new(Hardware::BRANCH_MISSES), |counts| &mut counts.branch_misses),
    (
        || {
            Builder::new(Cache {
                which: CacheId::DTLB,
                operation: CacheOp::READ,
                result: CacheResult::MISS,
            })
        },
        |counts| &mut counts.tlb_misses,
    ),
];

/// Counts events of one thread from [`begin`](Self::begin) to [`end`](Self::end). The kernel counts
/// all of them or none at any moment, so that their ratios are exact.
pub(crate) struct EventGroup {
    leader: (Counter, Place),
    members: Vec<(Counter, Place)>,
}

impl EventGroup {
    /// Starts to count those events of the thread `tid` that this machine and the permissions
    /// allow; `None` if there is none.
    pub(crate) fn begin(tid: u32, events: &[CountedEvent]) -> Option<Self> {
        let files_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        let mut group: Option<Self> = None;
        for &(event, place) in events {
            let mut builder = event();
            builder.observe_pid(tid.cast_signed()).any_cpu();
            match &mut group {
                None => {
                    builder.read_format(
                        ReadFormat::GROUP
                            | ReadFormat::ID
                            | ReadFormat::TOTAL_TIME_ENABLED
                            | ReadFormat::TOTAL_TIME_RUNNING,
                    );
                    group = builder
                        .build()
                        .ok()
                        .map(|counter| Self { leader: (counter, place), members: Vec::new() });
                }
                Some(group) => {
                    let counter = builder.build_with_group(&mut group.leader.0);
                    // The kernel gives the lowest free number: so many files are open. The rest is
                    // for connections and the record.
                    let is_spare =
                        |it: &Counter| u64::from(it.as_raw_fd().unsigned_abs()) < files_max;
                    group
                        .members
                        .extend(counter.ok().filter(is_spare).map(|counter| (counter, place)));
                }
            }
        }
        let mut group = group?;
        group.leader.0.enable_group().ok()?;
        Some(group)
    }

    /// Returns the counts since the beginning; `None` if the kernel can't read them.
    pub(crate) fn end(mut self) -> Option<ProcessorEvents> {
        let counted = self.leader.0.read_group().ok()?;
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).ok();
        let mut counts = ProcessorEvents {
            events_enabled_ns: counted.time_enabled().and_then(ns),
            events_running_ns: counted.time_running().and_then(ns),
            ..ProcessorEvents::default()
        };
        for (counter, place) in [self.leader].iter().chain(&self.members) {
            *place(&mut counts) = counted.get(counter).map(|it| it.value());
        }
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use perf_event::events::{Raw, Software};

    use super::*;

    /// Touches so many bytes of new memory.
    fn touch(byte_count: usize) {
        let mut bytes = vec![0_u8; byte_count];
        for at in (0..byte_count).step_by(4096) {
            bytes[at] = 1;
        }
        std::hint::black_box(&bytes);
    }

    /// Runs the code for hardware events on events that every kernel counts.
    #[test]
    fn a_group_counts_the_events_of_one_thread_and_leaves_out_what_the_machine_lacks() {
        let (send, tid) = channel();
        let (go, wait) = channel::<()>();
        let (done, worked) = channel();
        let thread = std::thread::spawn(move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            send.send(tid.cast_unsigned()).unwrap();
            wait.recv().unwrap();
            touch(64 << 20);
            done.send(()).unwrap();
            // Until the counters are read.
            let _ = wait.recv();
        });
        let events: [CountedEvent; 4] = [
            // No processor has this event: neither as a leader nor as a member.
            (|| Builder::new(Raw::new(u64::MAX)), |it| &mut it.tlb_misses),
            (|| Builder::new(Software::TASK_CLOCK), |it| &mut it.cycles),
            (|| Builder::new(Raw::new(u64::MAX)), |it| &mut it.branch_misses),
            (|| Builder::new(Software::PAGE_FAULTS), |it| &mut it.cache_misses),
        ];
        let tid = tid.recv().unwrap();
        let Some(group) = EventGroup::begin(tid, &events) else {
            eprintln!("perf_event_open is not permitted here");
            return;
        };
        let unused = EventGroup::begin(tid, &events[..1]);
        assert!(unused.is_none(), "without a counter there is no group");
        // Of another thread: not counted.
        touch(256 << 20);
        go.send(()).unwrap();
        worked.recv().unwrap();
        let counts = group.end().unwrap();
        drop(go);
        thread.join().unwrap();
        // Pages have 4 KiB or 2 MiB.
        let faults = counts.cache_misses.unwrap();
        assert!((32..=16_500).contains(&faults), "{counts:?}");
        assert!(counts.cycles.unwrap() > 100_000, "{counts:?}");
        assert_eq!((counts.tlb_misses, counts.branch_misses), (None, None));
        assert!(counts.events_enabled_ns.unwrap() > 100_000, "{counts:?}");
        assert_eq!(counts.events_running_ns, counts.events_enabled_ns);
    }
}
