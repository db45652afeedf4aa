//! Parsers for `/proc/stat` and `/proc/cpuinfo`.

use std::collections::BTreeSet;

use super::{line, number};
use crate::Malformed;

/// Parses the first line of `/proc/stat`, the time of all processors since boot in ticks of
/// `sysconf(_SC_CLK_TCK)`. The columns are user mode, user mode at low priority, kernel mode, idle,
/// idle with I/O outstanding, interrupts, deferred interrupt work, and steal time; 0 if an old
/// kernel lacks one. Ignores the guests' columns, because the kernel also adds guests' time to the
/// first two.
///
/// # Errors
/// Fails if the line is missing, has fewer than four columns, or has a column that is not a number.
pub(crate) fn parse_cpu_ticks(text: &str) -> Result<[u64; 8], Malformed> {
    let cpu = line(text, "cpu").unwrap_or_default();
    let mut times = [0; 8];
    let mut columns = 0;
    for (ticks, field) in times.iter_mut().zip(cpu.split_ascii_whitespace()) {
        *ticks = number("`cpu`", Some(field))?;
        columns += 1;
    }

    if columns < 4 {
        return Err(Malformed::new("`cpu`", cpu, "four columns or more"));
    }
    Ok(times)
}

/// Counts the processors that have a line in `/proc/stat`.
pub(crate) fn count_processors(text: &str) -> u32 {
    let count = text
        .lines()
        .filter_map(|line| line.strip_prefix("cpu"))
        .filter(|number| number.starts_with(|first: char| first.is_ascii_digit()))
        .count();
    count as u32
}

/// The contents of `/proc/cpuinfo`. The format depends on the architecture; a missing value is
/// `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuInfo {
    /// The model of the first processor.
    pub(crate) model: Option<String>,
    pub(crate) processor_count: u32,
    pub(crate) socket_count: Option<u32>,
    /// The number of cores in all sockets.
    pub(crate) core_count: Option<u32>,
    /// The processor reports a hypervisor.
    pub(crate) has_hypervisor: bool,
}

/// Parses `/proc/cpuinfo`.
pub(crate) fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut sockets = BTreeSet::new();
    // Numbers of cores are unique within a socket only.
    let mut cores = BTreeSet::new();
    let mut socket = "";
    for (key, value) in fields(text) {
        match key {
            "processor" => {
                info.processor_count += 1;
                socket = "";
            }
            // x86 first, then POWER and older ARM.
            "model name" | "cpu" | "Processor" if info.model.is_none() => {
                info.model = Some(value.to_string());
            }
            "physical id" => {
                socket = value;
                sockets.insert(socket);
            }
            "core id" => {
                cores.insert((socket, value));
            }
            "flags" => info.has_hypervisor |= has_flag(value, "hypervisor"),
            _ => {}
        }
    }

    info.socket_count = (!sockets.is_empty()).then_some(sockets.len() as u32);
    info.core_count = (!cores.is_empty()).then_some(cores.len() as u32);
    info
}

/// Returns the frequency of the fastest processor in `/proc/cpuinfo`, in kHz. `None` if the
/// processors have no counters for it; then the file has their nominal frequency, or nothing.
pub(crate) fn parse_frequency_khz(text: &str) -> Option<u64> {
    let has_counters =
        fields(text).any(|(key, value)| key == "flags" && has_flag(value, "aperfmperf"));
    if !has_counters {
        return None;
    }

    fields(text)
        .filter(|(key, _)| *key == "cpu MHz")
        .filter_map(|(_, mhz)| mhz.parse::<f64>().ok())
        // The cast makes NaN zero.
        .map(|mhz| (mhz * 1e3).round() as u64)
        .max()
        .filter(|khz| *khz > 0)
}

/// Returns the names and values of `/proc/cpuinfo`.
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(key, value)| (key.trim(), value.trim()))
}

fn has_flag(flags: &str, wanted: &str) -> bool {
    flags.split(' ').any(|flag| flag == wanted)
}
