//! The plan's commands before and after each step.

use std::path::Path;

use serde_json::Value;

use crate::place::{NULL, Place, QUICK, SQLITE, workload};
use crate::rocksdb_or_test_is_skipped;

/// Returns a plan of two steps on SQLite with these keys at its top.
fn plan(keys: &str) -> String {
    keys.to_owned() + "\n" + &workload(100, 100, QUICK, "steps = [\"l.i0\", \"l.x\"]") + SQLITE
}

/// Returns what the record of a step says about its commands.
fn commands(cell: &Path, step: &str) -> Vec<Value> {
    let path = cell.join("steps").join(step).join("step.json");
    let step: Value = serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap();
    step["commands"].as_array().unwrap().clone()
}

#[test]
fn commands_run_around_each_step_and_the_record_and_the_report_have_what_they_printed() {
    let place = Place::new();
    let keys = "before-step = 'echo begin $ASSAY_STEP of $ASSAY_TARGET; ls $ASSAY_CELL $ASSAY_DATA'\n\
                after-step = '''\necho end\nhead -c 100000 /dev/zero | tr '\\0' 'x'\n'''";
    let run = place.run(&plan(keys), &[]).expect_code(0).run_directory();
    let cell = run.join("cells/lite.base/c1/r1");
    for (step, name) in [("01-l.i0", "l.i0"), ("02-l.x", "l.x")] {
        let [before, after] = commands(&cell, step).try_into().unwrap();
        assert_eq!(before["key"], "before-step");
        assert_eq!(before["exit_code"], 0);
        let output = before["output"].as_str().unwrap();
        assert!(output.starts_with(&format!("begin {name} of lite.base\n")), "{output}");
        assert!(output.contains("cell.json"), "{output}");

        assert_eq!(after["key"], "after-step");
        assert_eq!(after["output_bytes"], 100_004);
        let kept = after["output"].as_str().unwrap();
        assert!(kept.len() == 64 << 10 && kept.ends_with("xxx"), "{}", kept.len());
    }

    assert!(!cell.join("step-command.log").exists());

    let show = ["show", run.to_str().unwrap(), "--table", "commands"];
    let shown = place.assay(&show).expect_code(0).stdout;
    assert!(shown.contains("Commands before and after the step"), "{shown}");
    assert!(shown.contains("begin l.x of lite.base"), "{shown}");
    let page = fs_err::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("begin l.x of lite.base"));
}

#[test]
fn a_command_that_fails_fails_the_cell_with_its_output() {
    let place = Place::new();
    for key in ["before-step", "after-step"] {
        let keys = format!("{key} = 'echo no such disk; exit 3'");
        place
            .run(&plan(&keys), &[])
            .expect_code(1)
            .expect_in_stderr(&[&format!("`{key}` failed: exit status: 3"), "no such disk"]);
    }
}

#[test]
fn a_run_with_commands_is_resumed_only_by_who_trusts_them() {
    let place = Place::new();
    for key in ["before-step = 'true'", "after-step = 'true'"] {
        let run = place.run(&plan(key), &[]).expect_code(0).run_directory();
        let resume = ["run", "--resume", run.to_str().unwrap(), "--repeats", "2"];
        let name = key.split(' ').next().unwrap();
        place
            .assay(&resume)
            .expect_code(2)
            .expect_in_stderr(&[&format!("the recorded plan has `{name}`"), "add `--trust`"]);
        place.assay(&[&resume[..], &["--trust"]].concat()).expect_code(0);
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let place = Place::new();
    let keys = "step-command-timeout = '1s'\nbefore-step = 'sleep 1000 & sleep 1000'";
    // The place finds what is left running.
    place
        .run(&plan(keys), &[])
        .expect_code(1)
        .expect_in_stderr(&["did not end within 1 s", "`step-command-timeout`"]);
}

#[test]
fn what_a_command_leaves_running_ends_with_it() {
    let place = Place::new();
    let plan = "before-step = 'sleep 1000 & echo $!'\n".to_owned()
        + &workload(100, 100, QUICK, "steps = [\"l.i0\"]")
        + NULL;
    place.run(&plan, &[]).expect_code(0);
}

#[test]
fn commands_also_run_around_the_steps_of_a_library() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let plan = format!(
        "before-step = 'ls $ASSAY_DATA; echo pid $ASSAY_PID; echo $GREETING'\nname = \"test\"\n\
         [workload.kv]\nkeys = 1000\nsteps = [\"fillseq\"]\n\
         [build.rocks]\nrocksdb = '{}'\n[config.rocksdb.a]\nenv.GREETING = \"hello\"\n",
        libraries[0].display()
    );

    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    let [before] = commands(&run.join("cells/rocks.a/c1/r1"), "01-fillseq").try_into().unwrap();
    let output = before["output"].as_str().unwrap();

    // The command runs in the cell's process, which has the config's environment.
    assert!(output.contains("\ndb\n") && output.ends_with("hello\n"), "{output}");
}
