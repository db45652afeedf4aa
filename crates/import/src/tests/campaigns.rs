use std::path::Path;

use record::{RunDir, StepKind};

use super::fixture;
use crate::campaign::Campaign;
use crate::formats::Format;
use crate::{explain, guess, understand, write_runs, write_to};

const CAMPAIGN: &str = r#"
name = "small"
device = "md2"
date = "2025-03-18"
cpus = 48

[[files]]
path = "x.{target}.pk1/sb.o.{step}.dop{clients}"

[[files]]
path = "x.{target}.pk1/sb.vm.{step}.dop{clients}"
interval = 1

[[files]]
path = "x.{target}.pk1/sb.io.{step}.dop{clients}"
since-boot = false

[targets]
"a*" = { engine = "postgres", version = "17.4" }
"#;

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

/// Writes the files of a target.
fn write_target(folder: &Path, target: &str) {
    for (kind, format) in [("o", Format::Sysbench), ("vm", Format::Vmstat), ("io", Format::Iostat)]
    {
        let name = format!("x.{target}.pk1/sb.{kind}.read-only.range100.dop40");
        write(folder, &name, fixture(format));
    }
}

fn text_of(folder: &Path, campaign: &str) -> String {
    let campaign = Campaign::parse(campaign).unwrap();
    explain(&understand(folder, &campaign).unwrap())
}

#[test]
fn files_of_a_step_become_one_record() {
    let folder = tempfile::tempdir().unwrap();
    write_target(folder.path(), "a.base");
    write_target(folder.path(), "a.new");

    let campaign = Campaign::parse(CAMPAIGN).unwrap();
    let understood = understand(folder.path(), &campaign).unwrap();
    let out = folder.path().join("run");
    let runs = write_to(&understood, &campaign, &out).unwrap();
    assert_eq!((runs[0].cell_count, runs[0].step_count), (2, 2));
    assert!(write_to(&understood, &campaign, &out).is_err(), "it exists");

    let directory = RunDir::open(&out).unwrap();
    let run = directory.read_run().unwrap();
    assert_eq!((run.base.as_str(), run.host.cpu_count), ("a.base", 48));
    assert_eq!(run.imported.as_ref().unwrap().tools, ["sysbench 1.1.0-9072687"]);
    assert_eq!(run.started_unix_ns, 1_742_256_000_000_000_000);

    let cell = directory.cell(&run.cells[0]).unwrap();
    assert_eq!(cell.read().unwrap().engine_version, "17.4");
    let steps = cell.read_steps().unwrap();
    let step = steps[0].step();
    assert_eq!((step.kind, step.group.as_deref()), (StepKind::Query, Some("range-2")));
    let mut codes: Vec<&str> = step.warnings.iter().map(|warning| warning.code.as_str()).collect();
    codes.sort_unstable();
    let expected = [
        "import::cpus",
        "import::header-rows",
        "import::length",
        "import::length",
        "import::since-boot",
        "import::warm-up",
    ];
    assert_eq!(codes, expected);
    let imported = step.imported.as_ref().unwrap();
    assert_eq!(imported.files.len(), 3);
    assert_eq!(imported.times_us["event"]["p95"], 1340.0);

    let host = steps[0].host().unwrap();
    let switches = host.column("context_switch_count").unwrap();
    let there: Vec<i64> = switches.values.iter().flatten().copied().collect();
    assert_eq!((there[0], there[1]), (0, 318_450));
    // The warm-up is before the beginning of the step.
    assert_eq!(host.at_ns[0], -5_000_000_000);
}

#[test]
fn samples_of_the_warm_up_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    write_target(folder.path(), "a.base");
    let campaign = Campaign::parse(&format!("drop-warm-up = true\n{CAMPAIGN}")).unwrap();
    let understood = understand(folder.path(), &campaign).unwrap();
    let runs = write_runs(&understood, &campaign, folder.path()).unwrap();
    let directory = RunDir::open(&runs[0].path).unwrap();
    let run = directory.read_run().unwrap();
    let steps = directory.cell(&run.cells[0]).unwrap().read_steps().unwrap();
    assert_eq!(steps[0].host().unwrap().at_ns[0], 0);
}

#[test]
fn renamed_and_mixed_up_files_are_refused_or_named() {
    let folder = tempfile::tempdir().unwrap();
    write_target(folder.path(), "a.base");
    let vmstat = fixture(Format::Vmstat);
    write(folder.path(), "x.a.base.pk1/sb.o.scan.dop40", vmstat);
    write(folder.path(), "x.a.base.pk1/sb.vm.delete.dop40", vmstat);
    write(folder.path(), "x.a.base.pk1/sb.o.insert.dop8", fixture(Format::Sysbench));
    write(folder.path(), "notes.txt", "none");

    let text = text_of(
        folder.path(),
        &CAMPAIGN.replace(
            "path = \"x.{target}.pk1/sb.o.{step}.dop{clients}\"",
            "path = \"x.{target}.pk1/sb.o.{step}.dop{clients}\"\nformat = \"sysbench\"",
        ),
    );
    for expected in [
        "refused: x.a.base.pk1/sb.o.scan.dop40: it is a file of vmstat, not of sysbench",
        "import::alone: no file has results of this step",
        "no pattern matches 1 file:\n  notes.txt",
        "2 steps have results",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn logs_of_threads_add_up_and_go_with_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let log = fixture(Format::PgbenchLog);
    write(folder.path(), "pgbench_log.17", log);
    write(folder.path(), "pgbench_log.17.1", log);
    let campaign =
        "[[files]]\npath = \"pgbench_log.*\"\ntarget = \"a.b\"\nstep = \"tpcb\"\nclients = 4\n";
    let campaign = Campaign::parse(campaign).unwrap();
    let understood = understand(folder.path(), &campaign).unwrap();
    let runs = write_runs(&understood, &campaign, folder.path()).unwrap();
    let directory = RunDir::open(&runs[0].path).unwrap();
    let run = directory.read_run().unwrap();
    let steps = directory.cell(&run.cells[0]).unwrap().read_steps().unwrap();
    assert_eq!(steps[0].step().ops["transaction"].ok, 240);
    assert_eq!(steps[0].histograms().unwrap()["transaction.service"].len(), 240);
}

#[test]
fn each_run_of_a_campaign_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    for date in ["2025-01-01", "2025-02-01"] {
        write(folder.path(), &format!("{date}/a.b.t8"), fixture(Format::Pgbench));
    }
    let campaign =
        "name = \"nightly\"\n[[files]]\npath = \"{run}/{target}.t{clients}\"\nstep = \"tpcb\"\n";
    let campaign = Campaign::parse(campaign).unwrap();
    let understood = understand(folder.path(), &campaign).unwrap();
    let results = tempfile::tempdir().unwrap();
    let runs = write_runs(&understood, &campaign, results.path()).unwrap();
    let names: Vec<String> =
        runs.iter().map(|run| run.path.file_name().unwrap().to_string_lossy().into()).collect();
    let expected = ["20250101T000000Z-nightly-2025-01-01", "20250201T000000Z-nightly-2025-02-01"];
    assert_eq!(names, expected);
}

#[test]
fn a_guess_is_a_campaign_that_understands_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    write_target(folder.path(), "a.base");
    write_target(folder.path(), "a.new");
    let sysbench = fixture(Format::Sysbench);
    write(folder.path(), "x.a.new.pk1/sb.o.scan.range10.dop8", sysbench);
    write(folder.path(), "x.a.new.pk1/sb.o.vacuum", "done\n");
    write(folder.path(), "x.a.new.pk1/notes.of.today", "none\n");
    let guessed = guess(folder.path()).unwrap();
    assert!(guessed.contains("ignore = [\"notes.of.*\", \"sb.o.vacuum\"]"), "{guessed}");
    assert!(guessed.contains("path = \"x.{target}.pk1/sb.o.{step}.dop{clients}\""), "{guessed}");
    let text = text_of(folder.path(), &guessed);
    assert!(text.contains("3 steps have results"), "{guessed}\n{text}");
}

#[test]
fn examples_of_campaigns_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/import");
    let mut count = 0;
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        Campaign::parse(&fs_err::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        count += 1;
    }
    assert_eq!(count, 9);
}

#[test]
fn a_wrong_campaign_says_what_is_wrong() {
    for (toml, reason) in [
        ("name = 1\n", "expected a string"),
        ("", "no `[[files]]`"),
        ("[[files]]\npath = \"{target\"\n", "without `}`"),
        ("[[files]]\npath = \"a\"\nformat = \"mine\"\n", "unknown variant `mine`"),
        ("files = []\nspeed = 1\n", "unknown field `speed`"),
    ] {
        let error = Campaign::parse(toml).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
