//! Findings about clients: that they are the limit, that they were not served alike, that they missed their write rate.

use ::words::fixed;

use super::case::Case;
use super::caveats::client;
use super::thresholds::{CLIENT_BUSY, UNFAIR_PCT, UNFAIR_SECONDS};
use super::words::{counted, figure, list};
use super::{Context, Evidence, Finding, FindingKind, place, place_of};
use crate::compare::Difference;
use crate::operation::has_rate_in_rows;
use crate::order::{distinct, grouped};
use crate::{Fairness, Figures, Row, SLA_SHARE, Sla};

/// The weight of a limit at the client, more the more steps have it: above differences of a few percent, which it may hide.
const BOUND_WEIGHT: f64 = 0.08;

/// The weight of a missed rate beside its size, where another target had it: the two did not do the same work.
const MISSED_WEIGHT: f64 = 0.2;

/// The weight of the logarithm of how much longer the slowest client took: it is not a loss of throughput.
const UNFAIR_WEIGHT: f64 = 0.3;

/// Returns the steps in which client threads have no time left: what is compared there is the client.
pub(super) fn bound(cases: &[Case<'_>]) -> Option<Finding> {
    let busy = |case: &Case<'_>| {
        let client = case.metric("client_cpu_us_per_op")?;
        // Without a server's figure the engine works on these threads.
        case.metric("server_cpu_us_per_op")?;
        Some(case.share_of_time(client)).filter(|share| *share >= CLIENT_BUSY)
    };
    let bound = cases.iter().filter_map(|case| Some((busy(case)?, case)));
    let mut bound: Vec<(f64, &Case<'_>)> = bound.collect();
    bound.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (share, case) = bound.first()?;
    let places = bound.iter().map(|(_, case)| place(case.compared));
    let about = Finding::about(FindingKind::ClientBound, case.base_name(), places)?;
    let mut text = format!(
        "{} {}: {}. This hides differences between the engines: use more clients, or less client work per operation.",
        case.target(),
        case.place(),
        client(case)?,
    );
    if bound.len() > 1 {
        let others = bound[1..].iter().map(|(share, case)| {
            let (who, percent) = (case.target(), 100.0 * share);
            format!("{who} {} ({percent:.0}% busy)", case.place())
        });
        text += &format!(" Also {}.", list(&others.collect::<Vec<_>>()));
    }
    Some(Finding {
        title: format!(
            "The client is the limit in {}: its threads are busy {:.0}% of the time",
            about.place(),
            100.0 * share
        ),
        text,
        evidence: case.evidence(),
        weight: BOUND_WEIGHT * (1.0 + (bound.len() as f64).ln()),
        ..about
    })
}

/// Returns the rows that count, by step: workload and name.
fn by_step(figures: &Figures) -> Vec<((&str, &str), Vec<&Row>)> {
    let rows = figures.rows.iter().filter(|row| row.valid && row.reported);
    grouped(rows.map(|row| ((row.workload.as_str(), row.step.as_str()), row)))
}

/// A figure of each repeat of one target's cell.
struct RepeatFigures<'a, T> {
    /// The target, with its variant and clients as far as several were compared.
    who: String,
    /// The worst first.
    repeats: Vec<(&'a Row, &'a T)>,
}

impl<'a, T> RepeatFigures<'a, T> {
    /// Returns the figure that most repeats reach or exceed in badness: what holds for it holds for more than half.
    fn typical(&self) -> (&'a Row, &'a T) {
        self.repeats[self.repeats.len() / 2]
    }
}

/// Returns the figures of each target, variant and number of clients, those with the worst typical figure first.
fn by_cell<'a, T>(
    rows: &[&'a Row],
    context: Context<'_>,
    figure: impl Fn(&'a Row) -> Option<&'a T>,
    badness: impl Fn(&T) -> f64,
) -> Vec<RepeatFigures<'a, T>> {
    let of_rows = rows.iter().filter_map(|row| Some((*row, figure(row)?)));
    let repeats = of_rows.map(|(row, of)| (context.named(&row.cell.target, &row.cell), (row, of)));
    let mut cells = Vec::new();
    for (who, mut repeats) in grouped(repeats) {
        repeats.sort_by(|(_, a), (_, b)| badness(b).total_cmp(&badness(a)));
        cells.push(RepeatFigures { who, repeats });
    }
    cells.sort_by(|a, b| badness(b.typical().1).total_cmp(&badness(a.typical().1)));
    cells
}

/// Returns the steps whose clients ended far apart in most repeats.
pub(super) fn unfair(context: Context<'_>) -> Vec<Finding> {
    let base = &context.compared.base;
    let steps = by_step(context.figures).into_iter();
    steps
        .filter_map(|((_, step), rows)| {
            let all = by_cell(&rows, context, |row| row.fairness.as_ref(), |of| of.pct);
            let is_unfair = |cell: &RepeatFigures<'_, Fairness>| {
                let (_, of) = cell.typical();
                of.pct >= UNFAIR_PCT && of.abs_seconds >= UNFAIR_SECONDS
            };
            let (unfair, fair): (Vec<_>, Vec<_>) = all.into_iter().partition(is_unfair);
            let first = unfair.first()?;
            let (_, figures) = first.typical();
            let brief = |cell: &RepeatFigures<'_, Fairness>| {
                let (_, of) = cell.typical();
                format!("{} {:.1}% ({} s)", cell.who, of.pct, fixed(of.abs_seconds, 0))
            };
            let mut text = format!(
                "In {step} the fastest client of {} was done after {} s and the slowest after {} s, {:.1}% later",
                first.who,
                figure(figures.fastest_seconds),
                figure(figures.slowest_seconds),
                figures.pct,
            );
            text += &match first.repeats.len() {
                1 => ".".to_owned(),
                many => format!(" (the median of {many} repeats)."),
            };
            if unfair.len() > 1 {
                let lines: Vec<String> = unfair.iter().map(brief).collect();
                text += &format!(
                    " More than {UNFAIR_PCT:.0}% apart are {} of {}: {}.",
                    unfair.len(),
                    unfair.len() + fair.len(),
                    list(&lines)
                );
            }
            if let Some(best) = fair.last() {
                text += &format!(" Least apart: {}.", brief(best));
            }
            text += " Mean throughput does not show it: while the last clients work, the others do nothing.";
            let of_base = unfair
                .iter()
                .chain(&fair)
                .map(RepeatFigures::typical)
                .find(|(row, _)| row.cell.target == *base)
                .map(|(_, of)| of.pct);
            let (title_who, up_to) = match unfair.as_slice() {
                [one] => (format!("{}: its clients", one.who), ""),
                many => {
                    let who = counted(many.len(), "target");
                    (format!("{who}: clients"), "up to ")
                }
            };
            let places = unfair.iter().map(|it| place_of(it.typical().0));
            let about = Finding::about(FindingKind::Unfair, base, places)?;
            Some(Finding {
                base: about.base.filter(|_| of_base.is_some()),
                title: format!("{title_who} of {step} ended {up_to}{:.1}% apart", figures.pct),
                text,
                evidence: vec![Evidence {
                    name: "clients' ends apart".to_owned(),
                    unit: "%".to_owned(),
                    base: of_base,
                    value: Some(figures.pct),
                    ratio: None,
                }],
                weight: UNFAIR_WEIGHT * (1.0 + figures.pct / 100.0).ln(),
                ..about
            })
        })
        .collect()
}

/// The share of a rate that a repeat had.
fn share(sla: &Sla) -> f64 {
    sla.achieved / sla.target
}

/// Returns true where a repeat fell short by more than one commit of each client: these may end after the step.
fn falls_short(row: &Row, sla: &Sla) -> bool {
    let ops = row.ops.get(&sla.kind).filter(|ops| ops.count > 0);
    let batch = match ops {
        Some(ops) if has_rate_in_rows(&sla.kind) => ops.rows as f64 / ops.count as f64,
        _ => 1.0,
    };
    let short = (sla.target - sla.achieved) * row.seconds;
    !sla.met && short > batch * f64::from(row.cell.clients)
}

/// Returns true where most repeats missed the rate, and the interval of all of them lies below it.
fn is_missed(cell: &RepeatFigures<'_, Sla>) -> bool {
    let shares: Vec<f64> = cell.repeats.iter().map(|(_, sla)| share(sla)).collect();
    let missed = cell
        .repeats
        .iter()
        .filter(|(row, sla)| falls_short(row, sla));
    let interval = Difference::of_values(&shares);
    2 * missed.count() > shares.len() && interval.is_some_and(|shares| shares.high < SLA_SHARE)
}

/// Returns the rates of writes that were missed: one finding for each workload.
pub(super) fn sla_missed(context: Context<'_>) -> Vec<Finding> {
    let steps = by_step(context.figures).into_iter();
    let by_workload = grouped(steps.map(|((workload, step), rows)| (workload, (step, rows))));
    by_workload
        .iter()
        .filter_map(|(_, steps)| missed_rates(context, steps))
        .collect()
}

/// Returns the rates that were missed in the steps of one workload.
fn missed_rates(context: Context<'_>, steps: &[(&str, Vec<&Row>)]) -> Option<Finding> {
    let cells = steps.iter().flat_map(|(step, rows)| {
        let cells = by_cell(rows, context, |row| row.sla.as_ref(), |sla| -share(sla));
        cells.into_iter().map(|cell| (*step, cell))
    });
    let (mut missed, others): (Vec<_>, Vec<_>) = cells.partition(|(_, cell)| is_missed(cell));
    missed.sort_by(|(_, a), (_, b)| share(a.typical().1).total_cmp(&share(b.typical().1)));
    let (step, first) = missed.first()?;
    let (_, sla) = first.typical();
    let places = missed.iter().map(|(_, it)| place_of(it.typical().0));
    let mut about = Finding::about(FindingKind::SlaMissed, &context.compared.base, places)?;
    if about.targets.contains(&context.compared.base) {
        about.base = None;
    }
    let lines: Vec<String> = missed
        .iter()
        .map(|(step, it)| missed_rate(step, it))
        .collect();
    let mut text = format!("{}.", list(&lines));
    let had = distinct(
        others
            .iter()
            .filter(|(of, it)| of == step && it.repeats.iter().all(|(_, sla)| sla.met))
            .map(|(_, it)| &it.typical().0.cell.target),
    );
    if !had.is_empty() {
        text += &format!(
            " In {step} {} had it: {}.",
            counted(had.len(), "target"),
            list(&had)
        );
    }
    text += " Queries beside fewer writes are not comparable with those beside all of them.";
    let size = (1.0 / share(sla).max(1e-9)).ln().min(1.0);
    let what = match sla.kind.as_str() {
        "event" => "event",
        _ => "write",
    };
    Some(Finding {
        title: format!(
            "{}: missed the target {what} rate in {}: {} of {} {}",
            list(&about.targets),
            list(&about.steps),
            figure(sla.achieved),
            figure(sla.target),
            unit(sla)
        ),
        text,
        evidence: vec![Evidence {
            name: "share of the target rate".to_owned(),
            unit: "%".to_owned(),
            base: Some(100.0),
            value: Some(100.0 * share(sla)),
            ratio: Some(share(sla)),
        }],
        weight: size + if had.is_empty() { 0.0 } else { MISSED_WEIGHT },
        ..about
    })
}

fn unit(sla: &Sla) -> &'static str {
    match sla.kind.as_str() {
        "insert" => "rows/s",
        "event" => "events/s",
        _ => "writes/s",
    }
}

/// Says by how much a rate was missed, in how many repeats, and in which seconds of a typical one.
fn missed_rate(step: &str, cell: &RepeatFigures<'_, Sla>) -> String {
    let (_, sla) = cell.typical();
    let missed = cell
        .repeats
        .iter()
        .filter(|(row, sla)| falls_short(row, sla));
    let mut text = format!(
        "{} had {} of {} {} in {step} ({:.1}%; missed in {} of {} repeats",
        cell.who,
        figure(sla.achieved),
        figure(sla.target),
        unit(sla),
        100.0 * share(sla),
        missed.count(),
        cell.repeats.len(),
    );
    if let Some(history) = &sla.history {
        let missed = history.seconds.saturating_sub(history.met_seconds);
        text += &format!(", in {} of {}", counted(missed, "second"), history.seconds);
        if let Some(from) = history.longest_miss_from {
            let longest = counted(history.longest_miss_seconds, "second");
            text += &format!(", {longest} of them from second {from} on");
        }
    }
    text + ")"
}
