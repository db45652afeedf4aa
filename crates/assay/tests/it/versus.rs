//! `assay versus` and `assay init`: from nothing to a plan, and to an answer.

use std::process::Command;

use crate::fetch::Shop;
use crate::other_postgres_or_test_is_skipped;
use crate::place::{ASSAY, Ended, Place};
use crate::postgres_is_here_or_test_is_skipped;

#[test]
fn what_can_not_be_compared_says_why_and_what_can() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    shop.check(
        "
        versus sqlite | 2 | `sqlite` is the only target | `--config OPTION=VALUE` | `--aa`
        versus sqlite sqlite | 2 | `sqlite` is given twice | `assay versus --aa sqlite`
        versus mysql mariadb | 2 | `mysql` and `mariadb` are the same build
        versus sqlite --config a=1 --config a=1 | 2 | `--config 'a=1'` is given twice | `assay versus --aa sqlite`
        versus --aa sqlite null | 2 | one target with itself, but 2 targets
        versus oracle@9 sqlite | 2 | unknown product `oracle` | `postgres@17.2` | `sqlite`, `postgres`
        versus sqlit null | 2 | invalid build spec `sqlit` | `assay builds`
        versus --aa rocksdb | 2 | no build of `rocksdb` is downloaded | `rocksdb@9.9.3`
        versus sqlite null --workload kv | 2 | runs only on RocksDB, Speedb, and libraries, but the engine of `sqlite` is sqlite | `--workload insert`
        versus sqlite null --config a=1 | 2 | options of one engine | `--dry-run`
        versus sqlite --config jit | 2 | `--config 'jit'`: expected options | OPTION=VALUE
        versus --aa null --clients 0 | 2 | 0 is not in 1..=10000
        versus sqlite null --time 1m | 2 | `--time 1m` is too short | `--time 2m` | `--quick`
        versus sqlite null --set workload.insert.steps=l.i0,l.x,l.i1,l.i2,l.y | 2 | unknown step `l.y` in `workload.insert.steps` | nothing was run
        versus sqlite null --set workload.insert.steps=l.i0,l.x,l.i1,l.i2,l.y --dry-run | 2 | unknown step `l.y` in `workload.insert.steps` | nothing was run
        versus sqlite null --set workload.insert.rowz=7 --dry-run | 2 | unknown key `rowz` in `[workload.insert]` | nothing was run
        versus debian:sid/postgresql-18 postgres --dry-run | 2 | not known before its download | `assay fetch debian:sid/postgresql-18`
        versus rocksdb@1 rocksdb@9.9.3 | 2 | version 1 of rocksdb cannot be fetched | similar versions are 9.9.3
        ",
    );

    assert!(!shop.place.join("results/versus-rocksdb1-rocksdb9_9_3.toml").exists());
}

#[test]
fn the_plan_adds_repeats_as_long_as_the_time_allows() {
    let shop = Shop::new();
    let printed = |args: &str| {
        let output = shop.command(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };

    insta::assert_snapshot!(printed("versus postgres@15.3 postgres@17.2 --dry-run"));
    for (args, lines) in [
        (
            "versus postgres@15.3 postgres@17.2 --time 1h --dry-run",
            &["repeats = \"until decided\"", "time = \"60m\""] as &[&str],
        ),
        (
            "versus rocksdb@8 speedb@2 --quick --dry-run",
            &[
                "repeats = 5  ",
                "[workload.kv]",
                "keys = \"100k\"",
                "# Quick: 5 repeats",
                "[build.speedb2]",
            ],
        ),
        (
            "versus sqlite --config synchronous=full --config synchronous=off --dry-run",
            &[
                "base = \"sqlite.synchronous-full\"",
                "set.synchronous = \"off\"",
                "configs = [\"synchronous-full\", \"synchronous-off\"]",
            ],
        ),
        (
            "versus sqlite --config synchronous=off --set clients=[2] --dry-run",
            &["clients = [2]  # each number", "#   assay run PLAN\n"],
        ),
        (
            "versus --aa null --clients 1,4 --dry-run",
            &["against-itself = \"null.base\"", "clients = [1, 4]  ", "repeats = "],
        ),
    ] {
        let plan = printed(args);
        for line in lines {
            assert!(plan.contains(line), "no `{line}` in {plan}");
        }
        shop.place.write("plan.toml", &plan);
        // What is not fetched is all that is wrong with it.
        let checked = shop.command("check plan.toml").output().unwrap();
        let told = String::from_utf8(checked.stderr).unwrap();
        assert!(checked.status.success() || told.contains("not downloaded"), "{told}");
    }

    assert!(shop.calls().is_empty(), "nothing is fetched");
}

#[test]
fn what_is_missing_is_fetched_and_the_plan_stays_to_be_edited() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    shop.offer_rocksdb("10.2.1");
    let plan = "results/versus-rocksdb9_9_3-rocksdb10_2_1.toml";

    // These libraries are no more than a header.
    shop.check(&format!(
        "versus rocksdb@9.9.3 rocksdb@10.2.1 --quick | 2 | downloading version 10.2.1 | plan: {plan} | quick: 5 repeats | {plan}:"
    ));
    let text = fs_err::read_to_string(shop.place.join(plan)).unwrap();
    assert!(text.contains(&format!("#   assay run {plan}\n")), "{text}");
    let calls = shop.calls().len();
    shop.check("versus rocksdb@9 rocksdb-9.9.3 | 2 | are the same build, `rocksdb-9.9.3`");
    shop.check("versus --dry-run rocksdb rocksdb@9.9.3 | 0 | > rocksdb = \"rocksdb-10.2.1\"");
    assert_eq!(shop.calls().len(), calls);
}

#[test]
fn a_first_plan_passes_check_and_is_not_overwritten() {
    let shop = Shop::new();
    shop.check(
        "
        init | 0 | > plan.toml | next: edit the plan; assay check plan.toml; assay run plan.toml
        check plan.toml | 0 | > sqlite.full against sqlite.base | > 2 targets x 5 repeats = 10 cells
        init | 2 | plan.toml | does not overwrite plans | `-o FILE`
        init postgres@17.2 -o pg.toml | 0 | next: edit the plan; assay fetch postgres@17.2; assay check pg.toml
        init rocksdb@9.9.3 --workload insert -o none/pg.toml | 2 | cannot write the plan
        ",
    );

    let text = fs_err::read_to_string(shop.place.join("pg.toml")).unwrap();
    assert!(text.contains("postgres = \"postgres@17.2\""), "{text}");
}

/// Checks what a comparison ended with.
#[track_caller]
fn expect_answer(place: &Place, ended: Ended, targets: [&str; 2]) {
    let run = place.join(ended.stdout.lines().last().unwrap());
    let report = run.join("report.html");
    let address = format!("report: file://{}\n", report.display());
    assert!(report.is_file() && ended.stderr.contains(&address), "{ended}");
    let nexts = ended.stderr.matches("next: ").count();

    // A change that is shown can be bundled.
    assert!((2..=3).contains(&nexts), "{ended}");
    for target in targets {
        assert!(ended.stdout.contains(target), "{ended}");
    }

    let run = fs_err::read_to_string(run.join("run.json")).unwrap();
    assert!(run.contains("results/versus-"), "the plan is in the record");
    place.assert_nothing_is_left();
}

/// Changes of a plan of `versus` with which its cells are short: all else stays as it is written.
const SHORT: [&str; 4] = [
    "workload.insert.initial-rows=2000",
    "workload.insert.read-write-time=\"100ms\"",
    "workload.insert.step.\"l.i1\".time=\"100ms\"",
    "workload.insert.step.\"l.i2\".time=\"100ms\"",
];

/// Returns arguments followed by changes of the plan, each with its option.
fn with_sets<'a>(arguments: &[&'a str], sets: &[&'a str]) -> Vec<&'a str> {
    let mut all = arguments.to_vec();
    for set in sets {
        all.extend(["--set", set]);
    }
    all
}

#[test]
fn two_configs_of_sqlite_are_compared() {
    let place = Place::new();
    let args = ["versus", "sqlite", "--quick", "--config", "synchronous=off cache_size=-4000"];
    let args = with_sets(&with_sets(&args, &SHORT), &["repeats=2"]);
    let ended = place.assay(&args).expect_code(0);
    expect_answer(&place, ended, ["sqlite.base", "sqlite.synchronous-off_cache_size--4000"]);
}

#[test]
fn servers_at_urls_are_targets_and_no_password_is_printed() {
    let place = Place::new();
    let urls = [
        "postgresql://bench@db-a.example/ib",
        "postgresql://bench@db-b.example/ib?sslmode=require",
    ];

    let args = [&["versus", "--clients", "16", "--time", "30m", "--dry-run"][..], &urls].concat();
    let plan = place.assay(&args).expect_code(0).stdout;
    for line in [
        "base = \"db-a_example_ib.base\"",
        "[build.db-a_example_ib]\nurl = \"postgresql://bench@db-a.example/ib\"\n",
        "[build.db-b_example_ib]\nurl = \"postgresql://bench@db-b.example/ib?sslmode=require\"\n",
        "\n[config.postgres.base]\n",
        "clients = [16]",
    ] {
        assert!(plan.contains(line), "no `{line}` in\n{plan}");
    }

    assert!(!plan.contains("shared_buffers") && !plan.contains("\nreuse"), "{plan}");
    place.assay(&["init", urls[0], "-o", "first.toml"]).expect_code(0);
    let first = fs_err::read_to_string(place.join("first.toml")).unwrap();
    assert!(first.contains("url = \"postgresql://bench@db-a.example/ib\""), "{first}");

    let secret = "hunter2";
    let [pg, other] =
        ["postgresql", "oracle"].map(|it| format!("{it}://me:{secret}@db.example/ib"));
    for args in [
        vec!["versus", &pg, "postgres"],
        vec!["versus", &other, "postgres"],
        vec!["init", &pg],
        vec!["versus", urls[0], &pg, "--dry-run"],
    ] {
        let refused = place.assay(&args).expect_code(2);
        assert!(!format!("{refused}").contains(secret), "{refused}");
        refused.expect_in_stderr(&["://me:***@db.example/ib` has a password", "leave it out"]);
    }

    let mixed = place.assay(&["versus", urls[0], "sqlite"]).expect_code(2);
    mixed.expect_in_stderr(&["servers at URLs"]);
    let config = ["versus", urls[0], urls[1], "--config", "work_mem=1MB"];
    place.assay(&config).expect_code(2).expect_in_stderr(&["remove `--config`"]);
}

#[test]
fn two_builds_of_postgres_are_compared() {
    let Some(other) = other_postgres_or_test_is_skipped() else {
        return;
    };

    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let assay = |args: &[&str]| {
        let mut command = Command::new(ASSAY);
        command.env("ASSAY_BUILDS", place.join("store"));
        place.spawn_as(command, args).wait().expect_code(0)
    };

    let other = format!("dir:{other}=other");
    let args = ["versus", "postgres", &other, "--quick", "--config", "fsync=off", "--dry-run"];

    // `versus` itself runs a plan to its end on SQLite.
    let plan = "results/versus-builds.toml";
    place.write(plan, &assay(&args).stdout);
    let args = with_sets(&with_sets(&["run", plan], &SHORT), &["repeats=1"]);

    expect_answer(&place, assay(&args), ["postgres.fsync-off", "other.fsync-off"]);
}
