//! The host's clock.
//!
//! Reading the processor's time stamp counter costs a third of what `clock_gettime` does, and an
//! operation on the null engine is worth two readings. The counter is used only where the kernel
//! itself keeps time by it, which it does only when it found the counter to run at a constant rate
//! on all processors; elsewhere `CLOCK_MONOTONIC` is read.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The host's clock.
#[derive(Clone, Debug)]
pub struct SystemClock {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// Time stamp counter: `(ticks - base) * scale >> 32` nanoseconds.
    #[cfg(target_arch = "x86_64")]
    Counter { base: u64, scale: u64 },
    /// `CLOCK_MONOTONIC` minus its value at the start.
    Monotonic { base: u64 },
}

/// The time for which the counter is compared with `CLOCK_MONOTONIC`: two readings with an error of
/// 50 ns each make 5 ppm.
#[cfg(target_arch = "x86_64")]
const CALIBRATION_NS: u64 = 20_000_000;

impl SystemClock {
    /// Starts a clock at 0. Takes 20 ms to calibrate if it uses the time stamp counter.
    pub fn begin() -> Self {
        #[cfg(target_arch = "x86_64")]
        if kernel_trusts_counter() {
            let first = BothClocks::now();
            while monotonic_ns() - first.kernel_ns < CALIBRATION_NS {
                std::hint::spin_loop();
            }
            let last = BothClocks::now();

            let ns = last.kernel_ns - first.kernel_ns;
            let ticks = last.counter - first.counter;
            let scale = ((u128::from(ns) << 32) / u128::from(ticks.max(1))) as u64;
            return Self { source: Source::Counter { base: first.counter, scale } };
        }

        Self { source: Source::Monotonic { base: monotonic_ns() } }
    }

    /// Returns the source of the clock's time: `tsc` or `clock_monotonic`.
    pub fn source(&self) -> &'static str {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Counter { .. } => "tsc",
            Source::Monotonic { .. } => "clock_monotonic",
        }
    }

    /// Returns the nanoseconds since the clock's start.
    #[inline(always)]
    pub(crate) fn elapsed_ns(&self) -> u64 {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Counter { base, scale } => {
                ((u128::from(read_counter().wrapping_sub(base)) * u128::from(scale)) >> 32) as u64
            }
            Source::Monotonic { base } => monotonic_ns() - base,
        }
    }
}

fn monotonic_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

/// The counter and the kernel's clock at the same moment.
#[cfg(target_arch = "x86_64")]
struct BothClocks {
    counter: u64,
    kernel_ns: u64,
}

#[cfg(target_arch = "x86_64")]
impl BothClocks {
    /// Reads both clocks several times. Returns the reading during which the counter moved least,
    /// so that a context switch between the two does not spoil the calibration.
    fn now() -> Self {
        let (_, both) = (0..32)
            .map(|_| {
                let before = read_counter();
                let kernel_ns = monotonic_ns();
                let moved = read_counter().wrapping_sub(before);
                (moved, Self { counter: before.wrapping_add(moved / 2), kernel_ns })
            })
            .min_by_key(|(moved, _)| *moved)
            .expect("the range has 32 readings");
        both
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "the time stamp counter cannot be read otherwise")]
fn read_counter() -> u64 {
    // SAFETY: RDTSC reads a register and touches no memory; every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
fn kernel_trusts_counter() -> bool {
    fs_err::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .is_ok_and(|source| source.trim_end() == "tsc")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock as _;

    #[test]
    fn the_clock_keeps_time_with_the_kernel() {
        let clock = SystemClock::begin();
        // The tightest of many readings: this thread may be put off the processor between any two.
        let both = || {
            let read = |_| {
                let before = clock.now();
                let kernel = monotonic_ns();
                (clock.now() - before, before, kernel)
            };
            let (_, ours, kernel) = (0..1000).map(read).min().unwrap();
            (ours, kernel)
        };
        let (ours_before, kernel_before) = both();
        clock.sleep_until(ours_before + 100_000_000);
        assert!(clock.now() >= ours_before + 100_000_000);
        let (ours_after, kernel_after) = both();
        let (ours, kernel) = (ours_after - ours_before, kernel_after - kernel_before);
        // In parts of what has passed: the machine may have stood still meanwhile.
        assert!(
            ours.abs_diff(kernel) < kernel / 5000,
            "ours {ours} ns, the kernel's {kernel} ns by {}",
            clock.source()
        );
    }

    #[test]
    fn the_clock_never_goes_back() {
        let clock = SystemClock::begin();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
