//! Settles a server: updates statistics, then finishes the storage engine's background work.
//!
//! InnoDB writes back its dirty pages and removes old row versions. This changes some settings,
//! which are restored and checked afterward. MyRocks finishes its compactions, flushes its
//! memtables, and compacts its first level if the build supports that. With any other storage
//! engine, the server just has to be quiet for a while.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use words::{Counter, Role};

use super::observer::{if_present, number_after, pairs, rocksdb_counters};
use super::session::MysqlSession;
use super::status::innodb_status;
use super::{Mysql, StorageEngine};
use crate::contract::{Action, Engine as _, Session, SettleLimits, Settled, Table};
use crate::error::Error;
use crate::safety::guard::Deadline;
use crate::support::quiet::wait_until_quiet;
use crate::support::waiting::{Pending, Work, rest};

/// The error codes for missing privileges.
const DENIED: [&str; 3] = ["1142", "1227", "1290"];

/// The error codes of a statement that a storage engine does not have.
const UNSUPPORTED: [&str; 2] = ["1031", "1178"];

/// The number of old row versions that an idle server may keep.
const HISTORY_SMALL: f64 = 100.0;

/// The number of dirty pages that an idle server may keep, because it always writes a little.
const DIRTY_PAGES_SMALL: f64 = 64.0;

/// The time to wait for old row versions if their number does not decrease.
const STUCK: Duration = Duration::from_secs(10);

/// The variable that makes MyRocks compact only its first level.
const COMPACT_L0: &str = "rocksdb_compact_lzero_now";

/// The time without a compaction after which MyRocks counts as idle.
const QUIET: Duration = Duration::from_secs(2);

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
    let started = Deadline::after(limits.at_least);
    let mut settling = Settling {
        mysql,
        work: Work {
            deadline: Deadline::after(limits.at_most),
            stop,
            denied_codes: &DENIED,
            unsupported_codes: &UNSUPPORTED,
        },
        settled: Settled { pending_before: pending(mysql)?, ..Settled::default() },
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
        StorageEngine::Other(_) => {
            settling.analyze(tables)?;
            let waited = wait_until_quiet(&settling.work, mysql.process_id())?;
            settling.settled.append(waited);
        }
    }

    let mut settled = settling.settled;
    settled.actions.extend(rest(&started, limits.at_least, stop));
    settled.pending_after = pending(mysql)?;
    Ok(settled)
}

fn pending_dirty_pages(session: &mut MysqlSession) -> Result<Pending, Error> {
    Ok(match dirty_pages(session)? {
        Some(pages) if pages > DIRTY_PAGES_SMALL => Pending::Some(format!("pages left: {pages}")),
        _ => Pending::Nothing,
    })
}

impl Settling<'_> {
    fn connect(&self) -> Result<MysqlSession, Error> {
        MysqlSession::connect(&self.mysql.address)
    }

    /// Runs a statement on its own session, because canceling a statement ends its session.
    fn run(&mut self, sql: &str) -> Result<(), Error> {
        let settled = self.work.run(&mut self.connect()?, sql)?;
        self.settled.append(settled);
        Ok(())
    }

    fn wait(
        &mut self,
        what: &str,
        pending: impl FnMut() -> Result<Pending, Error>,
    ) -> Result<(), Error> {
        self.settled.append(self.work.wait(what, pending)?);
        Ok(())
    }

    fn analyze(&mut self, tables: &[Table]) -> Result<(), Error> {
        let names = existing(&mut self.connect()?, tables)?;
        for name in names {
            self.run(&format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {name}"))?;
        }
        Ok(())
    }

    fn settle_innodb(&mut self) -> Result<(), Error> {
        if self.work.is_over() {
            self.settled.unfinished.push("write-back of dirty pages and purge: not begun".into());
            return Ok(());
        }

        let mut session = self.connect()?;
        let Some(changed) = ChangedSettings::apply(&mut session)? else {
            // Without the privilege to change settings, the write-back is too slow to wait for.
            self.settled.add_action("write back dirty pages: not allowed", Duration::ZERO);
            return Ok(());
        };
        let what = format!("set global {}", changed.listed(|setting| &setting.value));
        self.settled.add_action(what, Duration::ZERO);

        let waited = self.wait_for_innodb(&mut session);

        // Restores the settings even after an error, because the next step must not run with them.
        let restored = changed.restore(&mut self.connect()?);
        waited?;
        self.settled.actions.push(restored?);
        Ok(())
    }

    fn wait_for_innodb(&mut self, session: &mut MysqlSession) -> Result<(), Error> {
        self.wait("wait for write-back of dirty pages", || pending_dirty_pages(session))?;

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
                    "old row versions left: {length}, no decrease in {STUCK:?}; an open transaction may need them"
                ))
            } else {
                Pending::Some(format!("old row versions left: {length}"))
            })
        })?;

        // Purge also makes pages dirty.
        self.wait("wait for write-back of purged pages", || pending_dirty_pages(session))
    }

    fn settle_rocksdb(&mut self) -> Result<(), Error> {
        self.wait_for_compaction()?;
        self.run("set global rocksdb_force_flush_memtable_now = 1")?;

        // Only newer builds have this variable. Another one, which also flushes, fails if the flush
        // starts a compaction, and in older builds it puts files into a level that may be
        // unused.
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
                Pending::Some("a compaction runs or is pending".into())
            } else {
                Pending::Some(format!("idle for less than {QUIET:?}"))
            })
        })
    }
}

/// A temporarily changed setting of InnoDB.
struct ChangedSetting {
    name: &'static str,
    before: String,
    value: String,
}

/// The temporarily changed settings of InnoDB, in the order of their changes.
struct ChangedSettings(Vec<ChangedSetting>);

impl ChangedSettings {
    /// Makes InnoDB write back all dirty pages as fast as it may. Returns `None` if the user lacks
    /// the privilege.
    fn apply(session: &mut MysqlSession) -> Result<Option<Self>, Error> {
        let fast = session.variable("innodb_io_capacity_max")?;
        // The low-water mark comes first, because it may not exceed the other.
        let settings = [
            ("innodb_max_dirty_pages_pct_lwm", Some("0".to_string())),
            ("innodb_max_dirty_pages_pct", Some("0".to_string())),
            ("innodb_idle_flush_pct", Some("100".to_string())),
            ("innodb_io_capacity", fast),
            // By default, purged entries leave the list only in every 128th batch.
            ("innodb_purge_rseg_truncate_frequency", Some("1".to_string())),
        ];

        let mut changed = Self(Vec::new());

        for (name, value) in settings {
            let (Some(value), Some(before)) = (value, session.variable(name)?) else {
                continue;
            };

            match session.query(&format!("set global {name} = {value}")) {
                Ok(_) => changed.0.push(ChangedSetting { name, before, value }),
                Err(error) if error.code.as_deref().is_some_and(|code| DENIED.contains(&code)) => {
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

    /// Returns a list of the settings, each with one of its values.
    fn listed(&self, value: fn(&ChangedSetting) -> &str) -> String {
        let settings =
            self.0.iter().map(|setting| format!("{} = {}", setting.name, value(setting)));
        Vec::from_iter(settings).join(", ")
    }

    /// Restores the settings in reverse order, and checks them.
    fn restore(&self, session: &mut MysqlSession) -> Result<Action, Error> {
        let started = Deadline::after(Duration::MAX);
        for ChangedSetting { name, before, .. } in self.0.iter().rev() {
            session.query(&format!("set global {name} = {before}"))?;
        }

        for ChangedSetting { name, before, .. } in &self.0 {
            let now = session.variable(name)?;
            if now.as_ref() != Some(before) {
                return Err(Error::other(format!(
                    "cannot restore `{name}` after settling: it is `{}` instead of `{before}`",
                    now.as_deref().unwrap_or("")
                )));
            }
        }
        Ok(Action {
            what: format!("restored {}", self.listed(|setting| &setting.before)),
            took: started.elapsed(),
        })
    }
}

/// Returns the names of the tables that exist, in order.
fn existing(session: &mut MysqlSession, tables: &[Table]) -> Result<Vec<String>, Error> {
    let existing = session.query_column(
        "select table_name from information_schema.tables where table_schema = database()",
    )?;
    Ok(tables
        .iter()
        .map(|table| table.name.clone())
        .filter(|name| existing.contains(name))
        .collect())
}

fn status(session: &mut MysqlSession, name: &str) -> Result<Option<f64>, Error> {
    let value = session.shown("global status", name)?;
    Ok(value.and_then(|value| value.parse().ok()))
}

fn dirty_pages(session: &mut MysqlSession) -> Result<Option<f64>, Error> {
    status(session, "Innodb_buffer_pool_pages_dirty")
}

/// Returns the length of the history list, in transactions; `None` if the user lacks the privilege.
fn history_length(session: &mut MysqlSession) -> Result<Option<f64>, Error> {
    if let Some(length) = status(session, "Innodb_history_list_length")? {
        return Ok(Some(length));
    }
    let sql = "select name, count from information_schema.innodb_metrics where name = 'trx_rseg_history_len'";
    let rows = pairs(if_present(session, sql)?);
    Ok(rows.into_values().next().and_then(|value| value.parse().ok()))
}

/// Returns true when purge has processed all transactions in `show engine innodb status`. Even
/// then, the history list may be long, because MySQL 5.6 removes purged entries only in every 128th
/// batch.
fn has_purged_all(status: &str) -> bool {
    let purged = number_after(status, "Purge done for trx's n:o <");
    let next = number_after(status, "Trx id counter");
    purged.zip(next).is_some_and(|(purged, next)| purged >= next)
}

/// Returns the amounts that MyRocks has compacted and flushed so far, and whether it reports
/// pending work.
fn compaction(session: &mut MysqlSession) -> Result<(Vec<Option<String>>, bool), Error> {
    let rows = pairs(session.query("show global status like 'rocksdb_%_bytes'")?);
    let so_far =
        ["rocksdb_compact_write_bytes", "rocksdb_compact_read_bytes", "rocksdb_flush_write_bytes"]
            .map(|name| rows.get(name).cloned())
            .to_vec();

    // Only some builds have this table.
    let sql = "select 1 from information_schema.rocksdb_active_compaction_stats limit 1";
    let is_active = !if_present(session, sql)?.is_empty();
    let sql = "select sum(value) from information_schema.rocksdb_cfstats \
               where stat_type in ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING')";
    let rows = if_present(session, sql)?;
    let pending = rows.first().and_then(|row| row.first()?.as_deref()?.parse::<f64>().ok());
    Ok((so_far, is_active || pending.unwrap_or(0.0) > 0.0))
}

/// Returns the pending work that the server reports.
fn pending(mysql: &Mysql) -> Result<Vec<Counter>, Error> {
    let mut session = MysqlSession::connect(&mysql.address)?;
    match mysql.kind.dialect.storage_engine {
        StorageEngine::RocksDb => return rocksdb_counters(&mut session),
        // The server does not report it in a common form.
        StorageEngine::Other(_) => return Ok(Vec::new()),
        StorageEngine::InnoDb => {}
    }

    let mut counters = Vec::new();
    counters
        .extend(dirty_pages(&mut session)?.map(|pages| {
            Counter::gauge("dirty_page_count", pages).with_role(Role::DirtyPageCount)
        }));

    let history = history_length(&mut session)?;
    counters.extend(history.map(|length| Counter::gauge("history_list_length", length)));
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purge_is_finished_when_it_has_reached_the_next_transaction() {
        // From MySQL 5.6.14, after 500 updates.
        let at_rest = "------------\nTRANSACTIONS\n------------\nTrx id counter 2301\n\
            Purge done for trx's n:o < 2301 undo n:o < 0 state: running but idle\nHistory list length 504\n";
        assert!(has_purged_all(at_rest));
        // The same with an open snapshot.
        let held = "Trx id counter 3315\n\
            Purge done for trx's n:o < 2304 undo n:o < 0 state: running but idle\nHistory list length 504\n";
        assert!(!has_purged_all(held));
        // The user lacks the privilege.
        assert!(!has_purged_all(""));
    }
}
