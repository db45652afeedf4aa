//! A cell while it is measured.

use std::path::PathBuf;

use anyhow::Context;
use engine::notation;
use engine::{Engine, LogParser, Wrapper};
use record::{Cell, LogEvent, ServerHost, Setting, StepNotApplicable};

use super::kept::InMaking;
use crate::steps::exact::Tool;
use crate::targets::running::Leftovers;
use crate::targets::site::{CellSite, keep_log, remove_database};
use crate::turns::Seat;

/// The remark on a target in turns whose host has an exporter.
const NO_EXPORTER_IN_TURNS: &str = "`host-metrics` is not read, because the target takes turns, and the exporter is too slow to be \
     read at the ends of each turn: figures of the server's host are not applicable";

/// A cell that is being measured.
pub struct CellRun<'a> {
    /// The part of it that its target sees.
    pub site: CellSite<'a>,
    /// The cell's seat among those that take turns; `None` if it is measured alone.
    pub seat: Option<&'a Seat>,
    /// The tool that counts the engine's work, if the cell is exact.
    pub tool: Option<&'a Tool>,
    /// The database that the current steps make and that is to be kept; `None` if none is.
    pub in_making: Option<InMaking>,
    /// The events of the engine's log so far.
    log_events: Vec<LogEvent>,
}

impl<'a> CellRun<'a> {
    pub fn new(mut site: CellSite<'a>, seat: Option<&'a Seat>, tool: Option<&'a Tool>) -> Self {
        site.wrapper = tool.map(|tool| tool as &dyn Wrapper);
        Self { site, seat, tool, in_making: None, log_events: Vec::new() }
    }

    /// Records that the engine cannot run a step.
    pub fn leave_out(&mut self, step: &str, why: String) -> anyhow::Result<()> {
        let CellSite { session, directory, record, .. } = &mut self.site;

        let text = format!("`{step}` is not applicable to `{}`: {why}", record.key.target);
        session.events.warn(Some("workload::not-applicable"), &text);
        record.not_applicable.push(StepNotApplicable { step: step.to_owned(), why });
        Ok(directory.write(record)?)
    }

    /// Removes the databases of a target unless they should be kept.
    pub fn remove(&self, leftovers: Leftovers) -> anyhow::Result<()> {
        let Some(data_dir) = leftovers.data_dir.filter(|_| !self.site.keep) else {
            return Ok(());
        };

        let removed = data_dir.remove();
        for home in leftovers.replica_homes {
            remove_database(&home, self.site.build().engine.name());
        }

        // Only if nothing else is in it.
        let _ = fs_err::remove_dir(self.site.home());

        removed.context("the database cannot be removed")
    }

    /// Copies the log of a stopped engine into the record, and adds its events.
    pub fn keep_log_and_events(&mut self, log: EngineLog) -> anyhow::Result<()> {
        if let Some(path) = &log.path {
            keep_log(self.site.directory, path)?;
        }

        match log.parser {
            Some(parser) => self.keep_events(parser),
            None => Ok(()),
        }
    }

    /// Adds the events of the kept log to the record.
    fn keep_events(&mut self, parser: LogParser) -> anyhow::Result<()> {
        let log = self.site.directory.log_path();
        if !log.exists() {
            return Ok(());
        }

        match engine::log_events(&log, parser) {
            Ok(events) => self.log_events.extend(events),
            Err(error) => {
                let text = format!("the events of the engine's log cannot be read: {error}");
                self.site.note("engine::log", &[text]);
                return Ok(());
            }
        }

        Ok(self.site.directory.write_log_events(&self.log_events)?)
    }

    /// Records the engine's version, settings and limits.
    pub fn describe(&mut self, engine: &dyn Engine) -> anyhow::Result<()> {
        let site = &mut self.site;
        let is_first = site.record.engine_version.is_empty();

        site.record.engine_version = engine.version().into();
        site.record.embedded = engine.capabilities().embedded;
        site.record.server_host =
            if engine.is_on_other_host() { ServerHost::Remote } else { ServerHost::Local };
        let has_exporter = engine.is_on_other_host() && site.build().host_metrics.is_some();
        site.record.has_host_metrics = has_exporter && self.seat.is_none();
        site.record.settings = engine.settings()?;

        // An embedded engine runs in this process.
        let process = engine.process_id().or(site.record.embedded.then(std::process::id));
        site.record.settings.extend(process.map(engine::runtime_settings).unwrap_or_default());

        if is_first {
            site.note_limits(engine.limits());
            if has_exporter && self.seat.is_some() {
                site.note("host::exporter", &[NO_EXPORTER_IN_TURNS.to_owned()]);
            }
        }

        site.record.settings.extend(limit_settings(site.record));

        let config = site.config();
        for (name, value) in config.replica_options().into_iter().chain(config.surroundings()) {
            site.record.settings.push(Setting::new(name, value));
        }

        site.describe_settings()?;
        site.directory.write(site.record)?;
        Ok(())
    }
}

/// The log of an engine, which is complete once the engine has stopped.
pub struct EngineLog {
    path: Option<PathBuf>,
    parser: Option<LogParser>,
}

impl EngineLog {
    pub fn of(engine: &dyn Engine) -> Self {
        Self { path: engine.log_path(), parser: engine.log_parser() }
    }
}

/// Returns the limits of a server as settings: the requested value if it is in force, since the
/// kernel may round it.
fn limit_settings(record: &Cell) -> Vec<Setting> {
    let setting = |what| {
        let limit = record.limits.iter().find(|limit| limit.what == what);
        let value = limit.and_then(|limit| match limit.reason {
            None => Some(limit.asked.as_str()),
            Some(_) => limit.effective.as_deref(),
        });

        notation::limit_setting(what, value)
    };

    // Without any limit, an engine in this process has no such settings to compare.
    if record.embedded && record.limits.is_empty() {
        Vec::new()
    } else {
        ["cpus", "cpu-quota", "memory"].map(setting).into()
    }
}
