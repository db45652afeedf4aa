//! The link between a cell in its own process and the table in the process that conducts the run.
//!
//! ```text
//! cell's process                 conducting process
//!   asks      ────────────────►    asks the table for the cell, then lets it work
//!   is ready  ────────────────►    freezes the process, and tells the table
//!             ◄──── begin, end     of a turn
//!   turn      ────────────────►    numbers it, and sends it back for the record
//! ```
//!
//! Messages are lines of JSON in two pipes, which the cell's process opens by their paths in
//! `/proc`.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use load::Turn;
use record::TurnRow;
use serde::{Deserialize, Serialize};

use super::frozen::Frozen;
use super::lock;
use super::table::{ReadyLoad, Table, TurnTaker};
use crate::ground::threads::spawn;

/// A message of a cell's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    /// It has opened the pipes.
    Here,
    /// Its load has ended, or failed before it was ready: it asks to work alone.
    Asks,
    /// The cell's database has been kept.
    HasDatabase,
    /// Its load is ready.
    Ready { number: usize },
    /// A turn has ended.
    Turn(Turn),
    /// A turn cannot begin, for this reason.
    Failed(String),
}

/// A message to a cell's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// It may work alone.
    Work,
    /// A turn begins, with this draw of processors.
    Begin(u64),
    /// The turn ends.
    End,
    /// It works without turns from now on.
    Release,
    /// Its step fails for this reason.
    Fail(String),
    /// A turn belongs into the record.
    Note(TurnRow),
}

/// The end of a link in the process that conducts the run.
#[derive(Clone)]
pub struct TableEnd(Arc<CellAtTable>);

struct CellAtTable {
    table: Arc<Table>,
    /// The number of the cell at the table.
    cell: usize,
    orders: Mutex<PipeWriter>,
    /// The ends that the cell's process opens, until it has. Then that process alone has them, so
    /// that its end ends the pipes.
    offered: Mutex<Option<(PipeReader, PipeWriter)>>,
    state: Mutex<State>,
    changed: Condvar,
    /// The process to freeze between turns.
    process: Arc<Mutex<Frozen>>,
}

#[derive(Default)]
struct State {
    /// The cell asks to work alone.
    asks: bool,
    /// The cell's load runs, or is ready.
    loads: bool,
    /// The turn that has ended.
    turn: Option<Turn>,
    /// The reason why a turn could not begin.
    failure: Option<String>,
    /// The process has ended.
    is_cut: bool,
}

impl TableEnd {
    /// Creates a link for a cell, and listens to it. Waits until the cell may work.
    ///
    /// # Errors
    /// The system refuses pipes or a thread.
    pub fn new(table: Arc<Table>, cell: usize) -> anyhow::Result<Self> {
        let (orders_out, orders) = io::pipe().context("cannot create a pipe")?;
        let (reports, reports_in) = io::pipe().context("cannot create a pipe")?;
        let end = Self(Arc::new(CellAtTable {
            table,
            cell,
            orders: Mutex::new(orders),
            offered: Mutex::new(Some((orders_out, reports_in))),
            state: Mutex::default(),
            changed: Condvar::new(),
            process: Arc::default(),
        }));

        let listener = end.clone();
        spawn("link", move || listener.listen(reports))?;
        end.0.table.ask(cell);
        Ok(end)
    }

    /// Returns the arguments with which the cell's process finds the pipes.
    pub fn arguments(&self) -> Vec<OsString> {
        let offered = lock(&self.0.offered);
        let Some((orders, reports)) = &*offered else {
            return Vec::new();
        };

        let paths = [path_of(orders), path_of(reports)];
        let [orders_path, reports_path] = paths.map(OsString::from);
        vec!["--orders".into(), orders_path, "--reports".into(), reports_path]
    }

    /// Freezes the cell's process between its turns from now on.
    pub fn set_process(&self, process: Frozen) {
        *lock(&self.0.process) = process;
    }

    /// Lets the cell work alone if it asks to, when its turn comes.
    ///
    /// # Errors
    /// The process cannot be thawed, or does not listen.
    pub fn let_work(&self) -> anyhow::Result<()> {
        if !std::mem::take(&mut self.state().asks) {
            return Ok(());
        }
        self.0.table.ask(self.0.cell);
        lock(&self.0.process).thaw()?;
        self.order(&Order::Work).context("the cell's process does not listen")
    }

    /// Gives up the place at the table: the process has ended.
    pub fn cut(&self) {
        self.state().is_cut = true;
        lock(&self.0.offered).take();
        self.0.changed.notify_all();

        // Its group may go now.
        *lock(&self.0.process) = Frozen::default();
        self.0.table.leave(self.0.cell);
    }

    /// Handles the reports of the cell's process until it ends.
    fn listen(&self, reports: PipeReader) {
        for line in BufReader::new(reports).lines() {
            let report = line.ok().and_then(|line| serde_json::from_str(&line).ok());

            match report {
                Some(Report::Here) => drop(lock(&self.0.offered).take()),
                Some(Report::Asks) => {
                    let mut state = self.state();
                    (state.asks, state.loads) = (true, false);
                }
                Some(Report::HasDatabase) => self.0.table.has_database(self.0.cell),
                Some(Report::Ready { number }) => self.ready(number),
                Some(Report::Turn(turn)) => self.state().turn = Some(turn),
                Some(Report::Failed(why)) => self.state().failure = Some(why),
                None => break,
            }

            self.0.changed.notify_all();
        }

        // The process has ended, or sent what is no report: nobody may wait for it any longer.
        self.state().is_cut = true;
        self.0.changed.notify_all();
    }

    fn ready(&self, number: usize) {
        // A load that has failed may have left a turn behind.
        *self.state() = State { loads: true, ..State::default() };
        if lock(&self.0.process).freeze().is_err() {
            // The process is about to end, or takes its turns without being frozen: its first turn
            // reports the error.
            let _ = lock(&self.0.process).thaw();
        }

        let connections = Arc::new(self.clone());
        let target = Arc::clone(&self.0.process);
        self.0.table.ready(self.0.cell, ReadyLoad { number, connections, target });
    }

    fn order(&self, order: &Order) -> io::Result<()> {
        send(&mut *lock(&self.0.orders), order)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

impl TurnTaker for TableEnd {
    fn begin(&self, draw: u64) -> anyhow::Result<()> {
        // A process that has ended has failed, and its thread says so.
        let _ = self.order(&Order::Begin(draw));
        Ok(())
    }

    fn wait_for_end(&self, at_most: Duration) -> bool {
        let state = self.state();
        let goes_on = |state: &mut State| state.loads && !state.is_cut;
        let waited = self.0.changed.wait_timeout_while(state, at_most, goes_on);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        !state.loads || state.is_cut
    }

    fn end(&self) -> anyhow::Result<Turn> {
        // A process that has ended answers nothing, which the wait below notices.
        let _ = self.order(&Order::End);

        let state = self.state();
        let goes_on =
            |state: &mut State| state.turn.is_none() && state.failure.is_none() && !state.is_cut;
        let waited = self.0.changed.wait_while(state, goes_on);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);

        if let Some(why) = state.failure.take() {
            anyhow::bail!(why);
        }

        let turn = state.turn.take().unwrap_or_default();
        Ok(Turn { is_last: turn.is_last || state.is_cut, ..turn })
    }

    fn fail(&self, reason: &str) {
        let _ = self.order(&Order::Fail(reason.to_owned()));
    }

    fn release(&self) {
        let _ = self.order(&Order::Release);
    }

    fn note(&self, row: TurnRow) {
        let _ = self.order(&Order::Note(row));
    }
}

/// The paths of the pipes between the process of a cell and its table.
#[derive(Clone, Debug)]
pub struct LinkPipes {
    /// The pipe with orders for the cell.
    pub orders: PathBuf,
    /// The pipe for reports of the cell.
    pub reports: PathBuf,
}

/// The end of a link in the process of a cell.
pub struct CellEnd {
    reports: Mutex<fs_err::File>,
    /// Receives one message for each time that the cell may work alone.
    work: Mutex<Receiver<()>>,
}

impl CellEnd {
    /// Opens the pipes, and lets the connections follow the orders from them.
    ///
    /// # Errors
    /// The pipes cannot be opened, or there is no thread for them.
    pub fn open(
        pipes: &LinkPipes,
        connections: Arc<impl TurnTaker + 'static>,
    ) -> anyhow::Result<Self> {
        let orders = fs_err::File::open(&pipes.orders)?;
        let reports = fs_err::OpenOptions::new().write(true).open(&pipes.reports)?;
        let answers = reports.try_clone()?;

        let (working, work) = channel();
        spawn("link", move || follow(orders, answers, &*connections, &working))?;

        let end = Self { reports: Mutex::new(reports), work: Mutex::new(work) };
        end.report(&Report::Here)?;
        Ok(end)
    }

    /// Waits until the cell may work alone.
    pub fn ask(&self) {
        // Without the other process, which ends this one, nothing is left to wait for.
        if self.report(&Report::Asks).is_ok() {
            let _ = lock(&self.work).recv();
        }
    }

    /// Says that the cell's database has been kept.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn has_database(&self) -> io::Result<()> {
        self.report(&Report::HasDatabase)
    }

    /// Says that a load is ready.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn ready(&self, number: usize) -> io::Result<()> {
        self.report(&Report::Ready { number })
    }

    fn report(&self, report: &Report) -> io::Result<()> {
        send(&mut *lock(&self.reports), report)
    }
}

/// Follows the orders of the conducting process until it ends.
fn follow(
    orders: impl Read,
    mut answers: impl Write,
    connections: &impl TurnTaker,
    working: &Sender<()>,
) {
    for line in BufReader::new(orders).lines() {
        let order = line.ok().and_then(|line| serde_json::from_str(&line).ok());

        match order {
            Some(Order::Work) => {
                // The receiver is gone only if the cell has ended.
                let _ = working.send(());
            }
            // A target that could not begin its turn reports so, and still gets the order to end
            // it.
            Some(Order::Begin(draw)) => {
                if let Err(error) = connections.begin(draw) {
                    let _ = send(&mut answers, &Report::Failed(format!("{error:#}")));
                }
            }
            Some(Order::Release) => connections.release(),
            Some(Order::Fail(reason)) => connections.fail(&reason),
            Some(Order::End) => {
                let report = match connections.end() {
                    Ok(turn) => Report::Turn(turn),
                    Err(error) => Report::Failed(format!("{error:#}")),
                };
                if send(&mut answers, &report).is_err() {
                    break;
                }
            }
            Some(Order::Note(row)) => connections.note(row),
            // The conducting process has ended, or sent what is no order.
            None => break,
        }
    }

    // The connections must be able to end.
    connections.release();
}

/// Writes a message as one line.
fn send(pipe: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    pipe.write_all(&line)
}

fn path_of(pipe: &impl AsFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), pipe.as_fd().as_raw_fd())
}
