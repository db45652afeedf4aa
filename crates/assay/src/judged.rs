//! The report of a run until all is decided after each repeat: which comparisons are decided, and
//! how long the rest would take.

use analysis::compare::{CHANGE_ADVISED_MAX, Decision, REPEATS_ADVISED_MAX, REPEATS_CAP, Verdict};
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

/// Returns the decided steps by their verdicts, then the open ones, and apart from these what more
/// repeats cannot decide.
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

    let noisy_rows = group.iter().filter(|judged| judged.is_too_noisy);
    let too_noisy: Vec<&str> = noisy_rows.map(|judged| judged.step.as_str()).collect();
    if !too_noisy.is_empty() {
        parts.push(format!(
            "too noisy in {}: even {REPEATS_ADVISED_MAX} repeats would show no change below {:.0}%",
            too_noisy.join(", "),
            CHANGE_ADVISED_MAX * 100.0
        ));
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

/// Returns an open step, with the repeats that would decide it; `None` if it is not open, or too
/// noisy for any.
fn open_step(judged: &JudgedComparison) -> Option<String> {
    if judged.is_too_noisy {
        return None;
    }

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
    let too_noisy_count = judged.comparisons.iter().filter(|judged| judged.is_too_noisy).count();
    // Those are open as well.
    let repeats_help = too_noisy_count == 0 || too_noisy_count < open_count;

    let mut open =
        format!("{open_count} of {} open", counted(judged.comparisons.len(), "comparison"));
    if !repeats_help {
        open += ", and more repeats would not help";
    } else if too_noisy_count > 0 {
        open += &format!(", {too_noisy_count} of them too noisy for more repeats to help");
    }

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
            let advice = if repeats_help {
                format!("`{}` continues", judged.resume_command)
            } else {
                "measure longer steps, in turns, or on a quieter machine".to_owned()
            };
            format!(
                "the time is up, with {rest}; {advice}; `assay compare RUN` may give more throughput verdicts on \
                 what was measured so far; it does not use typical rates to decide"
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
            is_too_noisy: false,
        }
    }

    fn too_noisy(step: &str) -> JudgedComparison {
        let open = Decision::Open { repeats_needed: Some(REPEATS_CAP) };
        JudgedComparison { is_too_noisy: true, ..judged(step, open) }
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
    fn what_more_repeats_would_not_decide_is_said_before_the_time_is_up() {
        let comparisons =
            [judged("l.i0", decided(Verdict::Equal, false)), too_noisy("l.x"), too_noisy("l.i1")];
        let steps_line = "lite.off, 1 client: equal in l.i0; too noisy in l.x, l.i1: even 40 repeats would show no \
                          change below 100%";
        let text = after_repeat(&comparisons, 5, NextRepeat::Begins);
        assert!(text.starts_with(steps_line), "{text}");
        assert!(
            text.contains("2 of 3 comparisons open, and more repeats would not help"),
            "{text}"
        );

        let text_at_end = after_repeat(&comparisons, 5, NextRepeat::NoTime);
        assert!(text_at_end.contains("or on a quieter machine"), "{text_at_end}");
        assert!(!text_at_end.contains("--resume"), "{text_at_end}");

        let open = judged("l.i2", Decision::Open { repeats_needed: Some(9) });
        let text_with_open = after_repeat(&[too_noisy("l.x"), open], 5, NextRepeat::NoTime);
        assert!(text_with_open.contains("open in l.i2 (about 4 repeats more)"), "{text_with_open}");
        assert!(
            text_with_open
                .contains("2 of 2 comparisons open, 1 of them too noisy for more repeats to help"),
            "{text_with_open}"
        );
        assert!(text_with_open.contains("--resume"), "{text_with_open}");
    }

    #[test]
    fn too_few_repeats_for_verdicts_say_nothing_unless_the_time_is_up() {
        let open = [judged("l.i0", Decision::Open { repeats_needed: None })];
        assert_eq!(after_repeat(&open, 2, NextRepeat::Begins), "");
        let ended = after_repeat(&open, 2, NextRepeat::NoTime);
        assert!(ended.contains("verdicts need 3 repeats"), "{ended}");
    }
}
