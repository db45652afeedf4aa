//! Describes the machine that a run uses.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use probe::{FloorError, FloorRequest, HostContext};
use record::{DiskFloor, Host, Warning};

use crate::ground::failure::UsageError;
use crate::ground::time::unix_now_ns;

/// The time for which the flush latency is measured.
const FSYNC_TIME: Duration = Duration::from_secs(1);

/// Describes the machine, measures the flush latency in the directory of `needs`, which must exist,
/// and warns about what may distort a measurement.
pub fn describe(needs: HostContext<'_>) -> anyhow::Result<(Host, Vec<Warning>)> {
    let directory = needs.data_dir;
    let fsync = probe::measure_fsync(directory, FSYNC_TIME).with_context(|| {
        format!("cannot measure the flush latency in `{}`", directory.display())
    })?;

    let facts = probe::host(directory);

    let context = HostContext { fsync: Some(fsync), ..needs };
    let warnings = probe::warnings(&facts, context);

    let id = host_id().map(|id| ("host_id".to_owned(), id));

    let host = Host {
        facts: id.into_iter().chain(facts.facts).collect(),
        cpu_count: facts.cpu_count,
        memory_total_bytes: facts.memory_total_bytes,
        fsync: Some(fsync),
    };

    Ok((host, warnings))
}

/// Measures what the disk of a directory can do for a program alone. Returns `None` if `stop` was
/// set meanwhile.
///
/// # Errors
/// The disk cannot be measured: the directory is on none, or has too little space.
pub fn disk_floor(
    request: &FloorRequest<'_>,
    stop: &AtomicBool,
) -> anyhow::Result<Option<DiskFloor>> {
    let measured_unix_ns = unix_now_ns();
    let floor = probe::measure_disk_floor(request, stop).map_err(|error| match error {
        FloorError::Io { .. } => anyhow::Error::from(error),
        FloorError::NoDisk { .. } => {
            let help = "give a directory on the disk that databases will use";
            UsageError::new(error.to_string(), Some(help.into())).into()
        }
        FloorError::LittleSpace { .. } => {
            let help = "free some space, or measure with a smaller file: `--file-size 256MiB`";
            UsageError::new(error.to_string(), Some(help.into())).into()
        }
        FloorError::SmallFile { .. } => {
            let help = "use a larger `--file-size`, or a smaller `--depth` or `--block-size`";
            UsageError::new(error.to_string(), Some(help.into())).into()
        }
    })?;

    Ok(floor.map(|floor| DiskFloor { measured_unix_ns, ..floor }))
}

/// Describes this machine without its disks.
pub fn without_disks() -> Host {
    let mut facts = probe::host(Path::new("/"));
    let of_disks = ["data_", "disk."];
    facts.facts.retain(|(name, _)| !of_disks.iter().any(|prefix| name.starts_with(prefix)));

    Host {
        facts: facts.facts,
        cpu_count: facts.cpu_count,
        memory_total_bytes: facts.memory_total_bytes,
        fsync: None,
    }
}

/// The environment variable that names this machine in records.
const HOST: &str = "ASSAY_HOST";

/// Returns an id of this machine: the value of `ASSAY_HOST`, or a hash of `/etc/machine-id`, which
/// is confidential itself.
fn host_id() -> Option<String> {
    let from_environment = std::env::var(HOST).unwrap_or_default();
    if !from_environment.is_empty() {
        return Some(from_environment);
    }

    let text = fs_err::read_to_string("/etc/machine-id").ok()?;
    let id = text.trim();
    if id.is_empty() { None } else { Some(format!("{:016x}", fnv1a(id.as_bytes()))) }
}

/// Returns the FNV-1a hash. From 64 bits the 128 random bits of a machine id cannot be recovered.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Returns the size of this host's memory, in bytes.
pub fn memory_bytes() -> u64 {
    let host = rustix::system::sysinfo();
    host.totalram as u64 * u64::from(host.mem_unit)
}

/// Returns the free space of a file system for this user, in bytes; `None` if it has no size, as
/// those without a disk.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns a random, unique id.
pub fn random_id() -> anyhow::Result<String> {
    let text = fs_err::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().to_owned())
}

/// Returns the kernel's id of the time since the machine was started.
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
