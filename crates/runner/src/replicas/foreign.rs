//! The end of watching: in servers that assay did not start, nothing is left behind.

use std::sync::atomic::Ordering;

use anyhow::{Context, anyhow};
use engine::{HEARTBEAT_TABLE, Replicated, Session};
use load::Clock as _;

use super::heartbeats::{BROKEN_FOR, INTERVAL};
use super::link::Link;
use super::{POLL, Replicas};

impl<E: Replicated + 'static> Replicas<E> {
    /// Ends the threads. Drops what assay created in servers that it did not start, once replicas
    /// have applied everything.
    pub(super) fn end(&mut self, keeps_tables: bool) -> anyhow::Result<()> {
        self.watch.done.store(true, Ordering::Release);
        if !std::mem::take(&mut self.is_foreign) {
            return Ok(());
        }
        let began = self.watch.clock.now();
        while self.writing.as_ref().is_some_and(|thread| !thread.is_finished())
            && !self.is_late(began)
        {
            std::thread::sleep(POLL);
        }
        // It follows all that was committed.
        let last = self.watch.clock.now();
        let statements =
            [self.watch.insert_heartbeat(last), format!("drop table {HEARTBEAT_TABLE}")];
        let clean_up = || -> anyhow::Result<()> {
            let mut primary = <E as Replicated>::attach(&self.primary)?.connect_to_clean_up()?;
            // Both, even if one fails.
            let done = statements.map(|sql| primary.query(&sql).map(drop));
            Ok(done.into_iter().fold(Ok(()), Result::and)?)
        };
        let cleaned = clean_up().context("can't clean up on the primary");
        let logical = self.logical().into_iter();
        let replicas = logical.map(|number| self.clean_up(number, last, keeps_tables, began));
        // All of them, even if one fails.
        replicas.fold(cleaned, Result::and)
    }

    /// Returns true if an end that began at that time takes too long.
    fn is_late(&self, began_ns: u64) -> bool {
        self.watch.clock.now() - began_ns > BROKEN_FOR.as_nanos() as u64
    }

    /// Drops the tables that assay created on a replica once it shows the heartbeat `last`: it
    /// could not apply changes of tables that it lacks.
    fn clean_up(
        &self,
        number: usize,
        last: u64,
        keeps_tables: bool,
        began_ns: u64,
    ) -> anyhow::Result<()> {
        let (name, replica) = &self.replicas[number];
        let mut tables = self.created_on(number);
        tables.retain(|table| !keeps_tables || table.name == HEARTBEAT_TABLE);
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        let left = format!(
            "assay left these tables on {name}: {}; drop them once it has applied all changes",
            names.join(", ")
        );
        let mut replica = Link::<E>::to(&replica.url());
        loop {
            let shown = replica.ask(|session| self.watch.newest_heartbeat(session));
            if matches!(shown, Ok(shown) if shown >= Some(last)) {
                break;
            }
            if self.is_late(began_ns) {
                let why = shown.map_or_else(Into::into, |_| anyhow!("it lags"));
                return Err(why.context(left));
            }
            std::thread::sleep(INTERVAL);
        }
        let dropped = replica.ask(|session| E::drop_tables(session, &tables));
        dropped.context(left)
    }
}
