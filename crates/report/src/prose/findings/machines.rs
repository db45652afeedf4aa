//! The variance between machines, in words.

use super::wording::Wording;
use crate::prose::numbers::{list_any, percent};
use analysis::counted;
use analysis::explain::statement::{MachineShare, MachineVariance};

pub(super) fn wording(variance: &MachineVariance) -> Wording {
    let MachineVariance { machine_count, shares, differing } = variance;
    let machines = counted(*machine_count, "machine");

    // Sorted from the largest share to the smallest.
    let median = percent(shares[shares.len() / 2].share.share);

    let mut sentences = vec![
        format!("{machines} measured the repeats: {}.", largest_share(shares, &median)),
        "Base and target are compared within each machine, so this variance cancels.".to_owned(),
    ];

    let cases = differing.iter().map(|case| format!("{} in {}", case.target, case.place));
    if let Some(cases) = list_any(cases) {
        sentences.push(format!(
            "Because the ratio differs between machines for {cases}, each machine counts as one value."
        ));
    }

    let title = format!("{machines}: {median} of the variance of throughput is between them");
    Wording { title, sentences }
}

/// Returns the median share, and the largest with its interval.
fn largest_share(shares: &[MachineShare], median: &str) -> String {
    let MachineShare { share, case } = &shares[0];
    let interval = format!("{} to {}", percent(share.low), percent(share.high));

    if shares.len() == 1 {
        return format!(
            "{median} of the variance of throughput in {} is between them ({interval})",
            case.place
        );
    }

    format!(
        "{median} of the variance of throughput is between them in the median of {}, and {} in {} ({interval})",
        counted(shares.len(), "comparison"),
        percent(share.share),
        case.place
    )
}
