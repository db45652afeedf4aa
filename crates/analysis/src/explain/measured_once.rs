//! Facts about targets that were measured once: without an interval there is no verdict, and so no
//! cause.

use super::case::Case;
use super::evidence::evidence_title;
use super::explanation::Explanation;
use super::finding::{Evidence, place};
use super::fsync_counts::{FSYNCS, FsyncCount};
use super::gap::{self, CostGaps};
use super::statement::{Fact, KnownDifferences, Statement};
use super::thresholds::{BEGINS_FACTOR, DEVICE_OF_TIME, FACT_FSYNCS_MIN};
use crate::order::grouped;
use crate::settings::Difference;

/// Facts come after all findings.
const WEIGHT: f64 = 0.01;

/// Lists the known differences of each target in one explanation: large differences in cost, fsyncs
/// per commit, as engines count them, and settings. `None` if only settings differ: no figure says that
/// they matter.
pub(super) fn facts<'a>(cases: &'a [Case<'a>]) -> Option<Explanation<'a>> {
    let (mut places, mut facts, mut evidence) = (Vec::new(), Vec::new(), Vec::new());

    let gaps = gap::by_cost(cases);
    for gap in gaps.iter().flatten() {
        evidence.push(gap.evidence());
        places.push(place(gap.case.compared));
    }

    for (who, cases) in grouped(gap::single(cases).into_iter().map(|case| (case.who(), case))) {
        let mut steps = Vec::new();
        for case in &cases {
            let Some(found) = fsyncs(case) else {
                continue;
            };
            let title = evidence_title(found.metric);
            let name = format!("{title} of {who} in {}", case.place());
            evidence.push(Evidence::new(&name, "/commit", found.count));
            steps.push(case.place());
        }

        let settings: Vec<Difference> = cases[0].difference.named().into_iter().cloned().collect();
        if !steps.is_empty() || !settings.is_empty() {
            places.extend(cases.iter().map(|case| place(case.compared)));
            facts.push(Fact { who, fsyncs: steps, settings });
        }
    }

    if evidence.is_empty() {
        return None;
    }

    Some(Explanation {
        places,
        evidence,
        caveats: Vec::new(),
        weight: WEIGHT,
        statement: Statement::Facts(KnownDifferences {
            gaps: gaps.iter().map(|of_cost| CostGaps::new(of_cost)).collect(),
            facts,
        }),
    })
}

/// Returns the fsyncs per commit of a case if their numbers differ by [`BEGINS_FACTOR`] or more,
/// and commits wait for them: for at least a [`DEVICE_OF_TIME`] of their time, if that was
/// measured.
fn fsyncs(case: &Case<'_>) -> Option<FsyncCount> {
    let waiting = case.metric("op_fsync_us");
    if waiting.is_some_and(|us| case.share_of_time(us) < DEVICE_OF_TIME) {
        return None;
    }

    FSYNCS.iter().find_map(|metric| {
        let count = case.metric(metric)?;
        let is_other = count.factor() >= BEGINS_FACTOR && count.max() >= FACT_FSYNCS_MIN;
        is_other.then_some(FsyncCount { metric, count })
    })
}
