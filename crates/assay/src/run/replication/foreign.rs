//! The end of watching: in servers that assay did not start, nothing is left behind.

use std::sync::atomic::Ordering;

use anyhow::{Context, bail};
use engine::{HEARTBEAT_TABLE, Replicated, Session, Table};
use load::Clock as _;

use super::heartbeats::{BROKEN_FOR, INTERVAL};
use super::link::Link;
use super::{POLL, Replicas, insert_heartbeat, locked};

impl<E: Replicated + 'static> Replicas<E> {
    /// Ends the threads. Drops what assay created in servers that it did not start, once replicas have applied everything.
    pub(super) fn end(&mut self, keeps_tables: bool) -> anyhow::Result<()> {
        self.watch.done.store(true, Ordering::Release);
        if !std::mem::take(&mut self.is_foreign) {
            return Ok(());
        }
        let began = self.watch.clock.now();
        let is_late = || self.watch.clock.now() - began > BROKEN_FOR.as_nanos() as u64;
        if let Some(beating) = self.beating.take() {
            while !beating.is_finished() && !is_late() {
                std::thread::sleep(POLL);
            }
        }
        let mut primary = Link::<E>::to(&self.primary);
        // The newest one may be older than the last changes, which replicas must apply before they lose tables.
        let last = self.watch.clock.now();
        let written = primary.ask(|it| it.query(&insert_heartbeat(last)));
        let last = written.is_ok().then_some(last as i64);
        let dropped = primary.ask(|it| it.query(&format!("drop table {HEARTBEAT_TABLE}")));
        let dropped = written.and(dropped).map(drop);
        let dropped =
            dropped.with_context(|| format!("`{HEARTBEAT_TABLE}` can't be dropped on the primary"));
        // All of them, even if one is late.
        let logical = self.logical.iter();
        logical
            .map(|&number| self.clean(number, last, keeps_tables, &is_late))
            .fold(dropped, anyhow::Result::and)
    }

    /// Drops what assay created on a replica, once this shows the last heartbeat.
    fn clean(
        &self,
        number: usize,
        last: Option<i64>,
        keeps_tables: bool,
        is_late: &dyn Fn() -> bool,
    ) -> anyhow::Result<()> {
        let (name, replica) = &self.replicas[number];
        let mut tables: Vec<Table> = Vec::new();
        for (on, table) in locked(&self.created).iter() {
            if *on == number && (!keeps_tables || table.name == HEARTBEAT_TABLE) {
                tables.push(table.clone());
            }
        }
        let names: Vec<&str> = tables.iter().map(|it| it.name.as_str()).collect();
        let left = format!(
            "these tables are left on {name}: {}; drop them when it has applied all changes",
            names.join(", ")
        );
        let newest = format!("select max(at_ns) from {HEARTBEAT_TABLE}");
        let mut replica = Link::<E>::to(&replica.url());
        // It could not apply changes of tables that it lacks.
        loop {
            let shown = replica.ask(|it| it.query_i64(&newest));
            let shown = shown.with_context(|| left.clone())?;
            if last.is_some() && shown >= last {
                break;
            }
            if last.is_none() || is_late() {
                bail!("{left}");
            }
            std::thread::sleep(INTERVAL);
        }
        let dropped = replica.ask(|it| E::drop_tables(it, &tables));
        dropped.context(left)
    }
}
