//! Findings about clients in words: they are the limit, they ended far apart, or they missed their
//! rate.

use words::OpRole;

use super::wording::{Wording, place};
use crate::prose::numbers::{figure, list, list_any, percent};
use analysis::counted;
use analysis::explain::Finding;
use analysis::explain::statement::{BusyClients, MissedRate, MissedRates, UNFAIR_PCT, UnfairStep};

pub(super) fn bound(cases: &[BusyClients], about: &Finding) -> Wording {
    let BusyClients { share, case } = &cases[0];
    let busy = percent(*share);

    let mut sentences = vec![
        format!(
            "In {}, client threads of {} or {} are busy {busy} of the time.",
            case.place, case.base, case.target
        ),
        "This hides differences between the engines: use more clients, or less client work per operation."
            .to_owned(),
    ];

    let mut others = Vec::new();
    for BusyClients { share, case } in &cases[1..] {
        others.push(format!("{} in {} ({})", case.target, case.place, percent(*share)));
    }
    if let Some(others) = list_any(others) {
        sentences.push(format!("Also {others}."));
    }

    let place = place(about);
    Wording {
        title: format!(
            "The client is the bottleneck in {place}: its threads are busy {busy} of the time"
        ),
        sentences,
    }
}

pub(super) fn unfair(unfair: &UnfairStep, about: &Finding) -> Wording {
    let UnfairStep { worst, percent, repeat_count, unfair_count, target_count } = unfair;
    let step = place(about);

    let title = if *unfair_count == 1 {
        format!("{worst}: clients ended {percent:.1}% apart in {step}")
    } else {
        format!("{unfair_count} targets: clients ended up to {percent:.1}% apart in {step}")
    };

    let median = if *repeat_count == 1 {
        String::new()
    } else {
        format!(" (the median of {repeat_count} repeats)")
    };

    let mut sentences = vec![
        format!(
            "In {step}, the slowest client of {worst} ended {percent:.1}% later than the fastest{median}."
        ),
        "Mean throughput hides this: while the slowest clients work, the others are idle."
            .to_owned(),
    ];
    if *unfair_count > 1 {
        sentences.push(format!(
            "Of {target_count} targets, the clients of {unfair_count} ended more than {UNFAIR_PCT:.0}% apart."
        ));
    }

    Wording { title, sentences }
}

pub(super) fn missed_rates(rates: &MissedRates, about: &Finding) -> Wording {
    let worst = &rates.missed[0];
    let (what, consequence) = match worst.role {
        OpRole::Event => (
            "event",
            "Response times below the requested rate are not comparable with those at the rate.",
        ),
        OpRole::Transaction => (
            "transaction",
            "Response times below the requested rate are not comparable with those at the rate.",
        ),
        role if role.reads_keys() => (
            "operation",
            "Response times below the requested rate are not comparable with those at the rate.",
        ),
        _ => (
            "write",
            "Queries that compete with fewer writes are not comparable with those that compete with all.",
        ),
    };

    let mut sentences = vec![
        format!(
            "{} reached {} of the requested rate in {}, and missed it in {} of {}.",
            worst.who,
            achieved_share(worst),
            worst.step,
            worst.missed_repeats,
            counted(worst.repeat_count, "repeat")
        ),
        consequence.to_owned(),
    ];
    sentences.extend(missed_and_reached(rates));

    let title = format!(
        "{}: missed the requested {what} rate in {}: {} of {} {}",
        list(&about.targets),
        list(&about.steps),
        figure(worst.achieved),
        figure(worst.requested),
        worst.unit()
    );
    Wording { title, sentences }
}

/// Names the other targets that missed the rate, and those that reached it.
fn missed_and_reached(rates: &MissedRates) -> Option<String> {
    let (worst, others) = rates.missed.split_first()?;

    let mut missed = Vec::new();
    for rate in others {
        missed.push(format!("{} in {} ({})", rate.who, rate.step, achieved_share(rate)));
    }

    let mut clauses = Vec::new();
    if let Some(missed) = list_any(missed) {
        clauses.push(format!("{missed} also missed it"));
    }
    if !rates.reached_by.is_empty() {
        clauses.push(format!("{} reached it in {}", list(&rates.reached_by), worst.step));
    }

    (!clauses.is_empty()).then(|| format!("{}.", clauses.join("; ")))
}

fn achieved_share(rate: &MissedRate) -> String {
    format!("{:.1}%", 100.0 * rate.achieved / rate.requested)
}
