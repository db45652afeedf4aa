//! `assay compare` by factor, by step, and with a base for each engine or build.

use serde_json::Value;

use crate::compare::{TWICE, compared, load, measured, rows};
use crate::place::Place;

/// Returns configs with all combinations of two factors.
fn configs_of_two_factors() -> String {
    let mut configs = String::new();
    for journal in ["wal", "delete"] {
        for synchronous in ["off", "full"] {
            configs += &format!(
                "[config.sqlite.{journal}_{synchronous}]\n\
                 set = {{ journal_mode = \"{journal}\", synchronous = \"{synchronous}\" }}\n"
            );
        }
    }
    configs
}

#[test]
fn effects_of_factors_are_shown_and_missing_combinations_are_named() {
    let place = Place::new();
    let plan = load(2, 50, &configs_of_two_factors());

    // The config that is not one of the matrix.
    let only = ["--quiet", "--only", "lite.wal_*", "--only", "lite.delete_*"];
    let ended = place.run(&plan, &only).expect_code(0);
    let run = ended.run_directory().to_str().unwrap().to_owned();

    let base = ["--base", "lite.wal_off"];
    let by = |names: &[&str], format: &str| {
        let mut args = vec![run.as_str(), "--format", format];
        args.extend(base);
        args.extend(names.iter().flat_map(|name| ["--by", name]));
        compared(&place, &args)
    };

    by(&["?"], "table").expect_code(0).expect_in_stdout(&[
        "journal_mode of sqlite: wal, delete; in 2 combinations of the other factors",
        "synchronous of sqlite: 0, 2; in 2 combinations of the other factors",
    ]);
    by(&["all"], "table").expect_code(0).expect_in_stdout(&[
        "The effects of 2 factors, all else equal",
        "Effects on throughput",
        "journal_mode: wal -> delete",
        "Throughput by combination of the other factors",
    ]);

    let json: Value =
        serde_json::from_str(&by(&["synchronous"], "json").expect_code(0).stdout).unwrap();
    let rows = json["effects"]["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["factor"] == "synchronous"), "{json}");
    assert_eq!(rows[0]["pairing"], "paired");
    assert_eq!(rows[0]["values"].as_array().unwrap().len(), 2);

    // A verdict does not depend on what else is asked.
    let of_all: Value = serde_json::from_str(&by(&["all"], "json").expect_code(0).stdout).unwrap();
    let mut same = of_all["effects"]["rows"].as_array().unwrap().clone();
    same.retain(|row| row["factor"] == "synchronous");
    assert_eq!(*rows, same);

    let with_metric = |metric: &str| {
        let args = [&run, "--by", "synchronous", "--metric", metric];
        compared(&place, &[&args[..], &base].concat())
    };
    with_metric("maxop")
        .expect_code(0)
        .expect_in_stdout(&["Effects on maxop", "maxop: longest response"]);
    for (metric, says) in [
        ("cpupqq", "did you mean `cpupq`?"),
        ("lsm_sz", "none of the compared steps has the metric `lsm_sz`"),
    ] {
        with_metric(metric).expect_code(2).expect_in_stderr(&[says]);
    }

    let unknown = by(&["synchronus"], "table").expect_code(2);
    unknown.expect_in_stderr(&[
        "unknown factor `synchronus`",
        "the most similar first: synchronous (0, 2); journal_mode (wal, delete)",
    ]);

    let ended = place
        .run(&plan, &["--quiet", "--only", "lite.wal_*", "--only", "lite.delete_full"])
        .expect_code(0);
    let part = ended.run_directory().to_str().unwrap().to_owned();
    let gap = compared(&place, &[&part, "--base", "lite.wal_off", "--by", "all"]).expect_code(2);
    gap.expect_in_stderr(&["one is missing", "journal_mode=delete, synchronous=0"]);

    // From another base, each of these targets differs in one factor.
    compared(&place, &[&part, "--base", "lite.wal_full", "--by", "all"])
        .expect_code(0)
        .expect_in_stdout(&[
            "journal_mode: wal -> delete",
            "synchronous: 2 -> 0",
            "known only next to the base's values of the other factors: journal_mode, synchronous",
        ]);
}

#[test]
fn steps_of_a_cell_are_compared_in_pairs_by_repeat() {
    let place = Place::new();
    let steps =
        r#"["l.i0", "l.x", "settle", "qr0.pre", "qp0.pre", "l.i1", "settle.2", "qr0", "qp0"]"#;
    let plan = format!(
        "name = \"test\"\nrepeats = 2\n[workload.insert]\ninitial-rows = 500\nwrite-rows = 500\n\
         read-write-time = \"100ms\"\nsteps = {steps}\n\
         [build.lite]\nsqlite = \"bundled\"\n[config.sqlite.base]\n{TWICE}"
    );
    let run = measured(&place, &plan);

    let found = rows(&place, &[&run, "--by-step", ".pre"]);
    let of = |key: &str| {
        let mut values: Vec<&str> = found.iter().filter_map(|row| row[key].as_str()).collect();
        values.dedup();
        values
    };

    assert_eq!(of("target"), ["X"]);
    assert_eq!(of("variant"), ["lite.base", "lite.next"]);
    let first = &found[0];
    assert_eq!(first["step"], "qr0");
    assert_eq!(first["pairing"], "paired");
    assert_eq!(first["values"].as_array().unwrap().len(), 2);

    compared(&place, &[&run, "--by-step", "qr0.pre=qr0"]).expect_code(0).expect_in_stdout(&[
        "qr0 compared with qr0.pre",
        "Steps of a cell always run in the same order",
    ]);

    for (pattern, says) in [
        ("qr0=l.i1", "do not count the same operations"),
        ("qr0=qp", "the run has no step `qp`"),
        (".post", "no pair of steps `X.post` and `X`"),
        ("qr0", "write two steps"),
        ("qr0=qr0", "compared with itself"),
    ] {
        let refused = compared(&place, &[&run, "--by-step", pattern]).expect_code(2);
        refused.expect_in_stderr(&[says]);
    }

    let two = ["--by-step", ".pre", "--by-step", "qr0=qp0"];
    let refused = compared(&place, &[&[run.as_str()][..], &two].concat()).expect_code(2);
    refused.expect_in_stderr(&["`X.pre` and `qr0` are given"]);
}

#[test]
fn what_a_plan_names_a_factor_is_one_though_no_setting_tells() {
    let place = Place::new();
    let plan = load(
        2,
        50,
        "[config.sqlite.next]\nextends = \"base\"\nfactors = { disk = \"ram\" }\n\
         [build.other]\nsqlite = \"bundled\"\nfactors = { compiler = \"clang\" }\n",
    );

    let run = measured(&place, &plan);
    let by = |name: &str| compared(&place, &[&run, "--by", name]);
    by("?").expect_code(0).expect_in_stdout(&[
        "compiler of sqlite: not set, clang; in 2 combinations of the other factors; changes together with build",
        "disk of sqlite: not set, ram; in 2 combinations of the other factors",
    ]);

    let disk = by("disk").expect_code(0);
    disk.expect_in_stdout(&["disk: not set -> ram", "compiler=clang"]);
    by("compilr").expect_code(2).expect_in_stderr(&[
        "unknown factor `compilr`",
        "the most similar first: compiler (not set, clang)",
    ]);
}

#[test]
fn targets_of_each_engine_or_build_are_compared_with_a_base_of_their_own() {
    let place = Place::new();
    let other = "[build.null]\nnull = \"bundled\"\n[config.null.a]\n[config.null.b]\n";

    let run = measured(&place, &load(2, 50, &(TWICE.to_owned() + other)));
    let bases = ["--base", "sqlite=lite.next", "--base", "null=null.a"];
    let of = |format: &str, bases: &[&str]| {
        let mut args = vec![run.as_str(), "--format", format];
        args.extend(bases);
        compared(&place, &args)
    };

    of("table", &bases)
        .expect_code(0)
        .expect_in_stdout(&["lite.base compared with lite.next", "null.b compared with null.a"]);

    let csv = of("csv", &bases).expect_code(0).stdout;
    assert_eq!(csv.matches("base,target,").count(), 1, "{csv}");
    assert!(csv.contains(",lite.next,lite.base,"), "{csv}");
    assert!(csv.contains(",null.a,null.b,"), "{csv}");
    let json: Value = serde_json::from_str(&of("json", &bases).expect_code(0).stdout).unwrap();
    assert_eq!(json["groups"][1]["compared"]["base"], "null.a");

    assert_eq!(json["across"]["compared"]["base"], "lite.next");
    of("table", &bases).expect_in_stdout(&["Throughput relative to lite.next, all targets"]);

    let one = of("table", &bases[2..]).expect_code(0);
    one.expect_in_stderr(&["no `--base` is given for them: lite.base, lite.next"]);

    for (bases, says) in [
        (["--base", "lite.base", "--base", "null.a"], "each `--base` must name its group"),
        (["--base", "null=null.a", "--base", "lite=null.a"], "`lite` has no target `null.a`"),
        (["--base", "null=null.a", "--base", "pg=null.a"], "no engine or build `pg`"),
        (["--base", "null=null.a", "--base", "null=null.b"], "given twice for the group `null`"),
    ] {
        of("table", &bases).expect_code(2).expect_in_stderr(&[says]);
    }
}

#[test]
fn a_plan_may_have_a_base_for_each_engine() {
    let place = Place::new();
    let other = "[build.null]\nnull = \"bundled\"\n[config.null.a]\n[config.null.b]\n";
    let bases = "base = { sqlite = \"lite.next\", null = \"null.b\" }\n";
    let run = measured(&place, &(bases.to_owned() + &load(2, 50, &(TWICE.to_owned() + other))));

    compared(&place, &[&run]).expect_code(0).expect_in_stdout(&[
        "lite.base compared with lite.next",
        "null.a compared with null.b",
        "Throughput relative to lite.next, all targets",
    ]);
    let shown = place.assay(&["show", &run, "--summary"]).expect_code(0).stdout;
    let places = [
        "lite.base relative to lite.next\n",
        "null.a relative to null.b\n",
        "Throughput relative to lite.next, all targets",
    ]
    .map(|title| shown.find(title));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "groups first: {shown}");

    // One base instead of the plan's.
    let one = compared(&place, &[&run, "--base", "null.a"]).expect_code(0);
    one.expect_in_stdout(&["3 targets compared with null.a"]);

    let gate = compared(&place, &[&run, "--gate", "--threshold", "1000"]);
    assert!([0, 3, 4].contains(&gate.code.unwrap_or(-1)), "{}", gate.stderr);
    place
        .assay(&["report", &run, "--base", "sqlite=lite.base", "--base", "null=null.a"])
        .expect_code(0);
    let page = fs_err::read_to_string(std::path::Path::new(&run).join("report.html")).unwrap();
    assert!(page.contains("id=\"matrix-null\"") && page.contains("relative to lite.base"));
}
