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

        // A heartbeat that is still being written would come after the table is gone.
        let began = self.watch.clock.now();
        while self.writing.as_ref().is_some_and(|thread| !thread.is_finished())
            && !self.is_late(began)
        {
            std::thread::sleep(POLL);
        }

        // The last heartbeat follows all that was committed.
        let last = self.watch.clock.now();
        let mut cleaned = self.clean_up_primary(last).context("cannot clean up on the primary");
        // All of the replicas, even if one fails.
        for number in self.logical() {
            cleaned = cleaned.and(self.clean_up(number, last, keeps_tables, began));
        }
        cleaned
    }

    /// Writes the heartbeat `last`, and drops the table of the heartbeats.
    fn clean_up_primary(&self, last: u64) -> anyhow::Result<()> {
        let mut primary = <E as Replicated>::attach(&self.primary)?.connect_to_clean_up()?;

        // Both, even if one fails.
        let written = primary.query(&self.watch.insert_heartbeat(last));
        let dropped = primary.query(&format!("drop table {HEARTBEAT_TABLE}"));
        written.and(dropped)?;
        Ok(())
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
        // Told with any error: only the operator can drop them then.
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

        replica.ask(|session| E::drop_tables(session, &tables)).context(left)
    }
}
