//! Designed experiments and tunings of a library whose writes are slow unless a variable of its
//! environment says otherwise.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::place::{Place, entries};
use crate::rocksdb_or_test_is_skipped;

/// A library with RocksDB's C API, whose writes count to `SLOW` first.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
void rocksdb_write(void *db, void *options, void *batch, char **error) {
    static int slow = -1;
    if (slow < 0) slow = atoi(getenv("SLOW"));
    void (*write)(void *, void *, void *, char **) = dlsym(RTLD_NEXT, "rocksdb_write");
    for (volatile int count = 0; count < slow; count++);
    write(db, options, batch, error);
}
"#;

/// Returns a place with a plan of these steps and of three factors, of which `SLOW` alone has an
/// effect: its base's level makes a write many times as slow. `None` without RocksDB.
fn place_with_plan(steps: &str) -> Option<Place> {
    let libraries = rocksdb_or_test_is_skipped()?;
    let place = Place::new();
    let folder = place.join("slow");
    fs_err::create_dir(&folder).unwrap();
    compile(&folder, &libraries[0]);

    let library = folder.join("librocksdb.so.9.9.3");
    let plan = format!(
        "repeats = 3\n[workload.kv]\nkeys = 4000\nsteps = [{steps}]\nread-time = \"200ms\"\n\
         [build.mine]\nrocksdb = '{}'\n[factors.env]\nSLOW = [100000, 0]\nONE = [0, 1]\nTWO = [0, 1]\n",
        library.display()
    );
    fs_err::write(place.join("plan.toml"), plan).unwrap();
    Some(place)
}

fn compile(folder: &Path, real: &Path) {
    let source = folder.join("library.c");
    fs_err::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(folder.join("librocksdb.so.9.9.3"));
    compiler.arg(source).arg("-Wl,--no-as-needed").arg(real);
    compiler.arg(format!("-Wl,-rpath,{}", real.parent().unwrap().display()));
    assert!(compiler.status().unwrap().success());
}

/// Returns what `assay compare --by design` says of the only run.
fn effects(place: &Place) -> Value {
    let args = ["compare", "latest", "--by", "design", "--format", "json"];
    let ended = place.assay(&args).expect_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    json["effects"].clone()
}

/// Returns the effect of a factor on the throughput of `fillseq`.
fn effect_of<'e>(effects: &'e Value, factor: &str) -> &'e Value {
    let rows = effects["rows"].as_array().unwrap();
    let is_it = |row: &&Value| {
        row["factor"] == factor && row["step"] == "fillseq" && row["metric"] == "throughput"
    };
    rows.iter().find(is_it).unwrap()
}

#[test]
fn the_factor_that_matters_is_found_and_the_opposite_targets_make_it_clear() {
    let Some(place) = place_with_plan("\"fillseq\"") else {
        return;
    };
    let checked = place.assay(&["check", "plan.toml"]).expect_code(0);
    checked.expect_in_stdout(&["screening of 3 factors in 4 targets", "SLOW: ONE x TWO"]);

    place.assay(&["run", "plan.toml"]).expect_code(0);
    let screened = effects(&place);
    assert_eq!(screened["design"]["targets"], 4);
    assert_eq!(screened["design"]["clarity"], "mixed");
    let may_be = &screened["design"]["confounding"][0];
    assert_eq!(may_be["factor"], "SLOW");
    assert_eq!(may_be["may_also_be"][0]["interaction"], serde_json::json!(["ONE", "TWO"]));
    let slow = effect_of(&screened, "SLOW");
    assert_eq!(slow["verdict"], "faster", "{slow}");
    assert!(slow["ratio"].as_f64().unwrap() > 3.0, "{slow}");

    let refused = place.assay(&["augment", "latest"]).expect_code(2);
    refused.expect_in_stderr(&["the recorded plan has `env`"]);
    place.assay(&["augment", "latest", "--trust"]).expect_code(0);
    let augmented = effects(&place);
    assert_eq!(augmented["design"]["targets"], 8);
    assert_eq!(augmented["design"]["clarity"], "all-clear");
    assert_eq!(effect_of(&augmented, "SLOW")["verdict"], "faster");

    let again = place.assay(&["augment", "latest", "--trust"]).expect_code(2);
    again.expect_in_stderr(&["the run already has the opposite targets (fold-over)"]);
    let unknown = place.assay(&["compare", "latest", "--by", "nosuch"]).expect_code(2);
    unknown.expect_in_stderr(&["unknown factor `nosuch`"]);
}

#[test]
fn a_tuning_ends_with_the_only_option_that_matters() {
    let Some(place) = place_with_plan("\"fillseq\", \"readrandom\"") else {
        return;
    };
    let tune = ["tune", "plan.toml", "--step", "fillseq", "--keep", "readrandom >= 0.01"];
    // The options without an effect may take as many repeats as they get.
    let tuned = place.assay(&[&tune[..], &["--repeats-max", "6"]].concat()).expect_code(0);
    tuned.expect_in_stdout(&[
        "With SLOW=0, fillseq is ",
        "A second trial, with new servers and databases, confirms it.",
        "all effects: assay compare ",
    ]);

    // Nothing is left to measure.
    let tunings = entries(&place.join("results"));
    let tuning = tunings.iter().find(|path| path.join("tune.json").is_file()).unwrap();
    let name = tuning.to_str().unwrap();
    // The variables of the environment come with the log.
    let refused = place.assay(&["tune", "--resume", name]).expect_code(2);
    refused.expect_in_stderr(&["the recorded plan has `env`", "add `--trust`"]);
    let again = place.assay(&["tune", "--resume", name, "--trust"]).expect_code(0);
    assert!(!again.stderr.contains("race: "), "{again}");
}

#[test]
fn a_tuning_refuses_a_plan_without_factors_and_steps_that_it_lacks() {
    let place = Place::new();
    fs_err::write(
        place.join("plan.toml"),
        "[workload.insert]\nsteps = [\"l.i0\"]\n[build.lite]\nsqlite = \"bundled\"\n",
    )
    .unwrap();
    let without = place.assay(&["tune", "plan.toml", "--step", "l.i0"]).expect_code(2);
    without.expect_in_stderr(&["the plan has no `[factors]`"]);

    let factors = ["--set", "factors.set.cache_size=[1000,2000]"];
    let unknown = [&["tune", "plan.toml", "--step", "l.i9"][..], &factors].concat();
    place.assay(&unknown).expect_code(2).expect_in_stderr(&["no step `l.i9`"]);

    let rated = ["--step", "l.i0", "--set", "workload.insert.step.'l.i0'.rate=10"];
    let rated = [&["tune", "plan.toml"][..], &rated, &factors].concat();
    place.assay(&rated).expect_code(2);
}
