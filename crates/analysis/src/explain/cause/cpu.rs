//! CPU per operation: of the whole host, then whose.

use super::super::case::{Case, Pair, Side};
use super::super::thresholds::CPU_OF_TIME;
use super::super::words::{change_us, more, signed_us};
use super::super::{FindingKind, words};
use super::{Cause, accounts};

/// Parts of the difference below this share of it are left out.
const SMALL_PART: f64 = 0.02;

/// The share of the difference from which on it is that of others.
const OTHERS_PART: f64 = 0.5;

/// CPU per operation grew as throughput fell: the whole host's, the kernel's work for the engine with it.
pub(super) fn cause(case: &Case<'_>) -> Option<Cause> {
    let (cpu, who, what) = match own_alone(case) {
        // Who shares the host uses more of it per operation whatever makes operations slower.
        Some(own) if own.is_same() => return None,
        Some(own) => (own, "Engine and clients use", "CPU of engine and clients"),
        None => (case.cpu()?, "It uses", "CPU"),
    };
    let share = case.share(cpu)?;
    // What is a small part of the time can't be what it is made of.
    let of_time = (case.share_of_time(cpu) / CPU_OF_TIME).min(1.0);
    let per = case.noun();
    let much = more(cpu.ratio()?, "CPU");
    let headline = format!("{much} per {per}");
    let mut sentence = format!(
        "{who} {headline} ({}), {}",
        change_us(cpu.base, cpu.value),
        accounts(share)
    );
    match (case.reads_unchanged(), case.writes_unchanged()) {
        (Some(true), Some(true)) => {
            sentence +=
                &format!("; reads and writes per {per} are unchanged: this is CPU and not IO.");
        }
        (Some(true), None) => sentence += &format!("; reads per {per} are unchanged."),
        _ => sentence += ".",
    }
    if let Some(whose) = whose(case, cpu) {
        sentence += " ";
        sentence += &whose;
    }
    Some(Cause {
        kind: FindingKind::Cpu,
        score: share.clamp(0.0, 1.0) * of_time,
        headline,
        sentence,
        brief: format!("{what} {}", change_us(cpu.base, cpu.value)),
    })
}

/// CPU of engine and clients, where half or more of the difference is that of others.
fn own_alone(case: &Case<'_>) -> Option<Pair> {
    let (cpu, own) = (case.cpu()?, case.pair(Side::own_cpu_us)?);
    let rest = Pair {
        base: (cpu.base - own.base).max(0.0),
        value: (cpu.value - own.value).max(0.0),
    };
    (rest.grown() / cpu.grown() >= OTHERS_PART).then_some(own)
}

/// Whose CPU it is: the client's, the server's, or that of everybody else. Where the engine works on the clients' threads
/// that of its threads in the background is told apart, if its process was sampled.
fn whose(case: &Case<'_>, cpu: Pair) -> Option<String> {
    let client = case.metric("client_cpu_us_per_op")?;
    let server = |side: &Side<'_>| side.metric("server_cpu_us_per_op");
    let parts = match (server(&case.base), server(&case.side)) {
        (Some(base), Some(value)) => {
            let server = value - base;
            vec![
                ("the server's", server),
                ("the client's", client.grown()),
                (
                    "of the rest of the host",
                    cpu.grown() - client.grown() - server,
                ),
            ]
        }
        (None, None) => {
            let on_clients = (
                "on the clients' threads, where the engine works",
                client.grown(),
            );
            let rest = cpu.grown() - client.grown();
            match case.pair(Side::own_cpu_us) {
                Some(own) => vec![
                    on_clients,
                    (
                        "of its threads in the background",
                        own.grown() - client.grown(),
                    ),
                    ("of the rest of the host", cpu.grown() - own.grown()),
                ],
                None => vec![on_clients, ("in the background, or of others", rest)],
            }
        }
        _ => return None,
    };
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, us)| us.abs() >= SMALL_PART * cpu.grown().abs())
        .map(|(who, us)| format!("{} is {who}", signed_us(*us)))
        .collect();
    Some(format!("Of the difference {}.", words::list(&parts)))
}
