//! The rows of the figures as CSV, for spreadsheets: one line per step of each cell.

use std::collections::BTreeSet;

use analysis::{Figures, Percentiles};
use record::{Status, StepKind};

/// One line per step of each cell, settle steps included. Units are in the names of the columns; what is not
/// applicable is empty. Which columns there are depends on the kinds of operation and metrics that occur.
pub fn csv(figures: &Figures) -> String {
    let kinds: BTreeSet<&str> = figures
        .rows
        .iter()
        .flat_map(|row| row.ops.keys().map(String::as_str))
        .collect();
    let present: BTreeSet<&str> = figures
        .rows
        .iter()
        .flat_map(|row| row.metrics.keys().copied())
        .collect();
    let metrics: Vec<&str> = analysis::METRICS
        .into_iter()
        .filter(|name| present.contains(name))
        .collect();

    let stalls: BTreeSet<&str> = figures
        .rows
        .iter()
        .filter_map(|row| row.lsm.as_ref())
        .flat_map(|lsm| lsm.stalls.keys().map(String::as_str))
        .collect();

    let mut head: Vec<String> = [
        "run",
        "target",
        "build",
        "config",
        "engine",
        "engine_version",
        "workload",
        "variant",
        "clients",
        "repeat",
        "step",
        "kind",
        "main_op",
        "queries_per_event",
        "group",
        "reported",
        "status",
        "valid",
        "reasons",
        "elapsed_s",
        "sla_target_rows_per_s",
        "sla_achieved_rows_per_s",
        "sla_met",
        "fairness_fastest_s",
        "fairness_slowest_s",
        "fairness_apart_s",
        "fairness_apart_pct",
    ]
    .map(str::to_string)
    .to_vec();
    head.extend(metrics.iter().map(|name| with_unit(name)));
    head.extend(
        stalls
            .iter()
            .map(|reason| format!("write_stall_{reason}_count")),
    );
    for kind in &kinds {
        for count in ["offered", "skipped", "ok", "failed", "retried"] {
            head.push(format!("{kind}_{count}_count"));
        }
        head.extend([
            format!("{kind}_row_count"),
            format!("{kind}_per_s"),
            format!("{kind}_rows_per_s"),
        ]);
        for time in ["service", "response"] {
            head.extend(
                PERCENTILES
                    .iter()
                    .map(|name| format!("{kind}_{time}_us_{name}")),
            );
        }
    }

    let mut lines = vec![head];
    for row in &figures.rows {
        let sla = row.sla.as_ref();
        let fairness = row.fairness.as_ref();
        let mut line = vec![
            (row.run + 1).to_string(),
            row.target.clone(),
            row.build.clone(),
            row.config.clone(),
            row.engine.clone(),
            row.engine_version.clone(),
            row.workload.clone(),
            row.variant.clone().unwrap_or_default(),
            row.clients.to_string(),
            row.repeat.to_string(),
            row.step.clone(),
            kind_name(row.kind).to_string(),
            row.main_op.clone().unwrap_or_default(),
            number(row.queries_per_event),
            row.group.clone().unwrap_or_default(),
            row.reported.to_string(),
            status_name(row.status).to_string(),
            row.valid.to_string(),
            row.reasons.join("; "),
            number(Some(row.seconds)),
            number(sla.map(|sla| sla.target)),
            number(sla.map(|sla| sla.achieved)),
            sla.map(|sla| sla.met.to_string()).unwrap_or_default(),
            number(fairness.map(|fairness| fairness.fastest_seconds)),
            number(fairness.map(|fairness| fairness.slowest_seconds)),
            number(fairness.map(|fairness| fairness.abs_seconds)),
            number(fairness.map(|fairness| fairness.pct)),
        ];
        line.extend(
            metrics
                .iter()
                .map(|name| number(row.metrics.get(name).copied().flatten())),
        );
        line.extend(stalls.iter().map(|reason| {
            let lsm = row.lsm.as_ref();
            number(lsm.and_then(|lsm| lsm.stalls.get(*reason).copied()))
        }));
        for kind in &kinds {
            let Some(op) = row.ops.get(*kind) else {
                line.extend(std::iter::repeat_n(
                    String::new(),
                    8 + 2 * PERCENTILES.len(),
                ));
                continue;
            };
            let counts = [
                op.offered, op.skipped, op.count, op.failed, op.retried, op.rows,
            ];
            line.extend(counts.iter().map(u64::to_string));
            line.extend([
                number(Some(op.per_second)),
                number(Some(op.rows_per_second)),
            ]);
            for times in [&op.service_us, &op.response_us] {
                line.extend(
                    percentiles(times).map(|value| number((op.count > 0).then_some(value))),
                );
            }
        }
        lines.push(line);
    }
    written(&lines)
}

const PERCENTILES: [&str; 8] = ["p50", "p90", "p95", "p99", "p99_9", "p99_99", "max", "mean"];

fn percentiles(times: &Percentiles) -> [f64; 8] {
    [
        times.p50,
        times.p90,
        times.p95,
        times.p99,
        times.p99_9,
        times.p99_99,
        times.max,
        times.mean,
    ]
}

/// The field's names have no units: here they get one.
fn with_unit(name: &str) -> String {
    let unit = match name {
        "ips" | "dps" => "rows_per_s",
        "qps" | "rps" | "wps" | "csps" | "o/s" => "per_s",
        "p50" | "p99" => "rate_per_s",
        "rmbps" | "wmbps" => "mib_per_s",
        "rpq" | "cspq" | "cs/o" | "r/o" => "per_op",
        "wpi" => "per_insert",
        "rkbpq" | "rKB/o" | "wKB/o" => "kib_per_op",
        "wkbpi" => "kib_per_insert",
        "cpups" => "pct",
        "stall%" => return "stall_pct".to_string(),
        "cache_hit%" => return "cache_hit_pct".to_string(),
        "Nstall" | "l0_files_begin" | "l0_files" | "l0_files_max" | "levels_begin" | "levels"
        | "lsm_files" => "count",
        "mb_sec" | "c_mbps" => "mib_per_s",
        "lsm_sz" | "blob_sz" | "c_wgb" | "c_wgb_settled" | "b_rgb" | "b_wgb" => "gib",
        "c_wsecs" | "c_csecs" | "c_wsecs_settled" | "c_csecs_settled" | "uptime" | "u_cpu"
        | "s_cpu" => "s",
        "usec_op" => "us_per_op",
        "w_amp" | "w_amp_settled" | "wal_amp" | "s_amp" => "bytes_per_byte",
        "r_amp" => "blocks_per_key",
        "cpupq" => "us_per_op",
        "cpu/o" => "pct_s_per_op",
        "dbgb1" | "dbgb2" | "rss" => "gib",
        "maxop" => "s",
        _ => return name.to_string(),
    };
    format!("{name}_{unit}")
}

fn kind_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Load => "load",
        StepKind::Index => "index",
        StepKind::Query => "query",
        StepKind::Settle => "settle",
    }
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Incomplete => "incomplete",
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted",
    }
}

/// Every digit that the figure has: rounding is for people.
pub(crate) fn number(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map(|value| value.to_string())
        .unwrap_or_default()
}

/// Lines of equal length as CSV.
pub(crate) fn written(lines: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer
            .write_record(line)
            .expect("lines are equally long, and memory takes them");
    }
    let bytes = writer.into_inner().expect("memory takes what is left");
    String::from_utf8(bytes).expect("only text was written")
}
