//! Which processors can be had.

use fs_err as fs;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use words::{format_cpus, parse_cpus};

use crate::SetupError;
use crate::guard::cpu_set;

/// Checks that all of them can be used by a process of assay's.
///
/// # Errors
/// [`SetupError::Config`] that names those that can't, and what can.
pub(super) fn check(cpus: &[u32]) -> Result<(), SetupError> {
    let refused = |what: String, help: String| SetupError::Config { what, help };
    if cpus.is_empty() {
        return Err(refused(
            "`cpus` names no processor".into(),
            "name at least one, or leave `cpus` out".into(),
        ));
    }
    let online = fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|text| parse_cpus(&text));
    let absent: Vec<u32> = cpus
        .iter()
        .copied()
        .filter(|cpu| {
            *cpu as usize >= CpuSet::MAX_CPU
                || online.as_ref().is_some_and(|online| !online.contains(cpu))
        })
        .collect();
    if !absent.is_empty() {
        let online = online.unwrap_or_default();
        return Err(refused(
            format!(
                "`cpus` names {}, which {} not online",
                format_cpus(&absent),
                if absent.len() == 1 { "is" } else { "are" }
            ),
            format!("online on this machine: {}", format_cpus(&online)),
        ));
    }
    let granted = granted(cpus).map_err(|error| {
        refused(
            format!("`cpus` = {}: {error}", format_cpus(cpus)),
            format!("assay itself may use {}", own()),
        )
    })?;
    let denied: Vec<u32> = cpus
        .iter()
        .copied()
        .filter(|cpu| !granted.contains(cpu))
        .collect();
    if denied.is_empty() {
        Ok(())
    } else {
        Err(refused(
            format!(
                "`cpus` names {}, which assay may not use",
                format_cpus(&denied)
            ),
            "they are outside of its cpuset: choose others, or start assay elsewhere".into(),
        ))
    }
}

fn members(set: &CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU as u32)
        .filter(|cpu| set.is_set(*cpu as usize))
        .collect()
}

/// Which of them the kernel gives to a thread of assay's that asks for them: those of its cpuset, also where assay
/// itself was started on others.
fn granted(cpus: &[u32]) -> std::io::Result<Vec<u32>> {
    let ask = || -> std::io::Result<Vec<u32>> {
        sched_setaffinity(None, &cpu_set(cpus))?;
        Ok(members(&sched_getaffinity(None)?))
    };
    // A thread of its own, which is gone afterwards.
    std::thread::scope(|scope| {
        let answer = std::thread::Builder::new().spawn_scoped(scope, ask)?.join();
        answer.unwrap_or_else(|_| Err(std::io::Error::other("the thread that asked failed")))
    })
}

fn own() -> String {
    sched_getaffinity(None)
        .map_or_else(|error| error.to_string(), |set| format_cpus(&members(&set)))
}

/// What a process may use, by its status.
pub(super) fn of_process(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(allowed.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named() {
        let error = check(&[0, 4000]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "config: `cpus` names 4000, which is not online"
        );
        assert!(error.help().unwrap().contains("online on this machine: 0"));
        assert!(check(&[]).unwrap_err().to_string().contains("no processor"));
    }

    #[test]
    fn what_assay_runs_on_can_be_had_and_asking_changes_nothing() {
        let before = sched_getaffinity(None).unwrap();
        let all = members(&before);
        check(&all[..1]).unwrap();
        assert_eq!(granted(&all[..1]).unwrap(), all[..1]);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert_eq!(of_process(std::process::id()), Some(format_cpus(&all)));
    }
}
