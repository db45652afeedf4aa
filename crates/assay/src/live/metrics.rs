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
    add_run(&mut text, state, now_ns);

    let steps: Vec<(String, &StepState)> =
        state.steps.iter().map(|step| (of_step(step), step)).collect();
    add_steps(&mut text, &steps);

    let mut kinds: Vec<(String, &OpState)> = Vec::new();
    for (of_step, step) in &steps {
        for (name, kind) in &step.kinds {
            let own = labels(&[("role", &kind.role), ("kind", name)]);
            kinds.push((format!("{of_step},{own}"), kind));
        }
    }
    add_operations(&mut text, &kinds);

    // Scrapers take a text without an end for one that was cut off.
    text += "# EOF\n";
    text
}

/// Writes what is known of the run, its targets and its cells.
fn add_run(text: &mut String, state: &RunState, now_ns: u64) {
    let (about, cells) = (&state.about, state.cells);
    let run = labels(&[
        ("name", &about.name),
        ("directory", &about.directory),
        ("base", &about.base),
        ("version", &about.assay),
    ]);
    family(text, "info", "assay_run", "The run", [(&run, 1)]);

    let targets = about.targets.iter().map(|target| {
        let names = ["target", "build", "config", "engine"];
        let pairs: Vec<_> = names.into_iter().zip(target.iter().map(String::as_str)).collect();
        (labels(&pairs), 1)
    });
    family(text, "info", "assay_target", "A target of the run", targets);

    for (name, help, count) in [
        ("assay_cells", "Cells of the run", cells.count),
        ("assay_cells_complete", "Cells that are measured", cells.complete),
        ("assay_cells_failed", "Cells that failed in this invocation", cells.failed),
    ] {
        family(text, "gauge", name, help, [("", count)]);
    }

    let help = "Estimated time of the remaining cells";
    let left_s = state.left_s(now_ns);
    family(text, "gauge", "assay_left_seconds", help, [("", left_s)]);
}

/// Writes the progress of steps, each with its labels.
fn add_steps(text: &mut String, steps: &[(String, &StepState)]) {
    let running = steps.iter().map(|(labels, step)| {
        let is_running = !matches!(step.state, StepPhase::Ended { .. });
        let labels = format!("{labels},state=\"{}\"", step.state.name());
        (labels, u8::from(is_running))
    });
    let help = "Phase of a step: 1 while it runs, 0 once it has ended";
    family(text, "gauge", "assay_step_running", help, running);

    let elapsed = steps.iter().map(|(labels, step)| (labels, step.elapsed_s));
    let help = "How long a step has been measuring";
    family(text, "gauge", "assay_step_elapsed_seconds", help, elapsed);

    let left = steps.iter().filter_map(|(labels, step)| Some((labels, step.left_s()?)));
    let help = "Estimated time until a step stops measuring";
    family(text, "gauge", "assay_step_left_seconds", help, left);

    let lag = steps.iter().filter_map(|(labels, step)| Some((labels, step.lag_s?)));
    let help = "Largest lag of a replica";
    family(text, "gauge", "assay_step_replica_lag_seconds", help, lag);
}

/// Writes the counts and times of the operations of steps, each kind with its labels.
fn add_operations(text: &mut String, kinds: &[(String, &OpState)]) {
    for (name, help, of) in COUNTERS {
        let counts = kinds.iter().filter_map(|(labels, kind)| Some((labels, of(kind)?)));
        family(text, "counter", name, help, counts);
    }

    for (name, help, of) in TIMES {
        // A family has its help once, also if it has no sample yet.
        family(text, "histogram", name, help, [("", 0); 0]);
        for (labels, kind) in kinds {
            histogram(text, name, labels, of(kind));
        }
    }
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
    let mut written = Vec::new();
    for (name, value) in all {
        // Backslashes first: the other replacements add some.
        let escaped = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n");
        written.push(format!("{name}=\"{escaped}\""));
    }
    written.join(",")
}
