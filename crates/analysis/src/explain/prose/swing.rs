//! Sentences about throughput that swings.

use super::numbers::{figure, list_any, percent};
use super::place;
use crate::counted;
use crate::explain::Finding;
use crate::explain::explanation::SwingingTarget;
use crate::figures::swing::{InStep, Source, Swing};

/// Returns the title and the sentences about targets that swing, at least one.
pub(super) fn text(targets: &[SwingingTarget<'_>], about: &Finding) -> (String, Vec<String>) {
    let SwingingTarget { who, swing, .. } = &targets[0];
    let (step, period) = (place(about), figure(swing.period_seconds));
    let title =
        format!("{who}: throughput swings every {period} s in {step}, {}", title_end(swing));

    let mut text = vec![opening(&targets[0], &step), cause(swing)];
    let others = targets[1..].iter().map(|target| {
        let period = figure(target.swing.period_seconds);
        format!("{} (every {period} s, {})", target.who, title_end(target.swing))
    });
    text.extend(list_any(others).map(|others| format!("Also {others}.")));
    (title, text)
}

/// Returns the last part of a title: `in step with autovacuum`.
fn title_end(swing: &Swing) -> String {
    match swing.closest() {
        Some(closest) => format!("in step with {}", closest.name),
        None => "in step with nothing that was recorded".to_owned(),
    }
}

fn opening(target: &SwingingTarget<'_>, step: &str) -> String {
    let SwingingTarget { who, swing, swinging_repeats, repeat_count, .. } = target;
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

/// States what keeps step.
fn cause(swing: &Swing) -> String {
    let Some(InStep { source, name, correlation, p }) = swing.closest() else {
        return "Nothing that was recorded of the engine keeps step with it more closely than chance explains."
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
        Some(p) => format!(", as do {} of shifted series", small_percent(*p)),
        None => ", so nothing of the engine is named".to_owned(),
    };

    let others = swing.in_step.iter().skip(1).map(|other| format!("`{}`", other.name));
    let others = list_any(others).map(|others| format!("; also in step: {others}"));

    format!(
        "{subject} keeps step with it: it {work} while throughput is low (correlation {correlation:.2}{chance}){}.",
        others.unwrap_or_default()
    )
}

/// Returns a small share, such as `0.4%`.
fn small_percent(share: f64) -> String {
    format!("{}%", figure(100.0 * share))
}
