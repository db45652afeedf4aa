//! `assay find`: the highest rate at which a step meets its bounds.

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Ended, Place, entries, eventually};
use crate::show_json::Shown;

/// Two targets whose operations succeed at once.
const PLAN: &str = r#"
name = "test"
clients = [2]
[workload.insert]
initial-rows = 1000
steps = ["l.i0", "l.x", "l.i1", "settle", "qr100"]
step."l.i1".time = "300ms"
step."l.i1".rows-per-commit = 1
step."qr100".time = "300ms"
[build.none]
null = "bundled"
[config.null.a]
[config.null.b]
"#;

fn find(place: &Place, plan: &str, more: &[&str]) -> Ended {
    place.write("plan.toml", plan);
    place.assay(&[&["find", "plan.toml", "--data", "data"], more].concat())
}

fn searches(place: &Place) -> Vec<Value> {
    let shown = Shown::read(place, &place.only_run());
    shown.json["searches"].as_array().unwrap().clone()
}

#[test]
fn a_rate_that_meets_its_bound_is_the_answer() {
    let place = Place::new();
    // A wait for a processor at the end of the step must not cost 5% of the rate.
    let plan = PLAN.replacen("300ms", "8s", 1);
    let args = ["--step", "l.i1", "--p99", "10s", "--to", "1k"];
    find(&place, &plan, &args).expect_code(0).expect_in_stdout(&[
        "Highest rate of l.i1 with p99 of at most 10,000 ms",
        "none.a sustains 2,000/s in l.i1 with p99 of at most 10,000 ms, the highest rate allowed by --to.",
    ]);

    place.assert_nothing_is_left();
    let page = fs_err::read_to_string(place.only_run().join("report.html")).unwrap();
    assert!(page.contains("<h1>none.a sustains 2,000/s in l.i1"));

    let shown = Shown::read(&place, &place.only_run());
    shown.assert_all_valid();
    // Each target has one rate, which is tried twice. The steps after the searched one are left out.
    assert_eq!(shown.rows().len(), 2 * 2 * 3);
    for search in searches(&place) {
        assert_eq!(search["state"], serde_json::json!({"not_limited": 2000.0}));
        let [trial] = &search["trials"].as_array().unwrap()[..] else {
            panic!("{search}");
        };
        assert_eq!((&trial["rate"], &trial["verdict"]), (&2000.0.into(), &"sustained".into()));
        assert!(trial["achieved"].is_f64(), "{search}");
    }
}

#[test]
fn an_interrupted_search_is_resumed() {
    let place = Place::new();
    place.write("plan.toml", PLAN);
    // No response is that fast.
    let args = [
        "find",
        "plan.toml",
        "--data",
        "data",
        "--step",
        "l.i1",
        "--p99",
        "0.001ms",
        "--only",
        "none.a",
    ];

    let mut running = place.spawn(&args);
    let cells = place.join("results");
    eventually("the third rate is tried", || {
        running.must_run("its third rate");
        entries(&cells).iter().any(|run| entries(&run.join("cells/none.a")).len() > 2)
    });

    running.signal(Signal::INT);
    let goes_on = "The search for none.a has not ended: assay run --resume RUN continues it.";
    running.wait().expect_code(130).expect_in_stdout(&[goes_on]);

    let run = place.only_run();
    let before = searches(&place)[0]["trials"].as_array().unwrap().len();

    // A profile of each rate so far may be added.
    let resumed = place.assay(&["run", "--resume", run.to_str().unwrap(), "--profile"]);
    resumed
        .expect_code(0)
        .expect_in_stdout(&["none.a sustains no rate in l.i1 with p99"])
        .expect_in_stderr(&["none.a with 2 clients: ", "/s misses a bound, next "]);

    let search = &searches(&place)[0];
    let trials = search["trials"].as_array().unwrap();
    assert!(trials.len() > before, "{search}");
    let is_missed = |trial: &Value| trial["verdict"]["missed"].is_array();
    let (last, rated) = trials.split_last().unwrap();
    assert!(rated.iter().all(is_missed), "{search}");
    assert_eq!(last["rate"], Value::Null);
    place.assert_nothing_is_left();

    // It has ended: there is nothing to resume.
    let again = place.assay(&["run", "--resume", run.to_str().unwrap()]);
    again.expect_code(0).expect_in_stderr(&["nothing to measure"]);
}

#[test]
fn what_fails_ends_its_own_search_only() {
    let place = Place::new();
    // The database has no space for the first step.
    let plan = format!(
        "{PLAN}[build.lite]\nsqlite = \"bundled\"\n[config.sqlite.full]\nset = {{ max_page_count = 20 }}\n"
    );
    let args = ["--step", "l.i1", "--p99", "1us", "--to", "100k", "--only"];
    let both = [&args[..], &["none.a", "--only", "lite.full"]].concat();
    let ended = find(&place, &plan, &both).expect_code(1).expect_in_stdout(&[
        "none.a sustains no rate in l.i1",
        "The search for lite.full stopped: rate-100000 cannot be judged: ",
    ]);

    let shown = Shown::read(&place, &place.only_run());
    let cells = shown.json["run"]["cells"].as_array().unwrap();
    let of = |target: &str| cells.iter().filter(|cell| cell["target"] == target).count();
    assert_eq!((of("none.a"), of("lite.full")), (7, 1));

    // It was measured once, though the other search had further rates.
    let begun = ended.stderr.matches(": lite.full, variant rate-100000").count();
    assert_eq!(begun, 1, "{ended}");
    place.assert_nothing_is_left();
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let place = Place::new();
    let refused = |plan: &str, more: &[&str], texts: &[&str]| {
        find(&place, plan, more).expect_code(2).expect_in_stderr(texts);
    };

    let p99 = ["--p99", "10ms", "--step"];
    refused(
        PLAN,
        &[&p99[..], &["l.i7"]].concat(),
        &["the plan has no step `l.i7`", "`l.i0`, `l.x`"],
    );
    refused(
        PLAN,
        &[&p99[..], &["l.x"]].concat(),
        &["step `l.x` cannot have a rate", "`l.i1`, `qr100`"],
    );
    refused(
        PLAN,
        &[&p99[..], &["qr100"]].concat(),
        &["the plan gives step `qr100` a rate", "--to"],
    );
    refused(PLAN, &["--step", "l.i1", "--lag", "1s"], &["`none.a` has no replica", "replicas = 1"]);

    // A target that is not searched needs no replica.
    let replica = format!(
        "{PLAN}[build.pg]\npostgres = \"/nowhere\"\n[config.postgres.base]\nreplicas = 1\n"
    );
    let lag = ["--step", "l.i1", "--lag", "1s"];
    refused(&replica, &lag, &["`none.a` has no replica"]);
    refused(&replica, &[&lag[..], &["--only", "pg.base"]].concat(), &["/nowhere"]);

    refused(PLAN, &["--step", "l.i1"], &["--p99", "--lag"]);
    refused(
        PLAN,
        &["--step", "l.i1", "--p99", "10"],
        &["expected a duration such as `500us`, `20ms`"],
    );

    let variants = format!("{PLAN}\n[workload.insert.variant.x]\n");
    refused(&variants, &[&p99[..], &["l.i1"]].concat(), &["the plan has variants"]);
}
