//! The Python package: it reads a run by the exports of this Assay.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::export::tool_or_test_is_skipped;
use crate::place::{ASSAY, Place, QUICK, SQLITE, entries, workload};
use crate::say_skipped;

/// Reads a run, and prints what the test expects. Arguments: the run, the program `assay`.
const SCRIPT: &str = r#"
import sys
import assay

run = assay.read(sys.argv[1], command=sys.argv[2])
steps = run.rows("steps")
assert {row["step"] for row in steps} == {"l.i0", "l.x"}, steps
assert all(float(row["throughput"]) > 0 for row in steps if row["valid"] == "true"), steps
assert {row["metric"] for row in run.verdicts()} >= {"throughput"}
assert sum(1 for row in run.series() if row["step"] == "l.i0") >= 1
assert {row["source"] for row in run.samples()} >= {"host"}, run.samples()[:3]
inserts = [row for row in run.latencies() if row["op"] == "insert" and row["time"] == "service"]
assert sum(int(row["op_count"]) for row in inserts) > 0, inserts
assert any("Histogram" in log for log in run.histograms().values())
try:
    assay.read("nowhere", command=sys.argv[2]).rows()
except assay.AssayError as error:
    assert "nowhere" in str(error)
else:
    raise AssertionError("a run that is not there was read")
for module, read in [("polars", run.polars), ("pandas", run.pandas), ("pyarrow", run.arrow)]:
    try:
        __import__(module)
    except ImportError:
        continue
    assert len(read("steps")) == len(steps), module
print("read", len(steps))
"#;

/// Runs the cells of a notebook, as Jupyter would. Argument: its file.
const NOTEBOOK: &str = r#"
import json, sys

with open(sys.argv[1], encoding="utf-8") as file:
    cells = json.load(file)["cells"]
scope = {}
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), sys.argv[1], "exec"), scope)
"#;

/// Returns a run of two targets.
fn run_of_two(place: &Place) -> PathBuf {
    let next = "[config.sqlite.next]\nextends = \"base\"\n";
    let plan = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\", \"l.x\"]") + SQLITE + next;
    place.run(&plan, &["--quiet"]).expect_code(0).run_directory()
}

/// Returns a path within the repository.
fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_notebooks_run() {
    let Some(python) = tool_or_test_is_skipped("polars", "ASSAY_TEST_POLARS") else {
        return;
    };

    let place = Place::new();
    let run = run_of_two(&place);

    // The notebooks find the program as a user's shell does.
    let program_folder = Path::new(ASSAY).parent().unwrap();
    let path = format!("{}:{}", program_folder.display(), std::env::var("PATH").unwrap());
    let notebooks = entries(&in_repository("docs/examples/notebooks"));
    assert_eq!(notebooks.len(), 3);
    for notebook in notebooks {
        let mut command = Command::new(&python);
        command.args(["-B", "-c", NOTEBOOK]).arg(&notebook);
        command.env("PYTHONPATH", in_repository("python")).env("PATH", &path);
        let output = command.env("ASSAY_RUN", &run).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {stderr}", notebook.display());
    }
}

#[test]
fn python_reads_the_tables_of_a_run() {
    let place = Place::new();
    let run = run_of_two(&place);
    let mut python = Command::new("python3");
    python.args(["-B", "-c", SCRIPT]).arg(&run).arg(ASSAY);
    python.env("PYTHONPATH", in_repository("python")).current_dir(place.path());
    let Ok(output) = python.output() else {
        say_skipped("python3 is missing");
        return;
    };

    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "read 4\n");
}
