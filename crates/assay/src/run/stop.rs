//! Ends a run in an orderly way when the operator interrupts it.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Signals this soon after the first are the same request: `timeout` sends one to its program and one to the group
/// that this is in.
const TOGETHER: Duration = Duration::from_millis(500);

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. A later SIGINT or SIGTERM ends assay at once, as does SIGQUIT; guards
/// then end its servers. A second SIGHUP does not: a closing terminal sends one by its shell and one by the kernel.
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
    // Otherwise the kernel would dump all memory, including an embedded engine's cache, to a file.
    let always = Arc::new(AtomicBool::new(true));
    flag::register_conditional_shutdown(SIGQUIT, 131, always)?;
    Ok(())
}
