//! Puts what time, work and functions say together in words.

use super::wording::{Wording, place};
use crate::prose::numbers::{figure, list_any, pace};
use analysis::compare::ChangedFunction;
use analysis::explain::Finding;
use analysis::explain::statement::{Agreement, OtherTime, ProfiledFunction, StepWitnesses};

pub(super) fn wording(steps: &[StepWitnesses], about: &Finding) -> Wording {
    let first = &steps[0];

    let mut sentences = vec![opening(first, about)];
    if first.agreement == Agreement::SameWork {
        sentences.push(without_work(first).to_owned());
    }
    if let Some(function) = &first.function {
        let mut text = function_text(function, first.profiled.as_ref());
        if let Some(opposite) = &first.opposite {
            text += &format!("; against that, {}", function_text(opposite, None));
        }
        sentences.push(text + ".");
    }

    let mut others = Vec::new();
    for other in &steps[1..] {
        others.push(format!("{} ({})", other.step, headline(other)));
    }
    if let Some(others) = list_any(others) {
        sentences.push(format!("Also in {others}."));
    }

    let (headline, place) = (headline(first), place(about));
    Wording {
        title: format!("{}: {headline} in {place}{}", about.target, certainty(first)),
        sentences,
    }
}

/// Returns what changed, in brief: `2.1% more work and 1.20x slower`.
fn headline(step: &StepWitnesses) -> String {
    let work = change_of_work(step);
    let pace = match step.ratio {
        Some(ratio) => pace(ratio, step.interval),
        None => String::new(),
    };

    match step.agreement {
        Agreement::Certain => format!("{work} and {pace}"),
        Agreement::SmallPart => format!("{pace}, and only {work}"),
        Agreement::Opposite => format!("{work}, and {pace}"),
        Agreement::SameWork => format!("the same work, {pace}"),
        Agreement::SameTime | Agreement::NoisyTime | Agreement::UnknownTime => work,
    }
}

/// Returns the end of a title.
fn certainty(step: &StepWitnesses) -> &'static str {
    match step.agreement {
        Agreement::Certain => ": certain",
        Agreement::SmallPart => ": work is a small part of it",
        Agreement::Opposite => ": work does not explain the time",
        Agreement::SameWork => match step.other_time {
            OtherTime::Waits => ": waits, not instructions",
            OtherTime::Memory => ": memory or layout, not instructions",
            OtherTime::Either => ": waits, memory or layout, not instructions",
        },
        Agreement::SameTime => ", no change in time shown",
        Agreement::NoisyTime => ", time too noisy to say",
        Agreement::UnknownTime => ", time not compared",
    }
}

fn opening(step: &StepWitnesses, about: &Finding) -> String {
    let target = &about.target;
    let base = about.base.as_deref().unwrap_or_default();

    if step.agreement == Agreement::SameWork {
        return format!(
            "{target} executes as many instructions per operation as {base} in {}: a change of {} would be shown.",
            step.step,
            percent(step.shown_from)
        );
    }

    format!(
        "{target} executes {} instructions per operation in {}, and {base} {}: {} (exact cells differ by {}).",
        figure(step.target_instructions),
        step.step,
        figure(step.base_instructions),
        change_of_work(step),
        percent(step.floor)
    )
}

/// Says what a change of time with the same work comes from.
fn without_work(step: &StepWitnesses) -> &'static str {
    match step.other_time {
        OtherTime::Waits => "CPU per operation shows no change either, so operations wait.",
        OtherTime::Memory => {
            "CPU per operation changed with the time, so the same instructions take a different time: cache misses, the \
             layout of code, or the processors' frequency."
        }
        OtherTime::Either => {
            "So the cause is something that instruction counts don't show: waits, I/O, cache misses or the layout of code."
        }
    }
}

/// Names the function with most of the change of work, and what the profile says.
fn function_text(function: &ChangedFunction, profiled: Option<&ProfiledFunction>) -> String {
    let name = &function.name;
    let size = figure(function.difference.abs());
    let more = if function.difference > 0.0 { "more" } else { "fewer" };

    let where_from = if let Some(calls) = &function.calls {
        format!(
            ", which calls `{}` {} times per operation instead of {},",
            calls.callee,
            figure(calls.target),
            figure(calls.base)
        )
    } else if let Some(caller) = function.path.last() {
        format!(", called by `{caller}`,")
    } else {
        String::new()
    };

    let profile = match profiled {
        Some(ProfiledFunction { is_same: true, .. }) => {
            format!("; the profile names `{name}`, too")
        }
        Some(ProfiledFunction { name, .. }) => format!("; the profile names `{name}`"),
        None => String::new(),
    };

    format!("`{name}`{where_from} executes {size} {more} instructions{profile}")
}

/// Returns the change of work: `2.1% more work`.
fn change_of_work(step: &StepWitnesses) -> String {
    let more = if step.change > 0.0 { "more" } else { "less" };
    format!("{} {more} work", percent(step.change.abs()))
}

/// Returns a share in percent with three digits: `0.52%`.
fn percent(share: f64) -> String {
    format!("{}%", figure(100.0 * share))
}
