//! `/proc/stat`

use super::number;
use crate::Malformed;

/// CPU time of all processors since boot, in ticks of `sysconf(_SC_CLK_TCK)`. What an old kernel lacks is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// User mode, guests included: the kernel adds a guest's time here as well as to its own column, which is
    /// therefore not read.
    pub user: u64,
    /// User mode at low priority, guests included.
    pub nice: u64,
    /// Kernel mode.
    pub system: u64,
    /// Idle, with no I/O outstanding.
    pub idle: u64,
    /// Idle, with I/O outstanding.
    pub iowait: u64,
    /// Interrupts.
    pub irq: u64,
    /// Deferred work of interrupts.
    pub softirq: u64,
    /// Time that the hypervisor gave to others.
    pub steal: u64,
}

/// What `/proc/stat` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// CPU time of all processors.
    pub cpu: CpuTicks,
    /// Processors with a line of their own.
    pub cpu_count: u32,
    /// Context switches since boot.
    pub context_switch_count: u64,
    /// Processes and threads created since boot.
    pub created_count: u64,
    /// Threads that run or could run now.
    pub runnable_count: u64,
    /// Threads that wait for I/O now.
    pub blocked_count: u64,
}

/// Parses `/proc/stat`.
///
/// # Errors
/// When the line of all processors or one of the counts is missing or not a number.
pub fn parse_stat(text: &str) -> Result<System, Malformed> {
    let mut system = System::default();
    let mut missing = ["cpu", "ctxt", "processes", "procs_running", "procs_blocked"].map(Some);
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some(key) = fields.next() else { continue };
        match key {
            "cpu" => {
                let mut ticks = [0u64; 8];
                let mut count = 0;
                for (tick, field) in ticks.iter_mut().zip(&mut fields) {
                    *tick = number("`cpu` of /proc/stat", Some(field))?;
                    count += 1;
                }
                if count < 4 {
                    return Err(Malformed::new(
                        "`cpu` of /proc/stat",
                        line,
                        "four columns or more",
                    ));
                }
                let [user, nice, cpu_system, idle, iowait, irq, softirq, steal] = ticks;
                system.cpu = CpuTicks {
                    user,
                    nice,
                    system: cpu_system,
                    idle,
                    iowait,
                    irq,
                    softirq,
                    steal,
                };
            }
            "ctxt" => system.context_switch_count = number("`ctxt` of /proc/stat", fields.next())?,
            "processes" => {
                system.created_count = number("`processes` of /proc/stat", fields.next())?
            }
            "procs_running" => {
                system.runnable_count = number("`procs_running` of /proc/stat", fields.next())?
            }
            "procs_blocked" => {
                system.blocked_count = number("`procs_blocked` of /proc/stat", fields.next())?
            }
            _ => {
                if key
                    .strip_prefix("cpu")
                    .is_some_and(|index| index.parse::<u32>().is_ok())
                {
                    system.cpu_count += 1;
                }
                continue;
            }
        }
        for slot in missing.iter_mut().filter(|slot| **slot == Some(key)) {
            *slot = None;
        }
    }
    match missing.into_iter().flatten().next() {
        Some(key) => Err(Malformed::new(
            format!("`{key}` of /proc/stat"),
            "",
            "a line with that name",
        )),
        None => Ok(system),
    }
}
