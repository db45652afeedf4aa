//! CPU of clients that is own CPU: one figure, which has one verdict.

use super::metric::{CLIENT_CPU, OWN_CPU};
use super::{ComparedStep, Sample};

/// The relative difference of two sums of the same times that were added in another order.
const ROUNDING_OF_SUMS: f64 = 1e-9;

/// Gives CPU of clients the verdict of own CPU where both are the same figure, as where a library
/// works in the threads of clients that have one kind of operation. Their families have different
/// levels, so that one of two equal ratios could be shown and the other not.
///
/// The comparisons of a target in a step follow each other in `rows`.
pub(super) fn share_verdict_of_own_cpu(rows: &mut [ComparedStep]) {
    for of_step in rows.chunk_by_mut(|row, next| row.compares_the_same(next)) {
        let at = |metric: &str| of_step.iter().position(|row| row.metric == metric);
        let (Some(own), Some(of_clients)) = (at(OWN_CPU), at(CLIENT_CPU)) else {
            continue;
        };

        if is_same(&of_step[own], &of_step[of_clients]) {
            let own = of_step[own].clone();
            of_step[of_clients] = ComparedStep { metric: CLIENT_CPU.to_owned(), ..own };
        }
    }
}

/// Returns whether two comparisons are of the same figures.
fn is_same(one: &ComparedStep, another: &ComparedStep) -> bool {
    !one.values.is_empty()
        && has_same_values(&one.values, &another.values)
        && has_same_values(&one.base_values, &another.base_values)
}

fn has_same_values(some: &[Sample], others: &[Sample]) -> bool {
    let mut pairs = some.iter().zip(others);
    some.len() == others.len()
        && pairs.all(|(one, another)| {
            one.is_of_repeat_of(another) && is_same_sum(one.value, another.value)
        })
}

/// Returns whether two sums are of the same times, whatever the order in which they were added.
pub(crate) fn is_same_sum(one: f64, another: f64) -> bool {
    (one - another).abs() <= ROUNDING_OF_SUMS * one.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Verdict;

    /// Returns a comparison of two repeats with these values, whose base has a tenth of them.
    fn row(metric: &str, verdict: Verdict, values: [f64; 2]) -> ComparedStep {
        let sample = |repeat, value| Sample { run: 0, repeat, value };
        let [first, second] = values;
        ComparedStep {
            step: "scan".to_owned(),
            metric: metric.to_owned(),
            verdict,
            values: vec![sample(1, first), sample(2, second)],
            base_values: vec![sample(1, first / 10.0), sample(2, second / 10.0)],
            ..ComparedStep::default()
        }
    }

    #[test]
    fn one_figure_has_one_verdict_and_another_figure_its_own() {
        let own = row(OWN_CPU, Verdict::Slower, [3.0, 4.0]);
        let same = row(CLIENT_CPU, Verdict::TooNoisy, [3.0 + 1e-12, 4.0]);
        let mut rows = [same, own.clone()];
        share_verdict_of_own_cpu(&mut rows);
        assert_eq!(rows[0].verdict, Verdict::Slower);
        assert_eq!(rows[0].metric, CLIENT_CPU);

        // The clients' threads also write.
        let more = row(CLIENT_CPU, Verdict::TooNoisy, [3.0, 4.5]);
        let elsewhere = ComparedStep { step: "get".to_owned(), ..rows[0].clone() };
        let elsewhere = ComparedStep { verdict: Verdict::TooNoisy, ..elsewhere };
        let mut rows = [elsewhere, more, own];
        share_verdict_of_own_cpu(&mut rows);
        assert_eq!([rows[0].verdict, rows[1].verdict], [Verdict::TooNoisy; 2]);
    }
}
