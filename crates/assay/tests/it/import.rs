//! `assay import`: results of other tools are runs like any other.

use crate::place::{Place, QUICK, SQLITE, workload};

const SYSBENCH: &str = include_str!("../../../import/tests/fixtures/sysbench");
const VMSTAT: &str = include_str!("../../../import/tests/fixtures/vmstat");

const CAMPAIGN: &str = "name = \"old\"\nengine = \"postgres\"\ncpus = 48\n\
    [[files]]\npath = \"{run}/x.{target}/sb.o.{step}.dop{clients}\"\n\
    [[files]]\npath = \"{run}/x.{target}/sb.vm.{step}.dop{clients}\"\ninterval = 1\n";

/// Writes the files of two targets, the second of which is faster.
fn write_files(place: &Place, date: &str) {
    let faster = SYSBENCH
        .replace("163577375 (495676.70 per sec.)", "173577375 (525978.90 per sec.)")
        .replace(
            "total:                           163577375",
            "total:                           173577375",
        );
    for (target, text) in [("pg16.base", SYSBENCH), ("pg17.base", &faster)] {
        let folder = format!("old/{date}/x.{target}");
        fs_err::create_dir_all(place.join(&folder)).unwrap();
        place.write(&format!("{folder}/sb.o.read-only.range100.dop40"), text);
        place.write(&format!("{folder}/sb.vm.read-only.range100.dop40"), VMSTAT);
    }
}

fn import(place: &Place, dates: &[&str]) {
    for date in dates {
        write_files(place, date);
    }
    place.write("old.toml", CAMPAIGN);
    let args = ["import", "old", "--campaign", "old.toml", "--out", "imported"];
    place.assay(&args).expect_code(0).expect_in_stdout(&["imported", "2 cells, 2 steps"]);
}

#[test]
fn an_imported_run_is_compared_without_intervals_and_verdicts() {
    let place = Place::new();
    import(&place, &["2025-03-18"]);

    place.assay(&["show", "imported"]).expect_code(0).expect_in_stdout(&["495,677", "one repeat"]);
    let compared = place.assay(&["compare", "imported"]);
    compared.expect_code(0).expect_in_stdout(&["measured once", "1.06"]);
    place.assay(&["report", "imported", "-o", "report.html"]).expect_code(0);

    let exported = place
        .assay(&["export", "imported", "--format", "csv", "--table", "metrics"])
        .expect_code(0);
    let has = |metric: &str| exported.stdout.lines().any(|line| line.contains(metric));
    assert!(has(",csps_per_s,") && has(",cpups_pct,") && has(",qps_per_s,"), "{exported}");
    // What the files lack is not there, and not zero.
    assert!(!has(",rmbps") && !has("client_cpu") && !has(",p99_"), "{exported}");
    let latencies = ["export", "imported", "--format", "csv", "--table", "latencies"];
    let latencies = place.assay(&latencies).expect_code(0);
    assert_eq!(latencies.stdout.lines().count(), 1, "{latencies}");
}

#[test]
fn dates_of_a_campaign_are_a_history() {
    let place = Place::new();
    import(&place, &["2025-03-18", "2025-03-19", "2025-03-20"]);
    let history = place.assay(&["history", "imported"]).expect_code(0);
    history.expect_in_stdout(&["3 runs", "2025-03-18", "2025-03-20"]);
}

#[test]
fn beside_a_run_of_assay_the_method_is_named() {
    let place = Place::new();
    import(&place, &["2025-03-18"]);
    let plan = format!("{}{SQLITE}", workload(200, 1, QUICK, "steps = [\"l.i0\"]"));
    let own = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let report = ["report", "imported", own.to_str().unwrap(), "-o", "both.html"];
    let both = place.assay(&report);
    let text = fs_err::read_to_string(place.join("both.html")).unwrap_or_default();
    assert!(
        text.contains("measured in another way") || both.stderr.contains("same work"),
        "{both}"
    );
}

#[test]
fn what_can_not_be_read_is_an_error_with_its_place() {
    let place = Place::new();
    write_files(&place, "2025-03-18");
    place.write("old/2025-03-18/x.pg16.base/sb.o.scan.dop40", VMSTAT);
    place.write(
        "old.toml",
        &CAMPAIGN.replacen("\n[[files]]", "\n[[files]]\nformat = \"sysbench\"", 1),
    );
    let args = ["import", "old", "--campaign", "old.toml", "--out", "imported"];
    place.assay(&args).expect_code(1).expect_in_stderr(&[
        "error: 2025-03-18/x.pg16.base/sb.o.scan.dop40: it is a file of vmstat, not of sysbench",
    ]);

    place.write("wrong.toml", "[[files]]\npath = \"{what}\"\n");
    place
        .assay(&["import", "old", "--campaign", "wrong.toml"])
        .expect_code(2)
        .expect_in_stderr(&["unknown placeholder `{what}`", "docs/import.md"]);
    place.assay(&["import", "old", "--guess"]).expect_code(0).expect_in_stdout(&["[[files]]"]);
}
