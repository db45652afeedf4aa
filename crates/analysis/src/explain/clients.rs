//! Findings about clients: that they limit, that they were not served alike, that they did not have the rate of writes.

use super::against::client;
use super::case::Case;
use super::thresholds::{CLIENT_BUSY, UNFAIR_PCT, UNFAIR_SECONDS};
use super::words::{counted, distinct, figure, list};
use super::{Evidence, Finding, FindingKind, Naming};
use crate::{Compared, Fairness, Figures, Row, Sla};

/// What a limit at the client weighs, more the more steps have it: above differences of a few percent, which it may hide.
const BOUND_WEIGHT: f64 = 0.08;

/// What a missed rate weighs beside its size, where another target had it: the two did not do the same work.
const MISSED_WEIGHT: f64 = 0.2;

/// Of unfairness the logarithm of how much longer the slowest took counts by this: it is not a loss of throughput.
const UNFAIR_WEIGHT: f64 = 0.3;

/// Steps in which client threads have no time left: what is compared there is the client.
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
    let targets = distinct(bound.iter().map(|(_, case)| case.compared.target.as_str()));
    let place = match steps.as_slice() {
        [one] => format!("in {one}"),
        many => format!("in {}", counted(many.len(), "step")),
    };
    let mut text = format!(
        "{} {}: {}. Differences between the engines are smaller here than they are: use more clients, or less \
         work of the client for each operation.",
        case.compared.target,
        naming.place(case.compared),
        client(case)?,
    );
    if bound.len() > 1 {
        let others: Vec<String> = bound[1..]
            .iter()
            .map(|(share, case)| {
                format!(
                    "{} {} ({:.0}% busy)",
                    case.compared.target,
                    naming.place(case.compared),
                    100.0 * share
                )
            })
            .collect();
        text += &format!(" The same: {}.", list(&others));
    }
    Some(Finding {
        kind: FindingKind::ClientBound,
        target: case.compared.target.clone(),
        base: Some(case.base_name.to_owned()),
        workload: case.compared.workload.clone(),
        variant: case.compared.variant.clone().filter(|_| bound.len() == 1),
        clients: (bound.len() == 1).then_some(case.compared.clients),
        step: (steps.len() == 1).then(|| steps[0].clone()),
        title: format!(
            "The client is the limit {place}: its threads are busy {:.0}% of the time",
            100.0 * share
        ),
        text,
        evidence: case.evidence(),
        against: Vec::new(),
        weight: BOUND_WEIGHT * (1.0 + (bound.len() as f64).ln()),
        targets,
        steps,
    })
}

/// The rows that count, by step: workload and name.
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

/// A target with what tells its cells apart, as far as several were compared.
fn who(naming: Naming, row: &Row) -> String {
    naming.named(&row.target, row.variant.as_deref(), row.clients)
}

/// A figure of one row with the target's name; of its repeats the worst.
struct Of<'a, T> {
    who: String,
    row: &'a Row,
    figure: &'a T,
    /// Of how many repeats it is the worst.
    repeats: usize,
}

impl<T> Of<'_, T> {
    fn worst_of(&self) -> String {
        match self.repeats {
            0 | 1 => String::new(),
            many => format!(", the worst of {many} repeats"),
        }
    }
}

/// One for each target, its variants and clients: that of the worst repeat, and all of them with the worst first.
fn worst<'a, T>(
    rows: &[&'a Row],
    naming: Naming,
    figure: impl Fn(&'a Row) -> Option<&'a T>,
    badness: impl Fn(&T) -> f64,
) -> Vec<Of<'a, T>> {
    let mut found: Vec<Of<'a, T>> = rows
        .iter()
        .filter_map(|row| {
            Some(Of {
                who: who(naming, row),
                row,
                figure: figure(row)?,
                repeats: 1,
            })
        })
        .collect();
    found.sort_by(|a, b| badness(b.figure).total_cmp(&badness(a.figure)));
    let mut worst: Vec<Of<'a, T>> = Vec::new();
    for of in found {
        match worst.iter_mut().find(|first| first.who == of.who) {
            Some(first) => first.repeats += 1,
            None => worst.push(of),
        }
    }
    worst
}

/// Steps whose clients ended far apart.
pub(super) fn unfair(figures: &Figures, compared: &Compared, naming: Naming) -> Vec<Finding> {
    let steps = by_step(figures).into_iter();
    steps
        .filter_map(|(workload, step, rows)| {
            let all = worst(&rows, naming, |row| row.fairness.as_ref(), |of| of.pct);
            let is_unfair =
                |of: &Fairness| of.pct >= UNFAIR_PCT && of.abs_seconds >= UNFAIR_SECONDS;
            let (unfair, fair): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|of| is_unfair(of.figure));
            let first = unfair.first()?;
            let told = |of: &Of<'_, Fairness>| {
                format!(
                    "{} {:.1}% ({:.0} s)",
                    of.who, of.figure.pct, of.figure.abs_seconds
                )
            };
            let mut text = format!(
                "In {step} the fastest client of {} was done after {} s and the slowest after {} s, {:.1}% later{}.",
                first.who,
                figure(first.figure.fastest_seconds),
                figure(first.figure.slowest_seconds),
                first.figure.pct,
                first.worst_of(),
            );
            if unfair.len() > 1 {
                let lines: Vec<String> = unfair.iter().map(told).collect();
                text += &format!(
                    " More than {UNFAIR_PCT:.0}% apart are {} of {}: {}.",
                    unfair.len(),
                    unfair.len() + fair.len(),
                    list(&lines)
                );
            }
            match (fair.last(), unfair.last()) {
                (Some(best), _) => text += &format!(" Least apart: {}.", told(best)),
                (None, Some(best)) if unfair.len() > 1 => {
                    text += &format!(" None is below; least apart: {}.", told(best));
                }
                _ => {}
            }
            text += " Mean throughput does not show it: while the last clients work, the others do nothing.";
            let of_base = unfair
                .iter()
                .chain(&fair)
                .find(|of| of.row.target == compared.base)
                .map(|of| of.figure.pct);
            let (title_who, is_one) = match unfair.as_slice() {
                [one] => (format!("{}: its clients", one.who), true),
                many => (
                    format!("{}: clients", counted(many.len(), "target")),
                    false,
                ),
            };
            let upto = if is_one { "" } else { "up to " };
            Some(Finding {
                kind: FindingKind::Unfair,
                target: first.row.target.clone(),
                targets: distinct(unfair.iter().map(|of| of.row.target.as_str())),
                base: of_base.map(|_| compared.base.clone()),
                workload: workload.to_owned(),
                variant: first.row.variant.clone().filter(|_| is_one),
                clients: is_one.then_some(first.row.clients),
                step: Some(step.to_owned()),
                steps: vec![step.to_owned()],
                title: format!(
                    "{title_who} of {step} ended {upto}{:.1}% apart",
                    first.figure.pct
                ),
                text,
                evidence: vec![Evidence {
                    name: "clients' ends apart".to_owned(),
                    unit: "%".to_owned(),
                    base: of_base,
                    value: Some(first.figure.pct),
                    ratio: None,
                }],
                against: Vec::new(),
                weight: UNFAIR_WEIGHT * (1.0 + first.figure.pct / 100.0).ln(),
            })
        })
        .collect()
}

/// Rates of writes that were asked for and not had: one finding for each workload.
pub(super) fn sla_missed(figures: &Figures, compared: &Compared, naming: Naming) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let steps = by_step(figures);
    let workloads = distinct(steps.iter().map(|(workload, ..)| *workload));
    for workload in workloads {
        let mut missed: Vec<(String, Of<'_, Sla>)> = Vec::new();
        let mut had = Vec::new();
        for (_, step, rows) in steps.iter().filter(|(of, ..)| *of == workload) {
            let short = |sla: &Sla| sla.target / sla.achieved.max(f64::MIN_POSITIVE);
            for of in worst(rows, naming, |row| row.sla.as_ref(), short) {
                if of.figure.met {
                    had.push(((*step).to_owned(), of.row.target.as_str()));
                } else {
                    missed.push(((*step).to_owned(), of));
                }
            }
        }
        missed.sort_by(|(_, a), (_, b)| {
            let share = |sla: &Sla| sla.achieved / sla.target;
            share(a.figure).total_cmp(&share(b.figure))
        });
        let Some((step, first)) = missed.first() else {
            continue;
        };
        let targets = distinct(missed.iter().map(|(_, of)| of.row.target.as_str()));
        let in_steps = distinct(missed.iter().map(|(step, _)| step.as_str()));
        let mut text = missed
            .iter()
            .take(super::thresholds::NAMED)
            .map(|(step, of)| told(step, of))
            .collect::<Vec<_>>()
            .join(" ");
        let more = missed.len().saturating_sub(super::thresholds::NAMED);
        if more > 0 {
            text += &format!(" And {more} more.");
        }
        let others = distinct(
            had.iter()
                .filter(|(of, target)| of == step && *target != first.row.target)
                .map(|(_, target)| *target),
        );
        if !others.is_empty() {
            text += &format!(
                " In {step} {} had it: {}.",
                counted(others.len(), "other target"),
                list(&others)
            );
        }
        text += " Queries beside fewer writes are not comparable with those beside all of them.";
        let size = (first.figure.target / first.figure.achieved.max(1e-9))
            .ln()
            .min(1.0);
        let place = match in_steps.as_slice() {
            [one] => one.clone(),
            many => list(many),
        };
        findings.push(Finding {
            kind: FindingKind::SlaMissed,
            target: first.row.target.clone(),
            base: targets
                .iter()
                .all(|target| *target != compared.base)
                .then(|| compared.base.clone()),
            workload: workload.clone(),
            variant: first.row.variant.clone().filter(|_| missed.len() == 1),
            clients: (missed.len() == 1).then_some(first.row.clients),
            step: (in_steps.len() == 1).then(|| step.clone()),
            title: format!(
                "{}: the rate of {} was missed in {place}: {} of {} {}",
                list(&targets),
                match first.figure.kind.as_str() {
                    "event" => "events",
                    _ => "writes",
                },
                figure(first.figure.achieved),
                figure(first.figure.target),
                unit(first.figure)
            ),
            text,
            evidence: vec![Evidence {
                name: "writes had of those asked for".to_owned(),
                unit: "%".to_owned(),
                base: Some(100.0),
                value: Some(100.0 * first.figure.achieved / first.figure.target),
                ratio: Some(first.figure.achieved / first.figure.target),
            }],
            against: Vec::new(),
            weight: size
                + if others.is_empty() {
                    0.0
                } else {
                    MISSED_WEIGHT
                },
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

/// One missed rate, and since when.
fn told(step: &str, of: &Of<'_, Sla>) -> String {
    let sla = of.figure;
    let mut text = format!(
        "{} had {} of {} {} in {step} ({:.1}%)",
        of.who,
        figure(sla.achieved),
        figure(sla.target),
        unit(sla),
        100.0 * sla.achieved / sla.target,
    );
    if let Some(history) = &sla.history {
        text += &format!(
            ", and missed it in {} of {}",
            counted(
                history.seconds - history.met_seconds.min(history.seconds),
                "second"
            ),
            history.seconds
        );
        if let Some(from) = history.longest_miss_from {
            text += &format!(
                ", for {} from second {from} on",
                counted(history.longest_miss_seconds, "second")
            );
        }
    }
    text + &of.worst_of() + "."
}
