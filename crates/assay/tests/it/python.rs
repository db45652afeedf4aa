//! The Python package: it reads a run by the exports of this Assay.

use std::path::Path;
use std::process::Command;

use crate::place::{ASSAY, Place, QUICK, SQLITE, workload};
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

#[test]
fn python_reads_the_tables_of_a_run() {
    let place = Place::new();
    let next = "[config.sqlite.next]\nextends = \"base\"\n";
    let plan = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\", \"l.x\"]") + SQLITE + next;
    let run = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let mut python = Command::new("python3");
    python.args(["-B", "-c", SCRIPT]).arg(&run).arg(ASSAY);
    python.env("PYTHONPATH", package).current_dir(place.path());
    let Ok(output) = python.output() else {
        say_skipped("python3 is missing");
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "read 4\n");
}
