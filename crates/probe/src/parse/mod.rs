//! Pure parsers of the texts under `/proc`: one module per subject. Formats: the kernel's
//! `Documentation/filesystems/proc.rst`, `admin-guide/iostats.rst` and `accounting/psi.rst`.

mod cgroup;
mod cpu;
mod disk;
mod memory;
mod mount;
mod pressure;
mod process;
mod system;

pub use cgroup::{Membership, parse_cgroup, parse_cpu_max, parse_group_cache, parse_memory_limit};
pub use cpu::{CpuInfo, parse_cpuinfo, parse_frequency_khz};
pub use disk::{Discard, DiskLine, Flush, parse_diskstats};
pub use memory::{Memory, parse_meminfo, parse_vmstat};
pub use mount::{Mount, mount_of, parse_mountinfo};
pub use pressure::{Pressure, parse_pressure};
pub use process::{
    ProcessIo, ProcessMemory, ProcessStat, parse_process_io, parse_process_stat, parse_statm,
};
pub use system::{System, parse_stat};

use crate::Malformed;

/// A field of a line as a number.
fn number(what: &str, field: Option<&str>) -> Result<u64, Malformed> {
    let text = field.unwrap_or("");
    text.parse()
        .map_err(|_| Malformed::new(what, text, "a whole number"))
}

#[cfg(test)]
mod tests;
