//! Checks which processors a server can use.

use fs_err as fs;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use words::{format_cpus, parse_cpus};

use crate::error::SetupError;
use crate::safety::guard::{cpu_set, cpus_in};

/// Checks that a process of assay can use all these processors.
///
/// # Errors
/// [`SetupError::Config`], with the processors that it cannot use, and those that it can.
pub(super) fn check(cpus: &[u32]) -> Result<(), SetupError> {
    // The kernel would ignore processors that don't exist.
    let online = fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|text| parse_cpus(&text));
    check_online(cpus, online.as_deref())?;

    let granted = granted(cpus).map_err(|error| {
        refused(
            format!("`cpus` = {}: {error}", format_cpus(cpus)),
            format!("choose from the processors that assay may use: {}", own()),
        )
    })?;

    let denied: Vec<u32> = cpus.iter().copied().filter(|cpu| !granted.contains(cpu)).collect();
    if denied.is_empty() {
        return Ok(());
    }

    Err(refused(
        format!("`cpus` lists {}, which assay may not use", format_cpus(&denied)),
        "they are outside of assay's cpuset; choose others, or start assay in another cpuset",
    ))
}

/// Checks that there are processors, and that all are among those that are online, if these are
/// known.
///
/// # Errors
/// [`SetupError::Config`], with the processors that are not online, and those that are.
pub(super) fn check_online(cpus: &[u32], online: Option<&[u32]>) -> Result<(), SetupError> {
    if cpus.is_empty() {
        let help = "list at least one processor, or remove `cpus`";
        return Err(refused("`cpus` is empty", help));
    }

    let is_offline = |cpu: &u32| {
        *cpu as usize >= CpuSet::MAX_CPU || online.is_some_and(|online| !online.contains(cpu))
    };
    let offline: Vec<u32> = cpus.iter().copied().filter(is_offline).collect();
    if offline.is_empty() {
        return Ok(());
    }

    let verb = if offline.len() == 1 { "is" } else { "are" };
    Err(refused(
        format!("`cpus` lists {}, which {verb} not online", format_cpus(&offline)),
        format!(
            "choose from the processors that are online: {}",
            format_cpus(online.unwrap_or_default())
        ),
    ))
}

fn refused(what: impl Into<String>, help: impl Into<String>) -> SetupError {
    SetupError::option("cpus", what, help)
}

/// Returns the processors among `cpus` that the kernel grants to a thread that requests them.
/// Assay's cpuset limits them, not its affinity.
fn granted(cpus: &[u32]) -> std::io::Result<Vec<u32>> {
    let request = || -> std::io::Result<Vec<u32>> {
        sched_setaffinity(None, &cpu_set(cpus))?;
        Ok(cpus_in(&sched_getaffinity(None)?))
    };

    // A separate thread, so that this one keeps its affinity.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, request)?;
        let result = thread.join();
        result.unwrap_or_else(|_| Err(std::io::Error::other("the thread that tests them failed")))
    })
}

fn own() -> String {
    sched_getaffinity(None)
        .map_or_else(|error| error.to_string(), |set| format_cpus(&cpus_in(&set)))
}

/// Returns the processors that a process may use.
pub(super) fn of_process(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(allowed.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_processors_that_are_offline() {
        let error = check(&[0, 4000]).unwrap_err();
        assert_eq!(error.to_string(), "config: `cpus` lists 4000, which is not online");
        assert!(error.help().unwrap().contains("that are online: 0"));
        assert!(check(&[]).unwrap_err().to_string().contains("is empty"));
    }

    #[test]
    fn a_check_of_assays_own_processors_succeeds_and_changes_nothing() {
        let before = sched_getaffinity(None).unwrap();
        let all = cpus_in(&before);
        check(&all[..1]).unwrap();
        assert_eq!(granted(&all[..1]).unwrap(), all[..1]);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert_eq!(of_process(std::process::id()), Some(format_cpus(&all)));
    }
}
