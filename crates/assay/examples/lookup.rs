//! Looks up rows of pgbench's accounts by primary key, under the load as it runs in every step: `cargo xtask bench`
//! holds what it costs against `pgbench -S -M prepared`.
//!
//! Arguments: the server's URL, connections, operations of each, rows of `pgbench_accounts`.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use engine::postgres::{Address, PostgresSession};
use engine::{Error, Outcome, ParamType, Session, Statement};
use hdrhistogram::Histogram;
use load::{Ended, IntervalRow, Limits, Progress, Schedule, Sink, SystemClock, Task, Time};
use workload::{Kind, Next, Program, Random};

const LOOKUP: Kind = Kind("lookup");

/// Asks for the balance of random accounts.
struct Lookup {
    session: PostgresSession,
    statement: Statement,
    random: Random,
    account_count: u64,
    op_count: u64,
}

impl Program for Lookup {
    fn kinds(&self) -> &'static [Kind] {
        &[LOOKUP]
    }

    fn prepare(&mut self) -> Next {
        if self.op_count == 0 {
            return Next::Done;
        }
        self.op_count -= 1;
        self.session.start(self.statement);
        // Accounts are numbered from 1, and fit the column's type.
        let account = 1 + self.random.below(self.account_count);
        self.session.int4(account as i32);
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        self.session.execute()
    }

    fn expected_rows(&self) -> (u64, u64) {
        (1, 1)
    }
}

/// Keeps what is recorded in memory.
#[derive(Default)]
struct Kept {
    intervals: Vec<IntervalRow>,
    latencies: Vec<(u32, Histogram<u64>)>,
}

impl Sink for Kept {
    fn intervals(&mut self, rows: &[IntervalRow]) -> Result<(), String> {
        self.intervals.extend_from_slice(rows);
        Ok(())
    }

    fn latencies(
        &mut self,
        second: u32,
        _: &str,
        time: Time,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        if time == Time::Service {
            self.latencies.push((second, histogram.clone()));
        }
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> Result<(), String> {
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, op_count, account_count] = arguments.as_slice() else {
        bail!("usage: lookup URL CONNECTIONS OPERATIONS ROWS");
    };
    let number = |text: &str| {
        text.parse::<u64>()
            .with_context(|| format!("`{text}` is no number"))
    };
    let connections = u32::try_from(number(connections)?)?;
    let (op_count, account_count) = (number(op_count)?, number(account_count)?);
    let address = Address::from_url(url)?;
    let tasks = (0..connections)
        .map(|client| {
            let mut session = PostgresSession::connect(&address)?;
            let statement = session.prepare(
                "select abalance from pgbench_accounts where aid = $1",
                &[ParamType::Int4],
            )?;
            Ok(Task {
                client,
                role: "lookup",
                schedule: Schedule::Closed,
                background: false,
                interrupt: Some(session.interrupt()?),
                program: Lookup {
                    session,
                    statement,
                    random: Random::stream(1, &[client.into()]),
                    account_count,
                    op_count,
                },
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let limits = Limits {
        time: None,
        error_limit: 0,
        attempts: 1,
        grace: Duration::from_secs(10),
    };
    let mut kept = Kept::default();
    let outcome = load::run(
        tasks,
        limits,
        &SystemClock::begin(),
        &AtomicBool::new(false),
        |_| {},
        &mut kept,
    );
    if outcome.ended != Ended::Complete {
        bail!("it did not end well: {:?}", outcome.ended);
    }
    let done: u64 = kept.intervals.iter().map(|row| row.ok).sum();
    let recorded: u64 = kept.latencies.iter().map(|(_, second)| second.len()).sum();
    let unexpected: u64 = outcome
        .totals
        .values()
        .map(|total| total.unexpected_rows)
        .sum();
    if done != recorded || unexpected > 0 {
        bail!(
            "{done} lookups, of which {recorded} have a latency and {unexpected} found no account"
        );
    }
    println!("{done} operations");
    println!("{} ns", outcome.elapsed_ns);
    Ok(())
}
