//! The state of the run as OpenMetrics, which Prometheus reads.

use std::fmt::{Display, Write as _};

use super::BOUNDS;
use super::state::{Distribution, OpState, RunState, StepPhase, StepState};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A counter of a kind of operation: the metric's name, its help text, and its value.
type CounterMetric = (&'static str, &'static str, fn(&OpState) -> Option<u64>);
/// Latencies of a kind of operation: the metric's name, its help text, and its distribution.
type LatencyMetric = (&'static str, &'static str, fn(&OpState) -> &Distribution);

const COUNTERS: [CounterMetric; 5] = [
    ("assay_operations", "Operations that succeeded", |kind| Some(kind.ok)),
    ("assay_rows", "Rows inserted, changed, deleted or read", |kind| Some(kind.rows)),
    ("assay_failures", "Operations that failed for good", |kind| Some(kind.failed)),
    ("assay_retries", "Attempts beyond the first", |kind| Some(kind.retried)),
    (
        "assay_skipped",
        "Operations that were due but not sent, known when the step has ended",
        |kind| kind.skipped,
    ),
];

const TIMES: [LatencyMetric; 2] = [
    ("assay_service_time_seconds", "Time from sending to reply", |kind| &kind.service),
    (
        "assay_response_time_seconds",
        "Time from when an operation was due to its reply, of scheduled operations",
        |kind| &kind.response,
    ),
];

/// Returns the metrics at `now_ns`.
pub fn text(state: &RunState, now_ns: u64) -> String {
    let mut text = String::new();
    let (about, cells) = (&state.about, state.cells);

    let run = labels(&[
        ("name", &about.name),
        ("directory", &about.directory),
        ("base", &about.base),
        ("version", &about.assay),
    ]);
    family(&mut text, "info", "assay_run", "The run", [(&run, 1)]);

    let targets = about.targets.iter().map(|target| {
        let names = ["target", "build", "config", "engine"];
        let pairs: Vec<_> = names.into_iter().zip(target.iter().map(String::as_str)).collect();
        (labels(&pairs), 1)
    });
    let help = "A target of the run";
    family(&mut text, "info", "assay_target", help, targets);

    for (name, help, count) in [
        ("assay_cells", "Cells of the run", cells.count),
        ("assay_cells_complete", "Cells that are measured", cells.complete),
        ("assay_cells_failed", "Cells that failed in this invocation", cells.failed),
    ] {
        family(&mut text, "gauge", name, help, [("", count)]);
    }

    let help = "Estimated time of the remaining cells";
    let left_s = state.left_s(now_ns);
    family(&mut text, "gauge", "assay_left_seconds", help, [("", left_s)]);

    let steps: Vec<(String, &StepState)> =
        state.steps.iter().map(|step| (of_step(step), step)).collect();
    let running = steps.iter().map(|(labels, step)| {
        let is_running = !matches!(step.state, StepPhase::Ended { .. });
        let labels = format!("{labels},state=\"{}\"", step.state.name());
        (labels, u8::from(is_running))
    });
    let help = "Phase of a step: 1 while it runs, 0 once it has ended";
    family(&mut text, "gauge", "assay_step_running", help, running);
    let elapsed = steps.iter().map(|(labels, step)| (labels, step.elapsed_s));
    let help = "How long a step has been measuring";
    family(&mut text, "gauge", "assay_step_elapsed_seconds", help, elapsed);
    let left = steps.iter().filter_map(|(labels, step)| Some((labels, step.left_s()?)));
    let help = "Estimated time until a step stops measuring";
    family(&mut text, "gauge", "assay_step_left_seconds", help, left);

    let lag = steps.iter().filter_map(|(labels, step)| Some((labels, step.lag_s?)));
    let help = "Largest lag of a replica";
    family(&mut text, "gauge", "assay_step_replica_lag_seconds", help, lag);

    let kinds = steps.iter().flat_map(|(step, state)| {
        state.kinds.iter().map(move |(name, kind)| {
            let own = labels(&[("role", &kind.role), ("kind", name)]);
            (format!("{step},{own}"), kind)
        })
    });
    let kinds: Vec<(String, &OpState)> = kinds.collect();
    for (name, help, of) in COUNTERS {
        let counts = kinds.iter().filter_map(|(labels, kind)| Some((labels, of(kind)?)));
        family(&mut text, "counter", name, help, counts);
    }
    for (name, help, of) in TIMES {
        family(&mut text, "histogram", name, help, [("", 0); 0]);
        for (labels, kind) in &kinds {
            histogram(&mut text, name, labels, of(kind));
        }
    }
    text += "# EOF\n";
    text
}

/// Writes a metric's type and help, and a sample for each set of labels.
fn family<L: AsRef<str>, V: Display>(
    text: &mut String,
    kind: &str,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (L, V)>,
) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if name.ends_with("_seconds") {
        let _ = writeln!(text, "# UNIT {name} seconds");
    }
    let _ = writeln!(text, "# HELP {name} {help}.");
    let end = match kind {
        "info" => "_info",
        "counter" => "_total",
        _ => "",
    };
    for (labels, value) in samples {
        let _ = match labels.as_ref() {
            "" => writeln!(text, "{name}{end} {value}"),
            labels => writeln!(text, "{name}{end}{{{labels}}} {value}"),
        };
    }
}

/// Writes cumulative buckets; nothing if the distribution is empty.
fn histogram(text: &mut String, name: &str, labels: &str, times: &Distribution) {
    let count = times.count();
    if count == 0 {
        return;
    }
    let seconds = |bound: &u64| (*bound as f64 / 1e9).to_string();
    let bounds = BOUNDS.iter().map(seconds).chain(["+Inf".into()]);
    let mut below = 0;
    for (bound, bucket) in bounds.zip(times.buckets) {
        below += bucket;
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
    }
    let _ = writeln!(text, "{name}_count{{{labels}}} {count}");
    let _ = writeln!(text, "{name}_sum{{{labels}}} {}", times.sum_s);
}

fn of_step(step: &StepState) -> String {
    let cell = &step.cell;
    labels(&[
        ("target", &cell.target),
        ("variant", cell.variant.as_deref().unwrap_or_default()),
        ("clients", &cell.clients.to_string()),
        ("repeat", &cell.repeat.to_string()),
        ("step", &step.name),
    ])
}

/// Returns labels with their values escaped.
fn labels(all: &[(&str, &str)]) -> String {
    let label = |(name, value): &(&str, &str)| {
        // Backslashes first: the other replacements add some.
        let escaped = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{escaped}\"")
    };
    all.iter().map(label).collect::<Vec<_>>().join(",")
}
