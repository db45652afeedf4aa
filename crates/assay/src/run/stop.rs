//! Ends a run in good order when its operator asks for it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// A flag that SIGINT, SIGTERM and SIGHUP set. A second one ends assay at once, and so does SIGQUIT; guards end its
/// servers then.
pub fn watch() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Registered first, so that it sees the flag of an earlier signal and not of this one.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("signals can't be watched")?;
    }
    // Else the kernel would write all of its memory, an embedded engine's cache with it, to a file.
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGQUIT, 131, always)
        .context("signals can't be watched")?;
    Ok(stop)
}
