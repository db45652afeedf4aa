//! Counts events of a thread with the processor's counters.

use std::os::fd::AsRawFd;
use std::time::Duration;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware};
use perf_event::{Builder, Counter, ReadFormat};
use rustix::process::{Resource, getrlimit};
use words::ProcessorEvents;

/// Selects the field that holds an event's count.
type CountField = fn(&mut ProcessorEvents) -> &mut Option<u64>;

/// An event and the field of its count.
#[derive(Clone, Copy)]
pub(crate) struct CountedEvent {
    builder: fn() -> Builder<'static>,
    field: CountField,
}

/// The events, the most useful first: where a processor has too few counters, the last ones are
/// missing.
pub(crate) const HARDWARE_EVENTS: [CountedEvent; 5] = [
    CountedEvent {
        builder: || Builder::new(Hardware::INSTRUCTIONS),
        field: |counts| &mut counts.instructions,
    },
    CountedEvent {
        builder: || Builder::new(Hardware::CPU_CYCLES),
        field: |counts| &mut counts.cycles,
    },
    CountedEvent {
        builder: || Builder::new(Hardware::CACHE_MISSES),
        field: |counts| &mut counts.cache_misses,
    },
    CountedEvent {
        builder: || Builder::new(Hardware::BRANCH_MISSES),
        field: |counts| &mut counts.branch_misses,
    },
    CountedEvent {
        builder: || {
            Builder::new(Cache {
                which: CacheId::DTLB,
                operation: CacheOp::READ,
                result: CacheResult::MISS,
            })
        },
        field: |counts| &mut counts.tlb_misses,
    },
];

/// A counter that runs, and the field of its count.
struct RunningCounter {
    counter: Counter,
    field: CountField,
}

/// Counts events of one thread from [`begin`](Self::begin) to [`end`](Self::end). The kernel counts
/// all of them or none at any moment, so that their ratios are exact.
pub(crate) struct EventGroup {
    leader: RunningCounter,
    members: Vec<RunningCounter>,
}

impl EventGroup {
    /// Starts to count those events of the thread `tid` that this machine and the permissions
    /// allow; `None` if there is none.
    pub(crate) fn begin(tid: u32, events: &[CountedEvent]) -> Option<Self> {
        let files_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        let mut started: Option<Self> = None;
        for &CountedEvent { builder, field } in events {
            let mut builder = builder();
            builder.observe_pid(tid.cast_signed()).any_cpu();

            // The first event that the machine has leads the group.
            let Some(group) = &mut started else {
                builder.read_format(
                    ReadFormat::GROUP
                        | ReadFormat::ID
                        | ReadFormat::TOTAL_TIME_ENABLED
                        | ReadFormat::TOTAL_TIME_RUNNING,
                );
                started = builder.build().ok().map(|counter| Self {
                    leader: RunningCounter { counter, field },
                    members: Vec::new(),
                });
                continue;
            };

            // The kernel gives a file the lowest free number, so the number says how many are
            // open. Half of the files are left for connections and the record.
            if let Ok(counter) = builder.build_with_group(&mut group.leader.counter)
                && u64::from(counter.as_raw_fd().unsigned_abs()) < files_max
            {
                group.members.push(RunningCounter { counter, field });
            }
        }

        let mut group = started?;
        group.leader.counter.enable_group().ok()?;
        Some(group)
    }

    /// Returns the counts since the beginning; `None` if the kernel cannot read them.
    pub(crate) fn end(mut self) -> Option<ProcessorEvents> {
        let counted = self.leader.counter.read_group().ok()?;
        let mut counts = ProcessorEvents {
            events_enabled_ns: counted.time_enabled().and_then(nanoseconds),
            events_running_ns: counted.time_running().and_then(nanoseconds),
            ..ProcessorEvents::default()
        };
        for RunningCounter { counter, field } in [self.leader].iter().chain(&self.members) {
            *field(&mut counts) = counted.get(counter).map(|entry| entry.value());
        }
        Some(counts)
    }
}

fn nanoseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_nanos()).ok()
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
        let unknown = || Builder::new(Raw::new(u64::MAX));
        let events: [CountedEvent; 4] = [
            // No processor has this event: neither as a leader nor as a member.
            CountedEvent { builder: unknown, field: |counts| &mut counts.tlb_misses },
            CountedEvent {
                builder: || Builder::new(Software::TASK_CLOCK),
                field: |counts| &mut counts.cycles,
            },
            CountedEvent { builder: unknown, field: |counts| &mut counts.branch_misses },
            CountedEvent {
                builder: || Builder::new(Software::PAGE_FAULTS),
                field: |counts| &mut counts.cache_misses,
            },
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
