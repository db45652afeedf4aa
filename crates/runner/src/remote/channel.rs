//! Orders to load ranks and their answers, as rank 0 sees them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{anyhow, bail};
use load::{Clock as _, SystemClock};
use ranks::Ranks;
use record::Failure;

use super::clock::{self, ClockOffset, ClockReading};
use super::hosts::RankHost;
use super::protocol::{Numbered, Order, Report, decode, encode};

/// The interval between looks for messages.
const POLL: Duration = Duration::from_millis(1);
/// The maximum time until a rank has started.
pub(super) const JOIN_NS: u64 = 60_000_000_000;
/// The maximum time that a rank takes for an order: connections may each take 10 s.
pub(super) const ORDER_NS: u64 = 300_000_000_000;
/// A rank that was not heard from for this long while a step runs is lost. They report four times a
/// second.
pub(super) const SILENT_NS: u64 = 30_000_000_000;
/// The maximum time until a rank answers after the operator or `mpirun` has asked assay to end,
/// which then kills all ranks after a second.
pub(super) const ANSWER_NS: u64 = 400_000_000;
/// The largest number of questions for the time, of which the shortest counts.
const CLOCK_READINGS_MAX: usize = 100;

/// A load rank that does not answer.
#[derive(Debug, thiserror::Error)]
#[error(
    "load rank {rank} on host `{host}` does not answer: its process or its host died, hangs or cannot be reached"
)]
pub struct LostRank {
    pub rank: usize,
    pub host: String,
}

/// The way of messages to all load ranks.
pub(super) struct RankChannel {
    pub(super) ranks: Ranks,
    pub(super) clock: SystemClock,
    /// The host of each load rank, which are numbered from 1.
    pub(super) hosts: Vec<RankHost>,
    /// The host of rank 0, where the servers are.
    pub(super) here: RankHost,
    /// The shortest time that a query of each rank took.
    pub(super) round_trips_ns: Vec<u64>,
    /// The number of the current order.
    pub(super) order: u64,
}

impl RankChannel {
    /// Returns whether a load rank is on this host.
    pub(super) fn is_here(&self, index: usize) -> bool {
        self.hosts[index].network == self.here.network
    }

    /// Gives all load ranks a new order; `order` gets their indices, from 0.
    pub(super) fn give(&mut self, order: impl Fn(u32) -> Order) -> anyhow::Result<()> {
        self.order += 1;
        self.repeat(order)
    }

    /// Gives all load ranks a further order about the current one.
    pub(super) fn repeat(&mut self, order: impl Fn(u32) -> Order) -> anyhow::Result<()> {
        for index in 0..self.hosts.len() {
            self.send(index, order(index as u32))?;
        }
        Ok(())
    }

    pub(super) fn send(&mut self, index: usize, message: Order) -> anyhow::Result<()> {
        let order = self.order;
        let bytes = encode(&Numbered { order, message }, &[]);
        Ok(self.ranks.send(index as u32 + 1, bytes)?)
    }

    /// Passes the next message to `take`, if there is one about the current order: with the rank's
    /// index and what follows the report. Returns whether there was a message.
    pub(super) fn receive(
        &mut self,
        mut take: impl FnMut(usize, Report<'_>, &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let Some((rank, bytes)) = self.ranks.receive()? else {
            return Ok(false);
        };

        // A late answer to an earlier order says nothing about this one.
        let (numbered, tail) = decode::<Numbered<Report<'_>>>(&bytes)?;
        if numbered.order != self.order {
            return Ok(true);
        }

        let index = rank as usize - 1;
        match numbered.message {
            Report::Failed(failure) => return Err(self.failure(index, failure)),
            report => take(index, report, tail)?,
        }
        Ok(true)
    }

    /// Returns the failure of a rank as an error with its host.
    fn failure(&self, index: usize, failure: Failure) -> anyhow::Error {
        let host = &self.hosts[index].name;
        let mut causes = failure.causes.into_iter().rev();
        let root = anyhow!(causes.next().unwrap_or_default());
        let error = causes.fold(root, |error, cause| error.context(cause));
        error.context(format!("load rank {} on host `{host}` failed", index + 1))
    }

    pub(super) fn lost(&self, index: usize) -> LostRank {
        LostRank { rank: index + 1, host: self.hosts[index].name.clone() }
    }

    /// Returns one answer of each rank.
    pub(super) fn each_answers<T>(
        &mut self,
        timeout_ns: u64,
        stop: Option<&AtomicBool>,
        take: impl Fn(Report<'_>) -> Option<T>,
    ) -> anyhow::Result<Vec<T>> {
        let mut answers: Vec<Option<T>> = self.hosts.iter().map(|_| None).collect();

        let until = self.clock.now() + timeout_ns;
        while let Some(missing) = answers.iter().position(Option::is_none) {
            let received = self.receive(|index, report, _| {
                // The first answer of a rank stays: other reports of it may follow.
                answers[index] = take(report).or(answers[index].take());
                Ok(())
            })?;

            if stop.is_some_and(|stop| stop.load(Relaxed)) {
                bail!("it was interrupted");
            }
            if self.clock.now() > until {
                return Err(self.lost(missing).into());
            }

            if !received {
                std::thread::sleep(POLL);
            }
        }

        Ok(answers.into_iter().flatten().collect())
    }

    pub(super) fn all_done(&mut self) -> anyhow::Result<()> {
        let done = |report: Report<'_>| matches!(report, Report::Done).then_some(());
        self.each_answers(ORDER_NS, None, done).map(drop)
    }

    /// Reads the clocks of all ranks.
    pub(super) fn clock_offsets(&mut self) -> anyhow::Result<Vec<ClockOffset>> {
        (0..self.hosts.len()).map(|index| self.clock_offset(index)).collect()
    }

    fn clock_offset(&mut self, index: usize) -> anyhow::Result<ClockOffset> {
        let mut readings = Vec::new();
        while readings.len() < CLOCK_READINGS_MAX && !clock::is_settled(&readings) {
            self.order += 1;
            let asked_at = self.clock.now();
            self.send(index, Order::ReadClock)?;

            let mut theirs = None;
            // Without pauses, which would be part of the round trip.
            while theirs.is_none() {
                self.receive(|_, report, _| {
                    if let Report::Clock { now } = report {
                        theirs = Some(now);
                    }
                    Ok(())
                })?;
                if self.clock.now() > asked_at + SILENT_NS {
                    return Err(self.lost(index).into());
                }
            }

            readings.extend(theirs.map(|theirs| ClockReading {
                asked_at,
                theirs,
                answered_at: self.clock.now(),
            }));
        }

        Ok(ClockOffset::of(&readings).unwrap_or_default())
    }
}
