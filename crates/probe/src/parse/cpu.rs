//! `/proc/stat` and `/proc/cpuinfo`

use std::collections::BTreeSet;

use super::{line, number};
use crate::Malformed;

/// Parses the first line of `/proc/stat`: time of all processors since boot, in ticks of `sysconf(_SC_CLK_TCK)`. User mode,
/// user mode at low priority, kernel mode, idle, idle with I/O outstanding, interrupts, deferred work of interrupts, and what
/// the hypervisor gave to others; 0 for what an old kernel lacks. The kernel adds a guest's time to the first two as well as
/// to its own columns, which are therefore not read.
///
/// # Errors
/// When the line is missing, has fewer than four columns, or one that is not a number.
pub(crate) fn parse_cpu_ticks(text: &str) -> Result<[u64; 8], Malformed> {
    let cpu = line(text, "cpu").unwrap_or_default();
    let mut all = [0; 8];
    let mut columns = 0;
    for (ticks, field) in all.iter_mut().zip(cpu.split_ascii_whitespace()) {
        *ticks = number("`cpu`", Some(field))?;
        columns += 1;
    }
    match columns {
        4.. => Ok(all),
        _ => Err(Malformed::new("`cpu`", cpu, "four columns or more")),
    }
}

/// Counts the processors that have a line of their own in `/proc/stat`.
pub(crate) fn count_processors(text: &str) -> u32 {
    let numbers = text.lines().filter_map(|line| line.strip_prefix("cpu"));
    let numbers = numbers.filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    numbers.count() as u32
}

/// What `/proc/cpuinfo` says; its format differs by architecture, and what is missing is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuInfo {
    /// The model's name, of the first processor.
    pub(crate) model: Option<String>,
    /// Processors.
    pub(crate) processor_count: u32,
    /// Sockets.
    pub(crate) socket_count: Option<u32>,
    /// Cores, over all sockets.
    pub(crate) core_count: Option<u32>,
    /// The processor says that a hypervisor is below.
    pub(crate) hypervisor: bool,
}

/// Parses `/proc/cpuinfo`.
pub(crate) fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    let mut socket = String::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "processor" => {
                info.processor_count += 1;
                socket.clear();
            }
            // x86 first, then POWER and older ARM.
            "model name" | "cpu" | "Processor" if info.model.is_none() => {
                info.model = Some(value.to_string())
            }
            "physical id" => {
                socket = value.to_string();
                sockets.insert(socket.clone());
            }
            "core id" => {
                cores.insert((socket.clone(), value.to_string()));
            }
            "flags" => info.hypervisor |= value.split(' ').any(|flag| flag == "hypervisor"),
            _ => {}
        }
    }
    info.socket_count = (!sockets.is_empty()).then_some(sockets.len() as u32);
    info.core_count = (!cores.is_empty()).then_some(cores.len() as u32);
    info
}

/// What `/proc/cpuinfo` says that the fastest processor runs at, in kHz. `None` where the processors have no counters of
/// what they run at: the file then has what they are sold as, or nothing.
pub(crate) fn parse_frequency_khz(text: &str) -> Option<u64> {
    let values = |key: &'static str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let lines = lines.filter(move |(found, _)| found.trim() == key);
        lines.map(|(_, value)| value.trim())
    };
    values("flags").find(|flags| flags.split(' ').any(|flag| flag == "aperfmperf"))?;
    let mhz = values("cpu MHz").filter_map(|mhz| mhz.parse::<f64>().ok());
    // A cast of what is no number is zero.
    mhz.map(|mhz| (mhz * 1e3).round() as u64)
        .max()
        .filter(|khz| *khz > 0)
}
