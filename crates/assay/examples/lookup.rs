//! Looks up rows by primary key, under the load as it runs in every step: `cargo xtask bench` holds
//! what it costs against `pgbench -S -M prepared` on PostgreSQL, and against `sysbench
//! oltp_point_select` on MySQL and MariaDB; with their tables and their statements.
//!
//! Arguments: the server's URL, connections, operations of each, rows of the table.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use engine::mysql::{self, MysqlSession};
use engine::postgres::{self, PostgresSession};
use engine::{Error, Interrupt, ParamType, Session, Statement};
use hdrhistogram::Histogram;
use load::{LatencyKind, Limits, Sink, StepEnd, SystemClock};
use words::{IntervalRow, Random};
use workload::{Executed, Next, OpKind, OpRole, Program, Schedule, Task};

const LOOKUP: OpKind = OpKind::new("lookup", OpRole::Query);

/// The statements of pgbench and of sysbench.
const PGBENCH: &str = "select abalance from pgbench_accounts where aid = $1";
const SYSBENCH: &str = "select c from sbtest1 where id=?";

/// Reads random rows.
struct Lookup<S> {
    session: S,
    statement: Statement,
    random: Random,
    row_count: u64,
    op_count: u64,
}

impl<S: Session> Program for Lookup<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[LOOKUP]
    }

    fn prepare(&mut self) -> Next {
        if self.op_count == 0 {
            return Next::Done;
        }
        self.op_count -= 1;
        self.session.start(self.statement);
        // Rows are numbered from 1, and their numbers fit the column's type.
        let key = 1 + self.random.below(self.row_count);
        self.session.int4(key as i32);
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        Ok(Executed::new(self.session.execute()?.rows, (1, 1)))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }
}

/// Counts what is recorded.
#[derive(Default)]
struct Counts {
    done: u64,
    recorded: u64,
}

impl Sink for Counts {
    fn intervals(&mut self, rows: &[IntervalRow<'_>]) -> Result<(), String> {
        self.done += rows.iter().map(|row| row.ok).sum::<u64>();
        Ok(())
    }

    fn latencies(
        &mut self,
        _: u32,
        _: &str,
        time: LatencyKind,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        if time == LatencyKind::Service {
            self.recorded += histogram.len();
        }
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, op_count, row_count] = arguments.as_slice() else {
        bail!("usage: lookup URL CONNECTIONS OPERATIONS ROWS");
    };
    let number =
        |text: &str| text.parse::<u64>().with_context(|| format!("`{text}` is not a number"));
    let connections = u32::try_from(number(connections)?)?;
    let size = Size { connections, op_count: number(op_count)?, row_count: number(row_count)? };
    if url.starts_with("mysql:") {
        let address = mysql::parse_url(url)?;
        look_up(&size, SYSBENCH, || MysqlSession::connect(&address))
    } else {
        let address = postgres::parse_url(url)?;
        look_up(&size, PGBENCH, || PostgresSession::connect(&address))
    }
}

/// The size of a benchmark.
struct Size {
    connections: u32,
    op_count: u64,
    row_count: u64,
}

fn look_up<S: Session>(
    size: &Size,
    sql: &str,
    connect: impl Fn() -> Result<S, Error>,
) -> anyhow::Result<()> {
    let tasks = (0..size.connections)
        .map(|client| {
            let mut session = connect()?;
            let statement = session.prepare(sql, &[ParamType::Int4])?;
            let lookup = Lookup {
                session,
                statement,
                random: Random::stream(1, &[client.into()]),
                row_count: size.row_count,
                op_count: size.op_count,
            };
            Task::new(client, LOOKUP, Schedule::Closed, Box::new(lookup))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let limits = Limits { time: None, error_limit: 0, attempts: 1, grace: Duration::from_secs(10) };
    let mut counts = Counts::default();
    let outcome =
        load::run(tasks, limits, &SystemClock::begin(), &AtomicBool::new(false), &mut counts);
    if outcome.end != StepEnd::Complete {
        bail!("it did not end well: {:?}", outcome.end);
    }
    let Counts { done, recorded } = counts;
    let unexpected: u64 = outcome.totals.values().map(|total| total.unexpected_rows).sum();
    if done != recorded || unexpected > 0 {
        bail!("{done} lookups, of which {recorded} have a latency and {unexpected} found no row");
    }
    println!("operations: {done}");
    println!("elapsed_ns: {}", outcome.elapsed_ns);
    Ok(())
}
