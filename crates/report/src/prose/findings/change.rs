//! Changes of throughput, in words.

use words::{excerpt, share_of};

use super::wording::{Wording, interval_text, pace_of};
use super::{cause, difference};
use crate::prose::numbers::{both, figure, list, list_any, times};
use analysis::counted;
use analysis::explain::statement::{CaseFacts, Cause, ThroughputChange};
use analysis::explain::{Finding, FindingKind};

/// The maximum length of a statement in a sentence, in characters.
const STATEMENT_CHARS: usize = 60;

/// The number of steps up to which a title names them.
const STEPS_NAMED: usize = 3;

pub(super) fn wording(change: &ThroughputChange, about: &Finding) -> Wording {
    Wording { title: title(change, about), sentences: sentences(change) }
}

/// Returns a title such as `pg17.base: 1.20x slower in scan: 21% more CPU per query`.
fn title(change: &ThroughputChange, about: &Finding) -> String {
    let leading = &change.cases[0];

    let who = match about.targets.as_slice() {
        [one] => one.clone(),
        many => counted(many.len(), "target"),
    };

    let (up_to, mut headline) = if change.cases.len() == 1 {
        ("", cause::headline(change))
    } else if change.cause.is_unexplained() {
        ("up to ", cause::unexplained_headline(change))
    } else {
        let in_brief = cause::in_brief(change.cause_in_brief());
        ("up to ", in_brief + &cause::fsyncs_beside_cpu(change))
    };

    if matches!(change.cause, Cause::Unexplained(_))
        && let Some(setting) = difference::name_of_only(&change.differences)
    {
        headline += &format!("; only {setting} differs");
    }

    format!("{who}: {up_to}{} {}: {headline}", pace_of(leading), title_place(change, about))
}

/// Returns the steps of a title: `in scan`, `in 3 of 12 comparisons (scan and point-query)`.
fn title_place(change: &ThroughputChange, about: &Finding) -> String {
    let leading = &change.cases[0];
    let (count, total) = (change.cases.len(), change.comparison_count);
    let steps = &about.steps;

    if count == 1 {
        return format!("in {}", leading.place);
    }

    // Each case has a step of its own, so the steps alone say where.
    if steps.len() == count && count <= STEPS_NAMED {
        // A variant that all of them share.
        return match &leading.named_variant {
            Some(variant) if about.variant.is_some() => format!("in {} of {variant}", list(steps)),
            _ => format!("in {}", list(steps)),
        };
    }

    if steps.len() <= STEPS_NAMED {
        format!("in {} ({})", share_of(count, total, "comparison"), list(steps))
    } else {
        let noun = if about.targets.len() == 1 { "step" } else { "comparison" };
        format!("in {}", share_of(count, total, noun))
    }
}

/// States the change and its certainty, the cause, the other steps with it, and the differences
/// between the targets.
fn sentences(change: &ThroughputChange) -> Vec<String> {
    let case = &change.cases[0];
    let mut sentences = vec![format!(
        "{} is {} than {} in {}{}.",
        case.target,
        pace_of(case),
        case.base,
        case.place,
        interval_text(case.interval, case.repeat_count)
    )];

    sentences.extend(reasons(change));
    sentences
}

/// States the cause, what supports it, the other steps with it, and the differences between the targets.
pub(super) fn reasons(change: &ThroughputChange) -> Vec<String> {
    let case = &change.cases[0];
    let mut sentences = vec![cause::sentence(case, &change.cause)];
    sentences.extend(detail(change));
    if matches!(change.cause.kind(), FindingKind::Cpu | FindingKind::Unexplained) {
        sentences.extend(background_cpu(case));
    }
    sentences.extend(conflicts(change));
    sentences.extend(indexes(change));
    sentences.extend(changed_plan(case));
    sentences.extend(others_and_differences(change));
    sentences
}

/// Adds to the cause what profiles or the engine say of it.
fn detail(change: &ThroughputChange) -> Option<String> {
    let case = &change.cases[0];
    match change.cause.kind() {
        FindingKind::Cpu => cpu_detail(case),
        FindingKind::HostBusy | FindingKind::SlaMissed => None,
        _ => named_wait(case),
    }
}

/// Counts the conflicts between operations that changed as well, where the cause does not name them.
fn conflicts(change: &ThroughputChange) -> Option<String> {
    if matches!(change.cause, Cause::Retries(_)) {
        return None;
    }
    let case = &change.cases[0];
    let counts = cause::conflicts_text(&case.conflicts, &case.operation)?;
    Some(format!("There are {counts}."))
}

/// Compares the sizes of indexes that differ, where their size may make work.
fn indexes(change: &ThroughputChange) -> Option<String> {
    let kind = change.cause.kind();
    if !matches!(kind, FindingKind::Reads | FindingKind::Writes | FindingKind::Cpu) {
        return None;
    }

    let case = &change.cases[0];
    Some(format!(
        "When the step began, the indexes of {} were {} as large as those of {}.",
        case.target,
        times(case.index_gb?.ratio()?),
        case.base
    ))
}

/// Says whose CPU it is, or names the function that has most of the change.
pub(super) fn cpu_detail(case: &CaseFacts) -> Option<String> {
    if case.without_threads.is_empty() { named_function(case) } else { Some(whole_process(case)) }
}

/// States the CPU of the engine's other threads, where it changed by more than own CPU.
pub(super) fn background_cpu(case: &CaseFacts) -> Option<String> {
    let us = case.background_cpu_us?;
    Some(format!(
        "Background CPU, of the engine's other threads, changed by more time per {} than own CPU: {}.",
        case.operation,
        both(us, "us")
    ))
}

/// States that the CPU is that of the server's whole process, where its threads cannot be told
/// apart.
fn whole_process(case: &CaseFacts) -> String {
    format!(
        "The threads of {} cannot be told apart, so this is the CPU of the server's whole process on both sides.",
        list(&case.without_threads)
    )
}

/// Names the function in which most of the change of CPU is.
fn named_function(case: &CaseFacts) -> Option<String> {
    let function = case.function.as_ref()?;
    let more = if function.difference_us > 0.0 { "more" } else { "less" };

    let caller = match &function.caller {
        Some(caller) => format!(", called by `{caller}`"),
        None => String::new(),
    };
    Some(format!(
        "According to the profiles, {} us {more} per {} is in `{}`{caller}.",
        figure(function.difference_us.abs()),
        case.operation,
        function.name
    ))
}

/// Names a statement that the engine runs with another plan.
fn changed_plan(case: &CaseFacts) -> Option<String> {
    let plan = case.plan.as_ref()?;
    let others = match plan.other_count {
        0 => String::new(),
        count => format!(", and those of {}", counted(count, "other statement")),
    };

    Some(format!(
        "The plan of `{}` differs: `{}` instead of `{}`{others}.",
        excerpt(&plan.statement, STATEMENT_CHARS),
        plan.target,
        plan.base
    ))
}

/// Names the wait of sessions that changed most.
fn named_wait(case: &CaseFacts) -> Option<String> {
    let wait = case.wait.as_ref()?;
    let us = wait.time.difference_us;
    let more = if us > 0.0 { "more" } else { "less" };
    Some(format!(
        "According to the engine, sessions spent {} us {more} per {} in `{}`.",
        figure(us.abs()),
        case.operation,
        wait.name
    ))
}

/// Names the other cases, and the differences between the two targets.
fn others_and_differences(change: &ThroughputChange) -> Option<String> {
    let others = also(&change.cases);
    let differences = difference::clauses(&change.differences, change.is_sure);

    match (others, differences) {
        (Some(others), Some(differences)) => Some(format!("{others}; the two {differences}.")),
        (Some(others), None) => Some(format!("{others}.")),
        (None, Some(differences)) => Some(format!("The two {differences}.")),
        (None, None) => None,
    }
}

/// Names the other cases, of several targets each first: `Also in q500 (1.20x slower)`.
fn also(cases: &[CaseFacts]) -> Option<String> {
    let (leading, others) = cases.split_first()?;
    let has_targets = others.iter().any(|case| case.target != leading.target);

    let mut firsts = Vec::new();
    let mut repeated = Vec::new();
    let mut seen = vec![leading.target.as_str()];
    for case in others {
        if seen.contains(&case.target.as_str()) {
            repeated.push(case);
        } else {
            seen.push(&case.target);
            firsts.push(case);
        }
    }

    let mut texts = Vec::new();
    for case in firsts.into_iter().chain(repeated) {
        let pace = pace_of(case);
        texts.push(if has_targets {
            format!("{} in {} ({pace})", case.target, case.place)
        } else {
            format!("{} ({pace})", case.place)
        });
    }

    let also = if has_targets { "Also" } else { "Also in" };
    Some(format!("{also} {}", list_any(texts)?))
}
