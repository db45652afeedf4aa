//! Steps of the key-value sequence that are not in its usual list, on each library.

use std::path::PathBuf;

use serde_json::Value;

use super::{builds, cell, counter, json, place_with_libraries, sequence, setting};
use crate::place::Place;
use crate::show_json::{Shown, number};

const WRITE_RATE: &str = "write-rate = \"1MiB/s\"";

/// A run of one sequence on each library, whose steps are all valid.
struct RunOnEach {
    /// The folder of the run, which is removed at the end of the test.
    _place: Place,
    libraries: Vec<PathBuf>,
    run: PathBuf,
    shown: Shown,
}

impl RunOnEach {
    /// Runs a plan without its builds. Returns `None` if no library is here: the test is skipped.
    fn of(plan: &str) -> Option<Self> {
        let (place, libraries) = place_with_libraries()?;
        let ended = place.run(&(plan.to_owned() + &builds(&libraries)), &[]).expect_code(0);
        let run = ended.run_directory();
        let shown = Shown::read(&place, &run);
        shown.assert_all_valid();
        Some(Self { _place: place, libraries, run, shown })
    }

    /// Returns the target of each library.
    fn targets(&self) -> impl Iterator<Item = String> {
        (0..self.libraries.len()).map(|library| format!("b{library}.small"))
    }

    /// Returns what a target recorded of a step, with its number before its name: `01-fillseq`.
    fn step(&self, target: &str, directory: &str) -> Value {
        json(&cell(&self.run, target).join("steps").join(directory).join("step.json"))
    }
}

#[test]
fn deleted_keys_stay_deleted_on_each_library() {
    let steps = [
        "fillseq",
        "deleteseq",
        "deleterandom",
        "readrandom",
        "fwdrange",
        "revrange",
        "flush",
        "multireadrandom",
        "readwhilewriting",
        "fwdrange.2",
        "deleterandom.2",
        "overwritesome",
        "deleterange",
        "revrange.2",
        "readwhilewriting.2",
        "flush.2",
        "fwdrange.3",
    ];
    let more = format!("{WRITE_RATE}\nverify-share = 1.0\nstep.deleterandom.deletes = 9000");
    let Some(ran) = RunOnEach::of(&sequence(20_000, &steps, &more)) else {
        return;
    };

    for target in ran.targets() {
        for (step, kind, deletes) in [
            ("deleteseq", "delete", 2000),
            ("deleterandom", "delete", 9000),
            ("deleterange", "delete_range", 20),
        ] {
            let operations = &ran.shown.row(&target, step)["ops"][kind];
            assert_eq!((&operations["count"], &operations["failed"]), (&deletes.into(), &0.into()));
        }

        // Of 20000 keys, a tenth and 9000 random ones leave 0.9 * e^-0.45.
        let step = ran.step(&target, "03-deleterandom");
        let counted = &step["checks"][0];
        let left: u32 = counted["found"].as_str().unwrap().parse().unwrap();
        assert!(counted["what"] == "keys" && (11_300..11_700).contains(&left), "{counted}");
    }
}

#[test]
fn values_are_merged_on_each_library() {
    let steps = [
        "fillseq",
        "mergerandom",
        "readrandom",
        "fwdrange",
        "deleterandom",
        "readwhilemerging",
        "multireadwhilemerging",
        "revrangewhilemerging",
        "flush",
        "multireadrandom",
    ];
    // The merging client may begin late on a busy machine.
    let more = format!(
        "{WRITE_RATE}\nverify-share = 1.0\nread-keys = \"zipfian(0.99)\"\n\
         step.readwhilemerging.time = \"500ms\""
    );
    let Some(ran) = RunOnEach::of(&sequence(5_000, &steps, &more)) else {
        return;
    };

    for target in ran.targets() {
        for step in ["mergerandom", "readwhilemerging"] {
            let merges = &ran.shown.row(&target, step)["ops"]["merge"];
            assert!(number(&merges["count"]) > 0.0 && merges["failed"] == 0, "{merges}");
        }
        let (operator, source) = setting(&cell(&ran.run, &target), "[CFOptions] merge_operator");
        assert!(operator.contains("PutOperator") && source == "config", "{operator}");
    }
}

#[test]
fn only_steps_that_merge_refuse_the_configs_own_operator() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let builds = builds(&libraries[..1]) + "merge_operator = \"uint64add\"\n";
    let without_merges = sequence(100, &["fillseq", "readrandom"], "") + &builds;
    place.run(&without_merges, &[]).expect_code(0);
    let with_merges = sequence(100, &["fillseq", "mergerandom"], "") + &builds;
    let ended = place.run(&with_merges, &[]).expect_code(1);
    assert!(
        ended.stderr.contains("the steps that merge need the operator `put`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn merged_numbers_are_added_up_on_each_library() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps =
        ["fillseq", "mergerandom", "readrandom", "fwdrangewhilemerging", "flush", "revrange"];
    let more = format!("{WRITE_RATE}\nmerge-operator = \"uint64add\"");
    let plan = sequence(5_000, &steps, &more).replace("value-size = 100\n", "");
    let ended = place.run(&(plan + &builds(&libraries)), &[]).expect_code(0);
    let run = ended.run_directory();
    Shown::read(&place, &run).assert_all_valid();

    for library in 0..libraries.len() {
        let target = cell(&run, &format!("b{library}.small"));
        let (operator, _) = setting(&target, "[CFOptions] merge_operator");
        assert!(operator.contains("UInt64Add"), "{operator}");
        let step = json(&target.join("steps/02-mergerandom/step.json"));
        let checks = step["checks"].as_array().unwrap();
        let has = |what: &str| checks.iter().any(|check| check["what"] == what);
        assert!(has("sum of all values") && has("values written"), "{checks:?}");
    }
}

#[test]
fn a_mixgraph_runs_on_each_library_and_is_checked() {
    let steps =
        ["fillseq", "flush", "mixgraph", "mixgraph.2", "fwdrange", "deleterandom", "mixgraph.3"];
    let more = "verify-share = 1.0\nstep.\"mixgraph.2\".model = \"all_random\"\n\
                step.mixgraph.mix = [0.4, 0.3, 0.3]";
    let Some(ran) = RunOnEach::of(&sequence(20_000, &steps, more)) else {
        return;
    };

    for target in ran.targets() {
        let row = ran.shown.row(&target, "mixgraph");
        let count = |kind: &str| {
            let operations = &row["ops"][kind];
            assert_eq!(operations["failed"], 0, "{row}");
            number(&operations["count"])
        };
        let (gets, puts, scans) = (count("get"), count("put"), count("scan"));
        let all = gets + puts + scans;
        for (found, share) in [(gets, 0.4), (puts, 0.3), (scans, 0.3)] {
            // Five standard deviations.
            let deviation = f64::sqrt(share * (1.0 - share) / all);
            assert!((found / all - share).abs() < 5.0 * deviation, "{row}");
        }
    }
}

#[test]
fn keys_are_loaded_through_files_on_each_library() {
    let steps = ["fillsst", "readrandom", "fwdrange", "overwrite", "deleterandom", "flush"];
    let Some(ran) = RunOnEach::of(&sequence(20_000, &steps, "verify-share = 1.0")) else {
        return;
    };

    for target in ran.targets() {
        let operations = &ran.shown.row(&target, "fillsst")["ops"];
        assert_eq!(
            (&operations["put"]["count"], &operations["ingest"]["count"]),
            (&20_000.into(), &1.into())
        );

        // The only file went to the last level.
        let read = ran.step(&target, "02-readrandom");
        let files = counter(&read, "counters_before", "level_file_count.6").map(number);
        assert_eq!(files, Some(1.0), "{target}");
    }
}

#[test]
fn synchronous_writes_are_synced_one_by_one() {
    let steps = ["fillseq", "overwritesome", "overwritesome.sync", "deleterandom"];
    let more = "step.\"overwritesome.sync\".sync = true\nstep.deleterandom.sync = true";
    // Clients would share syncs.
    let plan = sequence(1_000, &steps, more).replace("clients = [2]", "clients = [1]");
    let Some(ran) = RunOnEach::of(&plan) else {
        return;
    };

    for target in ran.targets() {
        let syncs =
            |step| number(&ran.shown.row(&target, step)["metrics"]["log_fsyncs_per_commit"]);
        // The library rounds the number of syncs.
        assert!(syncs("overwritesome") < 0.1, "{}", syncs("overwritesome"));
        for step in ["overwritesome.sync", "deleterandom"] {
            assert!((0.9..=1.1).contains(&syncs(step)), "{step}: {}", syncs(step));
        }
    }
}

#[test]
fn the_mixes_of_ycsb_run_on_each_library_and_are_checked() {
    let steps = [
        "fillseq", "flush", "ycsb_a", "ycsb_b", "ycsb_c", "ycsb_f", "ycsb_d", "ycsb_e", "fwdrange",
    ];
    let mixes = [
        ("ycsb_a", "get", "put"),
        ("ycsb_f", "get", "read_modify_write"),
        ("ycsb_d", "get", "put"),
        ("ycsb_e", "scan", "put"),
    ];

    // Some operations of each kind, on a busy machine too.
    let times = mixes.map(|(step, ..)| format!("step.{step}.time = \"300ms\"\n")).concat();
    let more = format!("verify-share = 1.0\n{times}");
    let Some(ran) = RunOnEach::of(&sequence(20_000, &steps, &more)) else {
        return;
    };

    for target in ran.targets() {
        for (step, read, write) in mixes {
            let row = ran.shown.row(&target, step);
            for kind in [read, write] {
                let operations = &row["ops"][kind];
                assert!(number(&operations["count"]) > 0.0, "{row}");
                assert_eq!(operations["failed"], 0, "{row}");
            }
        }
    }
}

#[test]
fn clients_keep_a_rate_on_each_library() {
    let steps = ["fillseq", "readrandom", "readwhilewriting", "ycsb_a", "overwrite"];
    let Some(ran) = RunOnEach::of(&sequence(2_000, &steps, "rate = 200")) else {
        return;
    };

    for target in ran.targets() {
        for (step, kinds) in [
            ("readrandom", &["get"][..]),
            ("readwhilewriting", &["get"]),
            ("ycsb_a", &["get", "put"]),
            ("overwrite", &["put"]),
        ] {
            let row = ran.shown.row(&target, step);
            // On a busy machine, the unmeasured writer may miss its own rate by more.
            if step != "readwhilewriting" {
                let sla = (&row["sla"]["kind"], &row["sla"]["target"]);
                assert_eq!(sla, (&kinds[0].into(), &400.0.into()));
            }

            // Two clients for a tenth of a second.
            let operations = kinds.iter().map(|kind| &row["ops"][kind]);
            assert!(operations.clone().all(|of_kind| of_kind["scheduled"] == true), "{row}");
            let offered: f64 = operations.map(|of_kind| number(&of_kind["offered"])).sum();
            assert_eq!(offered, 40.0, "{target} {step}");
        }
    }
}

#[test]
fn transactions_lose_no_update_on_each_library() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    // Few keys, so that the clients meet.
    let steps =
        ["fillseq", "randomtransaction", "overwritesome", "randomtransaction.2", "readrandom"];
    let more = "verify-share = 1.0\nstep.randomtransaction.transaction-keys = 3\n\
                step.randomtransaction.lock-timeout = \"1ms\"\n\
                step.\"randomtransaction.2\" = { transaction-sets = 5, set-snapshot = true }";
    let kinds = ["pessimistic", "optimistic", "none"];
    let configs = kinds.map(|kind| {
        format!("[config.rocksdb.{kind}]\nextends = \"small\"\ntransactions = \"{kind}\"\n")
    });
    let targets = "[[target]]\nconfigs = [\"pessimistic\", \"optimistic\", \"none\"]\n";
    let plan = sequence(5_000, &steps, more) + &builds(&libraries) + &configs.concat() + targets;
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();

    for library in 0..libraries.len() {
        for kind in ["pessimistic", "optimistic"] {
            let target = format!("b{library}.{kind}");
            for (place, step) in [(2, "randomtransaction"), (4, "randomtransaction.2")] {
                let transactions = &shown.row(&target, step)["ops"]["transaction"];
                assert!(number(&transactions["count"]) > 0.0, "{transactions}");
                assert_eq!(transactions["failed"], 0, "{target} {step}");

                let path = format!("steps/{place:02}-{step}/step.json");
                let record = json(&cell(&run, &target).join(path));
                let checks = record["checks"].as_array().unwrap();
                let sums = checks.iter().find(|check| check["what"] == "sum of each set").unwrap();
                assert!(sums["holds"] == true && sums["found"] != "0", "{sums}");
            }
            let (found, source) = setting(&cell(&run, &target), "transactions");
            assert_eq!((found.as_str(), source.as_str()), (kind, "assay"));
        }

        // Batches of two clients would lose updates.
        let message = format!("`randomtransaction` is not applicable to `b{library}.none`");
        let why = "does not offer transactions of several clients";
        let is_said = |line: &str| line.contains(&message) && line.contains(why);
        assert!(ended.stderr.lines().any(is_said), "{}", ended.stderr);
    }
}
