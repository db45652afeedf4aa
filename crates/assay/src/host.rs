//! The machine on which a run is made.

use std::time::Duration;

use anyhow::Context;
use probe::HostContext;
use record::{Host, Warning};

/// How long the flush latency is measured.
const FSYNC_TIME: Duration = Duration::from_secs(1);

/// Looks at the machine, measures the flush latency in the directory of `needs`, which must exist, and says what spoils a
/// measurement.
pub fn look(needs: HostContext<'_>) -> anyhow::Result<(Host, Vec<Warning>)> {
    let fsync = probe::measure_fsync(needs.data_dir, FSYNC_TIME)
        .context("the flush latency can't be measured")?;
    let found = probe::host(needs.data_dir);
    let context = HostContext {
        fsync: Some(fsync),
        ..needs
    };
    let warnings = probe::warnings(&found, context);
    let id = host_id().map(|id| ("host_id".to_owned(), id));
    let host = Host {
        facts: id.into_iter().chain(found.facts).collect(),
        cpu_count: found.cpu_count,
        memory_total_bytes: found.memory_total_bytes,
        fsync: Some(fsync),
    };
    Ok((host, warnings))
}

/// The variable that names this machine in records.
const HOST: &str = "ASSAY_HOST";

/// Returns what tells this machine from others and does not tell its name: what `ASSAY_HOST` says, or 16 digits made of
/// `/etc/machine-id`, which is not for strangers itself.
fn host_id() -> Option<String> {
    let given = std::env::var(HOST).ok();
    let made = || {
        let text = fs_err::read_to_string("/etc/machine-id").ok()?;
        let id = text.trim();
        (!id.is_empty()).then(|| format!("{:016x}", fnv1a(id.as_bytes())))
    };
    given.filter(|name| !name.is_empty()).or_else(made)
}

/// FNV-1a: of 128 random bits half as many, from which these can't be had back.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Returns a random id, for what is to be told from all others.
pub fn random_id() -> anyhow::Result<String> {
    let text = fs_err::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().to_owned())
}

/// What the kernel calls the time since the machine was started.
pub fn boot_id() -> Option<String> {
    let text = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_its_definition_and_ids_differ() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_ne!(random_id().unwrap(), random_id().unwrap());
    }
}
