//! The expectations of `assay check` about a run: by the speed that it assumes, and by what an
//! earlier run took.

use crate::place::{Place, QUICK, SQLITE, workload};

/// The steps of a run whose times an estimate can use.
const STEPS: &str = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\"]";

#[test]
fn a_plan_for_which_the_disk_is_too_small_is_no_success() {
    let place = Place::new();
    place.write("plan.toml", &format!("{}{SQLITE}", workload(4_000_000_000, 1_000, QUICK, STEPS)));
    place.assay(&["check", "plan.toml"]).expect_code(1).expect_in_stdout(&["; too much: only"]);
}

#[test]
fn an_earlier_run_with_fewer_rows_says_how_long_each_step_takes() {
    let place = Place::new();
    let small = format!("{}{SQLITE}", workload(20_000, 10_000, QUICK, STEPS));
    let run = place.run(&small, &["--repeats", "1"]).expect_code(0).run_directory();

    place.write("large.toml", &format!("{}{SQLITE}", workload(2_000_000, 1_000_000, QUICK, STEPS)));
    let assumed = place.assay(&["check", "large.toml"]).expect_code(0);
    assumed.expect_in_stdout(&["assumed: the engine loads 60,000 rows/s", "`--like RUN`"]);

    let like = ["check", "large.toml", "--like", run.to_str().unwrap()];
    let expected = place.assay(&like).expect_code(0);
    for step in ["l.i0", "l.x", "l.i1"] {
        let line = expected.stdout.lines().find(|line| line.trim_start().starts_with(step));
        assert!(line.is_some_and(|line| line.ends_with(", as in that run")), "{expected}");
    }
    assert!(!expected.stdout.contains("assumed"), "{expected}");

    place
        .assay(&["check", "large.toml", "--like", "nowhere"])
        .expect_code(2)
        .expect_in_stderr(&["nowhere"]);
}
