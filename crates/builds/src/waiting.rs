//! Waits for processes, and tells the time of waits.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The pause between two looks at a process.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Waits for the end of a process without collecting its status, so that nobody else can get its
/// number. Returns false if `is_stopped` says so first.
pub fn wait(child: &Child, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        if waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some() {
            return Ok(true);
        }

        if is_stopped() {
            return Ok(false);
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// Returns the time by which waits and builds are timed.
#[expect(clippy::disallowed_methods, reason = "nothing is measured here")]
pub fn now() -> Instant {
    Instant::now()
}
