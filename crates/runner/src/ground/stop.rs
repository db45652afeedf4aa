//! Ends a run in an orderly way when the operator interrupts it.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Signals this soon after the first are the same request: `timeout` sends one to its program and
/// one to the group that this is in.
const TOGETHER: Duration = Duration::from_millis(500);

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. A later SIGINT or SIGTERM ends assay at
/// once, as does SIGQUIT; guards then end its servers. A second SIGHUP does not: a closing terminal
/// sends one by its shell and one by the kernel.
pub fn watch() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = watch_under_mpirun()?;
    end_at_second_signal().context(UNWATCHED)?;
    Ok(stop)
}

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. Only SIGQUIT ends assay at once: `mpirun`
/// repeats signals, and sends SIGKILL itself when it runs out of patience.
pub fn watch_under_mpirun() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::default();
    set_at_signals(&stop).context(UNWATCHED)?;
    Ok(stop)
}

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail, instead of ending the process
/// without a word. Programs that are started don't inherit this.
pub fn fail_writes_beyond_the_size_limit() {
    // Without the handler, only the message is missing.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

const UNWATCHED: &str = "signals cannot be watched";

fn set_at_signals(stop: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(stop))?;
    }

    // Otherwise the kernel would dump all memory, including an embedded engine's cache, to a file.
    let always = Arc::new(AtomicBool::new(true));
    flag::register_conditional_shutdown(SIGQUIT, 131, always)?;

    Ok(())
}

fn end_at_second_signal() -> std::io::Result<()> {
    let impatient = Arc::new(AtomicBool::new(false));
    let (mut first, sender) = UnixStream::pair()?;

    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&impatient))?;
    }

    for signal in [SIGINT, SIGTERM, SIGHUP] {
        pipe::register(signal, sender.try_clone()?)?;
    }

    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if first.read_exact(&mut [0]).is_ok() {
            std::thread::sleep(TOGETHER);
            impatient.store(true, Ordering::Relaxed);
        }
    })?;

    Ok(())
}
