//! The messages between rank 0 and the load ranks.
//!
//! Every order has a number, and every report names the order that it answers: what a rank still
//! sends about an order that rank 0 has given up is ignored.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use load::{LatencyKind, Limits, StepOutcome};
use record::{Failure, IntervalRow, LoadPause};
use serde::{Deserialize, Serialize};
use workload::{ClientShare, Summaries};

use super::hosts::RankHost;
use load::Totals;

/// An order of rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub struct Numbered<T> {
    /// The number of the order.
    pub order: u64,
    /// The order, or a report about it.
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    pub message: T,
}

/// An order to a load rank.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Try which of these addresses of rank 0's host can be reached.
    Reach(Vec<SocketAddr>),
    /// Connect to a cell's target.
    Cell(Box<CellOrder>),
    /// Open the connections of a step or its warm-up, and have them ready.
    Prepare {
        step: usize,
        is_warm_up: bool,
        limits: Limits,
        /// The rank reports the samples of its host.
        samples_host: bool,
    },
    /// Report the clock.
    ReadClock,
    /// Begin the step that was prepared at this time of the rank's clock.
    Begin { at: u64 },
    /// End the step early.
    Halt,
    /// All connections of all ranks that the step waits for have ended.
    AllEnded,
    /// Close the connections: the server's threads that serve them have been measured.
    Close,
    /// Apply the merged summaries of the connections of all ranks.
    Apply { step: usize, summaries: Summaries, totals: Totals },
    /// Disconnect from the cell's target.
    EndCell,
    /// End.
    Quit,
}

/// A cell, as far as a load rank needs to know it.
#[derive(Debug, Serialize, Deserialize)]
pub struct CellOrder {
    /// The plan in its recorded form.
    pub plan: record::Plan,
    /// The index of the target in the plan.
    pub target: usize,
    /// The index of the variant in the plan.
    pub variant: usize,
    /// The clients of all ranks.
    pub clients: u32,
    /// See [`workload::sysbench::Options`].
    pub is_unlimited: bool,
    /// See [`workload::sysbench::Options`].
    pub nonce: u64,
    /// The clients of this rank.
    pub share: ClientShare,
    /// The URL of the server; `None` for the engine that stores nothing.
    pub url: Option<String>,
}

/// A report of a load rank.
#[derive(Debug, Serialize, Deserialize)]
pub enum Report<'a> {
    /// The rank has started.
    Hello(Box<RankHost>),
    /// The addresses that it reaches.
    Reached(Vec<SocketAddr>),
    /// The rank has connected to the target. A query that does nothing took at least this long.
    Connected { round_trip_ns: u64 },
    /// The rank has done what was ordered.
    Done,
    /// The connections of the step.
    Prepared { connections: Vec<ConnectionInfo> },
    /// The clock.
    Clock { now: u64 },
    /// Rows of completed seconds.
    #[serde(borrow)]
    Intervals(Vec<IntervalRow<'a>>),
    /// Latencies of a second; the histogram follows the message.
    Latencies { second: u32, kind: &'a str, time: LatencyKind },
    /// A sample of its host, so long after the step began.
    HostSample { at_ns: u64, values: Vec<Option<i64>> },
    /// The step continues. `is_waiting`: only its background connections are left. `sent_at` is by
    /// the rank's clock.
    Alive { is_waiting: bool, sent_at: u64 },
    /// The connections have done their work, and are still open.
    Idle,
    /// The step has ended.
    Ended(Box<EndedPart>),
    /// The rank could not do what was ordered.
    Failed(Failure),
}

/// The part of a step that one rank has ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct EndedPart {
    pub outcome: StepOutcome,
    /// Stalls of the process.
    pub pauses: Vec<LoadPause>,
    /// CPU time of the process.
    pub cpu_ns: u64,
    /// CPU time of all processes of its host.
    pub host_cpu_ns: u64,
}

/// A connection of a load rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionInfo {
    /// The client, from 0.
    pub client: u32,
    /// The role in the step.
    pub role: String,
    /// The kinds of operation.
    pub kinds: Vec<String>,
    /// The thread of the server, as the server reports it.
    pub server_thread: Option<u32>,
}

/// Returns a message as bytes, followed by `tail`.
pub fn encode(message: &impl Serialize, tail: &[u8]) -> Vec<u8> {
    let json =
        serde_json::to_vec(message).expect("messages have no maps with keys that are not strings");
    let length = (json.len() as u32).to_le_bytes();
    [&length, json.as_slice(), tail].concat()
}

/// Returns the message and the tail of [`encode`].
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> anyhow::Result<(T, &'a [u8])> {
    let (length, rest) =
        bytes.split_first_chunk().context("a message of another rank is too short")?;

    let length = u32::from_le_bytes(*length) as usize;
    ensure!(length <= rest.len(), "a message of another rank is cut off");

    let (json, tail) = rest.split_at(length);
    let message = serde_json::from_slice(json)
        .context("a message of another rank cannot be read: do all hosts run the same assay?")?;

    Ok((message, tail))
}
