//! Writes the record of one step.

use record::{
    CellDir, Failure, ImportedStep, IntervalRow, RecordError, Run, Status, Step, StepKind,
    StepWriter, Warning, latency_histogram,
};
use words::LATENCY_NS_MAX;

use super::PlacedStep;
use super::host::{self, HostFacts};
use crate::campaign::{Campaign, RuleKind};
use crate::formats::{HostSamples, StepResult};
use crate::text::Doubt;

/// The relative difference in length between a step and its samples that is named.
const LENGTH_ERROR_MAX: f64 = 0.1;

/// The groups of sysbench's tests, by the beginnings of their names.
const GROUPS: [(&str, &str); 15] = [
    ("point-query", "point"),
    ("points-", "point"),
    ("random-points", "point"),
    ("hot-points", "point"),
    ("range-", "range-1"),
    ("scan", "range-1"),
    ("read-only", "range-2"),
    ("read-write", "write"),
    ("write-only", "write"),
    ("update-", "write"),
    ("delete", "write"),
    ("insert", "write"),
    ("oltp_point_select", "point"),
    ("oltp_read_only", "range-2"),
    ("oltp_", "write"),
];

/// Writes a step.
pub fn write(
    cell: &CellDir,
    number: u32,
    placed: &PlacedStep<'_>,
    campaign: &Campaign,
    run: &Run,
) -> Result<(), RecordError> {
    let maker = StepMaker { placed, campaign, run };
    let rows =
        host::rows(placed.found.vmstat.as_ref(), placed.found.iostat.as_ref(), &maker.host_facts());
    let columns = if rows.is_empty() { Vec::new() } else { host::columns() };

    let mut writer = cell.begin_step(number, &placed.key.step, &columns)?;
    writer.started(run.started_unix_ns);
    for row in rows {
        let second = u32::try_from(row.at_ns / 1_000_000_000).unwrap_or(0);
        writer.host(0, second, row.at_ns, &row.values)?;
    }

    write_seconds(&mut writer, &placed.outcome)?;
    write_distributions(&mut writer, &placed.outcome)?;
    writer.finish(&maker.step())
}

fn write_seconds(writer: &mut StepWriter, outcome: &StepResult) -> Result<(), RecordError> {
    let rows: Vec<IntervalRow<'_>> = outcome
        .seconds
        .iter()
        .map(|second| IntervalRow {
            second: second.second,
            client: second.client,
            kind: &second.kind,
            ok: second.ok,
            failed: second.failed,
            retried: second.retried,
            rows: second.rows,
            service_ns_max: second.service_ns_max,
            response_ns_max: second.response_ns_max.max(second.service_ns_max),
        })
        .collect();
    writer.intervals(&rows)
}

/// Writes distributions as a whole in the first second: files have none of each second.
fn write_distributions(writer: &mut StepWriter, outcome: &StepResult) -> Result<(), RecordError> {
    for (tag, counts) in &outcome.distributions {
        let mut histogram = latency_histogram();
        for (ns, count) in counts {
            // Values within the limit cannot fail.
            let _ = histogram.record_n((*ns).clamp(1, LATENCY_NS_MAX), *count);
        }
        writer.latency(0, tag, &histogram)?;
    }
    Ok(())
}

/// Makes the record of a step.
struct StepMaker<'a> {
    placed: &'a PlacedStep<'a>,
    campaign: &'a Campaign,
    run: &'a Run,
}

impl StepMaker<'_> {
    fn host_facts(&self) -> HostFacts {
        HostFacts {
            cpus: Some(self.run.host.cpu_count).filter(|cpus| *cpus > 0),
            warm_up_ns: self.placed.found.facts.warm_up_ns,
            drop_warm_up: self.campaign.drop_warm_up,
        }
    }

    fn step(&self) -> Step {
        let PlacedStep { key, found, outcome, .. } = self.placed;
        let rule = self.campaign.step(&key.step);
        let kind = match rule.kind {
            Some(RuleKind::Load) => StepKind::Load,
            Some(RuleKind::Index) => StepKind::Index,
            Some(RuleKind::Query) => StepKind::Query,
            None => outcome.kind,
        };
        let is_scan = key.step.starts_with("scan") || rule.rows.is_some();
        let scanned_rows = rule.rows.or(found.facts.table_rows);

        let status = if outcome.failure.is_some() { Status::Failed } else { Status::Complete };
        let failure = outcome.failure.clone();
        let group = rule.group.clone().or_else(|| group_of(&key.step));

        Step {
            kind,
            main_op: Some(outcome.main.clone()),
            main_role: Some(outcome.role),
            queries_per_event: outcome.queries_per_event,
            scanned_rows_per_event: scanned_rows.filter(|_| is_scan && kind == StepKind::Query),
            group: group.filter(|_| outcome.main == "event" || rule.group.is_some()),
            unreported: rule.reported == Some(false),
            status,
            valid: status == Status::Complete,
            reasons: failure.iter().cloned().collect(),
            failure: failure.map(|cause| Failure { causes: vec![cause], ..Failure::default() }),
            started_unix_ns: self.run.started_unix_ns,
            elapsed_ns: outcome.elapsed_ns,
            clients: key.cell.clients,
            rows_before: rule
                .rows
                .filter(|_| kind == StepKind::Index)
                .unwrap_or(outcome.rows_before),
            rows_per_commit: outcome.rows_per_commit,
            ops: outcome.ops.clone(),
            counters_after: self.counters(),
            imported: Some(self.imported()),
            warnings: self.warnings(),
            ..Step::default()
        }
    }

    fn counters(&self) -> Vec<record::Counter> {
        let mut counters = self.placed.outcome.counters.clone();
        counters.extend(self.placed.found.events.iter().cloned());
        counters
    }

    fn imported(&self) -> ImportedStep {
        let PlacedStep { found, outcome, .. } = self.placed;
        let mut metrics = outcome.metrics.clone();

        // Without a number of processors there is no CPU time, and their shares are known.
        if self.host_facts().cpus.is_none() {
            let samples = found.vmstat.as_ref().or(found.iostat.as_ref());
            if let Some(shares) = samples.and_then(host::mean_shares) {
                let busy = shares.user + shares.system;
                metrics.insert("cpups".to_owned(), busy);
                metrics.insert("us%".to_owned(), shares.user);
                metrics.insert("sy%".to_owned(), shares.system);
                metrics.insert("wa%".to_owned(), shares.iowait);
                metrics.insert("steal%".to_owned(), shares.steal);
                let rate = self.operations_per_second().filter(|rate| *rate > 0.0);
                metrics.extend(rate.map(|rate| ("cpu/o".to_owned(), busy / rate)));
            }
        }

        ImportedStep {
            tool: found.facts.tool.clone().unwrap_or_else(|| "another tool".to_owned()),
            files: found.files.clone(),
            metrics,
            times_us: outcome.times_us.clone(),
            buckets: outcome.buckets.clone(),
        }
    }

    fn operations_per_second(&self) -> Option<f64> {
        let outcome = &self.placed.outcome;
        let ops = outcome.ops.get(&outcome.main)?;
        let count = match outcome.kind {
            StepKind::Load => ops.rows as f64,
            _ => ops.ok as f64 * outcome.queries_per_event.unwrap_or(1.0),
        };
        (outcome.elapsed_ns > 0).then(|| count / (outcome.elapsed_ns as f64 / 1e9))
    }

    fn warnings(&self) -> Vec<Warning> {
        let PlacedStep { found, .. } = self.placed;
        let mut warnings = Vec::new();
        for (path, doubt) in &found.doubts {
            let place = doubt.line.map_or(path.clone(), |line| format!("{path}:{line}"));
            warnings.push(Warning {
                code: doubt.code.to_owned(),
                text: format!("{place}: {}", doubt.text),
            });
        }
        for doubt in self.doubts() {
            warnings.push(Warning { code: doubt.code.to_owned(), text: doubt.text });
        }
        warnings
    }

    /// Returns the doubts that only several files together give.
    fn doubts(&self) -> Vec<Doubt> {
        let facts = &self.placed.found.facts;
        let mut doubts: Vec<Doubt> = self.placed.doubt.iter().cloned().collect();

        let named = [
            ("the campaign", self.campaign.cpus),
            ("the tool", facts.cpus),
            ("iostat", facts.sampled_cpus),
        ];
        let known: Vec<(&str, u32)> =
            named.iter().filter_map(|(who, cpus)| Some((*who, (*cpus)?))).collect();
        if known.iter().any(|(_, cpus)| *cpus != known[0].1) {
            let all = known.iter().map(|(who, cpus)| format!("{who} has {cpus}"));
            let all = all.collect::<Vec<_>>().join(", ");
            let text = format!("processors: {all}; {} counts", known[0].0);
            doubts.push(Doubt::of_file("import::cpus", text));
        }

        let samples = self.placed.found.vmstat.iter().chain(&self.placed.found.iostat);
        let has_samples = samples.clone().next().is_some();
        if facts.warm_up_ns > 0 && has_samples && !self.campaign.drop_warm_up {
            let seconds = facts.warm_up_ns as f64 / 1e9;
            let text =
                format!("samples of the host cover the warm-up of {seconds} s; results do not");
            doubts.push(Doubt::of_file("import::warm-up", text));
        }
        doubts.extend(samples.filter_map(|samples| self.length_doubt(samples)));
        doubts
    }

    fn length_doubt(&self, samples: &HostSamples) -> Option<Doubt> {
        let facts = &self.placed.found.facts;
        let expected_s = (self.placed.outcome.elapsed_ns + facts.warm_up_ns) as f64 / 1e9;
        let covered_s = samples.samples.len() as f64 * samples.interval_s.unwrap_or(1.0);
        if expected_s <= 0.0 || (covered_s / expected_s - 1.0).abs() <= LENGTH_ERROR_MAX {
            return None;
        }
        let text = format!(
            "samples of the host cover {covered_s} s, and the step with its warm-up takes {expected_s:.0} s; set \
             `interval` if they are not of each second"
        );
        Some(Doubt::of_file("import::length", text))
    }
}

/// Returns the group of a test of sysbench.
fn group_of(step: &str) -> Option<String> {
    let found = GROUPS.iter().find(|(start, _)| step.starts_with(start));
    found.map(|(_, group)| (*group).to_owned())
}
