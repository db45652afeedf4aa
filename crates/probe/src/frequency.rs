//! The frequency of the processors.

use crate::Proc;
use crate::parse::parse_frequency_khz;

/// The source of the frequency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    /// `/proc/cpuinfo`, from the processors' counters, all at once: on older kernels, each
    /// processor's own file takes up to 10 ms.
    Counters,
    /// The files of the frequency policies, where the processors have no such counters.
    Policies(Vec<String>),
    /// None, as in most virtual machines.
    Unknown,
}

impl Frequency {
    /// Finds the source of the frequency.
    pub(crate) fn find(proc: &Proc) -> Self {
        let text = proc.text("proc/cpuinfo");
        if text.is_some_and(|text| parse_frequency_khz(&text).is_some()) {
            return Self::Counters;
        }
        let directory = "sys/devices/system/cpu/cpufreq";
        let files: Vec<String> = proc
            .names(directory)
            .into_iter()
            .map(|name| format!("{directory}/{name}/scaling_cur_freq"))
            .filter(|file| proc.text(file).is_some())
            .collect();
        if files.is_empty() { Self::Unknown } else { Self::Policies(files) }
    }

    /// Returns the frequency of the fastest processor in kHz. A mean would depend on how many
    /// processors are idle.
    pub(crate) fn sample(&self, proc: &Proc, buffer: &mut Vec<u8>) -> Option<u64> {
        match self {
            Self::Counters => parse_frequency_khz(&proc.read("proc/cpuinfo", buffer).ok()?),
            Self::Policies(files) => files
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

    /// Returns the frequency on a machine with these files.
    fn frequency_khz(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let proc = Proc::at(root.path());
        Frequency::find(&proc).sample(&proc, &mut Vec::new())
    }

    const FIRST_POLICY: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq";
    const SECOND_POLICY: &str = "sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq";

    #[test]
    fn the_frequency_is_that_of_the_fastest_processor_by_its_counters() {
        let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 800.000\nflags\t\t: fpu aperfmperf tsc\n\n\
                       processor\t: 1\ncpu MHz\t\t: 3391.724\nflags\t\t: fpu aperfmperf tsc\n";
        let policy = (FIRST_POLICY, "1000000\n");
        assert_eq!(frequency_khz(&[("proc/cpuinfo", cpuinfo), policy]), Some(3_391_724));
    }

    #[test]
    fn without_counters_the_frequency_is_that_of_the_policies() {
        let policies = [(FIRST_POLICY, "1800000\n"), (SECOND_POLICY, "2400000\n")];
        assert_eq!(frequency_khz(&policies), Some(2_400_000));
        let one_unknown = [(FIRST_POLICY, "<unknown>\n"), (SECOND_POLICY, "2400000\n")];
        assert_eq!(frequency_khz(&one_unknown), Some(2_400_000));
    }

    #[test]
    fn a_nominal_frequency_is_not_a_measured_one() {
        let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 2445.428\nflags\t\t: fpu tsc hypervisor\n";
        assert_eq!(frequency_khz(&[("proc/cpuinfo", cpuinfo)]), None);
        assert_eq!(frequency_khz(&[]), None);
    }
}
