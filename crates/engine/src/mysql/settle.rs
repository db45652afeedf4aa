//! Bringing the server to rest: statistics, then what the storage engine has put off.
//!
//! InnoDB is made to write back its dirty pages and waited for until it has removed old row versions; the settings that
//! this needs are put back afterwards, and read to see that they are. MyRocks is waited for until no compaction runs,
//! flushed, and its first level compacted where the build can do that.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::observer::{if_present, innodb_status, number_after, of_rocksdb, pairs};
use super::session::MysqlSession;
use super::{Mysql, StorageEngine};
use crate::guard::Deadline;
use crate::waiting::{Pending, Work, rest};
use crate::{Action, Counter, Error, Session, SettleLimits, Settled, Table};

/// What this user may not do.
const DENIED: [&str; 3] = ["1142", "1227", "1290"];

/// Old row versions that a server at rest may keep.
const HISTORY_SMALL: f64 = 100.0;

/// Dirty pages that a server at rest may keep: it always writes a little of its own.
const DIRTY_PAGES_SMALL: f64 = 64.0;

/// When old row versions have not become fewer for so long, they are not waited for any longer.
const STUCK: Duration = Duration::from_secs(10);

/// Makes MyRocks compact its first level, and nothing else.
const COMPACT_L0: &str = "rocksdb_compact_lzero_now";

/// MyRocks is at rest when it has compacted nothing for so long.
const QUIET: Duration = Duration::from_secs(2);

/// How a server is brought to rest.
struct Settling<'a> {
    mysql: &'a Mysql,
    work: Work<'a>,
    settled: Settled,
}

pub(super) fn settle(
    mysql: &Mysql,
    tables: &[Table],
    limits: SettleLimits,
    stop: &AtomicBool,
) -> Result<Settled, Error> {
    let began = Deadline::after(limits.at_least);
    let mut settling = Settling {
        mysql,
        work: Work {
            deadline: Deadline::after(limits.at_most),
            stop,
            denied_codes: &DENIED,
        },
        settled: Settled {
            pending_before: pending(mysql)?,
            ..Settled::default()
        },
    };
    match mysql.kind.dialect.storage_engine {
        StorageEngine::RocksDb => {
            settling.settle_rocksdb()?;
            settling.analyze(tables)?;
        }
        StorageEngine::InnoDb => {
            settling.analyze(tables)?;
            settling.settle_innodb()?;
        }
        StorageEngine::Other(_) => settling.analyze(tables)?,
    }
    let mut settled = settling.settled;
    settled.actions.extend(rest(&began, limits.at_least, stop));
    settled.pending_after = pending(mysql)?;
    Ok(settled)
}

fn left_of_dirty_pages(session: &mut MysqlSession) -> Result<Pending, Error> {
    Ok(match dirty_pages(session)? {
        Some(pages) if pages > DIRTY_PAGES_SMALL => Pending::Some(format!("pages left: {pages}")),
        _ => Pending::Nothing,
    })
}

impl Settling<'_> {
    fn connect(&self) -> Result<MysqlSession, Error> {
        MysqlSession::connect(&self.mysql.address)
    }

    /// Runs one statement on a session of its own: a cancelled one takes its session with it.
    fn run(&mut self, sql: &str) -> Result<(), Error> {
        let ran = self.work.run(&mut self.connect()?, sql)?;
        self.settled.append(ran);
        Ok(())
    }

    fn wait(
        &mut self,
        what: &str,
        left: impl FnMut() -> Result<Pending, Error>,
    ) -> Result<(), Error> {
        self.settled.append(self.work.wait(what, left)?);
        Ok(())
    }

    fn analyze(&mut self, tables: &[Table]) -> Result<(), Error> {
        let names = existing(&mut self.connect()?, tables)?;
        names
            .iter()
            .try_for_each(|name| self.run(&format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {name}")))
    }

    fn settle_innodb(&mut self) -> Result<(), Error> {
        if self.work.is_over() {
            self.settled
                .unfinished
                .push("write-back of dirty pages and purge: not begun".into());
            return Ok(());
        }
        let mut session = self.connect()?;
        let changed = Changed::apply(&mut session)?;
        if let Some(changed) = &changed {
            let what = format!("set global {}", changed.listed(|(.., value)| value));
            self.settled.add_action(what, Duration::ZERO);
        }
        let waited = match changed {
            Some(_) => self.wait_for_innodb(&mut session),
            // Without the right to change settings it writes back as it does by itself: that is not waited for.
            None => {
                let what = "write back dirty pages: not allowed";
                self.settled.add_action(what, Duration::ZERO);
                Ok(())
            }
        };
        // Also after an error: what was changed must not be what is measured next.
        let restored = match changed {
            Some(changed) => changed.restore(&mut self.connect()?),
            None => return waited,
        };
        waited?;
        self.settled.actions.push(restored?);
        Ok(())
    }

    fn wait_for_innodb(&mut self, session: &mut MysqlSession) -> Result<(), Error> {
        self.wait("wait for write-back of dirty pages", || {
            left_of_dirty_pages(session)
        })?;
        let (mut shortest, mut since) = (f64::INFINITY, Deadline::after(STUCK));
        self.wait("wait for purge", || {
            let length = history_length(session)?.unwrap_or(0.0);
            if length < shortest {
                (shortest, since) = (length, Deadline::after(STUCK));
            }
            Ok(if length <= HISTORY_SMALL || has_purged_all(&innodb_status(session)?) {
                Pending::Nothing
            } else if since.has_passed() {
                Pending::Stuck(format!(
                    "old row versions left: {length}, not fewer after {STUCK:?}: an open transaction may need them"
                ))
            } else {
                Pending::Some(format!("old row versions left: {length}"))
            })
        })?;
        // Purging makes pages dirty.
        self.wait("wait for write-back of purged pages", || {
            left_of_dirty_pages(session)
        })
    }

    fn settle_rocksdb(&mut self) -> Result<(), Error> {
        self.wait_for_compaction()?;
        self.run("set global rocksdb_force_flush_memtable_now = 1")?;
        // Of newer builds only. The one that flushes as well, which all have, fails when the flush sets off a compaction,
        // and in older builds puts files into a level that may not be in use.
        let mut session = self.connect()?;
        if session.variable(COMPACT_L0)?.is_some() {
            self.run(&format!("set global {COMPACT_L0} = 1"))?;
        } else if !self.work.is_over() {
            let what = format!("L0 not compacted: the server has no {COMPACT_L0}");
            self.settled.add_action(what, Duration::ZERO);
        }
        self.wait_for_compaction()
    }

    fn wait_for_compaction(&mut self) -> Result<(), Error> {
        let mut session = self.connect()?;
        let (mut last, mut since) = (None, Deadline::after(QUIET));
        self.wait("wait for compaction", || {
            let (now, is_busy) = compaction(&mut session)?;
            if is_busy || last.as_ref() != Some(&now) {
                (last, since) = (Some(now), Deadline::after(QUIET));
            }
            Ok(if since.has_passed() {
                Pending::Nothing
            } else if is_busy {
                Pending::Some("it runs or is pending".into())
            } else {
                Pending::Some(format!("less than {QUIET:?} of rest were seen"))
            })
        })
    }
}

/// Settings of InnoDB that are changed for a while, with the values that they had.
struct Changed(Vec<(&'static str, String, String)>);

impl Changed {
    /// Makes InnoDB write back all that is dirty, as fast as it is allowed to; `None` when this user may not.
    fn apply(session: &mut MysqlSession) -> Result<Option<Self>, Error> {
        let fast = session.variable("innodb_io_capacity_max")?;
        // The low-water mark first: it may not be above the other.
        let wanted = [
            ("innodb_max_dirty_pages_pct_lwm", Some("0".to_string())),
            ("innodb_max_dirty_pages_pct", Some("0".to_string())),
            ("innodb_idle_flush_pct", Some("100".to_string())),
            ("innodb_io_capacity", fast),
            // What is purged leaves the list only every so many times.
            (
                "innodb_purge_rseg_truncate_frequency",
                Some("1".to_string()),
            ),
        ];
        let mut changed = Self(Vec::new());
        for (name, value) in wanted {
            let (Some(value), Some(before)) = (value, session.variable(name)?) else {
                continue;
            };
            match session.query(&format!("set global {name} = {value}")) {
                Ok(_) => changed.0.push((name, before, value)),
                Err(error) if error.code.as_deref().is_some_and(|it| DENIED.contains(&it)) => {
                    changed.restore(session)?;
                    return Ok(None);
                }
                Err(error) => {
                    changed.restore(session)?;
                    return Err(error);
                }
            }
        }
        Ok(Some(changed))
    }

    /// Returns the settings as they are listed, each with one of its values.
    fn listed(&self, value: for<'a> fn(&'a (&'static str, String, String)) -> &'a str) -> String {
        let settings = self.0.iter().map(|it| format!("{} = {}", it.0, value(it)));
        settings.collect::<Vec<_>>().join(", ")
    }

    /// Puts the settings back, in the opposite order, and reads them to see that they are.
    fn restore(&self, session: &mut MysqlSession) -> Result<Action, Error> {
        let took = Deadline::after(Duration::MAX);
        for (name, before, _) in self.0.iter().rev() {
            session.query(&format!("set global {name} = {before}"))?;
        }
        for (name, before, _) in &self.0 {
            let now = session.variable(name)?;
            if now.as_ref() != Some(before) {
                return Err(Error::other(format!(
                    "`{name}` is `{}` after settling, it was `{before}`",
                    now.as_deref().unwrap_or("")
                )));
            }
        }
        Ok(Action {
            what: format!("restored {}", self.listed(|(_, before, _)| before)),
            took: took.elapsed(),
        })
    }
}

/// The tables that exist, by name, in their order.
fn existing(session: &mut MysqlSession, tables: &[Table]) -> Result<Vec<String>, Error> {
    let there = session.query_column(
        "select table_name from information_schema.tables where table_schema = database()",
    )?;
    Ok(tables
        .iter()
        .map(|table| table.name.clone())
        .filter(|name| there.contains(name))
        .collect())
}

fn status(session: &mut MysqlSession, name: &str) -> Result<Option<f64>, Error> {
    let value = session.shown("global status", name)?;
    Ok(value.and_then(|value| value.parse().ok()))
}

fn dirty_pages(session: &mut MysqlSession) -> Result<Option<f64>, Error> {
    status(session, "Innodb_buffer_pool_pages_dirty")
}

/// Old row versions that are to be removed, in transactions; `None` where this user may not know.
fn history_length(session: &mut MysqlSession) -> Result<Option<f64>, Error> {
    if let Some(length) = status(session, "Innodb_history_list_length")? {
        return Ok(Some(length));
    }
    let sql = "select name, count from information_schema.innodb_metrics where name = 'trx_rseg_history_len'";
    let rows = pairs(if_present(session, sql)?);
    Ok(rows
        .into_values()
        .next()
        .and_then(|value| value.parse().ok()))
}

/// Returns true where purge is done with all transactions that `show engine innodb status` tells of. The history list may be longer
/// then: MySQL 5.6 takes what was purged off it only in every 128th batch.
fn has_purged_all(status: &str) -> bool {
    let purged = number_after(status, "Purge done for trx's n:o <");
    let next = number_after(status, "Trx id counter");
    purged
        .zip(next)
        .is_some_and(|(purged, next)| purged >= next)
}

/// How much MyRocks has compacted and flushed so far, and whether it says that it is at it.
fn compaction(session: &mut MysqlSession) -> Result<(Vec<Option<String>>, bool), Error> {
    let rows = pairs(session.query("show global status like 'rocksdb_%_bytes'")?);
    let of = |name: &str| rows.get(name).cloned();
    let so_far = vec![
        of("rocksdb_compact_write_bytes"),
        of("rocksdb_compact_read_bytes"),
        of("rocksdb_flush_write_bytes"),
    ];
    // A table of some builds only.
    let sql = "select 1 from information_schema.rocksdb_active_compaction_stats limit 1";
    let is_active = !if_present(session, sql)?.is_empty();
    let sql = "select sum(value) from information_schema.rocksdb_cfstats \
               where stat_type in ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING')";
    let pending = if_present(session, sql)?;
    let pending = pending
        .first()
        .and_then(|row| row.first()?.as_deref()?.parse::<f64>().ok());
    Ok((so_far, is_active || pending.unwrap_or(0.0) > 0.0))
}

/// What is still to be done, as far as the server tells.
fn pending(mysql: &Mysql) -> Result<Vec<Counter>, Error> {
    let mut session = MysqlSession::connect(&mysql.address)?;
    if mysql.kind.dialect.storage_engine == StorageEngine::RocksDb {
        return of_rocksdb(&mut session);
    }
    let mut counters = Vec::new();
    counters.extend(dirty_pages(&mut session)?.map(|it| Counter::gauge("dirty_page_count", it)));
    let history = history_length(&mut session)?;
    counters.extend(history.map(|it| Counter::gauge("history_list_length", it)));
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purge_is_over_when_it_has_reached_the_next_transaction() {
        // Of MySQL 5.6.14, after 500 updates.
        let at_rest = "------------\nTRANSACTIONS\n------------\nTrx id counter 2301\n\
            Purge done for trx's n:o < 2301 undo n:o < 0 state: running but idle\nHistory list length 504\n";
        assert!(has_purged_all(at_rest));
        // The same, where a snapshot is held.
        let held = "Trx id counter 3315\n\
            Purge done for trx's n:o < 2304 undo n:o < 0 state: running but idle\nHistory list length 504\n";
        assert!(!has_purged_all(held));
        // A user may not read it.
        assert!(!has_purged_all(""));
    }
}
