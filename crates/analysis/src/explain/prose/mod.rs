//! Puts explanations in words. All sentences of findings are made here, from values.

pub(super) mod amount;
mod cause;
pub(super) mod caveat;
mod difference;
mod disk_floor;
pub(super) mod gap;
pub(super) mod numbers;
mod swing;
mod witnesses;

use words::{OpRole, excerpt};

use super::case::Case;
use super::cause::Cause;
use super::clients::rate_unit;
use super::explanation::{
    Change, Explanation, Fact, MachineVariance, MissedRate, NoEffect, SequencedStep, Statement,
    UnfairStep,
};
use super::gap::CostGaps;
use super::thresholds::{BEGINS_FACTOR, UNFAIR_PCT};
use super::{Finding, FindingKind};
use crate::compare::ComparedStep;
use crate::counted;
use crate::settings::{Difference, DifferenceKind};
use amount::AmountChange;
use numbers::{figure, list, list_any, pace, percent, range, times};

/// The number of costs that a finding about targets that were measured once has sentences about.
const GAPS_NAMED: usize = 2;

/// The maximum length of a statement in a sentence, in characters.
const STATEMENT_CHARS: usize = 60;

/// Returns an explanation as a finding against the base; `None` if the explanation names no step.
pub(super) fn finding(base: &str, explanation: Explanation<'_>) -> Option<Finding> {
    let mut finding = explanation.finding(base)?;
    finding.caveats = explanation.caveats.iter().map(caveat::text).collect();

    let (title, sentences) = match &explanation.statement {
        Statement::Change(change) => (change_title(change, &finding), change_text(change)),
        Statement::ClientBound(cases) => client_bound(cases, &finding),
        Statement::AtFloor(steps) => disk_floor::text(steps, &finding),
        Statement::Sequence(step) => sequence(step),
        Statement::Unfair(step) => unfair(step, &finding),
        Statement::SlaMissed { missed, reached_by } => sla_missed(missed, reached_by, &finding),
        Statement::NoEffect(settings) => no_effect(settings, &finding),
        Statement::HiddenCost { costs, is_noisy } => hidden_cost(costs, *is_noisy, &finding),
        Statement::Facts { gaps, facts } => (
            "Differences of targets that were measured once, so no causes are named".to_owned(),
            known_differences(gaps, facts),
        ),
        Statement::Machines(variance) => machines(variance),
        Statement::Swings(targets) => swing::text(targets, &finding),
        Statement::Work(all) => witnesses::text(all, &finding),
    };

    (finding.title, finding.text) = (title, sentences.join(" "));
    Some(finding)
}

/// Returns the place of a finding: `q100`, or `3 steps`.
fn place(about: &Finding) -> String {
    let several = || counted(about.steps.len(), "step");
    about.step.clone().unwrap_or_else(several)
}

/// Returns a title such as `pg17.base: 1.20x slower in scan: 21% more CPU per query`.
fn change_title(change: &Change<'_>, finding: &Finding) -> String {
    let leading = change.cases[0];

    let (count, steps, total) = (change.cases.len(), &finding.steps, change.comparison_count);
    let who = match finding.targets.as_slice() {
        [one] => one.clone(),
        many => counted(many.len(), "target"),
    };

    let up_to = if count > 1 { "up to " } else { "" };

    let place = if count == 1 {
        format!("in {}", leading.place())
    } else if steps.len() == count && count <= 3 {
        // Each case has a step of its own, so the steps alone say where.
        let variant = leading.context.named_variant(finding.variant.as_deref());
        let of = variant.map(|variant| format!(" of {variant}"));
        format!("in {}{}", list(steps), of.unwrap_or_default())
    } else if steps.len() <= 3 {
        format!("in {count} of {total} comparisons ({})", list(steps))
    } else if finding.targets.len() == 1 {
        format!("in {count} of {total} steps")
    } else {
        format!("in {count} of {total} comparisons")
    };

    let mut headline =
        if count == 1 { cause::headline(change) } else { cause::in_brief(change.cause_in_brief()) };

    if matches!(change.cause, Cause::Unexplained(_))
        && let Some(setting) = difference::name_of_only(&change.differences)
    {
        headline += &format!("; only {setting} differs");
    }

    format!("{who}: {up_to}{} {place}: {headline}", pace_of(leading))
}

fn pace_of(case: &Case<'_>) -> String {
    pace(case.ratio, case.compared.interval)
}

/// Returns the interval of a ratio: ` (1.16x to 1.25x over 5 repeats)`.
fn interval(step: &ComparedStep) -> String {
    let repeats = counted(step.values.len(), "repeat");
    let interval = step.interval;
    let interval = interval.map(|interval| format!(" ({} over {repeats})", range(interval)));
    interval.unwrap_or_default()
}

/// States the change and its certainty, the cause, the other steps with it, and the differences
/// between the targets.
fn change_text(change: &Change<'_>) -> Vec<String> {
    let case = change.cases[0];
    let opening = format!(
        "{} is {} than {} in {}{}.",
        case.target(),
        pace_of(case),
        case.base_name(),
        case.place(),
        interval(case.compared)
    );

    let differences = difference::clauses(&change.differences, change.is_sure);
    let last = match (also(&change.cases), differences) {
        (Some(also), Some(differences)) => Some(format!("{also}; the two {differences}.")),
        (Some(also), None) => Some(format!("{also}.")),
        (None, Some(differences)) => Some(format!("The two {differences}.")),
        (None, None) => None,
    };

    let why = cause::sentence(case, &change.cause);
    let detail = match change.cause.kind() {
        FindingKind::Cpu => whole_process(case).or_else(|| named_function(case)),
        FindingKind::HostBusy | FindingKind::SlaMissed => None,
        _ => named_wait(case),
    };

    [Some(opening), Some(why), detail, changed_plan(case), last].into_iter().flatten().collect()
}

/// States that the CPU is that of the server's whole process, where its threads can't be told
/// apart.
fn whole_process(case: &Case<'_>) -> Option<String> {
    let sides = case.without_threads();
    case.process_cpu()?;
    let names = sides.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    Some(format!(
        "The threads of {} can't be told apart, so this is the CPU of the server's whole process on both sides.",
        list(&names)
    ))
}

/// Names the function in which most of the change of CPU is.
fn named_function(case: &Case<'_>) -> Option<String> {
    let function = case.named_function()?;
    let more = if function.difference_us > 0.0 { "more" } else { "less" };

    let caller = function.caller.as_ref();
    let caller = caller.map(|caller| format!(", called by `{caller}`"));
    Some(format!(
        "According to the profiles, {} us {more} per {} is in `{}`{}.",
        figure(function.difference_us.abs()),
        case.noun(),
        function.name,
        caller.unwrap_or_default()
    ))
}

/// Names a statement that the engine runs with another plan.
fn changed_plan(case: &Case<'_>) -> Option<String> {
    let plans = case.changed_plans();

    let changed = plans.iter().find_map(|plan| Some((plan, plan.first_lines()?)));
    let (statement, [base, target]) = changed?;
    let others = match plans.len() - 1 {
        0 => String::new(),
        others => format!(", and those of {}", counted(others, "other statement")),
    };

    Some(format!(
        "The plan of `{}` differs: `{target}` instead of `{base}`{others}.",
        excerpt(&statement.statement, STATEMENT_CHARS)
    ))
}

/// Names the wait of sessions that changed most.
fn named_wait(case: &Case<'_>) -> Option<String> {
    let wait = case.named_wait()?;
    let us = wait.time.difference_us;
    Some(format!(
        "According to the engine, sessions spent {} us {} per {} in `{}`.",
        figure(us.abs()),
        if us > 0.0 { "more" } else { "less" },
        case.noun(),
        wait.name
    ))
}

/// Names the other cases, of several targets each first: `Also in q500 (1.20x slower)`.
fn also(cases: &[&Case<'_>]) -> Option<String> {
    let (leading, others) = cases.split_first()?;
    let has_targets = others.iter().any(|case| case.target() != leading.target());

    let mut seen = vec![leading.target()];

    let (firsts, others): (Vec<&Case<'_>>, Vec<_>) = others.iter().partition(|case| {
        let is_new = !seen.contains(&case.target());
        seen.push(case.target());
        is_new
    });

    let cases = firsts.into_iter().chain(others).map(|case| {
        let (place, pace) = (case.place(), pace_of(case));
        if has_targets {
            format!("{} in {place} ({pace})", case.target())
        } else {
            format!("{place} ({pace})")
        }
    });

    let also = if has_targets { "Also" } else { "Also in" };
    list_any(cases).map(|cases| format!("{also} {cases}"))
}

fn client_bound(cases: &[(f64, &Case<'_>)], about: &Finding) -> (String, Vec<String>) {
    let (share, case) = cases[0];
    let busy = percent(share);
    let title = format!(
        "The client is the limit in {}: its threads are busy {busy} of the time",
        place(about)
    );

    let mut text = vec![
        format!(
            "In {}, client threads of {} or {} are busy {busy} of the time.",
            case.place(),
            case.base_name(),
            case.target()
        ),
        "This hides differences between the engines: use more clients, or less client work per operation."
            .to_owned(),
    ];

    let others = cases[1..].iter().map(|(share, case)| {
        let (target, place) = (case.target(), case.place());
        format!("{target} in {place} ({})", percent(*share))
    });
    text.extend(list_any(others).map(|others| format!("Also {others}.")));
    (title, text)
}

fn sequence(sequenced: &SequencedStep) -> (String, Vec<String>) {
    let SequencedStep { who, before, compared } = sequenced;
    let step = &compared.step;
    let changed = pace(compared.ratio.unwrap_or(1.0), compared.interval);
    let after = list_any(before.iter().cloned()).unwrap_or_else(|| "other steps".to_owned());
    let title = format!("{who}: {step} is {changed} after {after} than right after the load");

    let text = vec![
        format!(
            "In sequence, {step} of {who} is {changed} than in cells of its own, right after the load{}.",
            interval(compared)
        ),
        format!("Between them {after} changed the data, and may have left unfinished work."),
        "To tell the two apart, let the engine settle before the step.".to_owned(),
    ];
    (title, text)
}

fn unfair(unfair: &UnfairStep, about: &Finding) -> (String, Vec<String>) {
    let UnfairStep { worst, percent, repeat_count, unfair_count, target_count } = unfair;
    let step = place(about);

    let title = match unfair_count {
        1 => format!("{worst}: clients ended {percent:.1}% apart in {step}"),
        many => format!("{many} targets: clients ended up to {percent:.1}% apart in {step}"),
    };
    let median = match repeat_count {
        1 => String::new(),
        many => format!(" (the median of {many} repeats)"),
    };

    let mut text = vec![
        format!(
            "In {step}, the slowest client of {worst} ended {percent:.1}% later than the fastest{median}."
        ),
        "Mean throughput hides this: while the slowest clients work, the others are idle."
            .to_owned(),
    ];

    if *unfair_count > 1 {
        text.push(format!(
            "Of {target_count} targets, the clients of {unfair_count} ended more than {UNFAIR_PCT:.0}% apart."
        ));
    }
    (title, text)
}

fn sla_missed(
    missed: &[MissedRate<'_>],
    reached_by: &[&str],
    about: &Finding,
) -> (String, Vec<String>) {
    let MissedRate { who, step, sla, missed_repeats, repeat_count } = &missed[0];
    let (what, consequence) = match sla.role() {
        OpRole::Event => (
            "event",
            "Response times below the requested rate are not comparable with those at the rate.",
        ),
        _ => (
            "write",
            "Queries that compete with fewer writes are not comparable with those that compete with all.",
        ),
    };

    let title = format!(
        "{}: missed the requested {what} rate in {}: {} of {} {}",
        list(&about.targets),
        list(&about.steps),
        figure(sla.achieved),
        figure(sla.target),
        rate_unit(sla)
    );
    let mut text = vec![
        format!(
            "{who} reached {} of the requested rate in {step}, and missed it in {missed_repeats} of {}.",
            achieved_share(&missed[0]),
            counted(*repeat_count, "repeat")
        ),
        consequence.to_owned(),
    ];

    let others = missed[1..]
        .iter()
        .map(|rate| format!("{} in {} ({})", rate.who, rate.step, achieved_share(rate)));
    let also_missed = list_any(others).map(|others| format!("{others} also missed it"));
    let reached = list_any(reached_by.iter().map(|&target| target.to_owned()))
        .map(|targets| format!("{targets} reached it in {step}"));
    let clauses: Vec<String> = also_missed.into_iter().chain(reached).collect();
    if !clauses.is_empty() {
        text.push(format!("{}.", clauses.join("; ")));
    }

    (title, text)
}

fn achieved_share(rate: &MissedRate<'_>) -> String {
    format!("{:.1}%", 100.0 * rate.sla.achieved / rate.sla.target)
}

fn no_effect(no_effect: &NoEffect<'_>, about: &Finding) -> (String, Vec<String>) {
    let NoEffect { settings, comparison_count, ratios: (low, high), effect } = no_effect;

    let differ =
        settings.iter().map(|(who, setting)| format!("{} in {who}", setting_text(setting)));
    let differ: Vec<String> = differ.collect();
    let base = about.base.as_deref().unwrap_or_default();

    let text = vec![
        format!(
            "No change of throughput is shown in any of {}: the ratios are {} to {}, within {}%.",
            counted(*comparison_count, "comparison"),
            times(*low),
            times(*high),
            figure(100.0 * effect)
        ),
        format!("Only one setting is known to differ from {base}: {}.", list(&differ)),
        "This holds for this load on this machine.".to_owned(),
    ];

    let (_, first) = settings[0];
    (format!("{} shows no effect in {}", first.name, place(about)), text)
}

fn hidden_cost(
    costs: &[(&ComparedStep, &Case<'_>)],
    is_noisy: bool,
    about: &Finding,
) -> (String, Vec<String>) {
    let (throughput, why) = if is_noisy {
        (
            "throughput too noisy to say",
            "Throughput varies too much between repeats to show the effect.",
        )
    } else {
        ("no change of throughput shown", "Throughput shows no change.")
    };

    let (cost, case) = costs[0];
    let (target, per, base) = (&about.target, case.noun(), case.base_name());
    let change = change_of(cost);
    let (amount, than) = (change.text(), change.than());

    let over = change.range().map(|range| {
        let repeats = counted(cost.values.len(), "repeat");
        format!(" ({range} over {repeats})")
    });

    let title = format!("{target}: {amount} own CPU per {per} in {}, {throughput}", place(about));

    let mut text = vec![
        format!(
            "{target} uses {amount} CPU of the engine and its clients per {per} {than} {base} in {}{}.",
            case.place(),
            over.unwrap_or_default()
        ),
        why.to_owned(),
    ];
    text.extend(whole_process(case).or_else(|| named_function(case)));

    let others = costs[1..]
        .iter()
        .map(|(cost, case)| format!("{} ({})", case.place(), change_of(cost).text()));
    text.extend(list_any(others).map(|others| format!("Also in {others}.")));

    (title, text)
}

/// Returns the change of a cost. This is the comparison's ratio, not the ratio of the means.
fn change_of(cost: &ComparedStep) -> AmountChange {
    AmountChange::new(cost.ratio.unwrap_or(1.0), cost.interval)
}

fn known_differences(gaps: &[CostGaps<'_>], facts: &[Fact<'_>]) -> Vec<String> {
    let mut sentences = Vec::new();
    for of_cost in gaps.iter().take(GAPS_NAMED) {
        sentences.extend(gap::sentence(of_cost));
    }

    let mut with_fsyncs = Vec::new();
    let mut with_settings = Vec::new();
    for Fact { who, fsyncs, settings } in facts {
        if !fsyncs.is_empty() {
            with_fsyncs.push(format!("{who} in {}", list(fsyncs)));
        }
        if !settings.is_empty() {
            let settings: Vec<String> =
                settings.iter().map(|setting| setting_text(setting)).collect();
            with_settings.push(format!("{who} in {}", list(&settings)));
        }
    }

    if !with_fsyncs.is_empty() {
        sentences.push(format!(
            "Fsyncs per commit differ by a factor of {BEGINS_FACTOR} or more: {}.",
            list(&with_fsyncs)
        ));
    }
    if !with_settings.is_empty() {
        sentences.push(format!("Settings differ: {}.", list(&with_settings)));
    }

    sentences
}

fn machines(variance: &MachineVariance<'_>) -> (String, Vec<String>) {
    let MachineVariance { machine_count, shares, differing } = variance;
    let machines = counted(*machine_count, "machine");

    // Sorted from the largest share to the smallest.
    let (median, _) = shares[shares.len() / 2];
    let median = percent(median.share);
    let (largest, case) = shares[0];
    let interval = format!("{} to {}", percent(largest.low), percent(largest.high));
    let share = match shares.len() {
        1 => format!(
            "{median} of the variance of throughput in {} is between them ({interval})",
            case.place()
        ),
        count => format!(
            "{median} of the variance of throughput is between them in the median of {}, and {} in {} ({interval})",
            counted(count, "comparison"),
            percent(largest.share),
            case.place()
        ),
    };

    let mut text = vec![
        format!("{machines} measured the repeats: {share}."),
        "Base and target are compared within each machine, so this variance cancels.".to_owned(),
    ];
    let cases_that_differ =
        differing.iter().map(|case| format!("{} in {}", case.target(), case.place()));
    text.extend(list_any(cases_that_differ).map(|cases| {
        format!("Because the ratio differs between machines for {cases}, each machine counts as one value.")
    }));

    let title = format!("{machines}: {median} of the variance of throughput is between them");
    (title, text)
}

/// Lists settings with both values, and says which of them the plan does not declare: `log_bin (OFF
/// -> ON), which the plan does not declare`.
fn settings_text(settings: &[Difference]) -> String {
    let is_declared = |setting: &&Difference| setting.mark != DifferenceKind::Undeclared;
    let (declared, implicit): (Vec<_>, Vec<_>) = settings.iter().partition(is_declared);
    let texts = |settings: Vec<&Difference>| list_any(settings.into_iter().map(setting_text));
    let implicit = texts(implicit).map(|text| format!("{text}, which the plan does not declare"));
    let both: Vec<String> = texts(declared).into_iter().chain(implicit).collect();
    both.join(", and from ")
}

/// Returns both values of a setting: `innodb_doublewrite (ON -> OFF)`.
fn setting_text(setting: &Difference) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    let (a, b) = (value(&setting.a), value(&setting.b));
    format!("{} ({a} -> {b})", setting.name)
}
