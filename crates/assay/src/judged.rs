//! The report of a run until all is decided after each repeat: which comparisons are decided, and
//! how long the rest would take.

use analysis::compare::{Decision, REPEATS_CAP, Verdict};
use record::CellKey;
use runner::events::{JudgedComparison, JudgedRepeat, NextRepeat};
use runner::matrix::decided::REPEATS_WITH_VERDICT;
use runner::matrix::pace::about;
use words::counted;

/// Returns what a repeat has decided as lines: one for each target and load, then one for what
/// happens next. None while there are too few repeats for any verdict.
pub fn lines(judged: &JudgedRepeat<'_>) -> Vec<String> {
    if judged.repeat < REPEATS_WITH_VERDICT && judged.next == NextRepeat::Begins {
        return Vec::new();
    }

    let mut groups: Vec<(&CellKey, Vec<&JudgedComparison>)> = Vec::new();
    for comparison in judged.comparisons {
        match groups.iter_mut().find(|(cell, _)| cell.is_repeat_of(&comparison.cell)) {
            Some((_, group)) => group.push(comparison),
            None => groups.push((&comparison.cell, vec![comparison])),
        }
    }

    let mut lines = Vec::new();
    for (cell, group) in &groups {
        lines.push(format!("{}: {}", name(cell), decisions(group)));
    }

    lines.push(format!("after repeat {}: {}", judged.repeat, outlook(judged)));
    lines
}

/// Returns the name of a target with its load: `lite.off, 4 clients`.
fn name(cell: &CellKey) -> String {
    let variant = cell.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
    format!("{}{variant}, {}", cell.target, counted(cell.clients as usize, "client"))
}

/// Returns the decided steps by their verdicts, then the open ones.
fn decisions(group: &[&JudgedComparison]) -> String {
    let mut parts = Vec::new();
    for verdict in [Verdict::Faster, Verdict::Slower, Verdict::Equal] {
        let steps: Vec<String> =
            group.iter().filter_map(|judged| decided_step(judged, verdict)).collect();
        if !steps.is_empty() {
            parts.push(format!("{verdict} in {}", steps.join(", ")));
        }
    }

    let open: Vec<String> = group.iter().filter_map(|judged| open_step(judged)).collect();
    if !open.is_empty() {
        parts.push(format!("open in {}", open.join(", ")));
    }

    let given_up = group.iter().filter(|judged| judged.decision == Decision::GivenUp);
    let given_up: Vec<&str> = given_up.map(|judged| judged.step.as_str()).collect();
    if !given_up.is_empty() {
        parts.push(format!("given up in {}", given_up.join(", ")));
    }

    parts.join("; ")
}

/// Returns a step with a verdict, and whose rate decided it if not throughput; `None` if it has another
/// verdict, or none.
fn decided_step(judged: &JudgedComparison, wanted: Verdict) -> Option<String> {
    let Decision::Decided { verdict, by_typical_rate } = judged.decision else {
        return None;
    };
    if verdict != wanted {
        return None;
    }
    Some(if by_typical_rate {
        format!("{} (by its typical rate)", judged.step)
    } else {
        judged.step.clone()
    })
}

/// Returns an open step, with the repeats that would decide it; `None` if it is not open.
fn open_step(judged: &JudgedComparison) -> Option<String> {
    let Decision::Open { repeats_needed } = judged.decision else {
        return None;
    };
    Some(match repeats_needed {
        None => judged.step.clone(),
        Some(REPEATS_CAP) => format!("{} ({REPEATS_CAP} repeats or more)", judged.step),
        Some(needed) => {
            let more = needed.saturating_sub(judged.repeats);
            format!("{} (about {} more)", judged.step, counted(more as usize, "repeat"))
        }
    })
}

/// Returns what happens next, and how long it takes.
fn outlook(judged: &JudgedRepeat<'_>) -> String {
    let open_count = judged.comparisons.iter().filter(|judged| judged.decision.is_open()).count();
    let open = format!("{open_count} of {} open", counted(judged.comparisons.len(), "comparison"));
    let rest = match judged.time_needed {
        Some(time) => format!("{open}; the rest would take {}", about(time)),
        None => open,
    };

    match judged.next {
        NextRepeat::Begins => {
            format!("{rest}; {} left", about(judged.time_left))
        }
        NextRepeat::NoneNeeded if judged.comparisons.is_empty() => "nothing to compare".to_owned(),
        NextRepeat::NoneNeeded => "no comparison is open".to_owned(),
        // Too few repeats are another problem than open comparisons.
        NextRepeat::NoTime if judged.repeat < REPEATS_WITH_VERDICT => format!(
            "the time is up, but verdicts need {REPEATS_WITH_VERDICT} repeats; `{}` continues",
            judged.resume_command
        ),
        NextRepeat::NoTime => {
            format!(
                "the time is up, with {rest}; `{}` continues; `assay compare RUN` may give more throughput verdicts on \
                 what was measured so far; it does not use typical rates to decide",
                judged.resume_command
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn judged(step: &str, decision: Decision) -> JudgedComparison {
        JudgedComparison {
            cell: CellKey::new("lite.off", None, 1, 0),
            step: step.to_owned(),
            repeats: 5,
            decision,
        }
    }

    fn decided(verdict: Verdict, by_typical_rate: bool) -> Decision {
        Decision::Decided { verdict, by_typical_rate }
    }

    fn after_repeat(comparisons: &[JudgedComparison], repeat: u32, next: NextRepeat) -> String {
        let judged = JudgedRepeat {
            repeat,
            comparisons,
            time_needed: Some(Duration::from_secs(240)),
            time_left: Duration::from_secs(360),
            next,
            resume_command: "assay run --resume results/a".to_owned(),
        };
        lines(&judged).join("\n")
    }

    #[test]
    fn what_is_decided_and_what_the_rest_takes_is_said() {
        let comparisons = [
            judged("l.i0", decided(Verdict::Faster, false)),
            judged("l.x", decided(Verdict::Equal, false)),
            judged("l.i1", Decision::Open { repeats_needed: Some(9) }),
            judged("l.i2", decided(Verdict::Faster, true)),
            judged("qr100", Decision::Open { repeats_needed: Some(REPEATS_CAP) }),
            judged("qp100", Decision::GivenUp),
        ];
        assert_eq!(
            after_repeat(&comparisons, 5, NextRepeat::Begins),
            "lite.off, 1 client: faster in l.i0, l.i2 (by its typical rate); equal in l.x; open in l.i1 (about 4 \
             repeats more), qr100 (100 repeats or more); given up in qp100\n\
             after repeat 5: 2 of 6 comparisons open; the rest would take about 4 min; about 6 min left"
        );
        let ended = after_repeat(&comparisons, 5, NextRepeat::NoTime);
        assert!(ended.ends_with(
            "after repeat 5: the time is up, with 2 of 6 comparisons open; the rest would take about 4 min; \
             `assay run --resume results/a` continues; `assay compare RUN` may give more throughput verdicts on \
             what was measured so far; it does not use typical rates to decide"
        ));
    }

    #[test]
    fn too_few_repeats_for_verdicts_say_nothing_unless_the_time_is_up() {
        let open = [judged("l.i0", Decision::Open { repeats_needed: None })];
        assert_eq!(after_repeat(&open, 2, NextRepeat::Begins), "");
        let ended = after_repeat(&open, 2, NextRepeat::NoTime);
        assert!(ended.contains("verdicts need 3 repeats"), "{ended}");
    }
}
