//! The result of a run in a few words, for lists of many runs.

use analysis::{
    compare::{ComparedWork, WorkVerdict},
    counted,
    explain::{Answer, FactorAnswer},
    figures::Figures,
};
use record::Run;

use super::searches;
use crate::model::comparison::{Comparison, Subject};
use crate::model::number::{listed, ratio_text};

/// The most effects that are named.
const EFFECTS_MAX: usize = 3;

/// Returns the result of a run in a few words: `2 faster, 1 slower, 4 too noisy`.
pub fn result_in_brief(run: &Run, figures: &Figures) -> String {
    if run.search.is_some() {
        return searches::results(run, figures).heading;
    }

    let subject = Subject::of(run, figures);
    let mut texts = Vec::new();
    for group in subject.explained().all() {
        let Comparison { figures, compared, effects, .. } = group.comparison;
        let counted = if compared.is_work_alone() {
            counts_of_work(&compared.work)
        } else {
            counts(&Answer::new(figures, compared, effects, &[]))
        };
        texts.push(match group.name {
            Some(name) => format!("{name}: {counted}"),
            None => counted,
        });
    }
    texts.join("; ")
}

/// Returns the shown effects of factors, the largest first: `sync=on 3 slower; jit=off 1 faster`.
fn effects(answer: &Answer) -> String {
    let mut texts = Vec::new();
    for FactorAnswer { factor, level, outcome, .. } in &answer.factors {
        let counted = [(outcome.faster.len(), "faster"), (outcome.slower.len(), "slower")];
        let shown = counted.into_iter().filter(|(count, _)| *count > 0);
        let shown: Vec<String> = shown.map(|(count, what)| format!("{count} {what}")).collect();
        texts.push(format!("{factor}={level} {}", shown.join(", ")));
    }
    listed(&texts, EFFECTS_MAX, "; ")
}

/// Counts the comparisons of all targets by their verdicts. In a matrix of factors, their effects
/// say more.
fn counts(answer: &Answer) -> String {
    if !answer.factors.is_empty() {
        return effects(answer);
    }
    if answer.targets.is_empty() {
        return "one target".to_owned();
    }

    let single: Vec<f64> =
        answer.targets.iter().flat_map(|target| &target.single).map(|once| once.ratio).collect();

    let mut texts = Vec::new();
    if !single.is_empty() {
        let low = ratio_text(single.iter().copied().fold(f64::INFINITY, f64::min));
        let high = ratio_text(single.iter().copied().fold(0.0, f64::max));
        let range = if low == high { format!("{low}x") } else { format!("{low}x to {high}x") };
        texts.push(format!("{} measured once ({range})", single.len()));
    }

    let targets = || answer.targets.iter();
    let counted_verdicts = [
        (targets().map(|target| target.faster.len()).sum::<usize>(), "faster"),
        (targets().map(|target| target.slower.len()).sum(), "slower"),
        (targets().map(|target| target.equal).sum(), "equal"),
        (targets().map(|target| target.too_noisy).sum(), "too noisy"),
        (targets().map(|target| target.not_compared).sum(), "not compared"),
    ];
    for (count, what) in counted_verdicts {
        if count > 0 {
            texts.push(format!("{count} {what}"));
        }
    }

    if texts.is_empty() {
        return format!("{} without figures", counted(answer.targets.len(), "target"));
    }
    texts.join(", ")
}

/// A result of comparing work, which some verdicts have.
struct WorkResult {
    name: &'static str,
    has: fn(WorkVerdict) -> bool,
}

/// The results in the order in which they are told. Each verdict has one of them.
const WORK_RESULTS: [WorkResult; 4] = [
    WorkResult { name: "more", has: |verdict| verdict == WorkVerdict::More },
    WorkResult { name: "less", has: |verdict| verdict == WorkVerdict::Less },
    WorkResult { name: "no change", has: |verdict| verdict == WorkVerdict::NoChangeShown },
    WorkResult {
        name: "not decided",
        has: |verdict| !verdict.is_change() && verdict != WorkVerdict::NoChangeShown,
    },
];

/// Counts the comparisons of the work of connections by their verdicts: `work: 8 more, 2 less`.
fn counts_of_work(work: &[ComparedWork]) -> String {
    let mut of_connections: Vec<&ComparedWork> = work.iter().collect();
    of_connections.retain(|compared| compared.part.connection.is_some());

    let mut texts = Vec::new();
    for WorkResult { name, has } in WORK_RESULTS {
        let count = of_connections.iter().filter(|compared| has(compared.verdict)).count();
        if count > 0 {
            texts.push(format!("{count} {name}"));
        }
    }

    if texts.is_empty() {
        return "only the work of the background".to_owned();
    }
    format!("work: {}", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use analysis::compare::ComparedPart;
    use analysis::explain::{Change, TargetAnswer};

    use super::*;

    #[test]
    fn a_run_that_only_counted_work_says_how_much_of_it_changed() {
        let work = |connection: Option<&str>, verdict| ComparedWork {
            part: ComparedPart {
                connection: connection.map(str::to_owned),
                ..ComparedPart::default()
            },
            verdict,
            ..ComparedWork::default()
        };
        let reader = Some("reader");
        let all = [
            work(reader, WorkVerdict::Less),
            work(reader, WorkVerdict::More),
            work(reader, WorkVerdict::More),
            work(reader, WorkVerdict::NoChangeShown),
            work(reader, WorkVerdict::Single),
            work(None, WorkVerdict::More),
        ];
        assert_eq!(counts_of_work(&all), "work: 2 more, 1 less, 1 no change, 1 not decided");
        assert_eq!(counts_of_work(&all[5..]), "only the work of the background");
    }

    fn change(ratio: f64) -> Change {
        Change { step: "l.i0".into(), variant: None, clients: 1, ratio, interval: None, repeats: 1 }
    }

    #[test]
    fn verdicts_are_counted_over_all_targets() {
        let first = TargetAnswer {
            faster: vec![change(1.2), change(1.5)],
            too_noisy: 3,
            ..TargetAnswer::default()
        };
        let second =
            TargetAnswer { slower: vec![change(0.5)], not_compared: 1, ..TargetAnswer::default() };
        let answer = Answer { targets: vec![first, second], ..Answer::default() };
        assert_eq!(counts(&answer), "2 faster, 1 slower, 3 too noisy, 1 not compared");

        let once =
            TargetAnswer { single: vec![change(0.04), change(2.0)], ..TargetAnswer::default() };
        let answer = Answer { targets: vec![once], ..Answer::default() };
        assert_eq!(counts(&answer), "2 measured once (0.040x to 2.00x)");
        assert_eq!(counts(&Answer::default()), "one target");
    }

    #[test]
    fn in_a_matrix_of_factors_their_effects_are_counted() {
        let effect = |factor: &str, faster, slower| FactorAnswer {
            factor: factor.into(),
            level: "on".into(),
            outcome: TargetAnswer {
                faster: vec![change(1.5); faster],
                slower: vec![change(0.5); slower],
                too_noisy: 1,
                ..TargetAnswer::default()
            },
            ..FactorAnswer::default()
        };
        let mut answer = Answer {
            factors: vec![effect("sync", 0, 3), effect("jit", 1, 1)],
            targets: vec![TargetAnswer { not_compared: 60, ..TargetAnswer::default() }],
            ..Answer::default()
        };
        assert_eq!(counts(&answer), "sync=on 3 slower; jit=on 1 faster, 1 slower");
        answer.factors.extend([effect("a", 1, 0), effect("b", 1, 0)]);
        assert!(counts(&answer).ends_with("a=on 1 faster and 1 more"));
    }
}
