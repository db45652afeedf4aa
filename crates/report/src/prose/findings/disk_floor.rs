//! Puts findings about the floor of the disk in words.

use words::capitalized;

use super::wording::{Wording, place};
use crate::prose::numbers::{figure, list_any, percent, times};
use analysis::counted;
use analysis::explain::Finding;
use analysis::explain::statement::{AtFloor, AtFloorStep, FLOOR_DRIFT_TOLD, FloorRequests};

pub(super) fn wording(at_floor: &AtFloor, about: &Finding) -> Wording {
    let first = &at_floor.steps[0];
    let share = percent(first.percent / 100.0);

    let (title, what_is, what_helps) = match at_floor.requests {
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

    let mut sentences = vec![what_is, what_helps.to_owned()];
    sentences.extend(others_and_drift(&at_floor.steps));
    Wording { title: format!("{}: {title} in {}", first.who, place(about)), sentences }
}

/// Names the other steps, and says how far the disk itself changed.
fn others_and_drift(steps: &[AtFloorStep]) -> Option<String> {
    let (first, others) = steps.split_first()?;

    let mut texts = Vec::new();
    for step in others {
        let share = percent(step.percent / 100.0);
        texts.push(format!("{} in {} ({share})", step.who, step.step));
    }

    let mut clauses = Vec::new();
    if let Some(others) = list_any(texts) {
        clauses.push(format!("Also {others}"));
    }
    if first.floor.drift >= FLOOR_DRIFT_TOLD {
        clauses.push(format!(
            "the disk alone reached {} as much at one end of the run as at the other",
            times(first.floor.drift)
        ));
    }

    (!clauses.is_empty()).then(|| capitalized(&format!("{}.", clauses.join("; "))))
}

/// Says how often the log was synced, and how many commits shared an fsync.
fn commits(step: &AtFloorStep) -> String {
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

fn reads(step: &AtFloorStep) -> String {
    let size = match step.read_kb {
        Some(kb) => format!(" of {} KB", figure(kb)),
        None => String::new(),
    };

    format!(
        "In {}, {} read {} blocks{size} per second; for a program alone with {} in progress, the disk does {}.",
        step.step,
        step.who,
        figure(step.per_s()),
        counted(step.clients as usize, "read"),
        figure(step.floor.per_s)
    )
}
