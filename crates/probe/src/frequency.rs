//! What the processors run at.

use crate::Proc;
use crate::parse::parse_frequency_khz;

/// Where the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    /// `/proc/cpuinfo`, from the processors' own counters. All of them at once: one file of a processor after the other
    /// takes older kernels up to 10 ms each.
    Counted,
    /// Files of the frequency's policies, where there are no such counters.
    Set(Vec<String>),
    /// Nowhere, as in most virtual machines.
    Unknown,
}

impl Frequency {
    /// Looks for it, once.
    pub(crate) fn of(proc: &Proc) -> Self {
        let text = proc.text("proc/cpuinfo");
        if text.is_some_and(|text| parse_frequency_khz(&text).is_some()) {
            return Self::Counted;
        }
        let directory = "sys/devices/system/cpu/cpufreq";
        let files: Vec<String> = proc
            .names(directory)
            .into_iter()
            .map(|name| format!("{directory}/{name}/scaling_cur_freq"))
            .filter(|file| proc.text(file).is_some())
            .collect();
        match files.is_empty() {
            true => Self::Unknown,
            false => Self::Set(files),
        }
    }

    /// The frequency of the fastest processor in kHz: how fast the machine lets work be done. In a mean those that are
    /// idle would say how much work there is.
    pub(crate) fn sample(&self, proc: &Proc, buffer: &mut Vec<u8>) -> Option<u64> {
        match self {
            Self::Counted => parse_frequency_khz(&proc.read("proc/cpuinfo", buffer).ok()?),
            Self::Set(files) => files
                .iter()
                .filter_map(|file| proc.read(file, buffer).ok()?.trim().parse().ok())
                .max(),
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// What a machine with these files tells.
    fn told(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let proc = Proc::at(root.path());
        Frequency::of(&proc).sample(&proc, &mut Vec::new())
    }

    const OF_FIRST: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq";
    const OF_SECOND: &str = "sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq";

    #[test]
    fn it_is_that_of_the_fastest_processor_by_its_own_counters() {
        let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 800.000\nflags\t\t: fpu aperfmperf tsc\n\n\
                       processor\t: 1\ncpu MHz\t\t: 3391.724\nflags\t\t: fpu aperfmperf tsc\n";
        let policy = (OF_FIRST, "1000000\n");
        assert_eq!(told(&[("proc/cpuinfo", cpuinfo), policy]), Some(3_391_724));
    }

    #[test]
    fn without_counters_it_is_what_the_policies_set() {
        let policies = [(OF_FIRST, "1800000\n"), (OF_SECOND, "2400000\n")];
        assert_eq!(told(&policies), Some(2_400_000));
        let one = [(OF_FIRST, "<unknown>\n"), (OF_SECOND, "2400000\n")];
        assert_eq!(told(&one), Some(2_400_000));
    }

    #[test]
    fn what_a_processor_is_sold_as_is_not_what_it_runs_at() {
        let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 2445.428\nflags\t\t: fpu tsc hypervisor\n";
        assert_eq!(told(&[("proc/cpuinfo", cpuinfo)]), None);
        assert_eq!(told(&[]), None);
    }
}
