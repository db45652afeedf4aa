//! Waits until a server is quiet, for table formats whose background work has no counters that
//! assay knows.

use std::time::Duration;

use probe::{Sample, Sampler, Targets};

use super::waiting::{Pending, Work};
use crate::contract::Settled;
use crate::error::Error;
use crate::safety::guard::Deadline;

/// The time for which a server must be quiet.
const QUIET: Duration = Duration::from_secs(2);

/// The CPU time in [`QUIET`] that an idle server may use.
const CPU_NS_MAX: i64 = 200_000_000;

/// The bytes in [`QUIET`] that an idle server may write.
const WRITTEN_BYTES_MAX: i64 = 1 << 20;

/// The action of settling, as reports show it.
const WAIT: &str = "wait until the server uses no CPU and writes nothing";

/// The resources that a server's processes have used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    cpu_ns: i64,
    /// Zero where the kernel does not tell.
    written_bytes: i64,
}

impl Use {
    /// Returns the use in a sample; `None` if the server's processes cannot be read.
    fn of(sample: &Sample) -> Option<Self> {
        let cpu_ns = ["server_cpu_user_ns", "server_cpu_system_ns"].map(|name| sample.get(name));
        let [Some(user), Some(system)] = cpu_ns else {
            return None;
        };
        let written_bytes = sample.get("server_write_bytes").unwrap_or(0);
        Some(Self { cpu_ns: user + system, written_bytes })
    }

    /// Returns whether a server that is idle may have used this much since `earlier`.
    fn is_idle_since(self, earlier: Self) -> bool {
        self.cpu_ns - earlier.cpu_ns <= CPU_NS_MAX
            && self.written_bytes - earlier.written_bytes <= WRITTEN_BYTES_MAX
    }
}

/// Waits until the server with this process has been quiet for a while.
pub(crate) fn wait_until_quiet(work: &Work<'_>, process_id: Option<u32>) -> Result<Settled, Error> {
    let mut sampler = Sampler::new(Targets { server_pid: process_id, ..Targets::default() });
    let mut read = || sampler.sample().ok().and_then(|sample| Use::of(&sample));

    let Some(mut earlier) = read() else {
        let mut settled = Settled::default();
        settled.add_action(format!("{WAIT}: its processes cannot be read"), Duration::ZERO);
        return Ok(settled);
    };

    let mut since = Deadline::after(QUIET);
    work.wait(WAIT, || {
        let Some(now) = read() else {
            return Ok(Pending::Stuck("its processes cannot be read".to_owned()));
        };

        if !now.is_idle_since(earlier) {
            (earlier, since) = (now, Deadline::after(QUIET));
        }

        Ok(if since.has_passed() {
            Pending::Nothing
        } else {
            Pending::Some(format!("idle for less than {QUIET:?}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_idle_if_it_neither_computes_nor_writes() {
        let before = Use { cpu_ns: 7_000_000_000, written_bytes: 1 << 30 };
        let after = |cpu_ns, written_bytes| Use {
            cpu_ns: before.cpu_ns + cpu_ns,
            written_bytes: before.written_bytes + written_bytes,
        };
        assert!(after(20_000_000, 4096).is_idle_since(before));
        assert!(!after(1_000_000_000, 0).is_idle_since(before));
        assert!(!after(0, 8 << 20).is_idle_since(before));
    }
}
