//! Rank 0's side: gives orders to the load ranks.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use load::{Limits, Sink, SystemClock};
use ranks::Ranks;
use record::{Assay, ClientHost, Warning};
use workload::{ClientShare, Summaries};

use super::channel::{ANSWER_NS, JOIN_NS, ORDER_NS, RankChannel};
use super::hosts::{self, RankHost, first_on_host};
use super::protocol::{CellOrder, Order, Report};
use super::ranked_step::{RankedOutcome, RankedStep};
use super::reach::Listeners;
use load::Totals;

/// The load ranks of a run.
pub struct LoadRanks {
    channel: RefCell<RankChannel>,
    /// Set by a signal.
    stop: Arc<AtomicBool>,
}

impl LoadRanks {
    /// Waits for all load ranks.
    pub fn join(
        ranks: Ranks,
        assay: &Assay,
        clock: SystemClock,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let load_ranks = ranks.size() as usize - 1;
        // Until a rank has told its host, only its number is known.
        let unknown = |rank| RankHost { name: format!("of rank {rank}"), ..RankHost::default() };
        let hosts = (1..=load_ranks).map(unknown);

        let mut channel = RankChannel {
            ranks,
            clock,
            hosts: hosts.collect(),
            here: RankHost::of_this_process(assay),
            round_trips_ns: Vec::new(),
            order: 0,
        };

        channel.hosts = channel.each_answers(JOIN_NS, Some(&stop), |report| match report {
            Report::Hello(host) => Some(*host),
            _ => None,
        })?;

        let refused = hosts::refuse_other_assay(&channel.hosts, &channel.here);

        // Dropping this ends the other ranks.
        let joined = Self { channel: RefCell::new(channel), stop };
        refused?;
        Ok(joined)
    }

    /// Returns the clock by which all ranks begin a step.
    pub fn clock(&self) -> SystemClock {
        self.channel.borrow().clock.clone()
    }

    /// Returns the flag that a signal sets.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns the hosts of load ranks, without this one.
    pub fn client_hosts(&self) -> Vec<ClientHost> {
        let channel = self.channel.borrow();
        hosts::client_hosts(&channel.hosts, &channel.here)
    }

    /// Returns warnings about the hosts.
    pub fn warnings(&self) -> Vec<Warning> {
        let channel = self.channel.borrow();
        hosts::warnings(&channel.hosts, &channel.here)
    }

    /// Returns whether a rank makes load on another host.
    pub fn has_other_host(&self) -> bool {
        let channel = self.channel.borrow();
        (0..channel.hosts.len()).any(|index| !channel.is_here(index))
    }

    /// Returns whether a rank makes load on this host, beside the server.
    pub fn has_server_host(&self) -> bool {
        let channel = self.channel.borrow();
        (0..channel.hosts.len()).any(|index| channel.is_here(index))
    }

    /// Returns an address of this host that all load ranks reach: the one that the plan names, or
    /// else any.
    pub fn reached_address(&self, planned: Option<IpAddr>) -> anyhow::Result<IpAddr> {
        let listeners = Listeners::open(planned);
        let candidates = listeners.addresses();

        let channel = &mut *self.channel.borrow_mut();
        channel.give(|_| Order::Reach(candidates.clone()))?;

        let reached = channel.each_answers(ORDER_NS, None, |report| match report {
            Report::Reached(addresses) => Some(addresses),
            _ => None,
        })?;

        let by_all =
            |address: &&SocketAddr| reached.iter().all(|addresses| addresses.contains(address));
        if let Some(address) = candidates.iter().find(by_all) {
            return Ok(address.ip());
        }

        let tried: Vec<String> =
            candidates.iter().map(|address| address.ip().to_string()).collect();
        let planned = if planned.is_some() { ", the `listen` of the plan" } else { "" };
        bail!(
            "the load ranks reach no common address of this host: tried {}{planned}",
            tried.join(", ")
        )
    }

    /// Has all ranks connect to a cell's target. `order` gets each rank's clients.
    pub fn begin_cell(&self, order: impl Fn(ClientShare) -> CellOrder) -> anyhow::Result<()> {
        let channel = &mut *self.channel.borrow_mut();
        let parts = channel.hosts.len() as u32;
        channel.give(|part| Order::Cell(Box::new(order(ClientShare { part, parts }))))?;

        channel.round_trips_ns = channel.each_answers(ORDER_NS, None, |report| match report {
            Report::Connected { round_trip_ns } => Some(round_trip_ns),
            _ => None,
        })?;

        Ok(())
    }

    /// Has all ranks open the connections of a step.
    pub fn prepare(
        &self,
        step: usize,
        is_warm_up: bool,
        limits: Limits,
    ) -> anyhow::Result<RankedStep> {
        let channel = &mut *self.channel.borrow_mut();
        let mut sampled = Vec::new();
        for index in 0..channel.hosts.len() {
            // One rank samples a host, and this process samples its own.
            let is_first = first_on_host(&channel.hosts, index) == index;
            sampled.push(!is_warm_up && !channel.is_here(index) && is_first);
        }

        channel.give(|index| Order::Prepare {
            step,
            is_warm_up,
            limits,
            samples_host: sampled[index as usize],
        })?;

        let order = channel.order;
        let prepared = channel.each_answers(ORDER_NS, None, |report| match report {
            Report::Prepared { connections } => Some(connections),
            _ => None,
        });

        match prepared {
            Ok(connections) => Ok(RankedStep { order, limits, connections }),
            Err(error) => {
                // The others wait for the step to begin.
                channel.repeat(|_| Order::Halt)?;
                Err(error)
            }
        }
    }

    /// Runs a step that was prepared.
    pub fn run(&self, step: &RankedStep, sink: &mut dyn Sink) -> anyhow::Result<RankedOutcome> {
        let channel = &mut *self.channel.borrow_mut();
        let result = channel.run(step, &self.stop, sink);
        // The ranks run the step until they are told to halt.
        if result.is_err() {
            channel.order = step.order;
            let _ = channel.repeat(|_| Order::Halt);
        }
        result
    }

    /// Broadcasts the merged summaries of all connections to all ranks.
    pub fn apply(&self, step: usize, summaries: &Summaries, totals: &Totals) -> anyhow::Result<()> {
        let channel = &mut *self.channel.borrow_mut();
        channel.give(|_| Order::Apply {
            step,
            summaries: summaries.clone(),
            totals: totals.clone(),
        })?;
        channel.all_done()
    }

    /// Has all ranks disconnect from the cell's target.
    pub fn end_cell(&self) -> anyhow::Result<()> {
        let channel = &mut *self.channel.borrow_mut();
        channel.give(|_| Order::EndCell)?;
        channel.all_done()
    }

    /// Fails if a rank does not answer. When a rank dies, `mpirun` asks all others to end: then
    /// this tells it from an interruption by the operator.
    pub fn check_alive(&self) -> anyhow::Result<()> {
        let channel = &mut *self.channel.borrow_mut();
        channel.give(|_| Order::ReadClock)?;

        let answers = channel.each_answers(ANSWER_NS, None, |report| match report {
            Report::Clock { .. } => Some(()),
            _ => None,
        });
        answers.map(drop)
    }
}

impl Drop for LoadRanks {
    /// Ends all ranks: `mpirun` calls it a failure if rank 0 just exits. One that does not answer
    /// is left to `mpirun`.
    fn drop(&mut self) {
        let channel = self.channel.get_mut();
        if channel.give(|_| Order::Quit).is_ok() && channel.all_done().is_ok() {
            channel.ranks.leave();
        }
    }
}
