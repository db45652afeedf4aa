//! Findings from figures that are made by hand: what the rules return, and what they do not.

mod alone;
mod causes;
mod caveats;
mod clients;
mod conflicts;
mod difference;
mod disk_floor;
pub(super) mod noise;
mod response;
mod swings;
mod versions;
mod voice;
mod witnesses;

use std::collections::BTreeMap;

use record::{SettingRole, Status, StepKind};

use super::case::Pair;
use super::cause::{Cause, Detail, PartOfTime};
use super::caveats::Caveat;
use super::difference::TargetDifference;
use super::explanation::Explanation;
use super::statement::{CaseFacts, Statement};
use super::*;
use crate::compare::{CompareOptions, compare};
use crate::figures::{OpFigures, Row};
use crate::settings::{Comparison, Difference, DifferenceKind};

/// One step of one target, as a test states it.
#[derive(Clone, Copy)]
struct Cost<'a> {
    target: &'a str,
    step: &'a str,
    clients: u32,
    /// Operations per second.
    rate: f64,
    metrics: &'a [(&'static str, f64)],
}

fn cost<'a>(
    target: &'a str,
    step: &'a str,
    rate: f64,
    metrics: &'a [(&'static str, f64)],
) -> Cost<'a> {
    Cost { target, step, clients: 4, rate, metrics }
}

fn kind(step: &str) -> StepKind {
    match step {
        "l.x" => StepKind::Index,
        "l.i0" | "l.i1" | "l.i2" | "overwrite" => StepKind::Load,
        _ => StepKind::Query,
    }
}

/// Returns the row of a step of 100 s. Where parts of an operation's time are given, the time is
/// what clients had for it, and the rest is in no part. A load commits 50 rows at a time.
fn row(cost: &Cost<'_>, repeat: u32) -> Row {
    let kind = kind(cost.step);
    let (throughput, main_op) = match (kind, cost.step) {
        (StepKind::Load, "overwrite") => ("ips", "put"),
        (StepKind::Load | StepKind::Index, _) => ("ips", "insert"),
        (_, "readrandom") => ("qps", "get"),
        (_, "update-index") => ("qps", "event"),
        _ => ("qps", "query"),
    };
    let mut metrics: BTreeMap<&'static str, Option<f64>> =
        cost.metrics.iter().map(|(name, value)| (*name, Some(*value))).collect();
    metrics.insert(throughput, Some(cost.rate));
    let parts = cost.metrics.iter().filter(|(name, _)| name.starts_with("op_"));
    if parts.clone().count() > 0 {
        let time = f64::from(cost.clients) * 1e6 / cost.rate;
        let known: f64 = parts.map(|(_, us)| us).sum();
        metrics.insert("op_time_us", Some(time));
        let cpu: Vec<f64> = ["op_client_cpu_us", "op_server_cpu_us"]
            .iter()
            .filter_map(|name| *metrics.get(name)?)
            .collect();
        if !cpu.is_empty() {
            let own = Some(cpu.iter().sum());
            metrics.entry("own_cpu_us_per_op").or_insert(own);
        }
        metrics.entry("op_unexplained_us").or_insert(Some((time - known).max(0.0)));
    }
    let count = (cost.rate * 100.0) as u64;
    let each = if main_op == "insert" { 50 } else { 1 };
    let ops = OpFigures {
        count: count / each,
        rows: count,
        per_second: cost.rate / each as f64,
        ..OpFigures::default()
    };
    Row {
        cell: record::CellKey::new(cost.target, None, cost.clients, repeat),
        engine: "mysql".to_owned(),
        workload: "insert".to_owned(),
        step: cost.step.to_owned(),
        kind,
        main_op: Some(main_op.to_owned()),
        group: (main_op == "event").then(|| "write".to_owned()),
        reported: true,
        status: Status::Complete,
        seconds: 100.0,
        valid: true,
        ops: BTreeMap::from([(main_op.to_owned(), ops)]),
        metrics,
        ..Row::default()
    }
}

/// Measures each once: the first target is the base.
fn single(costs: &[Cost<'_>]) -> Figures {
    Figures { rows: costs.iter().map(|cost| row(cost, 1)).collect(), ..Figures::default() }
}

/// Five repeats that took turns; each is off by less than 0.5%, and base and target not alike.
fn repeated(costs: &[Cost<'_>]) -> Figures {
    let off = [0.996, 1.003, 1.0, 0.998, 1.004, 1.001, 0.997];
    let mut rows = Vec::new();
    for repeat in 1..=5_u32 {
        for (number, cost) in costs.iter().enumerate() {
            let off = off[(repeat as usize * 3 + number * 2) % off.len()];
            let metrics: Vec<(&'static str, f64)> =
                cost.metrics.iter().map(|(name, value)| (*name, value * (2.0 - off))).collect();
            let cost = Cost { rate: cost.rate * off, metrics: &metrics, ..*cost };
            rows.push(row(&cost, repeat));
        }
    }
    Figures { rows, ..Figures::default() }
}

/// Compares figures with the first target as the base.
fn compared(figures: &Figures) -> Compared {
    let metrics = ["own_cpu_us_per_op", "response_mean", "response_p99"];
    let options = CompareOptions {
        base: figures.rows[0].cell.target.clone(),
        metrics: metrics.map(str::to_owned).to_vec(),
        ..CompareOptions::default()
    };
    compare(figures, &options)
}

fn found(figures: &Figures) -> Vec<Finding> {
    explain(figures, &compared(figures))
}

/// Applies all rules, and returns what `look` makes of each explanation.
fn explained<T>(figures: &Figures, look: impl Fn(&Explanation<'_>) -> Option<T>) -> Vec<T> {
    let compared = compared(figures);
    let index = RowIndex::new(figures);
    let context = Context::new(figures, &index, &compared);
    let cases = cases(context);
    let explanations = explanations(context, &cases);
    explanations.iter().filter_map(look).collect()
}

/// Returns the causes of all changes of throughput.
fn all_causes(figures: &Figures) -> Vec<Cause> {
    explained(figures, |it| match &it.statement {
        Statement::Change(change) => Some(change.cause.clone()),
        _ => None,
    })
}

/// Returns the cause of the only change of throughput.
#[track_caller]
fn cause(figures: &Figures) -> Cause {
    let mut causes = all_causes(figures);
    assert_eq!(causes.len(), 1, "{causes:?}");
    causes.remove(0)
}

/// Returns the first case of the only change of throughput.
#[track_caller]
fn changed_case(figures: &Figures) -> CaseFacts {
    let mut cases = explained(figures, |it| match &it.statement {
        Statement::Change(change) => Some(change.cases[0].clone()),
        _ => None,
    });
    assert_eq!(cases.len(), 1, "{cases:?}");
    cases.remove(0)
}

/// Returns the part of an operation's time that is the only cause.
#[track_caller]
fn part(figures: &Figures) -> PartOfTime {
    match cause(figures) {
        Cause::Part(part) => part,
        cause => panic!("{cause:?}"),
    }
}

/// Returns the caveats of all explanations, without those of missed rates.
fn caveats(figures: &Figures) -> Vec<Caveat> {
    let caveats = explained(figures, |it| {
        let caveats = it.caveats.iter().map(|it| it.caveat.clone());
        Some(caveats.collect::<Vec<Caveat>>())
    });
    caveats.concat()
}

/// Returns the differences in each change of one target, and whether a setting makes the change.
fn differences(figures: &Figures) -> Vec<(Vec<TargetDifference>, bool)> {
    explained(figures, |it| match &it.statement {
        Statement::Change(change) => {
            let differences = change.differences.iter();
            let differences = differences.map(|it| it.difference.clone()).collect();
            Some((differences, change.is_sure))
        }
        _ => None,
    })
}

/// Returns true where two figures are the same but for the noise of repeats.
fn is_about(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 0.02 * expected.abs()
}

/// Returns the only finding of figures, which has to be of one kind.
#[track_caller]
fn only(figures: &Figures, kind: FindingKind) -> Finding {
    let mut findings = found(figures);
    assert_eq!(kinds(&findings), [kind], "{findings:#?}");
    findings.remove(0)
}

/// Two targets that differ in versions and settings as stated: name, value of the base, value of
/// the other.
fn differing(
    base: (&str, &str),
    other: (&str, &str),
    settings: &[(&str, &str, &str)],
) -> Comparison {
    let role = |name: &str| match name {
        "log_bin" | "sync" | "sync_binlog" | "synchronous" | "synchronous_commit" => {
            Some(SettingRole::Durability)
        }
        "innodb_buffer_pool_size" => Some(SettingRole::CacheSize),
        "limit.cpus" => Some(SettingRole::Processors),
        _ => None,
    };
    let difference = |&(name, a, b): &(&str, &str, &str)| Difference {
        role: role(name),
        name: name.to_owned(),
        a: Some(a.to_owned()),
        b: Some(b.to_owned()),
        mark: DifferenceKind::Declared,
    };
    Comparison {
        a: base.0.to_owned(),
        b: other.0.to_owned(),
        a_version: base.1.to_owned(),
        b_version: other.1.to_owned(),
        settings: settings.iter().map(difference).collect(),
        ..Comparison::default()
    }
}

/// Figures of `a.c` and `b.c`, which differ in one declared setting.
fn with_setting(mut figures: Figures, name: &str, a: &str, b: &str) -> Figures {
    figures.settings.differences = vec![differing(("a.c", "8"), ("b.c", "8"), &[(name, a, b)])];
    figures
}

fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

/// Returns the kinds that name a cause.
fn causes(findings: &[Finding]) -> Vec<FindingKind> {
    use FindingKind::*;
    let mut kinds = kinds(findings);
    kinds.retain(|kind| {
        !matches!(
            kind,
            HostBusy | Unexplained | ClientBound | Unfair | Swing | SlaMissed | NoEffect | Facts
        )
    });
    kinds
}
