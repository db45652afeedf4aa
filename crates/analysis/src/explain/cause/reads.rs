//! Reads: how many an operation takes, and how large each is.

use super::super::FindingKind;
use super::super::case::{Case, Pair, Side};
use super::super::thresholds::{NEGLIGIBLE, READ_SIZE, READ_SIZE_SURE, WHOLE};
use super::super::words::{change, change_us, change_us_of, times};
use super::{Cause, more_or};

/// More reads per operation, which take more of its time.
pub(super) fn count(case: &Case<'_>) -> Option<Cause> {
    let reads = case.metric("rpq")?;
    let us = case.pair(Side::reads_us)?;
    if reads.is_same() || case.share_of_time(us) < NEGLIGIBLE {
        return None;
    }
    let time = case.time();
    // Who waits for a read uses no CPU meanwhile: reads that nobody waits for are done in the background, or by others.
    let waited = case.waiting().map(|waiting| waiting.grown() / time.grown());
    // And waits for one at a time, no longer than its operation takes.
    let held = Pair {
        base: us.base.min(time.base),
        value: us.value.min(time.value),
    };
    let share = held.grown() / time.grown();
    let is_waited = waited.is_none_or(|waited| waited >= 0.5 * share.min(1.0));
    let share = waited.map_or(share, |waited| share.min(waited.max(0.0)));
    // Of reads that took more than they can account for, only so many were those of clients.
    let most = *WHOLE.end();
    let fits = (most / case.share_of_time(us)).min(most / share.max(most));
    let per = case.noun();
    let mut sentence = format!(
        "Each {per} takes {} reads ({}): at the {} of a read that is {}",
        more_or(reads, "fewer"),
        change(reads.base, reads.value, &format!("/{per}")),
        latency(reads, us),
        change_us_of(us.base, us.value, "of a client's time"),
    );
    sentence += &match share {
        _ if case.share_of_time(us) > most => format!(
            ", more than a client has for all it does ({}): not all of these reads are waited for.",
            change_us(time.base, time.value)
        ),
        _ if !is_waited => ", but clients do not wait for them.".to_owned(),
        share if share > most => {
            ", more than the change asks for: some of them run beside the clients.".to_owned()
        }
        share if WHOLE.contains(&share) => ", the whole of the change.".to_owned(),
        share if share > 0.0 => format!(", {:.0}% of the change.", 100.0 * share),
        _ => ", against the change.".to_owned(),
    };
    if let Some(size) = case.pair(Side::read_kb) {
        sentence += &format!(" A read has {}.", size.text("KB"));
    }
    Some(Cause {
        kind: FindingKind::Reads,
        score: share.clamp(0.0, 1.0) * fits.min(1.0),
        headline: format!("{} reads per {per}", more_or(reads, "fewer")),
        sentence,
        brief: format!(
            "reads {}",
            change(reads.base, reads.value, &format!("/{per}"))
        ),
    })
}

/// The mean time of a read on both sides.
fn latency(reads: Pair, us: Pair) -> String {
    let each = |us: f64, reads: f64| (reads > 0.0).then(|| us / reads);
    // Of very few reads there may be no time.
    let each = |us: f64, reads: f64| each(us, reads).filter(|us| *us >= 1.0);
    match (each(us.base, reads.base), each(us.value, reads.value)) {
        (Some(base), Some(value)) if (base - value).abs() > 0.1 * base.max(value) => {
            format!("{:.0} and {:.0} us", base, value)
        }
        (_, Some(us)) | (Some(us), None) => format!("{us:.0} us"),
        (None, None) => "time".to_owned(),
    }
}

/// Reads that became smaller and more, or larger and fewer: read ahead or not.
pub(super) fn size(case: &Case<'_>) -> Option<Cause> {
    let reads = case.metric("rpq")?;
    let size = case.pair(Side::read_kb)?;
    let us = case.pair(Side::reads_us)?;
    let (more, larger) = (reads.ratio()?, size.ratio()?);
    let is_other = (more >= READ_SIZE && larger <= 1.0 / READ_SIZE)
        || (more <= 1.0 / READ_SIZE && larger >= READ_SIZE);
    if !is_other || case.share_of_time(us) < NEGLIGIBLE {
        return None;
    }
    let per = case.noun();
    let (how, meaning) = if larger < 1.0 {
        ("smaller", "less is read ahead")
    } else {
        ("larger", "more is read ahead")
    };
    let mut sentence = format!(
        "Reads are {how}: {} each, and {} of them, {}: {meaning}.",
        size.text("KB"),
        more_or(reads, "fewer"),
        change(reads.base, reads.value, &format!("/{per}")),
    );
    if let Some(bytes) = case.metric("rkbpq") {
        sentence += &format!(" Bytes read per {per}: {}.", bytes.text("KB"));
    }
    Some(Cause {
        kind: FindingKind::ReadSize,
        score: READ_SIZE_SURE * case.share(reads)?.clamp(0.0, 1.0),
        headline: format!(
            "reads are {how}, {} the size, and {}",
            times(larger),
            more_or(reads, "fewer")
        ),
        sentence,
        brief: size.text("KB a read"),
    })
}
