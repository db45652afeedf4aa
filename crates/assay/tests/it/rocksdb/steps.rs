//! Steps of the key-value sequence that are not in its usual list, on each library.

use super::{
    SMALL, WRITE_RATE, builds, cell, counter, json, place_with_libraries, sequence, setting,
};
use crate::show_json::{Shown, number};

#[test]
fn deleted_keys_stay_deleted_on_each_library() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

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
    let plan = sequence(20_000, &steps, &more) + &builds(&libraries);
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();

    for library in 0..libraries.len() {
        let target = format!("b{library}.small");
        for (step, kind, deletes) in [
            ("deleteseq", "delete", 2000),
            ("deleterandom", "delete", 9000),
            ("deleterange", "delete_range", 20),
        ] {
            let operations = &shown.row(&target, step)["ops"][kind];
            assert_eq!((&operations["count"], &operations["failed"]), (&deletes.into(), &0.into()));
        }

        // Of 20000 keys, a tenth and 9000 random ones leave 0.9 * e^-0.45.
        let step = json(&cell(&run, &target).join("steps/03-deleterandom/step.json"));
        let counted = &step["checks"][0];
        let left: u32 = counted["found"].as_str().unwrap().parse().unwrap();
        assert!(counted["what"] == "keys" && (11_300..11_700).contains(&left), "{counted}");
    }
}

#[test]
fn values_are_merged_on_each_library() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

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
    let more = format!("{WRITE_RATE}\nverify-share = 1.0\nread-keys = \"zipfian(0.99)\"");
    let plan = sequence(5_000, &steps, &more) + &builds(&libraries);
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();

    for library in 0..libraries.len() {
        let target = format!("b{library}.small");
        for step in ["mergerandom", "readwhilemerging"] {
            let merges = &shown.row(&target, step)["ops"]["merge"];
            assert!(number(&merges["count"]) > 0.0 && merges["failed"] == 0, "{merges}");
        }
        let (operator, source) = setting(&cell(&run, &target), "[CFOptions] merge_operator");
        assert!(operator.contains("PutOperator") && source == "config", "{operator}");
    }

    // Without such a step, the config's operator stays as it is; with one, another is refused.
    let other = SMALL.to_owned() + "merge_operator = \"uint64add\"\n";
    let plan = sequence(100, &["fillseq", "readrandom"], "") + &builds(&libraries[..1]);
    place.run(&plan.replace(SMALL, &other), &[]).expect_code(0);
    let plan = sequence(100, &["fillseq", "mergerandom"], "") + &builds(&libraries[..1]);
    let ended = place.run(&plan.replace(SMALL, &other), &[]).expect_code(1);
    assert!(
        ended.stderr.contains("the steps that merge need the operator `put`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_mixgraph_runs_on_each_library_and_is_checked() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps =
        ["fillseq", "flush", "mixgraph", "mixgraph.2", "fwdrange", "deleterandom", "mixgraph.3"];
    let more = "verify-share = 1.0\nstep.\"mixgraph.2\".model = \"all_random\"\n\
                step.mixgraph.mix = [0.4, 0.3, 0.3]";
    let plan = sequence(20_000, &steps, more) + &builds(&libraries);
    let ended = place.run(&plan, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();

    for library in 0..libraries.len() {
        let row = shown.row(&format!("b{library}.small"), "mixgraph");
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
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps = ["fillsst", "readrandom", "fwdrange", "overwrite", "deleterandom", "flush"];
    let plan = sequence(20_000, &steps, "verify-share = 1.0") + &builds(&libraries);
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();

    for library in 0..libraries.len() {
        let target = format!("b{library}.small");
        let operations = &shown.row(&target, "fillsst")["ops"];
        assert_eq!(
            (&operations["put"]["count"], &operations["ingest"]["count"]),
            (&20_000.into(), &1.into())
        );

        // The only file went to the last level.
        let read = json(&cell(&run, &target).join("steps/02-readrandom/step.json"));
        let files = counter(&read, "counters_before", "level_file_count.6").map(number);
        assert_eq!(files, Some(1.0), "{target}");
    }
}

#[test]
fn synchronous_writes_are_synced_one_by_one() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps = ["fillseq", "overwritesome", "overwritesome.sync", "deleterandom"];
    let more = "step.\"overwritesome.sync\".sync = true\nstep.deleterandom.sync = true";
    let plan = sequence(1_000, &steps, more).replace("clients = [2]", "clients = [1]")
        + &builds(&libraries);
    let ended = place.run(&plan, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();

    for library in 0..libraries.len() {
        let target = format!("b{library}.small");
        let syncs = |step| number(&shown.row(&target, step)["metrics"]["log_fsyncs_per_commit"]);
        // The library rounds the number of syncs.
        assert!(syncs("overwritesome") < 0.1, "{}", syncs("overwritesome"));
        for step in ["overwritesome.sync", "deleterandom"] {
            assert!((0.9..=1.1).contains(&syncs(step)), "{step}: {}", syncs(step));
        }
    }
}
