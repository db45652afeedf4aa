//! Says how much of the variance of throughput is between machines, where several measured the
//! repeats.

use super::case::Case;
use super::explanation::Explanation;
use super::finding::{Evidence, place};
use super::statement::{MachineShare, MachineVariance, Statement};
use crate::order::sort_largest_first;

/// This finding is about the repeats, not about a change, and comes last.
const WEIGHT: f64 = 0.02;

/// Returns the finding of the comparisons whose pairs are from several machines.
pub(super) fn variance<'a>(cases: &'a [Case<'a>]) -> Option<Explanation<'a>> {
    let share = |case: &'a Case<'a>| Some((case.compared.machines.variance_share?, case));
    let mut shares: Vec<_> = cases.iter().filter_map(share).collect();
    sort_largest_first(&mut shares, |(item, _)| item.share);

    let machine_count = |(_, case): &(_, &Case<'_>)| case.compared.machines.count;
    let most = shares.iter().map(machine_count).max()?;

    let evidence = shares.iter().map(|(share, case)| {
        let name = format!("variance between machines of {} in {}", case.target(), case.place());
        Evidence::single(name, "%", 100.0 * share.share)
    });
    let rests_on_machines = |case: &&Case<'_>| case.compared.machines.ratio_spread.is_some();

    Some(Explanation {
        places: shares.iter().map(|(_, case)| place(case.compared)).collect(),
        evidence: evidence.collect(),
        caveats: Vec::new(),
        weight: WEIGHT,
        statement: Statement::Machines(MachineVariance {
            machine_count: most,
            differing: cases.iter().filter(rests_on_machines).map(Case::facts).collect(),
            shares: shares
                .iter()
                .map(|(share, case)| MachineShare { share: *share, case: case.facts() })
                .collect(),
        }),
    })
}
