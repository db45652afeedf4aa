//! The answer of a run that counted work and measured no time.

use analysis::compare::{Compared, ComparedWork, WorkVerdict};
use analysis::{counted, distinct};
use words::share_of;

use super::{IS, NAMED, SHOWS, count_text};
use crate::model::number::listed;
use crate::prose::Passage;

/// Returns a sentence for each target, the one with the largest change first.
pub(super) fn passage(compared: &Compared) -> Passage {
    let counted_parts = || compared.work.iter().filter(|work| work.part.connection.is_some());
    let targets = distinct(counted_parts().map(|work| work.cell.target.as_str()));

    let mut of_targets: Vec<WorkOfTarget<'_>> = targets
        .into_iter()
        .map(|target| WorkOfTarget {
            target,
            base: &compared.base,
            parts: counted_parts().filter(|work| work.cell.target == target).collect(),
        })
        .collect();
    of_targets.sort_by(|a, b| b.largest_change().total_cmp(&a.largest_change()));

    let mut sentences: Vec<String> = of_targets.iter().map(WorkOfTarget::sentence).collect();
    sentences.extend(backgrounds(compared));
    let heading = if of_targets.is_empty() {
        "Only the work of the background was counted.".to_owned()
    } else {
        sentences.remove(0)
    };

    let remedy = "Time was not measured: `assay run --resume RUN --repeats 5` adds cells that do.";
    Passage { heading, sentences, remedy: Some(remedy.to_owned()), ..Passage::default() }
}

/// Returns a sentence for each target whose background changed its work. Timers decide when it works,
/// so it is told after the work of connections, however large the change is.
fn backgrounds(compared: &Compared) -> Vec<String> {
    let all = || compared.work.iter().filter(|work| work.part.connection.is_none());
    let mut sentences = Vec::new();
    for target in distinct(all().map(|work| work.cell.target.as_str())) {
        let of_target = WorkOfTarget {
            target,
            base: &compared.base,
            parts: all().filter(|work| work.cell.target == target).collect(),
        };

        let ways = [("more", WorkVerdict::More), ("less", WorkVerdict::Less)];
        let mut said = Vec::new();
        for (word, verdict) in ways {
            let parts = of_target.with(verdict);
            if !parts.is_empty() {
                said.push(format!("{word} work per operation ({})", places(&parts)));
            }
        }
        if !said.is_empty() {
            sentences.push(format!("The background of {target} does {}.", said.join(" and ")));
        }
    }
    sentences
}

/// The noun for what is counted: a step has a comparison for each of its connections.
const NOUN: &str = "comparison";

/// The parts of a target whose work changed in one direction.
struct OneWay<'a> {
    /// `more` or `less`.
    word: &'static str,
    parts: Vec<&'a ComparedWork>,
}

/// The work of a target's connections against the base's.
struct WorkOfTarget<'a> {
    target: &'a str,
    base: &'a str,
    parts: Vec<&'a ComparedWork>,
}

impl WorkOfTarget<'_> {
    /// Returns the size of the largest change that is shown; 0 without any.
    fn largest_change(&self) -> f64 {
        let shown = self.parts.iter().filter(|part| part.verdict.is_change());
        shown.map(|part| size(part)).fold(0.0, f64::max)
    }

    fn sentence(&self) -> String {
        let Self { target, base, parts } = self;
        let all = parts.len();
        let (more, less) = (self.with(WorkVerdict::More), self.with(WorkVerdict::Less));
        let no_change = self.with(WorkVerdict::NoChangeShown).len();
        let undecided = all - more.len() - less.len() - no_change;

        let others = [
            count_text(no_change, all, SHOWS, " no change"),
            count_text(undecided, all, IS, " not decided"),
        ];
        let others: Vec<String> = others.into_iter().flatten().collect();

        if more.is_empty() && less.is_empty() {
            return format!(
                "No change in work per operation is shown between {target} and {base} in {}: {}.",
                counted(all, NOUN),
                others.join(", ")
            );
        }

        let more = OneWay { word: "more", parts: more };
        let less = OneWay { word: "less", parts: less };
        let (first, second) = if more.parts.is_empty() { (less, more) } else { (more, less) };
        let mut said = format!(
            "{target} does {} work per operation than {base} in {} ({})",
            first.word,
            share_of(first.parts.len(), all, NOUN),
            places(&first.parts)
        );

        // If all work changes in one direction, none is left for the other.
        let OneWay { word, parts } = second;
        if !parts.is_empty() {
            said += &format!(", {word} in {} ({})", parts.len(), places(&parts));
        } else if first.parts.len() < all {
            said += &format!(", {word} in none");
        }

        for text in others {
            said += &format!("; {text}");
        }
        said + "."
    }

    /// Returns the parts with a verdict, the largest change first.
    fn with(&self, verdict: WorkVerdict) -> Vec<&ComparedWork> {
        let mut parts = self.parts.clone();
        parts.retain(|part| part.verdict == verdict);
        parts.sort_by(|a, b| size(b).total_cmp(&size(a)));
        parts
    }
}

/// Returns the size of a change, which is equal for twice and half the work.
fn size(part: &ComparedWork) -> f64 {
    part.ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

/// Lists where work changed, and by how much: `l.i1 delete 3.2%, point-query 1.5%`.
fn places(parts: &[&ComparedWork]) -> String {
    let text = |part: &&ComparedWork| {
        let percent = 100.0 * part.change().unwrap_or(0.0).abs();
        let step = &part.step;

        match part.part.connection.as_deref() {
            // A test of sysbench has one kind of connection.
            None | Some("event") => format!("{step} {percent:.1}%"),
            Some(connection) => format!("{step} {connection} {percent:.1}%"),
        }
    };

    listed(&parts.iter().map(text).collect::<Vec<_>>(), NAMED, ", ")
}

#[cfg(test)]
mod tests {
    use analysis::compare::ComparedPart;
    use record::CellKey;

    use super::*;

    fn work(target: &str, step: &str, ratio: f64, verdict: WorkVerdict) -> ComparedWork {
        let part = ComparedPart { connection: Some("event".into()), ..ComparedPart::default() };
        let cell = CellKey { target: target.into(), ..CellKey::default() };
        ComparedWork {
            cell,
            step: step.into(),
            part,
            ratio: Some(ratio),
            verdict,
            ..ComparedWork::default()
        }
    }

    #[test]
    fn the_target_with_the_largest_change_heads_the_answer() {
        let compared = Compared {
            base: "a".into(),
            work: vec![
                work("b", "scan", 1.02, WorkVerdict::More),
                work("b", "insert", 1.0, WorkVerdict::NoChangeShown),
                work("c", "scan", 0.8, WorkVerdict::Less),
                work("c", "insert", 1.051, WorkVerdict::More),
            ],
            ..Compared::default()
        };
        let said = passage(&compared);
        assert_eq!(
            said.heading,
            "c does more work per operation than a in 1 of 2 comparisons (insert 5.1%), less in 1 (scan 20.0%)."
        );
        assert_eq!(
            said.sentences,
            [
                "b does more work per operation than a in 1 of 2 comparisons (scan 2.0%), less in none; 1 shows no change."
            ]
        );
    }

    #[test]
    fn background_work_that_changed_is_named_after_the_work_of_connections() {
        let background = |step: &str, ratio, verdict| ComparedWork {
            part: ComparedPart::default(),
            ..work("b", step, ratio, verdict)
        };
        let compared = Compared {
            base: "a".into(),
            work: vec![
                work("b", "scan", 0.989, WorkVerdict::Less),
                background("insert", 0.36, WorkVerdict::Less),
                background("scan", 1.2, WorkVerdict::More),
                background("index", 1.1, WorkVerdict::NotDeterministic),
            ],
            ..Compared::default()
        };
        let said = passage(&compared);
        assert!(said.heading.starts_with("b does less work per operation"), "{}", said.heading);
        assert_eq!(
            said.sentences,
            [
                "The background of b does more work per operation (scan 20.0%) and less work per operation (insert 64.0%)."
            ]
        );
    }

    #[test]
    fn work_that_did_not_change_is_said_with_what_is_not_decided() {
        let compared = Compared {
            base: "a".into(),
            work: vec![
                work("b", "scan", 1.001, WorkVerdict::NoChangeShown),
                work("b", "insert", 1.1, WorkVerdict::NotDeterministic),
            ],
            ..Compared::default()
        };
        assert_eq!(
            passage(&compared).heading,
            "No change in work per operation is shown between b and a in 2 comparisons: 1 shows no change, 1 is not decided."
        );
    }
}
