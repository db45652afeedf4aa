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

    // A run of far too much does not begin.
    place.assay(&["run", "plan.toml", "--set", "clients=[100]"]).expect_code(2).expect_in_stderr(
        &["what the plan loads needs about ", "`--data DIR`", "`assay run --ignore-space`"],
    );
}

#[test]
fn the_last_run_of_a_plan_with_fewer_rows_says_how_long_each_step_takes() {
    let place = Place::new();
    let small = format!("{}{SQLITE}", workload(20_000, 10_000, QUICK, STEPS));
    let run = place.run(&small, &["--repeats", "1"]).expect_code(0).run_directory();
    let run = run.file_name().unwrap().to_str().unwrap();

    let large = format!("{}{SQLITE}", workload(2_000_000, 1_000_000, QUICK, STEPS));
    place.write("large.toml", &large);
    let found = place.assay(&["check", "large.toml"]).expect_code(0);
    assert_steps_end_with(&found.stdout, ", as in that run");
    found.expect_in_stdout(&[&format!("that run: `results/{run}`, the last of plan `test`")]);

    // A plan with another name has no run.
    place.write("other.toml", &large.replace("\"test\"", "\"other\""));
    let assumed = place.assay(&["check", "other.toml"]).expect_code(0);
    assert_steps_end_with(&assumed.stdout, ", assumed");
    assumed.expect_in_stdout(&["assumed: the engine loads 60,000 rows/s", "`--like RUN`"]);

    let like = ["check", "other.toml", "--like", &format!("results/{run}")];
    let expected = place.assay(&like).expect_code(0);
    assert_steps_end_with(&expected.stdout, ", as in that run");
    assert!(!expected.stdout.contains("assumed"), "{expected}");

    place
        .assay(&["check", "large.toml", "--like", "nowhere"])
        .expect_code(2)
        .expect_in_stderr(&["nowhere"]);
}

fn assert_steps_end_with(text: &str, end: &str) {
    for step in ["l.i0", "l.x", "l.i1"] {
        let line = text.lines().find(|line| line.trim_start().starts_with(step));
        assert!(line.is_some_and(|line| line.ends_with(end)), "{step}: {text}");
    }
}

#[test]
fn a_plan_says_how_fast_its_engine_works() {
    let place = Place::new();
    let rates = "rates = { load = \"2M\", index = \"9M\", insert = { 1 = \"50k\" } }\n";
    let plan = format!("{rates}{}{SQLITE}", workload(2_000_000, 1_000_000, QUICK, STEPS));
    place.write("plan.toml", &plan);

    let expected = place.assay(&["check", "plan.toml"]).expect_code(0);
    assert_steps_end_with(&expected.stdout, ", by `rates`");
    assert!(!expected.stdout.contains("assumed"), "{expected}");
}

#[test]
fn a_plan_for_another_machine_is_checked_against_its_description() {
    let place = Place::new();
    let plan = format!(
        "{}{SQLITE}[build.pg]\npostgres = \"distribution\"\n[config.postgres.base]\n\
         cpus = \"0-63\"\nset.shared_buffers = \"100GB\"\n",
        workload(1_000, 1_000, QUICK, STEPS)
    );
    place.write("plan.toml", &plan);
    let host = |cpus: &str, free_bytes: u64| {
        format!(
            "{{\"host\": {{\"facts\": [[\"cpu_online_list\", \"{cpus}\"], \
             [\"data_fs_free_bytes\", \"{free_bytes}\"]], \"cpu_count\": 64, \
             \"memory_total_bytes\": 64000000000}}, \"warnings\": []}}"
        )
    };
    place.write("large.json", &host("0-63", 900_000_000_000));
    place.write("full.json", &host("0-63", 1_000));
    place.write("small.json", &host("0-31", 900_000_000_000));

    let check = |file: &str| place.assay(&["check", "plan.toml", "--host", file, "--only", "pg.*"]);
    check("large.json")
        .expect_code(0)
        .expect_in_stdout(&["900 GB free on that host"])
        .expect_in_stderr(&["is more than the 64.0 GB of memory of that host"]);
    check("full.json").expect_code(1).expect_in_stdout(&["; too much: only"]);
    check("small.json").expect_code(2).expect_in_stderr(&["`cpus` lists 32-63"]);
    check("plan.toml").expect_code(2).expect_in_stderr(&["does not describe a machine"]);

    // What this machine prints is such a description.
    let own = place.assay(&["host", "--format", "json"]).expect_code(0).stdout;
    place.write("own.json", &own);
    let all = place.assay(&["check", "plan.toml", "--host", "own.json", "--only", "lite.*"]);
    all.expect_code(0).expect_in_stdout(&["free on that host"]);
}
