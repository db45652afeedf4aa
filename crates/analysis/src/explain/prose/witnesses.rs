//! Puts what time, work and functions say together in words.

use super::numbers::{figure, list_any, pace};
use super::place;
use crate::compare::{ChangedFunction, NamedFunction, Verdict};
use crate::explain::Finding;
use crate::explain::witnesses::{Agreement, Witnesses};

/// Returns the title and the sentences.
pub(super) fn text(all: &[Witnesses<'_>], about: &Finding) -> (String, Vec<String>) {
    let first = &all[0];
    let title =
        format!("{}: {} in {}{}", about.target, headline(first), place(about), certainty(first));

    let mut text = vec![opening(first, about)];
    text.extend(without_work(first).map(str::to_owned));
    text.extend(functions(first));
    let others = all[1..].iter().map(|other| format!("{} ({})", other.work.step, headline(other)));
    text.extend(list_any(others).map(|others| format!("Also in {others}.")));
    (title, text)
}

/// Returns what changed, in brief: `2.1% more work and 1.20x slower`.
fn headline(witnesses: &Witnesses<'_>) -> String {
    let work = change_of_work(witnesses);
    match witnesses.agreement {
        Agreement::Certain => format!("{work} and {}", pace_of(witnesses)),
        Agreement::SmallPart => format!("{}, and only {work}", pace_of(witnesses)),
        Agreement::Opposite => format!("{work}, and {}", pace_of(witnesses)),
        Agreement::SameWork => format!("the same work, {}", pace_of(witnesses)),
        Agreement::SameTime | Agreement::NoisyTime | Agreement::UnknownTime => work,
    }
}

/// Returns the end of a title.
fn certainty(witnesses: &Witnesses<'_>) -> &'static str {
    match witnesses.agreement {
        Agreement::Certain => ": certain",
        Agreement::SmallPart => ": work is a small part of it",
        Agreement::Opposite => ": work does not explain the time",
        Agreement::SameWork => match causes_without_work(witnesses) {
            Without::Waits => ": waits, not instructions",
            Without::Memory => ": memory or layout, not instructions",
            Without::Either => ": waits, memory or layout, not instructions",
        },
        Agreement::SameTime => ", no change of time shown",
        Agreement::NoisyTime => ", time too noisy to tell",
        Agreement::UnknownTime => ", time not compared",
    }
}

fn opening(witnesses: &Witnesses<'_>, about: &Finding) -> String {
    let work = witnesses.work;
    let base = about.base.as_deref().unwrap_or_default();

    if witnesses.agreement == Agreement::SameWork {
        return format!(
            "{} executes as many instructions per operation as {base} in {}: a change of {} would be shown.",
            about.target,
            work.step,
            percent(work.shown_from.unwrap_or(0.0))
        );
    }

    let [base_mean, mean] = [work.base_mean(), work.target_mean()].map(Option::unwrap_or_default);
    format!(
        "{} executes {} instructions per operation in {}, and {base} {}: {} (exact cells differ by {}).",
        about.target,
        figure(mean),
        work.step,
        figure(base_mean),
        change_of_work(witnesses),
        percent(work.floor.unwrap_or(0.0))
    )
}

/// Says what a change of time with the same work comes from.
fn without_work(witnesses: &Witnesses<'_>) -> Option<&'static str> {
    if witnesses.agreement != Agreement::SameWork {
        return None;
    }
    Some(match causes_without_work(witnesses) {
        Without::Waits => "CPU per operation shows no change either, so operations wait.",
        Without::Memory => {
            "CPU per operation changed with the time, so the same instructions take another time: cache misses, the \
             layout of code, or the processors' frequency."
        }
        Without::Either => {
            "So it is what instructions do not tell: waits, I/O, cache misses or the layout of code."
        }
    })
}

/// What a change of time with the same work comes from.
#[derive(Clone, Copy)]
enum Without {
    Waits,
    Memory,
    Either,
}

/// Divides by the CPU time of operations.
fn causes_without_work(witnesses: &Witnesses<'_>) -> Without {
    let time = witnesses.time.map(|time| time.verdict);
    match witnesses.cpu {
        Some(Verdict::Equal) => Without::Waits,
        Some(cpu @ (Verdict::Slower | Verdict::Faster)) if Some(cpu) == time => Without::Memory,
        _ => Without::Either,
    }
}

/// Names the function with most of the change of work, and what the profile says.
fn functions(witnesses: &Witnesses<'_>) -> Option<String> {
    let ChangedFunction { name, difference, calls, path, .. } = witnesses.work.main_function()?;
    let more = if *difference > 0.0 { "more" } else { "less" };
    let caller = path.last().map(|caller| format!(", called by `{caller}`,"));

    let calls = calls.as_ref().map(|calls| {
        format!(
            ", which calls `{}` {} times per operation instead of {},",
            calls.callee,
            figure(calls.target),
            figure(calls.base)
        )
    });

    let where_from = calls.or(caller).unwrap_or_default();

    let profile = match witnesses.profiled() {
        Some(profiled) if is_same(profiled, name) => ", and the profile names it, too".to_owned(),
        Some(NamedFunction { name, .. }) => format!("; the profile names `{name}`"),
        None => String::new(),
    };

    let size = figure(difference.abs());
    Some(format!("`{name}`{where_from} has {size} {more}{profile}."))
}

fn is_same(profiled: &NamedFunction, name: &str) -> bool {
    crate::compare::plain_function_name(&profiled.name) == name
}

/// Returns the change of work: `2.1% more work`.
fn change_of_work(witnesses: &Witnesses<'_>) -> String {
    let change = witnesses.change();
    format!("{} {} work", percent(change.abs()), if change > 0.0 { "more" } else { "less" })
}

fn pace_of(witnesses: &Witnesses<'_>) -> String {
    let time = witnesses.time;
    time.and_then(|time| Some(pace(time.ratio?, time.interval))).unwrap_or_default()
}

/// Returns a share in percent with three digits: `0.52%`.
fn percent(share: f64) -> String {
    format!("{}%", figure(100.0 * share))
}
