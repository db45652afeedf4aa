//! Response times that changed where a schedule decides the throughput: at a requested rate, and between
//! the pauses of users. A target that keeps up has the same throughput as the base, however long its
//! operations take.

use super::case::Case;
use super::cause::{Cause, diagnose_response};
use super::change::{
    ExplainedCase, counted_caveats, fsyncs_beside_cpu, mark_named, shared_difference,
};
use super::explanation::Explanation;
use super::finding::{Evidence, place};
use super::statement::{ChangedTime, ResponseChange, Statement, ThroughputChange};
use super::thresholds::{NAMED_CHANGE, shown_change};
use crate::compare::{RESPONSE_TIMES, Verdict};
use crate::order::{distinct, grouped, sort_largest_first};

/// The weight of a changed response time, relative to the same change of throughput.
const WEIGHT: f64 = 0.8;

/// A case with its response times that changed, and their cause. The mean is the first of them, if the
/// mean changed. The first one sets the ratio of the case.
struct ResponseCase<'a> {
    case: Case<'a>,
    times: Vec<ChangedTime>,
    cause: Cause,
}

/// Returns one explanation for each target, cause and direction of response times that are shown to
/// differ where no change in throughput is shown.
pub(super) fn explain<'a>(cases: &[Case<'a>]) -> Vec<Explanation<'a>> {
    let changed = cases.iter().filter_map(response_case);
    let keyed = changed.map(|changed| {
        let case = &changed.case;
        let cause = (changed.cause.kind(), changed.cause.is_fsync_count());
        ((case.target(), cause, case.is_slower()), changed)
    });

    let groups = grouped(keyed).into_iter();
    groups.filter_map(|(_, group)| explanation(group)).collect()
}

/// Returns the response times of a case that changed; `None` where no schedule decides its throughput, or
/// throughput changed as well.
fn response_case<'a>(case: &Case<'a>) -> Option<ResponseCase<'a>> {
    let is_unchanged = matches!(case.compared.verdict, Verdict::Equal | Verdict::TooNoisy);
    if !is_unchanged || !case.is_scheduled() {
        return None;
    }

    let times: Vec<ChangedTime> =
        RESPONSE_TIMES.iter().filter_map(|metric| changed_time(case, metric)).collect();
    let leading = case.of_metric(times.first()?.metric)?;
    let case = case.by_response(leading)?;
    let cause = diagnose_response(&case);
    Some(ResponseCase { case, times, cause })
}

/// Returns the change of a response time, if it is shown and large enough to be named.
fn changed_time(case: &Case<'_>, metric: &'static str) -> Option<ChangedTime> {
    let row = case.of_metric(metric)?;
    let ratio = shown_change(row, NAMED_CHANGE)?;
    Some(ChangedTime { metric, us: case.metric(metric)?, ratio, interval: row.interval })
}

fn explanation(mut group: Vec<ResponseCase<'_>>) -> Option<Explanation<'_>> {
    sort_largest_first(&mut group, |changed| changed.case.log_time().abs());
    let ResponseCase { case, times, cause } = group.first()?;

    let mut evidence = case.evidence();
    for time in times {
        Evidence::mark_cause(&mut evidence, time.metric);
    }
    mark_named(&mut evidence, case, cause);

    let explained: Vec<ExplainedCase<'_>> = group.iter().map(ResponseCase::explained).collect();
    let speed = ThroughputChange {
        cases: group.iter().map(|changed| changed.case.facts()).collect(),
        comparison_count: group.len(),
        differences: distinct(group.iter().map(|changed| shared_difference(&changed.case))),
        is_sure: explained.iter().all(ExplainedCase::is_sure),
        cause: cause.clone(),
        fsyncs: fsyncs_beside_cpu(case, cause),
    };
    let is_noisy = group.iter().any(|changed| changed.case.compared.verdict == Verdict::TooNoisy);

    Some(Explanation {
        places: group.iter().map(|changed| place(changed.case.compared)).collect(),
        evidence,
        caveats: counted_caveats(&explained),
        weight: WEIGHT * case.log_time().abs(),
        statement: Statement::Response(ResponseChange { times: times.clone(), is_noisy, speed }),
    })
}

impl ResponseCase<'_> {
    fn explained(&self) -> ExplainedCase<'_> {
        ExplainedCase { case: &self.case, cause: self.cause.clone() }
    }
}
