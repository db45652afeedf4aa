//! What systems of continuous integration get from a comparison, and the workflow files in `ci/`.

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
    let place = Place::new();
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
    let met = "<testcase classname=\"lite.base c1\" name=\"l.i0 throughput &gt; 1\"/>";
    assert!(junit.contains(met), "{junit}");
    let markdown = text(&place.join("gate.md"));
    assert!(markdown.contains("## Failed") && markdown.contains("Throughput relative to"));

    let gitlab = [&gated[..], &["--annotations", "gitlab"]].concat();
    place.assay(&gitlab).expect_code(3);
    let report = text(&place.join("gl-code-quality-report.json"));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report[0]["fingerprint"], "lite.full c1 l.i0: throughput");
    assert_eq!(report[0]["location"]["path"], "plan.toml");

    let without = place.assay(&["compare", &run, "--junit", "gate.xml"]).expect_code(2);
    without.expect_in_stderr(&["`--junit` needs judgements", "`--gate`"]);
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

/// Runs the shell steps of a workflow, but for those that build the user's own server, on two
/// servers that are here.
fn run_steps(place: &Place, file: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // As published, but short.
    let plan = text(&root.join("docs/examples/ci-gate.toml"));
    let plan = plan.replace("repeats = 10", "repeats = 2").replace("\"2s\"", "\"300ms\"");
    let plan = plan.replace("\"50k\"", "\"5k\"").replace("\"20k\"", "\"1k\"");
    place.write("benchmark.toml", &plan);

    let binaries = Path::new(ASSAY).parent().unwrap().display();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let other = std::env::var("ASSAY_TEST_OTHER_POSTGRES");
    let mut codes = Vec::new();
    for ShellStep { name, script } in shell_steps(&text(&root.join("ci").join(file))) {
        if name == "Build both" {
            continue;
        }
        let output = Command::new("bash")
            .args(["-e", "-c", &script])
            .current_dir(place.path())
            .env("PATH", &path)
            .env("TMPDIR", place.join("tmp"))
            .env("GITHUB_STEP_SUMMARY", place.join("summary.md"))
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
}

#[test]
fn the_workflow_for_github_measures_judges_and_publishes() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    run_steps(&place, "github-workflow.yml");
    let summary = text(&place.join("summary.md"));
    assert!(summary.contains("own CPU") && summary.contains(" passed."), "{summary}");
    assert!(text(&place.join("gate.xml")).contains("p99"));
    assert!(place.join("report.html").is_file());
}

#[test]
fn the_template_for_gitlab_measures_judges_and_publishes() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    run_steps(&place, "gitlab-template.yml");
    let report = text(&place.join("gl-code-quality-report.json"));
    assert!(serde_json::from_str::<Value>(&report).unwrap().is_array());
    assert!(place.join("gate.xml").is_file() && place.join("report.html").is_file());
}
