//! Ends a run in good order when its operator asks for it.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// What comes so soon after a first signal is the same request: `timeout` sends one to its program and one to the group
/// that this is in.
const TOGETHER: Duration = Duration::from_millis(500);

/// A flag that SIGINT, SIGTERM and SIGHUP set. A later SIGINT or SIGTERM ends assay at once, and so does SIGQUIT; guards
/// end its servers then. SIGHUP does not: a terminal that closes sends one by its shell and one by the kernel.
pub fn watch() -> anyhow::Result<Arc<AtomicBool>> {
    let (stop, impatient) = (Arc::default(), Arc::default());
    watch_with(&stop, &impatient).context("signals can't be watched")?;
    Ok(stop)
}

fn watch_with(stop: &Arc<AtomicBool>, impatient: &Arc<AtomicBool>) -> std::io::Result<()> {
    let (mut first, told) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(impatient))?;
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(stop))?;
        pipe::register(signal, told.try_clone()?)?;
    }
    let impatient = Arc::clone(impatient);
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if first.read_exact(&mut [0]).is_ok() {
                std::thread::sleep(TOGETHER);
                impatient.store(true, Ordering::Relaxed);
            }
        })?;
    // Else the kernel would write all of its memory, an embedded engine's cache with it, to a file.
    let always = Arc::new(AtomicBool::new(true));
    flag::register_conditional_shutdown(SIGQUIT, 131, always)?;
    Ok(())
}
