//! Compares runs whose repeats share one load with runs in which each repeat loads: the time that a
//! run takes, and the results of the steps after the load.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Setup;
use super::measure::{Bound, in_turn, judge_all};
use super::run::{Run, number};

/// The repeats of each run.
const REPEATS: usize = 5;

/// The steps after the load.
const STEPS: [&str; 3] = ["l.i1", "qr100", "qp100"];

/// Standard errors by which equal results may differ. With three steps on each of two engines, a
/// benchmark in a hundred fails by chance.
const ERRORS_MAX: f64 = 3.3;

/// Two engines, by their tables in a plan.
const ENGINES: [(&str, &str); 2] = [
    (
        "sqlite",
        "[build.lite]\nsqlite = \"bundled\"\n[config.sqlite.base.set]\njournal_mode = \"wal\"\nsynchronous = \"off\"\n",
    ),
    (
        "postgres",
        "[build.pg]\npostgres = \"distribution\"\n[config.postgres.base.set]\nfsync = \"off\"\nshared_buffers = \"256MB\"\n",
    ),
];

/// A run that was measured.
struct Measured {
    seconds: f64,
    /// The throughput of each step in each repeat.
    throughputs: [Vec<f64>; STEPS.len()],
}

/// A run whose repeats share a load, and one in which each repeat loads.
struct Round {
    shared: Measured,
    anew: Measured,
}

/// Runs both in turn on each engine.
pub fn run(setup: &Setup) -> Result<bool> {
    let mut passed = true;
    for (engine, target) in ENGINES {
        println!("{engine}:");
        let pairs = in_turn(
            setup.round_count,
            || measure(setup, "\"run\"", target),
            || measure(setup, "false", target),
        )?;
        let rounds: Vec<Round> =
            pairs.into_iter().map(|(shared, anew)| Round { shared, anew }).collect();
        passed &= judge_rounds(&rounds);
    }
    Ok(passed)
}

/// Runs a plan with five repeats.
fn measure(setup: &Setup, reuse: &str, target: &str) -> Result<Measured> {
    let plan = format!(
        r#"
name = "reuse"
repeats = {REPEATS}
reuse = {reuse}
[workload.insert]
initial-rows = "1M"
write-rows = "40k"
read-write-time = "2s"
steps = ["l.i0", "l.x", "settle", "l.i1", "qr100", "qp100"]
{target}"#
    );
    let run = Run::on_ranks(setup, 0, &plan, &[0])?;
    let shown = run.json("show")?;
    let throughputs = STEPS.map(|step| throughputs(&shown, step));
    Ok(Measured {
        seconds: number(&run.record()?, "/invocations/0/elapsed_ns")? as f64 / 1e9,
        throughputs: throughputs
            .into_iter()
            .collect::<Result<Vec<_>>>()?
            .try_into()
            .ok()
            .context("a step has no results")?,
    })
}

/// Returns the throughput of a step in each repeat.
fn throughputs(shown: &Value, step: &str) -> Result<Vec<f64>> {
    let rows = shown["rows"].as_array().context("`assay show` lists no steps")?;
    let of_step = rows.iter().filter(|row| row["step"] == step);
    let name = if step.starts_with('q') { "qps" } else { "ips" };
    let values = of_step.map(|row| row["metrics"][name].as_f64());
    values.map(|value| value.with_context(|| format!("`{step}` has no `{name}`"))).collect()
}

/// Prints the ratios, and judges the results of the steps. Returns false if the two kinds of runs
/// differ in one of them.
fn judge_rounds(rounds: &[Round]) -> bool {
    let ratios: Vec<[f64; 3]> = rounds
        .iter()
        .map(|Round { shared, anew }| [shared.seconds, anew.seconds, shared.seconds / anew.seconds])
        .collect();
    let bounds = [
        ("seconds with one load", Bound::None),
        ("seconds with five loads", Bound::None),
        ("ratio of the times", Bound::AtMost(0.9)),
    ];
    let mut passed = judge_all(bounds, &ratios);

    for (number, step) in STEPS.iter().enumerate() {
        let shared = logs(rounds.iter().map(|round| &round.shared), number);
        let anew = logs(rounds.iter().map(|round| &round.anew), number);
        let error = (variance_of_mean(&shared) + variance_of_mean(&anew)).sqrt();
        let difference = mean(&shared) - mean(&anew);
        let is_within = difference.abs() <= ERRORS_MAX * error;
        passed &= is_within;
        println!(
            "{:<6} {step}: {:.3} times the throughput after loading anew, {:.1} standard errors; \
             must be at most {ERRORS_MAX}",
            if is_within { "ok" } else { "FAILED" },
            difference.exp(),
            difference.abs() / error
        );
    }
    passed
}

/// Returns the logarithms of the throughputs of a step in all repeats of some runs.
fn logs<'a>(runs: impl Iterator<Item = &'a Measured>, step: usize) -> Vec<f64> {
    runs.flat_map(|run| &run.throughputs[step]).map(|throughput| throughput.ln()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance_of_mean(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (count - 1.0) / count
}
