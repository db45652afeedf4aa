//! Reasons to doubt a finding, or the figures that it rests on.

use super::FindingKind;
use super::case::{Case, Pair, Side};
use super::cause::Cause;
use super::thresholds::{
    CLIENT_BUSY, CPU_OF_TIME, CPU_WAIT, DEBT, FREQUENCY, FSYNC_LATENCY, MEMORY_PRESSURE, OTHERS,
    SPREAD, STEAL, SWAPPED_PAGES,
};
use super::words::{figure, list};
use crate::order::distinct;
use crate::quality::mean;
use crate::{Figures, Pairing, Row, initial_tree};

/// One reason: its subject, so that several steps share it, and the sentence.
pub(super) struct Caveat {
    pub about: &'static str,
    pub text: String,
}

/// Returns all caveats of one case, the gravest first.
pub(super) fn caveats(case: &Case<'_>, cause: &Cause) -> Vec<Caveat> {
    let found = [
        ("spread", spread(case)),
        ("order", order(case)),
        ("nothing", nothing_differs(case)),
        ("client", client(case)),
        ("sla", sla(case)),
        ("debt", debt(case)),
        (
            "trees",
            initial_tree::difference(&case.base.rows, &case.side.rows),
        ),
        ("others", busy_host(case, cause)),
        ("steal", steal(case)),
        ("frequency", frequency(case)),
        ("fsync", fsync(case, cause)),
        ("reads", read_sizes(case, cause)),
        ("swap", swap(case)),
        ("memory", memory(case)),
        ("settings", case.difference.caveat()),
        ("warnings", warnings(case)),
    ];
    found
        .into_iter()
        .filter_map(|(about, text)| Some(Caveat { about, text: text? }))
        .collect()
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
    let is_wide = (high / low).ln() >= SPREAD * case.ratio.ln().abs();
    is_wide.then(|| {
        format!(
            "the base's own repeats differ by {:.0}%: {} to {} {}",
            100.0 * (high / low - 1.0),
            figure(low),
            figure(high),
            case.rate()
        )
    })
}

/// Base and target did not take turns.
fn order(case: &Case<'_>) -> Option<String> {
    let base = &case.compared.base_values;
    let is_in_base = |run: usize| base.iter().any(|sample| sample.run == run);
    let has_other_runs = !case
        .compared
        .values
        .iter()
        .any(|sample| is_in_base(sample.run));
    let how = match (has_other_runs, case.compared.pairing) {
        (true, _) => "were measured in different runs",
        (false, Pairing::Independent) => "did not take turns",
        (false, _) => return None,
    };
    Some(format!(
        "base and target {how}: the difference includes what changed on the machine in between"
    ))
}

fn nothing_differs(case: &Case<'_>) -> Option<String> {
    case.difference
        .is_nothing()
        .then(|| "no difference between the two is known".to_owned())
}

/// The client is the limit of one of the two.
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
            "{much} ({} of CPU per {per}): throughput is then the client's limit, not the server's",
            client.text("us")
        ));
    }
    let is_more = client.base > server.base || client.value > server.value;
    is_more.then(|| {
        format!(
            "the client uses more CPU per {per} than the server ({} against {}), on the same host",
            client.text("us"),
            server.text("us")
        )
    })
}

/// One of the two missed the rate of writes beside the queries.
fn sla(case: &Case<'_>) -> Option<String> {
    let who = match case.missed_writes() {
        [true, false] => case.base_name(),
        [false, true] => case.target(),
        // Of both the text itself says so.
        [false, false] | [true, true] => return None,
    };
    Some(format!(
        "{who} missed its target write rate in some repeat, and so had less to do beside the queries"
    ))
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
fn debt(case: &Case<'_>) -> Option<String> {
    DEBTS.iter().find_map(|(name, what, least)| {
        let left = |side: &Side<'_>| before(case.context.figures, side.rows[0])?.metric(name);
        let pair = case.pair(left)?;
        (pair.max() >= *least && pair.factor() >= DEBT).then(|| {
            format!(
                "the step before left different amounts of work: {}",
                pair.text(what)
            )
        })
    })
}

/// Returns the step that ran before in the same cell.
fn before<'a>(figures: &'a Figures, row: &Row) -> Option<&'a Row> {
    let is_same_cell = |other: &&Row| {
        (other.run, &other.cell, &other.workload) == (row.run, &row.cell, &row.workload)
    };
    let cell: Vec<&Row> = figures.rows.iter().filter(is_same_cell).collect();
    let at = cell.iter().position(|other| other.step == row.step)?;
    cell.get(at.checked_sub(1)?).copied()
}

/// Other processes used processors, or threads waited for one.
fn busy_host(case: &Case<'_>, cause: &Cause) -> Option<String> {
    let others = case.metric("others%").map_or(0.0, Pair::max);
    let wait = case.metric("op_cpu_wait_us").zip(case.metric("op_time_us"));
    let wait = wait.map_or(0.0, |(wait, time)| {
        (wait.base / time.base).max(wait.value / time.value)
    });
    let mut found = Vec::new();
    if others >= 100.0 * OTHERS {
        found.push(format!(
            "other processes used up to {others:.0}% of the CPU"
        ));
    }
    if wait >= CPU_WAIT {
        let percent = 100.0 * wait;
        found.push(format!(
            "operations waited for a processor for up to {percent:.0}% of their time"
        ));
    }
    if found.is_empty() && cause.kind == FindingKind::HostBusy {
        found.push("processors were not free when they were needed".to_owned());
    }
    (!found.is_empty()).then(|| format!("the host was busy: {}", list(&found)))
}

fn steal(case: &Case<'_>) -> Option<String> {
    let stolen = case.metric("steal%")?;
    (stolen.max() >= 100.0 * STEAL).then(|| {
        let (base, value) = (figure(stolen.base), figure(stolen.value));
        format!(
            "the hypervisor took CPU time (steal): {base}% with the base, {value}% with the target"
        )
    })
}

/// The processors were slower where it was slower. Not where CPU is a small part of the time: a governor that follows the
/// load slows down for who waits.
pub(super) fn frequency(case: &Case<'_>) -> Option<String> {
    let cpu = case.metric("own_cpu_us_per_op");
    let is_small = cpu.is_some_and(|cpu| case.share_of_time(cpu) < CPU_OF_TIME);
    clock(case, case.log_time()).filter(|_| !is_small)
}

/// The processors were slower where a cost is higher, of which `log_cost` is the logarithm of the ratio, or faster where it
/// is lower.
pub(super) fn clock(case: &Case<'_>, log_cost: f64) -> Option<String> {
    let mhz = case.metric("cpu_mhz")?;
    let log = mhz.ratio()?.ln();
    (log * log_cost < 0.0 && log.abs() >= FREQUENCY.ln()).then(|| {
        format!(
            "the processors ran at {}, which makes CPU {} by as much",
            mhz.text("MHz"),
            if log < 0.0 { "slower" } else { "faster" }
        )
    })
}

/// Fsyncs took longer on the slower side before anything ran there.
fn fsync(case: &Case<'_>, cause: &Cause) -> Option<String> {
    let us = |side: &Side<'_>| mean(side.rows.iter().filter_map(|row| row.fsync_us));
    let us = case.pair(us)?;
    let log = us.ratio()?.ln();
    let is_along = log * case.log_time() > 0.0 && log.abs() >= FSYNC_LATENCY.ln();
    (is_along && cause.kind == FindingKind::Fsyncs).then(|| {
        format!(
            "before the cells an fsync took {}: the difference may be the disk's",
            us.text("us")
        )
    })
}

/// The causes that reads for compaction may have a part in.
const OF_COMPACTION: [FindingKind; 4] = [
    FindingKind::Reads,
    FindingKind::WriteStalls,
    FindingKind::Stall,
    FindingKind::Locks,
];

/// Compaction asks the kernel to read more ahead than the disk takes in one request; or the devices' reads differ in size
/// where reads are the cause.
fn read_sizes(case: &Case<'_>, cause: &Cause) -> Option<String> {
    let sizes = case.read_kb().filter(|kb| !kb.is_same());
    let sizes = sizes.map(|kb| format!("the devices' reads were of {}", kb.text("KB")));
    let limits = |side: &Side<'_>| side.rows[0].read_limits.clone();
    let too_much = |side: &Side<'_>| {
        let limits = limits(side)?;
        let (setting, kb) = limits
            .compaction
            .filter(|(_, kb)| *kb > limits.max_sectors_kb)?;
        Some((setting, kb, limits.max_sectors_kb))
    };
    let (who, found) = match (too_much(&case.base), too_much(&case.side)) {
        (Some(_), Some(found)) => ("both", Some(found)),
        (Some(found), None) => (case.base_name(), Some(found)),
        (None, found) => (case.target(), found),
    };
    if let Some((setting, kb, most)) = found.filter(|_| OF_COMPACTION.contains(&cause.kind)) {
        let sizes = sizes.map(|sizes| format!("; {sizes}"));
        return Some(format!(
            "with {who} {setting} is {} KB and max_sectors_kb of the disk {}: the kernel does not read so much ahead at \
             once, so compaction may read in small pieces{}",
            figure(kb),
            figure(most),
            sizes.unwrap_or_default()
        ));
    }
    let limits = limits(&case.side).filter(|_| cause.kind == FindingKind::Reads)?;
    Some(format!(
        "{} (max_sectors_kb {}, read_ahead_kb {})",
        sizes?,
        figure(limits.max_sectors_kb),
        figure(limits.read_ahead_kb)
    ))
}

fn swap(case: &Case<'_>) -> Option<String> {
    let pages = case.pair(|side| {
        Some(side.host_sum("swap_in_page_count")? + side.host_sum("swap_out_page_count")?)
    })?;
    (pages.max() >= SWAPPED_PAGES).then(|| format!("the host swapped: {}", pages.text("pages")))
}

fn memory(case: &Case<'_>) -> Option<String> {
    let share = |side: &Side<'_>| {
        let seconds: f64 = side.rows.iter().map(|row| row.seconds).sum();
        let ns = side.host_sum("pressure_memory_some_ns")?;
        (seconds > 0.0).then(|| 100.0 * ns / 1e9 / seconds)
    };
    let pair = case.pair(share)?;
    (pair.max() >= 100.0 * MEMORY_PRESSURE).then(|| {
        format!(
            "threads waited for memory in {}",
            pair.text("% of the time")
        )
    })
}

fn has_warning(row: &Row, code: &str) -> bool {
    row.warnings.iter().any(|warning| warning.code == code)
}

/// Warnings of the steps themselves; that of a busy client has its own sentence.
fn warnings(case: &Case<'_>) -> Option<String> {
    let of = |who: &str, side: &Side<'_>| {
        let warnings = side.rows.iter().flat_map(|row| &row.warnings);
        let codes = warnings
            .map(|warning| warning.code.as_str())
            .filter(|code| *code != "client::busy");
        let codes = distinct(codes);
        (!codes.is_empty()).then(|| format!("{} ({who})", list(&codes)))
    };
    let parts: Vec<String> = [
        of(case.base_name(), &case.base),
        of(case.target(), &case.side),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("there are warnings: {}", list(&parts)))
}
