//! Explains findings about clients: they are the limit, they ended far apart, or they missed their
//! rate.

use super::case::{Case, Context, Pair};
use super::explanation::Explanation;
use super::finding::{Evidence, place, place_of};
use super::statement::{BusyClients, MissedRate, MissedRates, Statement, UnfairStep};
use super::thresholds::{CLIENT_BUSY, UNFAIR_PCT, UNFAIR_SECONDS};
use crate::compare::Difference;
use crate::figures::{Fairness, Figures, Row, SLA_SHARE, Sla, SlaHistory};
use crate::order::{distinct, grouped, sort_largest_first};

/// The weight of a limit at the client. It is above that of differences of a few percent, which the
/// limit may hide, and grows with the number of steps.
const BOUND_WEIGHT: f64 = 0.08;

/// Added to the weight of a missed rate where another target reached it: the two did not do the
/// same work.
const MISSED_WEIGHT: f64 = 0.2;

/// The weight of the logarithm of the slowest client's extra time: it is not a loss of throughput.
const UNFAIR_WEIGHT: f64 = 0.3;

/// Returns the steps in which client threads have no time left: these compare the client, not the
/// server.
pub(super) fn bound<'a>(cases: &'a [Case<'a>]) -> Option<Explanation<'a>> {
    let busy = |case: &'a Case<'a>| {
        let client = case.metric("client_cpu_us_per_op")?;
        // Without a server's figure the engine works on these threads.
        case.metric("server_cpu_us_per_op")?;
        let share = case.share_of_time(client);
        (share >= CLIENT_BUSY).then_some((share, case))
    };

    let mut bound: Vec<(f64, &Case<'_>)> = cases.iter().filter_map(busy).collect();
    sort_largest_first(&mut bound, |item| item.0);

    let (_, case) = bound.first()?;
    let busy = bound.iter().map(|(share, case)| BusyClients { share: *share, case: case.facts() });
    Some(Explanation {
        places: bound.iter().map(|(_, case)| place(case.compared)).collect(),
        evidence: case.evidence(),
        caveats: Vec::new(),
        weight: BOUND_WEIGHT * (1.0 + (bound.len() as f64).ln()),
        statement: Statement::ClientBound(busy.collect()),
    })
}

/// Returns the rows that count, by step: workload and name.
pub(super) fn by_step(figures: &Figures) -> Vec<((&str, &str), Vec<&Row>)> {
    let rows = figures.rows.iter().filter(|row| row.valid && row.reported);
    grouped(rows.map(|row| ((row.workload.as_str(), row.step.as_str()), row)))
}

/// A figure of each repeat of one target's cell.
pub(super) struct RepeatFigures<'a, T> {
    /// The target, with its variant and clients as far as several were compared.
    pub(super) who: String,
    /// The worst first.
    repeats: Vec<(&'a Row, &'a T)>,
}

impl<'a, T> RepeatFigures<'a, T> {
    /// Returns the median figure: more than half of the repeats are as bad, or worse.
    pub(super) fn typical(&self) -> (&'a Row, &'a T) {
        self.repeats[self.repeats.len() / 2]
    }
}

/// Returns the figures of each target, variant and number of clients, those with the worst typical
/// figure first.
pub(super) fn by_cell<'a, T>(
    rows: &[&'a Row],
    context: Context<'a>,
    figure: impl Fn(&'a Row) -> Option<&'a T>,
    badness: impl Fn(&T) -> f64,
) -> Vec<RepeatFigures<'a, T>> {
    let repeats = rows.iter().filter_map(|row| {
        let who = context.named(&row.cell.target, &row.cell);
        Some((who, (*row, figure(row)?)))
    });

    let mut cells = Vec::new();
    for (who, mut repeats) in grouped(repeats) {
        sort_largest_first(&mut repeats, |(_, item)| badness(item));
        cells.push(RepeatFigures { who, repeats });
    }

    cells.sort_by(|a, b| badness(b.typical().1).total_cmp(&badness(a.typical().1)));
    cells
}

/// Returns the steps whose clients ended far apart in most repeats.
pub(super) fn unfair<'a>(context: Context<'a>) -> Vec<Explanation<'a>> {
    let steps = by_step(context.figures).into_iter();
    steps.filter_map(|(_, rows)| unfair_step(context, &rows)).collect()
}

/// Returns the targets whose clients ended far apart in a step.
fn unfair_step<'a>(context: Context<'a>, rows: &[&'a Row]) -> Option<Explanation<'a>> {
    let all = by_cell(rows, context, |row| row.fairness.as_ref(), |fairness| fairness.pct);
    let base = &context.compared.base;
    let of_base = all.iter().find(|cell| cell.typical().0.cell.target == *base);
    let base_percent = of_base.map(percent_of);

    let (unfair, fair): (Vec<_>, Vec<_>) = all.into_iter().partition(is_unfair);
    let worst = unfair.first()?;
    let (_, fairness) = worst.typical();

    let mut evidence = vec![
        Evidence {
            base: base_percent,
            ..Evidence::single("spread of client end times".to_owned(), "%", fairness.pct)
        },
        Evidence::single(
            "the fastest client ended after".to_owned(),
            "s",
            fairness.fastest_seconds,
        ),
        Evidence::single(
            "the slowest client ended after".to_owned(),
            "s",
            fairness.slowest_seconds,
        ),
    ];
    for other in unfair[1..].iter().chain(&fair) {
        let name = format!("spread of {}", other.who);
        evidence.push(Evidence::single(name, "%", percent_of(other)));
    }

    Some(Explanation {
        places: unfair.iter().map(|cell| place_of(cell.typical().0)).collect(),
        evidence,
        caveats: Vec::new(),
        weight: UNFAIR_WEIGHT * (1.0 + fairness.pct / 100.0).ln(),
        statement: Statement::Unfair(UnfairStep {
            worst: worst.who.clone(),
            percent: fairness.pct,
            repeat_count: worst.repeats.len(),
            unfair_count: unfair.len(),
            target_count: unfair.len() + fair.len(),
        }),
    })
}

/// Returns the typical difference between the ends of a target's clients.
fn percent_of(cell: &RepeatFigures<'_, Fairness>) -> f64 {
    cell.typical().1.pct
}

fn is_unfair(cell: &RepeatFigures<'_, Fairness>) -> bool {
    let (_, fairness) = cell.typical();
    fairness.pct >= UNFAIR_PCT && fairness.abs_seconds >= UNFAIR_SECONDS
}

/// Returns the share of a rate that a repeat reached.
fn share(sla: &Sla) -> f64 {
    sla.achieved / sla.target
}

/// Returns true where a repeat fell short by more than one commit of each client: these may end
/// after the step.
fn falls_short(row: &Row, sla: &Sla) -> bool {
    let ops = row.ops.get(&sla.kind).filter(|ops| ops.count > 0);
    let batch = match ops {
        Some(ops) if sla.role().has_rate_in_rows() => ops.rows as f64 / ops.count as f64,
        _ => 1.0,
    };
    let short = (sla.target - sla.achieved) * row.seconds;
    !sla.met && short > batch * f64::from(row.cell.clients)
}

/// Returns true where most repeats missed the rate, and the interval of all of them lies below it.
fn is_missed(cell: &RepeatFigures<'_, Sla>) -> bool {
    let shares: Vec<f64> = cell.repeats.iter().map(|(_, sla)| share(sla)).collect();
    let missed = cell.repeats.iter().filter(|(row, sla)| falls_short(row, sla));
    let interval = Difference::of_values(&shares);
    2 * missed.count() > shares.len() && interval.is_some_and(|shares| shares.high < SLA_SHARE)
}

/// Returns the rates that were missed: one explanation for each workload.
pub(super) fn missed_rates<'a>(context: Context<'a>) -> Vec<Explanation<'a>> {
    let steps = by_step(context.figures).into_iter();
    let by_workload = grouped(steps.map(|((workload, step), rows)| (workload, (step, rows))));
    by_workload.iter().filter_map(|(_, steps)| missed_rates_of(context, steps)).collect()
}

/// Returns the rates that were missed in the steps of one workload.
fn missed_rates_of<'a>(
    context: Context<'a>,
    steps: &[(&'a str, Vec<&'a Row>)],
) -> Option<Explanation<'a>> {
    let cells = steps.iter().flat_map(|(step, rows)| {
        let cells = by_cell(rows, context, |row| row.sla.as_ref(), |sla| -share(sla));
        cells.into_iter().map(|cell| (*step, cell))
    });
    let (mut missed, others): (Vec<_>, Vec<_>) = cells.partition(|(_, cell)| is_missed(cell));
    missed.sort_by(|(_, a), (_, b)| share(a.typical().1).total_cmp(&share(b.typical().1)));

    let (step, first) = missed.first()?;
    let (_, sla) = first.typical();

    let reached = others
        .iter()
        .filter(|(other, cell)| other == step && cell.repeats.iter().all(|(_, sla)| sla.met));
    let reached_by = distinct(reached.map(|(_, cell)| cell.typical().0.cell.target.as_str()));

    // A rate that only some targets missed says more than one that is too high for all.
    let size = (1.0 / share(sla).max(1e-9)).ln().min(1.0);
    let uneven = if reached_by.is_empty() { 0.0 } else { MISSED_WEIGHT };

    let rates = missed.iter().map(|(step, cell)| {
        let (_, sla) = cell.typical();
        let rate = Pair { base: sla.target, value: sla.achieved };
        let unit = sla.role().facts().requested_unit;
        Evidence::new(&format!("{} in {step}", cell.who), unit, rate)
    });
    let mut evidence: Vec<Evidence> = rates.collect();
    // After the first rate, which these seconds describe.
    evidence.splice(1..1, sla.history.iter().flat_map(seconds_missed));

    Some(Explanation {
        places: missed.iter().map(|(_, cell)| place_of(cell.typical().0)).collect(),
        evidence,
        caveats: Vec::new(),
        weight: size + uneven,
        statement: Statement::SlaMissed(MissedRates {
            missed: missed.iter().map(|(step, cell)| missed_rate(step, cell)).collect(),
            reached_by: reached_by.into_iter().map(str::to_owned).collect(),
        }),
    })
}

/// Returns the amount by which a rate was missed.
fn missed_rate(step: &str, cell: &RepeatFigures<'_, Sla>) -> MissedRate {
    let repeats = cell.repeats.iter();
    let (_, sla) = cell.typical();
    MissedRate {
        who: cell.who.clone(),
        step: step.to_owned(),
        role: sla.role(),
        requested: sla.target,
        achieved: sla.achieved,
        missed_repeats: repeats.filter(|(row, sla)| falls_short(row, sla)).count(),
        repeat_count: cell.repeats.len(),
    }
}

/// Returns the number of seconds that missed the rate, and the longest time without it.
fn seconds_missed(history: &SlaHistory) -> impl Iterator<Item = Evidence> {
    let missed = history.seconds.saturating_sub(history.met_seconds);
    let name = format!("seconds that missed it, of {}", history.seconds);
    let longest = history.longest_miss_from.map(|from| {
        let name = format!("longest miss, from second {from}");
        (name, history.longest_miss_seconds)
    });
    let figures = [(name, missed)].into_iter().chain(longest);
    figures.map(|(name, seconds)| Evidence::single(name, "s", seconds as f64))
}
