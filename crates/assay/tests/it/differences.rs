//! The differences between targets: before a run by what configs declare, after it by what engines
//! have.

use serde_json::Value;

use crate::place::{Place, QUICK, workload};
use crate::postgres_is_here_or_test_is_skipped;

const CONFIGS: &str = r#"
[build.lite]
sqlite = "bundled"
[config.sqlite.base]
set = { journal_mode = "wal", synchronous = "off" }
[config.sqlite.again]
set = { journal_mode = "WAL", synchronous = 0 }
[config.sqlite.mapped]
extends = "base"
set = { mmap_size = 1000000000000, synchronous = "normal" }
"#;

fn plan() -> String {
    workload(200, 100, QUICK, r#"steps = ["l.i0"]"#) + CONFIGS
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[test]
fn check_tells_in_which_options_configs_differ() {
    let place = Place::new();
    place.write("plan.toml", &plan());
    let all = place.assay(&["check", "plan.toml"]).expect_code(0).stdout;
    let (_, all) = all.split_once("differences between the configs").unwrap();
    for line in [
        "lite.again against lite.base: no difference, the two are identical",
        "synchronous: off -> normal",
        "mmap_size: (not declared) -> 1000000000000",
    ] {
        assert!(lines(all).contains(&line), "{line} in {all}");
    }

    let pair = ["check", "plan.toml", "--between", "lite.mapped", "lite.again"];
    let pair = place.assay(&pair).expect_code(0).stdout;
    assert_eq!(
        lines(&pair),
        [
            "lite.again against lite.mapped",
            "mmap_size: 1000000000000 -> (not declared)",
            "synchronous: normal -> 0",
        ]
    );

    place
        .assay(&["check", "plan.toml", "--between", "lite.base", "lite.bas"])
        .expect_code(2)
        .expect_in_stderr(&[
            "unknown target `lite.bas`",
            "`lite.base`, `lite.again`, `lite.mapped`",
        ]);
}

#[test]
fn show_tells_in_which_settings_targets_differ_and_what_they_do_not_have() {
    let place = Place::new();
    let run = place.run(&plan(), &["--quiet"]).expect_code(0).run_directory();
    let run = run.to_str().unwrap();

    let text = place.assay(&["show", run, "--all"]).expect_code(0).stdout;
    let (_, section) = text.split_once("\nWhat differs between targets\n").unwrap();
    for line in [
        "lite.again against lite.base: no difference, the two are identical",
        "synchronous: 0 -> 1",
    ] {
        assert!(lines(section).contains(&line), "{line} in {section}");
    }

    // More than the library maps: it takes what it can, and says nothing.
    let cut = "mmap_size = 1000000000000: the server has ";
    assert!(section.contains(cut), "{section}");
    assert!(text.contains("[settings::not-had]"), "{text}");

    let pair = ["show", run, "--between", "lite.again", "lite.mapped"];
    let alone = place.assay(&pair).expect_code(0).stdout;
    assert!(alone.starts_with("lite.mapped against lite.again\n"), "{alone}");
    assert!(!alone.contains("Throughput"), "{alone}");
    let json = |args: &[&str]| -> Value {
        let args = [args, &["--format", "json"]].concat();
        let text = place.assay(&args).expect_code(0).stdout;
        serde_json::from_str(&text).unwrap()
    };

    let (all, pair) = (json(&["show", run, "--all"]), json(&pair));
    let identical = &all["differences"][0];
    assert_eq!(identical["b"], "lite.again");
    assert_eq!(identical["identical"], true);
    let of_pair = &pair["differences"][0];
    assert_eq!(of_pair["a"], "lite.again");

    let synchronous = of_pair["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|setting| setting["name"] == "synchronous")
        .unwrap();

    assert_eq!(
        *synchronous,
        serde_json::json!({"name": "synchronous", "a": "0", "b": "1", "mark": "declared"})
    );

    let ignored = &of_pair["ignored"][0];
    assert_eq!(ignored["target"], "lite.mapped");
    assert_eq!(ignored["declared"], "1000000000000");
    assert_eq!(ignored["mark"], "changed");

    place
        .assay(&["show", run, "--step", "l.i1"])
        .expect_code(2)
        .expect_in_stderr(&["the run has no step `l.i1`", "available steps: `l.i0`"]);

    let step = place.assay(&["show", run, "--step", "l.i0"]).expect_code(0);
    assert!(step.stdout.contains("━━ l.i0 ━━"), "{step}");
}

#[test]
fn a_server_is_compared_with_its_files() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    place.write("base.conf", "fsync = off\nshared_buffers = 4096 # pages\nwork_mem = '8MB'\n");
    let plan = workload(500, 500, QUICK, r#"steps = ["l.i0", "l.x", "l.i1"]"#)
        + r#"
[build.pg]
postgres = "distribution"
[config.postgres.base]
file = "base.conf"
[config.postgres.large]
extends = "base"
set = { shared_buffers = "64MB", temp_buffers = "1001kB" }
"#;

    let run = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let run = run.to_str().unwrap();
    let pair = ["show", run, "--between", "pg.base", "pg.large"];
    let text = place.assay(&pair).expect_code(0).stdout;

    for line in [
        "shared_buffers: 32MB -> 64MB",
        "temp_buffers: 8MB -> 1000kB",
        "temp_buffers = 1001kB: the server has 1000kB (pg.large)",
    ] {
        assert!(lines(&text).contains(&line), "{line} in {text}");
    }
    for noise in ["data_directory", "unix_socket", "config_file", "work_mem", "fsync"] {
        assert!(!text.contains(noise), "{noise} in {text}");
    }

    let args = ["show", run, "--format", "json"];
    let json: Value = serde_json::from_str(&place.assay(&args).expect_code(0).stdout).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let metrics = &row["metrics"];
        assert!(metrics["debt_dead_rows"].is_number(), "{row}");
        // Of the 47 bytes of a row none is written without more; what is written is not known where
        // no disk is, as in memory.
        let is_known = metrics["wmbps"].is_number();
        let is_index = row["step"] == "l.x";
        assert_eq!(metrics["write_amplification"].is_number(), is_known && !is_index, "{row}");
    }
}
