//! Rates that are shares of highest rates: measured first, the same for all that is compared, and kept by
//! the run.

use std::path::Path;

use serde_json::Value;

use crate::place::{POSTGRES, Place, QUICK, SQLITE};
use crate::postgres_is_here_or_test_is_skipped;
use crate::show_json::{Shown, number};

/// The same config twice.
const TWICE: &str = "[config.sqlite.next]\nextends = \"base\"\n";

/// Returns a plan of `tpcb` at a share of its highest rate, with more keys of the workload.
fn plan(keys: &str, engine: &str) -> String {
    format!(
        "name = \"test\"\n[workload.transactions]\nuse = \"tpcb\"\nwarmup = \"0s\"\ntime = \"{QUICK}\"\n\
         steps = [\"load\", \"tpcb\"]\nrate = \"40% of max\"\n{keys}\n{engine}\n"
    )
}

/// Returns the recorded rates of a run that are shares of highest rates.
fn max_rates(run: &Path) -> Vec<Value> {
    let text = fs_err::read_to_string(run.join("run.json")).unwrap();
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let json = documents.next().unwrap().unwrap();
    json["max_rates"].as_array().cloned().unwrap_or_default()
}

/// Holds each measured test to the recorded rate of its number of clients.
fn have_recorded_rates(shown: &Shown, rates: &[Value]) {
    for row in shown.rows().iter().filter(|row| row["step"] == "tpcb") {
        let of_clients = rates.iter().find(|rate| rate["clients"] == row["clients"]).unwrap();
        let asked = number(&of_clients["rate_per_s"]);
        let target = number(&row["sla"]["target"]);
        assert!((target / asked - 1.0).abs() < 1e-6, "{target} instead of {asked}: {row}");
    }
}

#[test]
fn the_slowest_target_decides_the_rate_of_all_and_a_run_keeps_it() {
    let place = Place::new();
    let text = format!("clients = [1, 2]\n{}", plan("", &format!("{SQLITE}{TWICE}")));
    let ended = place.run(&text, &["--only", "*/c1/*"]).expect_code(0);
    let ended =
        ended.expect_in_stderr(&["1 client, highest rate 1", "The rate of tpcb with 1 client is "]);
    let run = ended.run_directory();
    assert!(run.join("cells/lite.base/c1/u1/cell.json").is_file());
    assert!(!run.join("cells/lite.base/c2").exists());

    let rates = max_rates(&run);
    let [rate] = &rates[..] else { panic!("{rates:?}") };
    let achieved = rate["achieved"].as_array().unwrap().iter();
    let slowest = achieved.map(|achieved| number(&achieved["per_s"])).reduce(f64::min).unwrap();
    let max = number(&rate["max_per_s"]);
    assert_eq!(rate["achieved"].as_array().unwrap().len(), 2);
    assert!((max / slowest - 1.0).abs() < 1e-3, "{rate}");
    assert!((number(&rate["rate_per_s"]) / max - 0.4).abs() < 1e-3, "{rate}");

    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    assert_eq!(shown.rows().iter().filter(|row| row["step"] == "tpcb").count(), 2);
    have_recorded_rates(&shown, &rates);

    let name = run.to_str().unwrap();
    let sentence = "40% of ";
    place.assay(&["compare", name]).expect_code(0).expect_in_stdout(&[sentence, "lite."]);
    place.assay(&["show", name, "--table", "max-rates"]).expect_code(0).expect_in_stdout(&[
        "lite.base",
        "lite.next",
        "highest",
        "40%",
    ]);
    let report = fs_err::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("Rates that are shares of the highest rate"));

    // Another run has another rate, unless the plan gives it.
    let other = place.run(&text, &["--only", "lite.base/c1/*"]).expect_code(0).run_directory();
    place
        .assay(&["compare", name, other.to_str().unwrap()])
        .expect_code(2)
        .expect_in_stderr(&["each run measured its own highest rates"]);

    // More repeats run at the rate that the first ones had.
    place.assay(&["run", "--resume", name, "--repeats", "2"]).expect_code(0);
    assert_eq!(max_rates(&run), rates);
    let shown = Shown::read(&place, &run);
    assert_eq!(shown.rows().iter().filter(|row| row["step"] == "tpcb").count(), 4);
    have_recorded_rates(&shown, &rates);
}

#[test]
fn a_highest_rate_that_the_plan_gives_is_not_measured() {
    let place = Place::new();
    let ended = place.run(&plan("max = { 1 = 500, 2 = 800 }", SQLITE), &["--set", "clients=[2]"]);
    let run = ended.expect_code(0).run_directory();
    assert!(!run.join("cells/lite.base/c2/u1").exists());

    let rates = max_rates(&run);
    let [rate] = &rates[..] else { panic!("{rates:?}") };
    assert_eq!((number(&rate["max_per_s"]), number(&rate["rate_per_s"])), (800.0, 320.0));
    have_recorded_rates(&Shown::read(&place, &run), &rates);

    place.write("plan.toml", &plan("", SQLITE));
    place.assay(&["check", "plan.toml"]).expect_code(0).expect_in_stdout(&[
        "1 of which measures the highest rates",
        "40% of what the slowest target achieves",
    ]);
    place
        .assay(&["find", "plan.toml", "--step", "tpcb", "--p99", "20ms"])
        .expect_code(2)
        .expect_in_stderr(&["the rate of step `tpcb` is a share of the highest one"]);
}

#[test]
fn a_test_of_sysbench_and_its_variants_have_one_highest_rate() {
    let place = Place::new();
    let text = format!(
        "name = \"test\"\n[workload.sysbench]\nrows = 500\nwarmup = \"0s\"\nread-time = \"{QUICK}\"\n\
         steps = [\"load\", \"point-query\"]\nrate = \"20% of max\"\n[workload.sysbench.variant.low]\n\
         [workload.sysbench.variant.high]\nrate = \"50% of max\"\n{SQLITE}\n"
    );
    let run = place.run(&text, &[]).expect_code(0).run_directory();
    // The two differ only in their shares.
    assert!(run.join("cells/lite.base/low/c1/u1").is_dir());
    assert!(!run.join("cells/lite.base/high/c1/u1").exists());

    let rates = max_rates(&run);
    let [low, high] = &rates[..] else { panic!("{rates:?}") };
    assert_eq!(low["max_per_s"], high["max_per_s"]);
    let ratio = number(&high["rate_per_s"]) / number(&low["rate_per_s"]);
    assert!((ratio - 2.5).abs() < 0.01, "{rates:?}");
    for row in Shown::read(&place, &run).rows().iter().filter(|row| row["step"] == "point-query") {
        let rate = rates.iter().find(|rate| rate["variant"] == row["variant"]).unwrap();
        let (target, asked) = (number(&row["sla"]["target"]), number(&rate["rate_per_s"]));
        assert!((target / asked - 1.0).abs() < 1e-6, "{row}");
    }
}

#[test]
fn cells_whose_highest_rate_no_cell_measured_are_left_out() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    // No machine has so many huge pages.
    let broken = "[build.pg]\npostgres = \"distribution\"\n[config.postgres.base]\n\
                  set = { shared_buffers = \"900GB\", huge_pages = \"on\" }\n";
    let place = Place::new();
    let alone = place.run(&plan("", broken), &[]).expect_code(1).expect_in_stderr(&[
        "no cell measured the highest rate of `tpcb` with 1 client",
        "1 failed and 1 missing of 2 cells",
    ]);
    assert!(!alone.run_directory().join("cells/pg.base/c1/r1").exists());

    // The slowest of the others decides.
    let beside = place.run(&plan("", &format!("{broken}{SQLITE}")), &[]).expect_code(1);
    let run = beside.run_directory();
    let rates = max_rates(&run);
    assert_eq!(rates[0]["achieved"][0]["target"], "lite.base", "{rates:?}");
    let shown = Shown::read(&place, &run);
    have_recorded_rates(&shown, &rates);
    assert!(shown.rows().iter().any(|row| row["target"] == "lite.base"), "{}", shown.json);
}

#[test]
fn forms_of_transactions_run_at_a_share_of_the_slowest_on_postgres() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let forms = "[workload.transactions.variant.statements]\n[workload.transactions.variant.procedure]\n\
                 form = \"procedure\"";
    let run = place.run(&plan(forms, POSTGRES), &[]).expect_code(0).run_directory();
    let rates = max_rates(&run);
    assert_eq!(rates.len(), 2);
    assert_eq!(rates[0]["rate_per_s"], rates[1]["rate_per_s"]);
    assert_eq!(rates[0]["achieved"].as_array().unwrap().len(), 2);
    have_recorded_rates(&Shown::read(&place, &run), &rates);
}
