//! Sentences about throughput that swings.

use super::wording::{Wording, place};
use crate::prose::numbers::{figure, list_any, percent};
use analysis::counted;
use analysis::explain::Finding;
use analysis::explain::statement::SwingingTarget;
use analysis::figures::swing::{InStep, Source, Swing};

pub(super) fn wording(targets: &[SwingingTarget], about: &Finding) -> Wording {
    let SwingingTarget { who, swing, .. } = &targets[0];
    let (step, period) = (place(about), figure(swing.period_seconds));
    let title =
        format!("{who}: throughput swings every {period} s in {step}, {}", title_end(swing));

    let mut others = Vec::new();
    for SwingingTarget { who, swing, .. } in &targets[1..] {
        let period = figure(swing.period_seconds);
        others.push(format!("{who} (every {period} s, {})", title_end(swing)));
    }

    let mut sentences = vec![opening(&targets[0], &step), cause(swing)];
    if let Some(others) = list_any(others) {
        sentences.push(format!("Also {others}."));
    }
    Wording { title, sentences }
}

/// Returns the last part of a title: `in time with autovacuum`.
fn title_end(swing: &Swing) -> String {
    match swing.closest() {
        Some(closest) => format!("in time with {}", closest.name),
        None => "in time with nothing that was recorded".to_owned(),
    }
}

fn opening(target: &SwingingTarget, step: &str) -> String {
    let SwingingTarget { who, swing, swinging_repeats, repeat_count } = target;
    let repeats = match repeat_count {
        1 => String::new(),
        count => format!(", in {swinging_repeats} of {}", counted(*count, "repeat")),
    };

    format!(
        "In {step}, the throughput of {who} rises and falls every {} s over {} cycles{repeats}: by {} of its mean, which \
         explains {} of the variance of the seconds.",
        figure(swing.period_seconds),
        figure(swing.cycles.round()),
        percent(swing.range_of_mean),
        percent(swing.variance_share)
    )
}

/// States what follows the same cycle.
fn cause(swing: &Swing) -> String {
    let Some(InStep { source, name, correlation, p }) = swing.closest() else {
        return "Nothing that was recorded of the engine follows the same cycle more closely than chance explains."
            .to_owned();
    };

    let (subject, work) = match source {
        Source::Host if name == "the hypervisor" => {
            ("The hypervisor".to_owned(), "takes processors")
        }
        Source::Host => ("The host's other load".to_owned(), "uses processors"),
        Source::Event => (format!("`{name}` in the engine's log"), "runs"),
        Source::Thread => (format!("The thread `{name}`"), "runs"),
        Source::Counter => (format!("The counter `{name}`"), "grows"),
    };

    let chance = match p {
        Some(p) => {
            format!("; {} of copies shifted in time correlate as closely", small_percent(*p))
        }
        None => ", so no part of the engine is named".to_owned(),
    };

    let others = swing.in_step.iter().skip(1).map(|other| format!("`{}`", other.name));
    let others = match list_any(others) {
        Some(others) => format!("; others that follow it: {others}"),
        None => String::new(),
    };

    format!(
        "{subject} follows the same cycle: it {work} while throughput is low (correlation {correlation:.2}{chance}){others}."
    )
}

/// Returns a small share, such as `0.4%`.
fn small_percent(share: f64) -> String {
    format!("{}%", figure(100.0 * share))
}
