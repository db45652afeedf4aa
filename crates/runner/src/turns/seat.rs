//! A cell's seat at the table of its group.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{
    ConnectionThreads, Gate, LatencyKind, Limits, Progress, Sink, StepEnd, StepOutcome, SystemClock,
};
use load::{Turn, TurnClock};
use record::{IntervalRow, TurnRow};
use workload::Task;

use super::frozen::Frozen;
use super::link::{CellEnd, LinkPipes};
use super::table::{ReadyLoad, Table, TurnTaker};
use super::{HostShare, Placing, StepClock, lock};
use crate::ground::time::unix_now_ns;

/// The seat of one cell. The cell works alone from the moment it sits down until its first load is
/// ready, and from the end of each load until the next one is.
pub struct Seat {
    place: SeatPlace,
    connections: Arc<Connections>,
    /// The processes to freeze between turns, while the target runs.
    target: Arc<Mutex<Frozen>>,
}

/// The place of a seat.
enum SeatPlace {
    /// At a table in this process.
    Here { table: Arc<Table>, cell: usize },
    /// At a table in the process that started this one.
    Linked(CellEnd),
}

/// The parts of a cell that its conductor uses.
struct Connections {
    gate: Arc<Gate>,
    /// Puts the connections on processors, while the target runs.
    placing: Mutex<Option<Arc<Placing>>>,
    host: HostShare,
    /// The time at which the first turn of the load began that runs, or ran last.
    first_turn_unix_ns: Mutex<Option<u64>>,
    /// The turns of that load.
    rows: Mutex<Vec<TurnRow>>,
    /// The reason why the target cannot take its turns.
    failure: Mutex<Option<String>>,
}

impl Connections {
    fn new(clock: &SystemClock, host: HostShare) -> Arc<Self> {
        Arc::new(Self {
            gate: Gate::closed(clock.clone()),
            placing: Mutex::default(),
            host,
            first_turn_unix_ns: Mutex::default(),
            rows: Mutex::default(),
            failure: Mutex::default(),
        })
    }
}

impl Seat {
    /// Sits down at a table, and waits until the cell may work.
    pub fn take(table: Arc<Table>, cell: usize, clock: &SystemClock) -> Self {
        table.ask(cell);
        let connections = Connections::new(clock, HostShare::new(true));
        Self::new(SeatPlace::Here { table, cell }, connections)
    }

    /// Takes the seat of a cell in its own process, which may work already. The paths are those of
    /// the pipes to its table.
    ///
    /// # Errors
    /// The pipes cannot be opened.
    pub fn linked(pipes: &LinkPipes, clock: &SystemClock) -> anyhow::Result<Self> {
        let connections = Connections::new(clock, HostShare::new(false));
        let end = CellEnd::open(pipes, Arc::clone(&connections))?;
        Ok(Self::new(SeatPlace::Linked(end), connections))
    }

    fn new(place: SeatPlace, connections: Arc<Connections>) -> Self {
        Self { place, connections, target: Arc::default() }
    }

    /// Returns the clock of the cell's steps.
    pub fn clock(&self) -> StepClock {
        StepClock::Turns(self.turn_clock())
    }

    /// Returns the target's share of the host.
    pub fn host_share(&self) -> HostShare {
        self.connections.host.clone()
    }

    fn turn_clock(&self) -> TurnClock {
        TurnClock::new(Arc::clone(&self.connections.gate))
    }

    /// Freezes `target` between the turns of the cell from now on, instead of the one before.
    ///
    /// # Errors
    /// The one before cannot be thawed.
    pub fn set_target(&self, target: Frozen) -> anyhow::Result<()> {
        std::mem::replace(&mut *lock(&self.target), target).thaw()
    }

    /// Places connections in this way from now on.
    pub fn set_placing(&self, placing: Arc<Placing>) {
        *lock(&self.connections.placing) = Some(placing);
    }

    /// Runs a load in turns with those of the other cells that have the same number. When it
    /// returns, the cell works alone again.
    pub fn run_load(
        &self,
        number: usize,
        tasks: Vec<Task>,
        limits: Limits,
        stop: &std::sync::atomic::AtomicBool,
        sink: &mut dyn Sink,
    ) -> anyhow::Result<StepOutcome> {
        let clock = self.turn_clock();
        lock(&self.connections.first_turn_unix_ns).take();
        lock(&self.connections.rows).clear();
        self.connections.host.begin_step();

        let mut sink = SeatedSink { sink, seat: self, number };
        let outcome = load::run(tasks, limits, &clock, stop, &mut sink);

        match &self.place {
            SeatPlace::Here { table, cell } => table.ask(*cell),
            SeatPlace::Linked(end) => end.ask(),
        }

        lock(&self.target).thaw()?;

        let Some(reason) = lock(&self.connections.failure).take() else {
            return Ok(outcome);
        };

        if let StepEnd::Failed(own_reasons) = &outcome.end
            && !own_reasons.iter().any(|own| own.contains(&reason))
        {
            // The server has ended, for one, and its connections say more.
            return Ok(outcome);
        }

        Err(anyhow::anyhow!(reason))
    }

    /// Returns the time at which the first turn of the last load began; `None` if it had none.
    pub fn first_turn_unix_ns(&self) -> Option<u64> {
        *lock(&self.connections.first_turn_unix_ns)
    }

    /// Takes the turns of the last load.
    pub fn take_turns(&self) -> Vec<TurnRow> {
        std::mem::take(&mut lock(&self.connections.rows))
    }

    /// Says that the database of this cell has been kept: other cells wait for a copy.
    ///
    /// # Errors
    /// The process with the table has ended.
    pub fn has_database(&self) -> std::io::Result<()> {
        match &self.place {
            SeatPlace::Here { table, cell } => table.has_database(*cell),
            SeatPlace::Linked(end) => end.has_database()?,
        }

        Ok(())
    }

    /// Gives up the work of this cell: its load is ready.
    fn ready(&self, number: usize) -> anyhow::Result<()> {
        // Servers start processes while connections are opened: all of them rest from here on.
        let mut target = lock(&self.target);
        target.find_processes();
        target.freeze()?;
        drop(target);

        match &self.place {
            SeatPlace::Here { table, cell } => {
                let connections = Arc::clone(&self.connections);
                let target = Arc::clone(&self.target);
                table.ready(*cell, ReadyLoad { number, connections, target });
            }
            SeatPlace::Linked(end) => end.ready(number)?,
        }

        Ok(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let SeatPlace::Here { table, cell } = &self.place {
            table.leave(*cell);
        }
    }
}

impl TurnTaker for Connections {
    fn begin(&self, draw: u64) -> anyhow::Result<()> {
        let placing = lock(&self.placing).clone();
        if let Some(placing) = placing {
            placing.next(draw)?;
        }

        self.host.begin_turn();
        lock(&self.first_turn_unix_ns).get_or_insert_with(unix_now_ns);
        self.gate.open();
        Ok(())
    }

    fn wait_for_end(&self, at_most: Duration) -> bool {
        self.gate.wait_for_end(at_most)
    }

    fn end(&self) -> anyhow::Result<Turn> {
        let turn = self.gate.close();
        self.host.end_turn();
        Ok(turn)
    }

    fn fail(&self, reason: &str) {
        *lock(&self.failure) = Some(reason.to_owned());
        self.gate.open();
    }

    fn release(&self) {
        self.gate.open();
    }

    fn note(&self, row: TurnRow) {
        lock(&self.rows).push(row);
    }
}

/// Passes everything on, and tells the table that the connections are ready.
struct SeatedSink<'a> {
    sink: &'a mut dyn Sink,
    seat: &'a Seat,
    number: usize,
}

impl Sink for SeatedSink<'_> {
    fn begin(&mut self, _: u64, connections: &[ConnectionThreads]) -> Result<u64, String> {
        // The clock stands still, so that all connections begin with the first turn.
        let now = self.seat.clock().now();
        let start_at = self.sink.begin(now, connections)?;
        self.seat.ready(self.number).map_err(|error| format!("{error:#}"))?;
        Ok(start_at)
    }

    fn others_run(&mut self) -> bool {
        self.sink.others_run()
    }

    fn before_close(&mut self) {
        self.sink.before_close();
    }

    fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
        self.sink.intervals(rows)
    }

    fn latencies(
        &mut self,
        second: u32,
        kind: &str,
        time: LatencyKind,
        histogram: &hdrhistogram::Histogram<u64>,
    ) -> Result<(), String> {
        self.sink.latencies(second, kind, time, histogram)
    }

    fn client_host(&mut self, rank: u32, at_ns: u64, values: &[Option<i64>]) -> Result<(), String> {
        self.sink.client_host(rank, at_ns, values)
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), String> {
        self.sink.progress(progress)?;
        let failure = lock(&self.seat.connections.failure).clone();
        failure.map_or(Ok(()), Err)
    }
}
