//! The output of a comparison for systems of continuous integration, and the workflow files in
//! `ci/`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::compare::{FULL_AND_OFF, load, measured, with_known_times};
use crate::place::{ASSAY, Place};
use crate::postgres_is_here_or_test_is_skipped;

fn text(path: &Path) -> String {
    fs_err::read_to_string(path).unwrap()
}

#[test]
fn a_regression_is_in_each_file_that_ci_reads() {
    let place = Place::on_disk();
    let run = measured(&place, &load(5, 500, FULL_AND_OFF));
    with_known_times(&run);
    let gated = ["compare", &run, "--gate", "--require", "l.i0 throughput > 1"];
    let files = ["--junit", "gate.xml", "--markdown", "gate.md"];

    let github = [&gated[..], &files, &["--annotations", "github"]].concat();
    let ended = place.assay(&github).expect_code(3);
    assert!(ended.stdout.contains("\n::error title=lite.full c1 l.i0%3A throughput::"), "{ended}");
    let junit = text(&place.join("gate.xml"));
    let failed =
        "<testcase classname=\"lite.full c1\" name=\"l.i0: throughput\"><failure message=\"";
    assert!(junit.contains(failed), "{junit}");
    let met = "<testcase classname=\"lite.base c1\" name=\"l.i0 throughput &gt; 1\"><system-out>";
    assert!(junit.contains(met), "{junit}");
    let markdown = text(&place.join("gate.md"));
    assert!(markdown.contains("## Failed") && markdown.contains("lite.full relative to lite.base"));

    let gitlab = [&gated[..], &["--annotations", "gitlab"]].concat();
    place.assay(&gitlab).expect_code(3);
    let report = text(&place.join("gl-code-quality-report.json"));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report[0]["fingerprint"], "lite.full c1 l.i0: throughput");
    assert_eq!(report[0]["location"]["path"], "plan.toml");

    let without = place.assay(&["compare", &run, "--junit", "gate.xml"]).expect_code(2);
    without.expect_in_stderr(&["`--junit` needs judgments", "`--gate`"]);
}

/// A block of shell commands in a workflow file.
struct ShellStep {
    name: String,
    script: String,
}

/// Returns the blocks of a YAML file that begin with `run: |` or `- |`, with the last name before
/// each.
fn shell_steps(yaml: &str) -> Vec<ShellStep> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = yaml.lines().collect();
    let mut steps = Vec::new();
    let mut name = String::new();
    for (number, line) in lines.iter().enumerate() {
        if let Some(found) = line.trim_start().strip_prefix("- name: ") {
            name = found.to_owned();
        }
        if !line.ends_with("run: |") && line.trim() != "- |" {
            continue;
        }

        let inside = |other: &&&str| indent(other) > indent(line) || other.trim().is_empty();
        let block: Vec<&str> = lines[number + 1..].iter().take_while(inside).copied().collect();
        steps.push(ShellStep { name: name.clone(), script: block.join("\n") });
    }

    steps
}

/// The event that starts a pipeline.
#[derive(Clone, Copy, PartialEq)]
enum Event {
    Change,
    Night,
}

/// Runs the shell steps of a workflow, but for those that build the user's own server, on two
/// servers that are here. Returns the exit code of each step.
fn run_steps(place: &Place, file: &str, event: Event) -> Vec<i32> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // As published, but short. A history compares runs, so that one repeat of each is enough.
    let repeats = if event == Event::Night { "repeats = 1" } else { "repeats = 2" };
    let plan = text(&root.join("docs/examples/ci-gate.toml"));
    let plan = plan.replace("repeats = 10", repeats).replace("\"2s\"", "\"100ms\"");
    let plan = plan.replace("\"50k\"", "\"5k\"").replace("\"20k\"", "\"1k\"");
    let plan = plan.replace("clients = [4]", "clients = [1]");
    place.write("benchmark.toml", &plan);
    // Instead of the program that comments.
    let stand_in = place.join("bin/gh");
    if !stand_in.exists() {
        fs_err::create_dir_all(place.join("bin")).unwrap();
        fs_err::write(&stand_in, "#!/bin/sh\necho \"$@\" >> commented\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&stand_in, executable).unwrap();
    }

    let binaries = Path::new(ASSAY).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{binaries}:{path}", place.join("bin").display());
    let other = std::env::var("ASSAY_TEST_OTHER_POSTGRES");

    let mut codes = Vec::new();
    for ShellStep { name, script } in shell_steps(&text(&root.join("ci").join(file))) {
        let is_of_other_event = match event {
            Event::Change => name == "Keep the history",
            Event::Night => name == "Judge" || name == "Comment",
        };
        if name == "Build both" || is_of_other_event {
            continue;
        }
        let output = Command::new("bash")
            .args(["-e", "-c", &script])
            .current_dir(place.path())
            .env("PATH", &path)
            .env("TMPDIR", place.join("tmp"))
            .env("GITHUB_STEP_SUMMARY", place.join("summary.md"))
            .env("HISTORY_BRANCH", "assay-history")
            .env("NUMBER", "7")
            .env("EVENT", if event == Event::Night { "schedule" } else { "pull_request" })
            .env("CI_PIPELINE_SOURCE", if event == Event::Night { "schedule" } else { "push" })
            .env("BASE", "distribution")
            .env("CHANGE", other.as_deref().unwrap_or("distribution"))
            .output()
            .unwrap();

        let said = String::from_utf8_lossy(&output.stderr).into_owned();

        let code = output.status.code().unwrap();
        // The gate may find anything: its result depends on the machine.
        let expected: &[i32] = if script.contains("--gate") { &[0, 3, 4] } else { &[0] };
        assert!(expected.contains(&code), "{file}, {name}: exit code {code}\n{script}\n{said}");
        codes.push(code);
    }
    assert!(codes.len() >= 3, "{file} has {} steps", codes.len());
    codes
}

/// Makes the place a repository with another one as its origin.
fn git_repository(place: &Place) {
    let git = |arguments: &str| {
        let mut command = Command::new("git");
        command.args(arguments.split(' ')).current_dir(place.path());
        assert!(command.status().unwrap().success(), "git {arguments}");
    };
    git("init --quiet --bare origin.git");
    git("init --quiet .");
    git(&format!("remote add origin {}", place.join("origin.git").display()));
    git("-c user.name=a -c user.email=a@localhost commit --quiet --allow-empty -m begin");
}

#[test]
fn the_workflow_for_github_measures_judges_publishes_and_keeps_the_history() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();

    git_repository(&place);
    run_steps(&place, "github-workflow.yml", Event::Change);
    let summary = text(&place.join("summary.md"));
    assert!(summary.contains("own CPU") && summary.contains(" passed."), "{summary}");
    assert!(text(&place.join("gate.xml")).contains("p99"));
    assert!(place.join("report.html").is_file());
    assert!(text(&place.join("commented")).starts_with("pr comment 7 --body-file comment.md"));

    // The next machine has nothing but the branch.
    for nights in 1..=2 {
        for left in ["results", "history"] {
            let _ = fs_err::remove_dir_all(place.join(left));
        }
        let mut prune = Command::new("git");
        prune.args(["worktree", "prune"]).current_dir(place.path());
        assert!(prune.status().unwrap().success());
        run_steps(&place, "github-workflow.yml", Event::Night);
        let page = text(&place.join("history.html"));
        assert!(page.contains(&format!("over {nights} run")), "{nights}");
    }

    let comment = text(&place.join("comment.md"));
    assert!(comment.contains("History") && comment.contains("over 2 runs"), "{comment}");
}

#[test]
fn the_template_for_gitlab_measures_judges_publishes_and_keeps_the_history() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();

    run_steps(&place, "gitlab-template.yml", Event::Change);
    let report = text(&place.join("gl-code-quality-report.json"));
    assert!(serde_json::from_str::<Value>(&report).unwrap().is_array());
    assert!(place.join("gate.xml").is_file() && place.join("report.html").is_file());

    fs_err::remove_dir_all(place.join("results")).unwrap();
    run_steps(&place, "gitlab-template.yml", Event::Night);
    assert!(text(&place.join("comment.md")).contains("over 1 run"));
    assert!(place.join("history.html").is_file());
}
