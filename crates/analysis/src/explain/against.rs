//! What speaks against an explanation, or against the numbers that it explains.

use super::FindingKind;
use super::apart::Apart;
use super::case::{Case, Pair, Side};
use super::cause::{Diagnosis, waited_for};
use super::thresholds::{
    CLIENT_BUSY, CPU_OF_TIME, DEBT, EXPLAINS, FREQUENCY, FSYNC_LATENCY, MEMORY_PRESSURE, OTHERS,
    SPREAD, STEAL, SWAPPED_PAGES,
};
use super::words::{change, change_us, change_us_of, distinct, figure, list};
use crate::{Figures, Pairing, Row, trees};

/// One doubt: what it is about, so that the same of several steps is told once, and the sentence.
pub(super) struct Doubt {
    pub about: &'static str,
    pub text: String,
}

/// All doubts of one case, the gravest first.
pub(super) fn doubts(
    figures: &Figures,
    case: &Case<'_>,
    diagnosis: &Diagnosis,
    apart: &Apart,
) -> Vec<Doubt> {
    let found = [
        ("single", single(case)),
        ("spread", spread(case)),
        ("order", order(case)),
        ("runs", other_runs(case)),
        ("nothing", nothing_differs(apart)),
        ("resources", both_resources(case, diagnosis)),
        ("client", client(case)),
        ("sla", sla(case)),
        ("debt", debt(figures, case)),
        ("trees", trees::apart(&case.base.rows, &case.side.rows)),
        ("host", host(diagnosis)),
        ("others", others(case)),
        ("steal", steal(case, diagnosis)),
        ("frequency", frequency(case)),
        ("fsync", fsync(case)),
        ("swap", swap(case)),
        ("memory", memory(case)),
        ("settings", apart.against()),
        ("warnings", warnings(case)),
    ];
    found
        .into_iter()
        .filter_map(|(about, text)| Some(Doubt { about, text: text? }))
        .collect()
}

fn single(case: &Case<'_>) -> Option<String> {
    (case.compared.pairing == Pairing::Single).then(|| {
        "a single run has no interval: nobody knows what chance does here, repeats would tell"
            .to_owned()
    })
}

/// The base's own repeats differ by as much as the target does from them. Not where repeats were compared in pairs: these
/// take out what changes for both.
fn spread(case: &Case<'_>) -> Option<String> {
    if case.compared.pairing != Pairing::Independent {
        return None;
    }
    let values = || case.compared.base_values.iter().map(|sample| sample.value);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    let apart = (high / low).ln();
    (apart >= SPREAD * case.ratio.ln().abs()).then(|| {
        format!(
            "the base's own repeats differ by {:.0}%: {} to {} {}",
            100.0 * (high / low - 1.0),
            figure(low),
            figure(high),
            case.rate()
        )
    })
}

fn order(case: &Case<'_>) -> Option<String> {
    (case.compared.pairing == Pairing::Independent && other_runs(case).is_none()).then(|| {
        "base and target did not take turns: what changed on the machine meanwhile is in the difference"
            .to_owned()
    })
}

fn other_runs(case: &Case<'_>) -> Option<String> {
    let base = &case.compared.base_values;
    let is_apart = case
        .compared
        .values
        .iter()
        .all(|sample| base.iter().all(|of_base| of_base.run != sample.run));
    is_apart.then(|| {
        "base and target were measured in different runs: what changed on the machine in between is in the difference"
            .to_owned()
    })
}

fn nothing_differs(apart: &Apart) -> Option<String> {
    (*apart == Apart::Nothing).then(|| "nothing is known in which the two differ".to_owned())
}

/// Another resource accounts for much of the change too.
fn both_resources(case: &Case<'_>, diagnosis: &Diagnosis) -> Option<String> {
    use FindingKind::{Cpu, Fsyncs, Reads, Writes};
    if !matches!(diagnosis.cause.kind, Cpu | Reads | Writes | Fsyncs) {
        return None;
    }
    let other = diagnosis.beside.iter().find(|other| {
        matches!(other.kind, Cpu | Reads | Writes | Fsyncs) && other.score >= EXPLAINS
    })?;
    Some(format!(
        "{} changed with it: how the two share the change of a {} can't be told",
        other.brief,
        case.noun()
    ))
}

/// The client is what limits one of the two.
pub(super) fn client(case: &Case<'_>) -> Option<String> {
    let client = case.metric("client_cpu_us_per_op")?;
    let server = case.metric("server_cpu_us_per_op")?;
    let per = case.noun();
    let busy = case.share_of_time(client);
    let is_warned = [&case.base, &case.side]
        .iter()
        .flat_map(|side| &side.rows)
        .any(|row| has_warning(row, "client::busy"));
    if busy >= CLIENT_BUSY || is_warned {
        let much = match is_warned && busy < CLIENT_BUSY {
            true => "at least one client thread is busy nearly all the time".to_owned(),
            false => format!("client threads are busy {:.0}% of the time", 100.0 * busy),
        };
        return Some(format!(
            "{much} ({}): throughput is then the client's limit, not the server's",
            change_us_of(client.base, client.value, &format!("of CPU per {per}"))
        ));
    }
    let is_more = client.base > server.base || client.value > server.value;
    is_more.then(|| {
        format!(
            "the client uses more CPU per {per} than the server ({} against {}), on the same host",
            change(client.base, client.value, "us"),
            change(server.base, server.value, "us")
        )
    })
}

/// Writes beside the queries were not the same number on both sides. Of a rate of the queries themselves their throughput
/// says it.
fn sla(case: &Case<'_>) -> Option<String> {
    let missed = |side: &Side<'_>| {
        let mut slas = side
            .rows
            .iter()
            .filter_map(|row| Some((row, row.sla.as_ref()?)));
        slas.any(|(row, sla)| !sla.met && row.main_op.as_ref() != Some(&sla.kind))
    };
    let who = match (missed(&case.base), missed(&case.side)) {
        (false, false) => return None,
        (true, false) => case.base_name,
        (false, true) => case.compared.target.as_str(),
        (true, true) => "neither",
    };
    Some(match who {
        "neither" => {
            "neither had the rate of writes that was asked for: the work is not the same".to_owned()
        }
        who => format!(
            "{who} did not have the rate of writes that was asked for, and so had less to do beside"
        ),
    })
}

/// The debts that steps leave, each with its name and the least that matters.
const DEBTS: [(&str, &str, f64); 5] = [
    ("debt_dead_rows", "dead rows", 10_000.0),
    ("debt_history_list", "transactions to purge", 10_000.0),
    ("debt_dirty_mb", "MB of dirty pages", 16.0),
    ("debt_redo_mb", "MB of redo since the checkpoint", 64.0),
    ("debt_compaction_mb", "MB to compact", 64.0),
];

/// The step before left more to do on one side.
fn debt(figures: &Figures, case: &Case<'_>) -> Option<String> {
    DEBTS.iter().find_map(|(name, what, least)| {
        let pair = case.pair(|side| {
            let before = before(figures, side.rows[0])?;
            before.metrics.get(name).copied().flatten()
        })?;
        let is_other = pair.max() >= *least
            && pair
                .ratio()
                .is_none_or(|ratio| ratio.max(1.0 / ratio) >= DEBT);
        is_other.then(|| {
            format!(
                "the step before left another debt: {}",
                change(pair.base, pair.value, what)
            )
        })
    })
}

/// The step that ran before in the same cell.
fn before<'a>(figures: &'a Figures, row: &Row) -> Option<&'a Row> {
    let is_same_cell = |other: &&Row| {
        other.run == row.run
            && other.target == row.target
            && other.workload == row.workload
            && other.variant == row.variant
            && other.clients == row.clients
            && other.repeat == row.repeat
    };
    let cell: Vec<&Row> = figures.rows.iter().filter(is_same_cell).collect();
    let at = cell.iter().position(|other| other.step == row.step)?;
    cell.get(at.checked_sub(1)?).copied()
}

/// CPU of the host that is neither the client's nor the server's.
fn others(case: &Case<'_>) -> Option<String> {
    let all = case.metric("cpupq")?;
    let own = case.pair(Side::own_cpu_us)?;
    let rest = Pair {
        base: all.base - own.base,
        value: all.value - own.value,
    };
    let share = (rest.base / all.base).max(rest.value / all.value);
    (share >= OTHERS).then(|| {
        format!(
            "up to {:.0}% of the host's CPU was neither the client's nor the server's ({}): the kernel's, or others \
             were at work",
            100.0 * share,
            change_us_of(
                rest.base.max(0.0),
                rest.value.max(0.0),
                &format!("per {}", case.noun())
            ),
        )
    })
}

/// The cause is none of the target's.
fn host(diagnosis: &Diagnosis) -> Option<String> {
    (diagnosis.cause.kind == FindingKind::HostBusy).then(|| {
        "what the machine did for others is no change of the target: measure again where it is at rest"
            .to_owned()
    })
}

/// Not where the cause has told it.
fn steal(case: &Case<'_>, diagnosis: &Diagnosis) -> Option<String> {
    let pair = case.pair(Side::stolen)?;
    let is_told = diagnosis.cause.kind == FindingKind::HostBusy;
    (pair.max() >= STEAL && !is_told).then(|| {
        format!(
            "the hypervisor took processors away for {}",
            change(100.0 * pair.base, 100.0 * pair.value, "% of the time")
        )
    })
}

/// Not where CPU is a small part of the time: a governor that follows the load slows down for who waits.
pub(super) fn frequency(case: &Case<'_>) -> Option<String> {
    let is_small = case
        .cpu()
        .is_some_and(|cpu| case.share_of_time(cpu) < CPU_OF_TIME);
    clock(case, case.log_time()).filter(|_| !is_small)
}

/// The processors were slower where a cost is higher, of which `log_cost` is the logarithm of the ratio, or faster where it
/// is lower.
pub(super) fn clock(case: &Case<'_>, log_cost: f64) -> Option<String> {
    let mhz = case.metric("cpu_mhz")?;
    let log = mhz.ratio()?.ln();
    (log * log_cost < 0.0 && log.abs() >= FREQUENCY.ln()).then(|| {
        format!(
            "the processors ran at {}: CPU is {} by that much, which is the machine's doing and no other work of the target's",
            change(mhz.base, mhz.value, "MHz"),
            if log < 0.0 { "slower" } else { "faster" }
        )
    })
}

/// Where commits wait for fsyncs, these took longer on the slower side already when nothing ran there yet.
fn fsync(case: &Case<'_>) -> Option<String> {
    let us = case.pair(Side::fsync_us)?;
    let log = us.ratio()?.ln();
    let is_along = log * case.log_time() > 0.0 && log.abs() >= FSYNC_LATENCY.ln();
    (is_along && waited_for(case)).then(|| {
        format!(
            "before the cells were run an fsync took {}, and commits wait for it: the difference may be the disk's and not the target's",
            change_us(us.base, us.value)
        )
    })
}

fn swap(case: &Case<'_>) -> Option<String> {
    let pages = case.pair(|side| {
        Some(side.host_sum("swap_in_page_count")? + side.host_sum("swap_out_page_count")?)
    })?;
    (pages.max() >= SWAPPED_PAGES).then(|| {
        format!(
            "the host swapped: {}",
            change(pages.base, pages.value, "pages")
        )
    })
}

fn memory(case: &Case<'_>) -> Option<String> {
    let share = |side: &Side<'_>| {
        let seconds: f64 = side.rows.iter().map(|row| row.seconds).sum();
        let ns = side.host_sum("pressure_memory_some_ns")?;
        (seconds > 0.0).then(|| ns / 1e9 / seconds)
    };
    let pair = case.pair(share)?;
    (pair.max() >= MEMORY_PRESSURE).then(|| {
        format!(
            "threads waited for memory in {}",
            change(100.0 * pair.base, 100.0 * pair.value, "% of the time")
        )
    })
}

fn has_warning(row: &Row, code: &str) -> bool {
    row.warnings.iter().any(|warning| warning.code == code)
}

/// Warnings of the steps themselves; that of a busy client has its own sentence.
fn warnings(case: &Case<'_>) -> Option<String> {
    let told = |side: &Side<'_>| {
        let warnings = side.rows.iter().flat_map(|row| &row.warnings);
        let codes = warnings
            .map(|warning| warning.code.as_str())
            .filter(|code| *code != "client::busy");
        distinct(codes)
    };
    let of = |who: &str, codes: Vec<String>| {
        (!codes.is_empty()).then(|| format!("{} ({who})", list(&codes)))
    };
    let parts: Vec<String> = [
        of(case.base_name, told(&case.base)),
        of(&case.compared.target, told(&case.side)),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("there are warnings: {}", list(&parts)))
}
