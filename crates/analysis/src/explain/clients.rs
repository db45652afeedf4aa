//! Findings about clients: that they are the limit, that they were not served alike, that they missed their write rate.

use super::case::Case;
use super::caveats::client;
use super::thresholds::{CLIENT_BUSY, UNFAIR_PCT, UNFAIR_SECONDS};
use super::words::{counted, distinct, figure, list};
use super::{Evidence, Finding, FindingKind, Naming};
use crate::compare::Difference;
use crate::operation::has_rate_in_rows;
use crate::{Compared, Fairness, Figures, Row, SLA_SHARE, Sla};

/// The weight of a limit at the client, more the more steps have it: above differences of a few percent, which it may hide.
const BOUND_WEIGHT: f64 = 0.08;

/// The weight of a missed rate beside its size, where another target had it: the two did not do the same work.
const MISSED_WEIGHT: f64 = 0.2;

/// The weight of the logarithm of how much longer the slowest client took: it is not a loss of throughput.
const UNFAIR_WEIGHT: f64 = 0.3;

/// Returns the steps in which client threads have no time left: what is compared there is the client.
pub(super) fn bound(cases: Vec<Case<'_>>, naming: Naming) -> Option<Finding> {
    let busy = |case: &Case<'_>| {
        let client = case.metric("client_cpu_us_per_op")?;
        // Without a server's figure the engine works on these threads.
        case.metric("server_cpu_us_per_op")?;
        Some(case.share_of_time(client)).filter(|share| *share >= CLIENT_BUSY)
    };
    let mut bound: Vec<(f64, Case<'_>)> = cases
        .into_iter()
        .filter_map(|case| Some((busy(&case)?, case)))
        .collect();
    bound.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (share, case) = bound.first()?;
    let steps = distinct(bound.iter().map(|(_, case)| case.compared.step.as_str()));
    let targets = distinct(
        bound
            .iter()
            .map(|(_, case)| case.compared.cell.target.as_str()),
    );
    let place = match steps.as_slice() {
        [one] => format!("in {one}"),
        many => format!("in {}", counted(many.len(), "step")),
    };
    let mut text = format!(
        "{} {}: {}. This hides differences between the engines: use more clients, or less client work per operation.",
        case.compared.cell.target,
        naming.place(case.compared),
        client(case)?,
    );
    if bound.len() > 1 {
        let others: Vec<String> = bound[1..]
            .iter()
            .map(|(share, case)| {
                format!(
                    "{} {} ({:.0}% busy)",
                    case.compared.cell.target,
                    naming.place(case.compared),
                    100.0 * share
                )
            })
            .collect();
        text += &format!(" Also {}.", list(&others));
    }
    Some(Finding {
        kind: FindingKind::ClientBound,
        target: case.compared.cell.target.clone(),
        base: Some(case.base_name.to_owned()),
        workload: case.compared.workload.clone(),
        variant: case
            .compared
            .cell
            .variant
            .clone()
            .filter(|_| bound.len() == 1),
        clients: (bound.len() == 1).then_some(case.compared.cell.clients),
        step: (steps.len() == 1).then(|| steps[0].clone()),
        title: format!(
            "The client is the limit {place}: its threads are busy {:.0}% of the time",
            100.0 * share
        ),
        text,
        evidence: case.evidence(),
        caveats: Vec::new(),
        weight: BOUND_WEIGHT * (1.0 + (bound.len() as f64).ln()),
        targets,
        steps,
    })
}

/// Returns the rows that count, by step: workload and name.
fn by_step(figures: &Figures) -> Vec<(&str, &str, Vec<&Row>)> {
    let mut steps: Vec<(&str, &str, Vec<&Row>)> = Vec::new();
    for row in figures.rows.iter().filter(|row| row.valid && row.reported) {
        let same = steps
            .iter_mut()
            .find(|(workload, step, _)| *workload == row.workload && *step == row.step);
        match same {
            Some((.., rows)) => rows.push(row),
            None => steps.push((&row.workload, &row.step, vec![row])),
        }
    }
    steps
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
    naming: Naming,
    figure: impl Fn(&'a Row) -> Option<&'a T>,
    badness: impl Fn(&T) -> f64,
) -> Vec<RepeatFigures<'a, T>> {
    let mut cells: Vec<RepeatFigures<'a, T>> = Vec::new();
    for row in rows {
        let Some(of) = figure(row) else {
            continue;
        };
        let who = naming.named(&row.cell.target, &row.cell);
        match cells.iter_mut().find(|cell| cell.who == who) {
            Some(cell) => cell.repeats.push((row, of)),
            None => cells.push(RepeatFigures {
                who,
                repeats: vec![(row, of)],
            }),
        }
    }
    for cell in &mut cells {
        cell.repeats
            .sort_by(|(_, a), (_, b)| badness(b).total_cmp(&badness(a)));
    }
    cells.sort_by(|a, b| badness(b.typical().1).total_cmp(&badness(a.typical().1)));
    cells
}

/// Returns the steps whose clients ended far apart in most repeats.
pub(super) fn unfair(figures: &Figures, compared: &Compared, naming: Naming) -> Vec<Finding> {
    let steps = by_step(figures).into_iter();
    steps
        .filter_map(|(workload, step, rows)| {
            let all = by_cell(&rows, naming, |row| row.fairness.as_ref(), |of| of.pct);
            let is_unfair = |cell: &RepeatFigures<'_, Fairness>| {
                let (_, of) = cell.typical();
                of.pct >= UNFAIR_PCT && of.abs_seconds >= UNFAIR_SECONDS
            };
            let (unfair, fair): (Vec<_>, Vec<_>) = all.into_iter().partition(is_unfair);
            let first = unfair.first()?;
            let (row, figures) = first.typical();
            let brief = |cell: &RepeatFigures<'_, Fairness>| {
                let (_, of) = cell.typical();
                format!("{} {:.1}% ({:.0} s)", cell.who, of.pct, of.abs_seconds)
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
                .find(|(row, _)| row.cell.target == compared.base)
                .map(|(_, of)| of.pct);
            let (title_who, is_one) = match unfair.as_slice() {
                [one] => (format!("{}: its clients", one.who), true),
                many => (
                    format!("{}: clients", counted(many.len(), "target")),
                    false,
                ),
            };
            let up_to = if is_one { "" } else { "up to " };
            Some(Finding {
                kind: FindingKind::Unfair,
                target: row.cell.target.clone(),
                targets: distinct(unfair.iter().map(|it| it.typical().0.cell.target.as_str())),
                base: of_base.map(|_| compared.base.clone()),
                workload: workload.to_owned(),
                variant: row.cell.variant.clone().filter(|_| is_one),
                clients: is_one.then_some(row.cell.clients),
                step: Some(step.to_owned()),
                steps: vec![step.to_owned()],
                title: format!("{title_who} of {step} ended {up_to}{:.1}% apart", figures.pct),
                text,
                evidence: vec![Evidence {
                    name: "clients' ends apart".to_owned(),
                    unit: "%".to_owned(),
                    base: of_base,
                    value: Some(figures.pct),
                    ratio: None,
                }],
                caveats: Vec::new(),
                weight: UNFAIR_WEIGHT * (1.0 + figures.pct / 100.0).ln(),
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
pub(super) fn sla_missed(figures: &Figures, compared: &Compared, naming: Naming) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let steps = by_step(figures);
    let workloads = distinct(steps.iter().map(|(workload, ..)| *workload));
    for workload in workloads {
        let mut missed: Vec<(&str, RepeatFigures<'_, Sla>)> = Vec::new();
        let mut others = Vec::new();
        for (_, step, rows) in steps.iter().filter(|(of, ..)| *of == workload) {
            for cell in by_cell(rows, naming, |row| row.sla.as_ref(), |sla| -share(sla)) {
                match is_missed(&cell) {
                    true => missed.push((step, cell)),
                    false => others.push((step, cell)),
                }
            }
        }
        missed.sort_by(|(_, a), (_, b)| share(a.typical().1).total_cmp(&share(b.typical().1)));
        let Some((step, first)) = missed.first() else {
            continue;
        };
        let (row, sla) = first.typical();
        let targets = distinct(
            missed
                .iter()
                .map(|(_, it)| it.typical().0.cell.target.as_str()),
        );
        let in_steps = distinct(missed.iter().map(|(step, _)| *step));
        let lines: Vec<String> = missed
            .iter()
            .map(|(step, it)| missed_rate(step, it))
            .collect();
        let mut text = format!("{}.", list(&lines));
        let had = distinct(
            others
                .iter()
                .filter(|(of, it)| **of == *step && it.repeats.iter().all(|(_, sla)| sla.met))
                .map(|(_, it)| it.typical().0.cell.target.as_str()),
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
        findings.push(Finding {
            kind: FindingKind::SlaMissed,
            target: row.cell.target.clone(),
            base: targets
                .iter()
                .all(|target| *target != compared.base)
                .then(|| compared.base.clone()),
            workload: workload.clone(),
            variant: row.cell.variant.clone().filter(|_| missed.len() == 1),
            clients: (missed.len() == 1).then_some(row.cell.clients),
            step: (in_steps.len() == 1).then(|| (*step).to_owned()),
            title: format!(
                "{}: missed the target {what} rate in {}: {} of {} {}",
                list(&targets),
                list(&in_steps),
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
            caveats: Vec::new(),
            weight: size + if had.is_empty() { 0.0 } else { MISSED_WEIGHT },
            targets,
            steps: in_steps,
        });
    }
    findings
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
