//! A busy neighbor: threads that use part of each processor while something else is measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Runs `measure` while other threads use this share of each processor, in bursts.
pub fn beside<T>(share: f64, measure: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = AtomicBool::new(false);
    let processor_count = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for seed in 0..processor_count {
            let done = &done;
            scope.spawn(move || burn(share, seed as u64, done));
        }
        let measured = measure();
        done.store(true, Ordering::Relaxed);
        measured
    })
}

/// Uses a share of a processor on average, in bursts of 20 to 180 ms, until `done`.
#[expect(clippy::disallowed_methods, reason = "how long to burn, not a measured time")]
fn burn(share: f64, seed: u64, done: &AtomicBool) {
    let mut state = seed + 1;
    while !done.load(Ordering::Relaxed) {
        // Knuth's MMIX generator, so that the bursts have no period.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let burst = Duration::from_millis(20 + (state >> 33) % 160);
        let began = Instant::now();
        while began.elapsed() < burst {
            std::hint::spin_loop();
        }
        std::thread::sleep(burst.mul_f64(1.0 / share - 1.0));
    }
}
