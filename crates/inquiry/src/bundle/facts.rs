//! The facts of a bundle beside its figures: builds, machine, and how to repeat the finding.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::counted;
use record::{Build, Host, Run};
use report::{BundleCommand, BundleFacts, BundleProgram};

use super::finding::{BundledBuild, BundledFinding, FORMAT, FindingPlace, figures_of};
use super::{FINDING, PLAN, PROFILES, README, Source, WORK_FILE};

/// The facts of a machine that matter to others, with their names in a report. Names of hosts,
/// disks and directories are not among them.
const HOST_FACTS: [(&str, &str); 15] = [
    ("os_name", "system"),
    ("kernel_release", "kernel"),
    ("architecture", "architecture"),
    ("cpu_model", "processor"),
    ("cpu_count", "processors"),
    ("cpu_smt", "SMT"),
    ("hypervisor", "hypervisor"),
    ("numa_node_count", "NUMA nodes"),
    ("memory_total_bytes", "memory"),
    ("swap_total_bytes", "swap"),
    ("thp_enabled", "transparent huge pages"),
    ("clocksource", "clock source"),
    ("data_fs_type", "file system of the data"),
    ("data_disk_rotational", "rotating disk"),
    ("data_disk_scheduler", "I/O scheduler"),
];

/// Facts of the disk with the data, by their names in [`HOST_FACTS`].
const DISK_FACTS: [(&str, &str); 2] =
    [("data_disk_rotational", "rotational"), ("data_disk_scheduler", "scheduler")];

/// Returns the facts of the finding for programs.
pub fn finding(
    source: &Source,
    pair: &[String; 2],
    step: &str,
    sources: &BTreeMap<String, String>,
) -> BundledFinding {
    let Source { run, compared, chosen, .. } = source;
    let [base, target] = pair;
    let place = FindingPlace { target, step, variant: None, clients: None };
    let host = host_facts(&run.host);
    // A digest shows at a glance whether two machines are alike.
    let fingerprint: Vec<String> =
        host.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let label = chosen.figure.label();
    let ratio = chosen.figure.ratio_text();

    BundledFinding {
        format: FORMAT,
        assay: run.assay.to_string(),
        sentence: format!("{step}: {label} of {target} is {ratio} times that of {base}"),
        started_unix_ns: run.started_unix_ns,
        base: base.clone(),
        target: target.clone(),
        workload: run.cells.first().map_or_else(String::new, |cell| cell.workload.clone()),
        step: step.to_owned(),
        clients: chosen.cell.clients,
        finding: chosen.figure.clone(),
        figures: figures_of(compared, &place),
        builds: bundled_builds(run, pair, sources),
        settings: settings(source),
        host_fingerprint: builds::hash::of_bytes(fingerprint.join("\n").as_bytes()),
        host,
    }
}

/// Returns the builds of both targets.
fn bundled_builds(
    run: &Run,
    pair: &[String; 2],
    sources: &BTreeMap<String, String>,
) -> Vec<BundledBuild> {
    let of_pair = run.targets.iter().filter(|target| pair.contains(&target.name));
    let names: Vec<&str> = of_pair.map(|target| target.build.as_str()).collect();

    let mut bundled = Vec::new();
    for build in run.builds.iter().filter(|build| names.contains(&build.name.as_str())) {
        bundled.push(BundledBuild {
            name: build.name.clone(),
            engine: build.engine.clone(),
            version: build.version.clone(),
            source: sources.get(&build.name).cloned().unwrap_or_default(),
            files: file_hashes(build),
        });
    }
    bundled
}

/// Returns the hashes of a build's files by their names, without the directories.
pub fn file_hashes(build: &Build) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    for file in &build.files {
        let name = Path::new(&file.path).file_name().unwrap_or_default();
        hashes.insert(name.to_string_lossy().into_owned(), file.sha256.clone());
    }
    hashes
}

/// Returns the settings that differ.
fn settings(source: &Source) -> BTreeMap<String, [Option<String>; 2]> {
    let mut settings = BTreeMap::new();
    for comparison in &source.settings.differences {
        for setting in &comparison.settings {
            settings.insert(setting.name.clone(), [setting.a.clone(), setting.b.clone()]);
        }
        for one in &comparison.only_a {
            settings.insert(one.name.clone(), [Some(one.value.clone()), None]);
        }
        for one in &comparison.only_b {
            settings.insert(one.name.clone(), [None, Some(one.value.clone())]);
        }
    }
    settings
}

fn host_facts(host: &Host) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let disk = host.fact("data_disk").unwrap_or_default();
    for (name, _) in HOST_FACTS {
        let of_disk = DISK_FACTS.iter().find(|(fact, _)| *fact == name);
        let value = match of_disk {
            Some((_, fact)) => host.fact(&format!("disk.{disk}.{fact}")),
            None => host.fact(name),
        };
        if let Some(value) = value {
            facts.insert(name.to_owned(), value.to_owned());
        }
    }
    facts
}

/// Returns the comment at the top of the plan.
pub fn plan_comment(finding: &BundledFinding) -> String {
    format!(
        "# A part of a plan, which repeats this finding: {}.\n# `assay run` of the bundle runs it, and says whether the finding was reproduced.\n\n",
        finding.sentence
    )
}

/// Returns the facts for the bug report.
pub fn of<'a>(
    source: &Source,
    name: &str,
    output: &Path,
    files: impl Iterator<Item = &'a str>,
) -> BundleFacts {
    let finding = &source.finding;
    let file = output.file_name().unwrap_or_default().to_string_lossy();

    let mut contents = Vec::new();
    for name in files.filter(|name| *name != README) {
        contents.push((name.to_owned(), content_of(name).to_owned()));
    }

    BundleFacts {
        title: finding.sentence.clone(),
        summary: summary(source),
        builds: programs(finding),
        host: host_lines(source),
        limits: source.facts.limits.clone(),
        commands: commands(finding, name, &file),
        files: contents,
    }
}

fn summary(source: &Source) -> Vec<String> {
    let Source { run, finding, chosen, .. } = source;
    let repeats = chosen.figure.values.len();

    let mut first = format!(
        "Measured with assay {}: step `{}` of the workload `{}`, {}, {} of each target.",
        run.assay,
        finding.step,
        finding.workload,
        counted(finding.clients as usize, "client"),
        counted(repeats, "repeat"),
    );

    if let Some(variant) = &chosen.cell.variant {
        first += &format!(" The variant is `{variant}`.");
    }
    // A reader may look for loads that the bundle leaves out.
    if chosen.other_loads > 0 {
        first += &format!(
            " The run also has {} of this step, in which the change is less clear or was not asked for.",
            counted(chosen.other_loads, "other load")
        );
    }
    vec![first]
}

fn programs(finding: &BundledFinding) -> Vec<BundleProgram> {
    let mut programs = Vec::new();
    for build in &finding.builds {
        let program = |file: &str, sha256: &str| BundleProgram {
            build: build.name.clone(),
            version: format!("{} {}", build.engine, build.version),
            source: build.source.clone(),
            file: file.to_owned(),
            sha256: sha256.to_owned(),
        };

        programs.extend(build.files.iter().map(|(file, sha256)| program(file, sha256)));
        if build.files.is_empty() {
            programs.push(program("none recorded", "none"));
        }
    }
    programs
}

fn host_lines(source: &Source) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (name, shown) in HOST_FACTS {
        let Some(value) = source.finding.host.get(name) else {
            continue;
        };
        let shown_value = match value.parse::<u64>() {
            Ok(bytes) if name.ends_with("_bytes") => format!("{} MiB", bytes >> 20),
            _ => value.clone(),
        };
        lines.push((shown.to_owned(), shown_value));
    }

    if let Some(fsync) = source.run.host.fsync {
        let microseconds = fsync.p50_ns / 1000;
        lines.push(("median fdatasync".to_owned(), format!("{microseconds} µs")));
    }

    lines
}

/// Returns the commands that repeat the finding.
fn commands(finding: &BundledFinding, name: &str, file: &str) -> Vec<BundleCommand> {
    let command =
        |purpose: &str, command: String| BundleCommand { purpose: purpose.to_owned(), command };

    let BundledFinding { base, step, .. } = finding;
    let bundle = if name == file { name } else { file };
    vec![
        command(
            "In a clone of Assay, install it",
            "cargo install --locked --path crates/assay".to_owned(),
        ),
        command(
            "Next to this bundle, run it, which downloads the builds and says whether the finding was reproduced",
            format!("assay run {bundle}"),
        ),
        command(
            "See all that differs, and why",
            format!("assay compare latest --base {base} --step {step}"),
        ),
    ]
}

/// Returns what a file of a bundle has.
fn content_of(name: &str) -> &'static str {
    match name {
        PLAN => "the plan of the two targets and the step, with the steps that it needs",
        FINDING => {
            "all compared figures of the step, settings, hashes and the machine, for programs"
        }
        PROFILES => "the most frequent stacks of both targets, for flame graphs",
        WORK_FILE => "instructions per operation, and the functions in which they changed",
        _ => "",
    }
}
