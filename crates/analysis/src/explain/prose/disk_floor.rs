//! Puts findings about the floor of the disk in words.

use words::capitalized;

use super::numbers::{figure, list_any, percent, times};
use crate::counted;
use crate::explain::explanation::{AtFloor, AtFloorStep, FloorRequests};
use crate::explain::finding::Finding;
use crate::explain::thresholds::FLOOR_DRIFT_TOLD;

/// Returns the title and the sentences of a finding.
pub(super) fn text(at_floor: &AtFloor<'_>, about: &Finding) -> (String, Vec<String>) {
    let AtFloor { requests, steps } = at_floor;
    let first = &steps[0];
    let share = percent(first.percent / 100.0);

    let (title, what_is, what_helps) = match requests {
        FloorRequests::Commits => (
            format!("commits run at {share} of what the disk's `fdatasync` allows"),
            commits(first),
            "Fewer fsyncs for as many commits help, or another disk.",
        ),
        FloorRequests::Reads => (
            format!("reads run at {share} of what the disk allows"),
            reads(first),
            "Fewer reads per operation help, more of them in progress, or another disk.",
        ),
    };

    let others = steps[1..].iter().map(|step| {
        let share = percent(step.percent / 100.0);
        format!("{} in {} ({share})", step.who, step.step)
    });
    let also = list_any(others).map(|others| format!("Also {others}"));
    let drift = first.floor.drift;

    let doubt = (drift >= FLOOR_DRIFT_TOLD).then(|| {
        format!(
            "the disk alone reached {} as much at one end of the run as at the other",
            times(drift)
        )
    });
    let last: Vec<String> = also.into_iter().chain(doubt).collect();

    let mut sentences = vec![what_is, what_helps.to_owned()];
    if !last.is_empty() {
        sentences.push(capitalized(&format!("{}.", last.join("; "))));
    }
    (format!("{}: {title} in {}", first.who, super::place(about)), sentences)
}

/// Says how often the log was synced, and how many commits shared an fsync.
fn commits(step: &AtFloorStep<'_>) -> String {
    let shared = match step.commits_per_fsync {
        Some(commits) if commits >= 1.05 => format!(", each for {} commits", figure(commits)),
        Some(commits) if commits > 0.95 => ", each for one commit".to_owned(),
        Some(commits) => format!(", {} for each commit", figure(1.0 / commits)),
        None => String::new(),
    };

    format!(
        "In {}, {} synced its log {} times per second{shared}; for a program alone, the disk does {} `fdatasync` calls.",
        step.step,
        step.who,
        figure(step.per_s()),
        figure(step.floor.per_s)
    )
}

fn reads(step: &AtFloorStep<'_>) -> String {
    let size = step.read_kb.map(|kb| format!(" of {} KB", figure(kb)));
    format!(
        "In {}, {} read {} blocks{} per second; for a program alone with {} in progress, the disk does {}.",
        step.step,
        step.who,
        figure(step.per_s()),
        size.unwrap_or_default(),
        counted(step.clients as usize, "read"),
        figure(step.floor.per_s)
    )
}
