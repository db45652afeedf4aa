//! Findings from figures that are made by hand: what is told, in which words, and what is not.

mod against;
mod apart;
mod machine;
mod negative;
mod seeds;
mod trees;

use std::collections::BTreeMap;

use record::{Status, StepKind};

use super::*;
use crate::{CompareOptions, Comparison, Difference, Mark, OpFigures, Row, compare};

/// Those of the host.
const PROCESSORS: f64 = 4.0;

/// One step of one target, as a page or a test states it.
struct Cost<'a> {
    target: &'a str,
    step: &'a str,
    clients: u32,
    /// Operations per second.
    rate: f64,
    metrics: &'a [(&'static str, f64)],
}

fn kind(step: &str) -> StepKind {
    match step {
        "l.x" => StepKind::Index,
        "l.i0" | "l.i1" | "l.i2" | "overwrite" => StepKind::Load,
        _ => StepKind::Query,
    }
}

/// The row of a step of 100 s. A load commits 50 rows at a time.
fn row(cost: &Cost<'_>, repeat: u32) -> Row {
    let kind = kind(cost.step);
    let (throughput, main_op) = match (kind, cost.step) {
        (StepKind::Load, "overwrite") => ("ips", "put"),
        (StepKind::Load | StepKind::Index, _) => ("ips", "insert"),
        _ => ("qps", "query"),
    };
    let mut metrics: BTreeMap<&'static str, Option<f64>> = cost
        .metrics
        .iter()
        .map(|(name, value)| (*name, Some(*value)))
        .collect();
    metrics.insert(throughput, Some(cost.rate));
    let us = |name: &str| metrics.get(name).copied().flatten();
    let parts = [
        us("cpupq"),
        us("client_cpu_us_per_op"),
        us("server_cpu_us_per_op"),
    ];
    if let [Some(all), Some(client), Some(server)] = parts {
        let others = (all - client - server).max(0.0) * cost.rate / 1e6;
        metrics.insert("others%", Some(100.0 * others / PROCESSORS));
    }
    let per_second = match main_op {
        "insert" => cost.rate / 50.0,
        _ => cost.rate,
    };
    let ops = OpFigures {
        per_second,
        ..OpFigures::default()
    };
    Row {
        target: cost.target.to_owned(),
        engine: "mysql".to_owned(),
        workload: "insert".to_owned(),
        clients: cost.clients,
        repeat,
        step: cost.step.to_owned(),
        kind,
        main_op: Some(main_op.to_owned()),
        reported: true,
        status: Status::Complete,
        seconds: 100.0,
        valid: true,
        ops: BTreeMap::from([(main_op.to_owned(), ops)]),
        metrics,
        ..Row::default()
    }
}

/// Single runs: the first target is the base.
fn single(costs: &[Cost<'_>]) -> Figures {
    Figures {
        rows: costs.iter().map(|cost| row(cost, 1)).collect(),
        ..Figures::default()
    }
}

/// Five repeats of a step that reads: targets with their queries per second and what one takes of the host's CPU, in us.
fn reads(targets: [(&str, f64, f64); 2]) -> Figures {
    let metrics = targets.map(|(.., cpu)| [("cpupq", cpu)]);
    let costs: Vec<Cost<'_>> = targets
        .iter()
        .zip(&metrics)
        .map(|(&(target, rate, _), metrics)| Cost {
            target,
            step: "q100",
            clients: 4,
            rate,
            metrics,
        })
        .collect();
    repeated(&costs)
}

/// Five repeats that took turns; each is off by less than 0.5 %, and base and target not alike.
fn repeated(costs: &[Cost<'_>]) -> Figures {
    let off = [0.996, 1.003, 1.0, 0.998, 1.004, 1.001, 0.997];
    let mut rows = Vec::new();
    for repeat in 1..=5_u32 {
        for (number, cost) in costs.iter().enumerate() {
            let off = off[(repeat as usize * 3 + number * 2) % off.len()];
            let cost = Cost {
                rate: cost.rate * off,
                ..*cost
            };
            let mut row = row(&cost, repeat);
            if let Some(Some(cpu)) = row.metrics.get_mut("cpupq") {
                *cpu *= 2.0 - off;
            }
            rows.push(row);
        }
    }
    Figures {
        rows,
        ..Figures::default()
    }
}

/// What is found, with the first target as the base.
fn found(figures: &Figures) -> Vec<Finding> {
    let options = CompareOptions {
        base: figures.rows[0].target.clone(),
        resamples: 200,
        ..CompareOptions::default()
    };
    explain(figures, &compare(figures, &options))
}

/// Two targets that differ in versions and settings as stated: name, value of the base, value of the other.
fn apart(base: (&str, &str), other: (&str, &str), settings: &[(&str, &str, &str)]) -> Comparison {
    let difference = |&(name, a, b): &(&str, &str, &str)| Difference {
        name: name.to_owned(),
        a: Some(a.to_owned()),
        b: Some(b.to_owned()),
        mark: Mark::Declared,
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

#[track_caller]
fn says(finding: &Finding, parts: &[&str]) {
    let all = format!(
        "{}\n{}\n{}",
        finding.title,
        finding.text,
        finding.against.join("\n")
    );
    for part in parts {
        assert!(all.contains(part), "{part:?} is not in:\n{all}");
    }
}

#[track_caller]
fn says_not(finding: &Finding, parts: &[&str]) {
    let all = format!(
        "{}\n{}\n{}",
        finding.title,
        finding.text,
        finding.against.join("\n")
    );
    for part in parts {
        assert!(!all.contains(part), "{part:?} is in:\n{all}");
    }
}

fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}
