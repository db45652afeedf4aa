//! Facts about targets that were measured once: without an interval there is no verdict, and so no
//! cause.

use super::case::{Case, Pair};
use super::cause::FSYNCS;
use super::explanation::{Explanation, Fact, Statement};
use super::finding::{Evidence, place};
use super::thresholds::{BEGINS_FACTOR, FACT_FSYNCS_MIN};
use crate::compare::Verdict;
use crate::order::grouped;

/// Facts come after all findings.
const WEIGHT: f64 = 0.01;

/// Lists the known differences of each target in one explanation: fsyncs per commit, as engines
/// count them, and settings.
pub(super) fn facts<'a>(cases: &'a [Case<'a>]) -> Option<Explanation<'a>> {
    // A target with verdicts has causes there, though its load may have been measured once.
    let with_verdicts: Vec<String> =
        cases.iter().filter(|case| is_of_several(case.compared.verdict)).map(Case::who).collect();
    let single = cases.iter().filter(|case| {
        case.compared.verdict == Verdict::Single && !with_verdicts.contains(&case.who())
    });
    let (mut places, mut facts, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
    for (who, cases) in grouped(single.map(|case| (case.who(), case))) {
        let mut steps = Vec::new();
        for (case, metric, count) in cases.iter().filter_map(|case| fsyncs(case)) {
            let name = format!("{metric} of {who} in {}", case.place());
            evidence.push(Evidence::new(&name, "/commit", count));
            steps.push(case.place());
        }
        let settings = cases[0].difference.named();
        if !steps.is_empty() || !settings.is_empty() {
            places.extend(cases.iter().map(|case| place(case.compared)));
            facts.push(Fact { who, fsyncs: steps, settings });
        }
    }
    Some(Explanation {
        places,
        evidence,
        caveats: Vec::new(),
        weight: WEIGHT,
        statement: Statement::Facts(facts),
    })
}

/// Returns whether a verdict comes from several repeats.
fn is_of_several(verdict: Verdict) -> bool {
    verdict.is_change() || matches!(verdict, Verdict::NoChangeShown | Verdict::TooNoisy)
}

/// Returns the fsyncs per commit of a case if their numbers differ by [`BEGINS_FACTOR`] or more,
/// and commits may wait for them.
fn fsyncs<'a>(case: &'a Case<'a>) -> Option<(&'a Case<'a>, &'static str, Pair)> {
    FSYNCS.iter().find_map(|metric| {
        let count = case.metric(metric)?;
        let is_other = count.factor() >= BEGINS_FACTOR && count.max() >= FACT_FSYNCS_MIN;
        is_other.then_some((case, *metric, count))
    })
}
