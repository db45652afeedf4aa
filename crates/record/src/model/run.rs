//! The record of a run: its plan, machine and builds, and the cells that it measures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use words::{DeclaredOption, DiskFloor, FsyncLatency, Warning};

use super::{CellKey, ImportedRun, MaxRate, Status, StepFile};
use crate::format::FormatVersion;
use crate::layout::{CELLS, file_name_of};

/// `run.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The format of the whole directory; see [`crate::FORMAT`].
    pub format: FormatVersion,
    /// A globally unique identifier.
    pub id: String,
    /// The Assay that started it.
    pub assay: Assay,
    /// The outcome of the run.
    pub status: Status,
    /// The plan's name.
    pub name: String,
    /// The time at which the run started.
    pub started_unix_ns: u64,
    /// The time at which the run ended; `None` if it has not.
    pub ended_unix_ns: Option<u64>,
    /// The command line.
    pub command: Vec<String>,
    /// The plan.
    pub plan: Plan,
    /// The seed of all data and random choices.
    pub seed: u64,
    /// The machine.
    pub host: Host,
    /// The builds.
    pub builds: Vec<Build>,
    /// The targets, in the plan's order.
    pub targets: Vec<Target>,
    /// The target that the others are compared with. With several [`Self::bases`], it is the first.
    pub base: String,
    /// The bases of engines and builds; none if all targets have the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<GroupBase>,
    /// The design that made the targets; `None` if the plan lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
    /// The cells in the order in which they run.
    pub cells: Vec<CellRef>,
    /// The steps of each workload and variant of the plan.
    pub workloads: Vec<WorkloadSteps>,
    /// Warnings that concern all results of this run.
    pub warnings: Vec<Warning>,
    /// Each invocation of Assay for this run: the first started it, the others resumed it.
    pub invocations: Vec<Invocation>,
    /// The search that chose the rates of its variants; `None` if the plan lists all cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearch>,
    /// The rates that are shares of highest rates, as soon as these are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub max_rates: Vec<MaxRate>,
    /// The number of repeats was not chosen in advance: repeats are added until comparisons are
    /// decided, or were added when the run was resumed. Comparisons allow for looking at any time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_open_ended: bool,
    /// Repeats were added until its time was up: no result has ended it. False while it continues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_time_up: bool,
    /// The origin of a run that other tools measured; `None` if Assay measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedRun>,
    /// A process measured its cells when it was read. It is not part of the record.
    #[serde(skip)]
    pub is_running: bool,
    /// The records of the cells that have ended, such as `cells/pg.base/c1/r1/cell.json`; filled
    /// in by [`RunDir`](crate::RunDir).
    #[serde(default)]
    pub files: Vec<StepFile>,
}

impl Run {
    /// Returns the target that the measured ones are compared with: the plan's base, or the first
    /// measured target in the plan's order if the base was not measured, as where other targets
    /// were selected. `None` if no target of the plan was measured.
    pub fn measured_base(&self, is_measured: impl Fn(&str) -> bool) -> Option<&str> {
        let planned = self.targets.iter().map(|target| target.name.as_str());
        let measured: Vec<&str> = planned.filter(|name| is_measured(name)).collect();
        let base = measured.iter().find(|name| **name == self.base);
        base.or(measured.first()).copied()
    }

    /// Returns the target that a target is compared with: the base of its build, or else of its
    /// engine. `None` if the run has several bases, and none of them is for the target.
    pub fn base_of(&self, target: &Target) -> Option<&str> {
        if self.bases.is_empty() {
            return Some(&self.base);
        }
        Some(&self.group_of(target)?.target)
    }

    /// Returns the one of several bases with which a target is compared. A build is more specific
    /// than its engine.
    pub fn group_of(&self, target: &Target) -> Option<&GroupBase> {
        let find = |name: &str| self.bases.iter().find(|base| base.group == name);
        find(&target.build).or_else(|| find(&target.engine))
    }

    /// Returns whether other targets are compared with a target.
    pub fn is_base(&self, target: &str) -> bool {
        if self.bases.is_empty() {
            return target == self.base;
        }
        self.bases.iter().any(|base| base.target == target)
    }

    /// Replaces each base that was not measured: see [`Self::measured_base`]. Groups of targets of
    /// which none was measured lose their base.
    pub fn replace_unmeasured_bases(&mut self, is_measured: impl Fn(&str) -> bool) {
        if self.bases.is_empty() {
            if let Some(base) = self.measured_base(is_measured) {
                self.base = base.to_owned();
            }
            return;
        }

        let mut bases = self.bases.clone();
        bases.retain_mut(|base| {
            let of_group =
                |target: &&Target| self.group_of(target).is_some_and(|own| own.group == base.group);
            let names = self.targets.iter().filter(of_group).map(|target| &target.name);
            let measured: Vec<&String> = names.filter(|name| is_measured(name)).collect();
            if !measured.contains(&&base.target)
                && let Some(first) = measured.first()
            {
                base.target = (*first).clone();
            }
            !measured.is_empty()
        });

        if let Some(first) = bases.first() {
            self.base = first.target.clone();
            self.bases = bases;
        }
    }

    /// Returns whether the run has a cell of a target.
    pub fn has_cell_of(&self, target: &str) -> bool {
        self.cells.iter().any(|cell| cell.key.target == target)
    }
}

/// The target that those of an engine or of a build are compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupBase {
    /// The name of the engine or of the build.
    pub group: String,
    /// The target.
    pub target: String,
}

/// A designed experiment, whose targets together tell the effects of factors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// The kind: `screening`, `full` or `one-at-a-time`.
    pub kind: String,
    /// The factors.
    pub factors: Vec<DesignFactor>,
    /// The targets. The first one is the base.
    pub targets: Vec<DesignedTarget>,
}

/// A factor of a design.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesignFactor {
    /// The name: an option, an environment variable, or a name of the plan.
    pub name: String,
    /// The levels; the first one is the base's.
    pub levels: Vec<String>,
}

/// A target of a design.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesignedTarget {
    /// The name of the target.
    pub target: String,
    /// The index of the level of each factor.
    pub levels: Vec<usize>,
    /// The target was added to separate effects from interactions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_folded: bool,
}

/// A search for the highest rate at which a step meets its bounds. Each rate that it tries is a
/// variant of the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// The step's name.
    pub step: String,
    /// The bound on the 99th percentile of response times, in milliseconds.
    pub p99_ms: Option<f64>,
    /// The bound on the lag of replicas, in milliseconds.
    pub lag_ms: Option<f64>,
    /// The highest rate that it tries, per second and client. `None`: that of a cell without a
    /// rate.
    pub rate_max: Option<f64>,
    /// The relative gap at which the search ends: the highest sustained rate is at most this share
    /// below the lowest one that misses a bound.
    pub tolerance: f64,
    /// The repeats of each try of a rate. Those with higher numbers are its second and its third
    /// try. 0: there is only one try.
    #[serde(default)]
    pub repeats: u32,
}

/// The steps of each cell of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSteps {
    /// The workload: `insert`.
    pub workload: String,
    /// The workload's variant, if the plan has variants.
    pub variant: Option<String>,
    /// The steps in their order.
    pub steps: Vec<String>,
    /// The step that the variant measures right after the load; `None` for a variant in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<AloneStep>,
}

/// A step that is measured right after the load, without the steps before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AloneStep {
    /// The step.
    pub step: String,
    /// The variant that has the step after others; `None` if the plan declares no variants.
    pub in_sequence: Option<String>,
}

/// A build of Assay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assay {
    /// The version.
    pub version: String,
    /// The commit that it was built from; `None` if it was not built in a checkout.
    pub git_hash: Option<String>,
    /// The sources differed from that commit.
    pub git_dirty: Option<bool>,
    /// The profile that it was compiled with: `release`, `debug`.
    pub profile: Option<String>,
}

impl std::fmt::Display for Assay {
    /// Writes `0.1.0 (9587cafd32a1, clean, release)`, without unknown parts.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = match self.version.as_str() {
            "" => "of an unknown version",
            version => version,
        };

        let tree = self.git_dirty.map(|is_dirty| if is_dirty { "dirty" } else { "clean" });
        let known = [self.git_hash.as_deref(), tree, self.profile.as_deref()];

        let parts: Vec<&str> = known.into_iter().flatten().collect();
        if parts.is_empty() {
            return f.write_str(version);
        }
        write!(f, "{version} ({})", parts.join(", "))
    }
}

/// An invocation of Assay for a run, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The time at which the invocation started.
    pub started_unix_ns: u64,
    /// The time at which the invocation ended; `None` if it was killed or is still running.
    pub ended_unix_ns: Option<u64>,
    /// The duration by the monotonic clock, which adjustments of the time don't affect; `None` as
    /// long as the invocation has not ended, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    /// The outcome: complete if every cell that the invocation had to measure is complete.
    pub status: Status,
    /// The Assay that ran.
    pub assay: Assay,
    /// The command line.
    pub command: Vec<String>,
    /// The filters of the cells to measure; empty for all.
    pub only: Vec<String>,
    /// The directory in which databases were created.
    pub data_dir: String,
    /// The directory of kept databases from which cells could begin, if that is not below
    /// `data_dir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub databases_dir: Option<String>,
    /// The kernel's identifier of the machine's boot, if it has one.
    pub boot_id: Option<String>,
    /// Facts of the machine that differ from those in `Run::host`.
    pub host_differences: Vec<FactDifference>,
    /// The cells that were left out because an earlier cell of their target failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<CellKey>,
    /// The hosts of load ranks, without the server's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_hosts: Vec<ClientHost>,
    /// The latency of `fdatasync` after a write of 4 KiB in the data directory.
    pub fsync: Option<FsyncLatency>,
    /// The floor of the disk of the data directory: before the first cell and after the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk_floors: Vec<DiskFloor>,
}

/// A host on which load ranks ran, but not the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientHost {
    /// The name of the host.
    pub name: String,
    /// The load ranks on the host.
    pub ranks: Vec<u32>,
    /// The description of the host, without disks.
    pub host: Host,
}

/// A fact of the machine that had changed when a run was resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDifference {
    /// The name of the fact.
    pub name: String,
    /// The value when the run started; `None` if unknown.
    pub first: Option<String>,
    /// The value in this invocation; `None` if unknown.
    pub now: Option<String>,
}

/// The plan as it was written, and as it was resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The file that it was read from; `None` for the built-in default.
    pub path: Option<String>,
    /// The text of the plan, verbatim except for passwords.
    pub text: String,
    /// The `--set` arguments in their order, verbatim except for passwords.
    pub sets: Vec<String>,
    /// Every value with its origin.
    pub resolved: Vec<ResolvedValue>,
    /// A password was removed from the text or a `--set` argument; such a run cannot be resumed.
    pub password_removed: bool,
    /// The files that configs name, as they were when the run started. The whole run uses these
    /// texts.
    pub files: Vec<PlanFile>,
}

impl Plan {
    /// Returns the smallest relative change that matters, of a run until all is decided: 0.03 is
    /// 3%. `None` if the plan has none.
    pub fn effect(&self) -> Option<f64> {
        let effect = self.resolved.iter().find(|value| value.key == "effect")?;
        effect.value.parse().ok().filter(|effect| (0.0..=1.0).contains(effect))
    }
}

/// A file that a plan names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFile {
    /// The name of the file in the plan.
    pub name: String,
    /// The text of the file.
    pub text: String,
}

/// A value of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedValue {
    /// The dotted key: `workload.insert.initial-rows`.
    pub key: String,
    /// The value in the plan's notation.
    pub value: String,
    /// `default`, `plan:LINE:COLUMN` or `--set`.
    pub origin: String,
}

/// A target: a build with a config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// `build.config`
    pub name: String,
    /// The build's name.
    pub build: String,
    /// The config's name.
    pub config: String,
    /// The engine's name.
    pub engine: String,
    /// The options that the plan sets, in the engine's notation, without those of its files, which
    /// come first.
    pub set: Vec<(String, String)>,
    /// Everything that its config declares, itself and in its files, and its limits.
    pub declared: Vec<DeclaredOption>,
    /// The factors in the plan, with their values; those of the build come first.
    #[serde(default)]
    pub factors: Vec<(String, String)>,
    /// The names of its config's files, in the order in which they apply; the texts are in
    /// [`Plan::files`].
    pub files: Vec<String>,
}

/// A build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The name of the build in the plan.
    pub name: String,
    /// The engine's name.
    pub engine: String,
    /// The version, as the engine reports it.
    pub version: String,
    /// The source: a directory, `bundled`, or a URL without its password.
    pub source: String,
    /// The files of the build, with their hashes.
    pub files: Vec<FileHash>,
    /// The commit that Assay made the build from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<BuiltCommit>,
}

/// The commit of a build, and how the build was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltCommit {
    /// The name of the build in the store of builds.
    pub stored: String,
    /// The path of the repository.
    pub repository: String,
    /// The commit's hash in hexadecimal.
    pub hash: String,
    /// The name that git gives the commit, from the last tag before it: `v9.9.3-12-g1a2b3c4d5e6f`.
    pub described: String,
    /// The first line of the commit's message.
    pub subject: String,
    /// The time of the commit, in seconds since 1970 UTC.
    pub committed_unix_s: i64,
    /// The shell command that made the build.
    pub make: String,
    /// The path of what the command made, in the source.
    pub gives: String,
    /// The patch that was applied to the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<BuiltPatch>,
    /// The compilers, each with the first line that it prints as its version.
    pub compilers: BTreeMap<String, String>,
    /// The variables with flags for compilers that were set, such as `CFLAGS`.
    pub flags: BTreeMap<String, String>,
    /// The time that the command took.
    pub duration_ms: u64,
}

impl BuiltCommit {
    /// Returns the name of the commit, with its patch: `v9.9.3-12-g1a2b3c4d5e6f + fix.diff`.
    pub fn name(&self) -> String {
        match &self.patch {
            Some(patch) => format!("{} + {}", self.described, patch.name),
            None => self.described.clone(),
        }
    }
}

/// A patch that was applied to a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltPatch {
    /// The file's name.
    pub name: String,
    /// The file's SHA-256 in hexadecimal.
    pub sha256: String,
}

/// A file, with its size and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// The path of the file.
    pub path: String,
    /// The size of the file.
    pub size_bytes: u64,
    /// The SHA-256 of the file in hexadecimal.
    pub sha256: String,
}

/// A cell, with the place of its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRef {
    /// The cell's key.
    #[serde(flatten)]
    pub key: CellKey,
    /// The workload: `insert`.
    pub workload: String,
    /// The cell's directory, relative to the run's.
    pub path: String,
}

impl CellRef {
    /// Returns a measured cell with its directory.
    pub fn new(
        target: &str,
        workload: &str,
        variant: Option<&str>,
        clients: u32,
        repeat: u32,
    ) -> Self {
        Self::of(CellKey::new(target, variant, clients, repeat), workload)
    }

    /// Returns a cell with its directory: `cells/TARGET/[VARIANT/]cCLIENTS/rREPEAT`, with another
    /// letter for `r` if it is not measured: see [`words::CellKind::letter`].
    pub fn of(key: CellKey, workload: &str) -> Self {
        let variant_directory = match &key.variant {
            Some(variant) => format!("{}/", file_name_of(variant)),
            None => String::new(),
        };

        let letter = key.kind.letter();
        Self {
            workload: workload.to_owned(),
            path: format!(
                "{CELLS}/{}/{variant_directory}c{}/{letter}{}",
                file_name_of(&key.target),
                key.clients,
                key.repeat
            ),
            key,
        }
    }

    /// Returns the name of the cell, `TARGET/[VARIANT/]cCLIENTS/rREPEAT`, which is its directory
    /// below `cells/`.
    pub fn name(&self) -> &str {
        let below = self.path.strip_prefix(CELLS);
        below.map_or(&self.path, |name| name.trim_start_matches('/'))
    }
}

/// The machine that a run ran on. Unknown facts are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Facts by name, in the order in which they are shown. The name has the unit:
    /// `memory_total_bytes`.
    pub facts: Vec<(String, String)>,
    /// The number of online processors.
    pub cpu_count: u32,
    /// The size of the memory.
    pub memory_total_bytes: u64,
    /// The latency of `fdatasync` after a write of 4 KiB in the data directory.
    pub fsync: Option<FsyncLatency>,
}

impl Host {
    /// Returns a fact by its name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let fact = self.facts.iter().find(|(known, _)| known == name);
        fact.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Assay;

    #[test]
    fn an_assay_shows_what_is_known_about_it() {
        let mut assay = Assay { version: "0.1.0".into(), ..Assay::default() };
        assert_eq!(assay.to_string(), "0.1.0");
        assay.profile = Some("debug".into());
        assert_eq!(assay.to_string(), "0.1.0 (debug)");
        (assay.git_hash, assay.git_dirty) = (Some("9587caf".into()), Some(true));
        assert_eq!(assay.to_string(), "0.1.0 (9587caf, dirty, debug)");
        assay.git_dirty = Some(false);
        assert_eq!(assay.to_string(), "0.1.0 (9587caf, clean, debug)");
        assert_eq!(Assay::default().to_string(), "of an unknown version");
    }
}
