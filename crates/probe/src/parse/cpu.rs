//! `/proc/cpuinfo`

use std::collections::BTreeSet;

/// What `/proc/cpuinfo` says; its format differs by architecture, and what is missing is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// The model's name, of the first processor.
    pub model: Option<String>,
    /// Processors.
    pub processor_count: u32,
    /// Sockets.
    pub socket_count: Option<u32>,
    /// Cores, over all sockets.
    pub core_count: Option<u32>,
    /// The processor says that a hypervisor is below.
    pub hypervisor: bool,
}

/// Parses `/proc/cpuinfo`.
pub fn parse_cpuinfo(text: &str) -> CpuInfo {
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
pub fn parse_frequency_khz(text: &str) -> Option<u64> {
    let values = |key: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let key = key.to_owned();
        lines
            .filter(move |(found, _)| found.trim() == key)
            .map(|(_, value)| value.trim())
    };
    values("flags").find(|flags| flags.split(' ').any(|flag| flag == "aperfmperf"))?;
    let mhz = values("cpu MHz").filter_map(|mhz| mhz.parse::<f64>().ok());
    // A cast of what is no number is zero.
    mhz.map(|mhz| (mhz * 1e3).round() as u64)
        .max()
        .filter(|khz| *khz > 0)
}
