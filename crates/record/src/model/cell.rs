//! The record of a cell: the engine that it measured, its settings, and its steps.

use serde::{Deserialize, Serialize};
use words::{Limit, Setting, UnmetOption};

use super::{CellKey, Failure, KeptDatabase, Status, StepFile};

/// `cell.json`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The cell's key.
    #[serde(flatten)]
    pub key: CellKey,
    /// The build's name.
    pub build: String,
    /// The config's name.
    pub config: String,
    /// The engine's name.
    pub engine: String,
    /// The version, as the running engine reports it.
    pub engine_version: String,
    /// The workload: `insert`.
    pub workload: String,
    /// The outcome of the cell.
    pub status: Status,
    /// The failure, if the cell failed.
    pub failure: Option<Failure>,
    /// The time at which the cell started.
    pub started_unix_ns: u64,
    /// The time at which the cell ended; `None` if it has not.
    pub ended_unix_ns: Option<u64>,
    /// The engine runs in Assay's process.
    pub embedded: bool,
    /// The host of the engine: samples of the host don't include a server on another host.
    pub server_host: ServerHost,
    /// The host of an engine on another host was sampled; otherwise the samples are of Assay's own
    /// host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_host_metrics: bool,
    /// The user that the server ran as, if it was not Assay's own.
    pub server_user: Option<String>,
    /// The invocation of the run in which it was measured, from 1.
    pub invocation: u32,
    /// Tables that the cell created in a server that Assay did not start, and did not drop.
    pub tables_left: Vec<String>,
    /// Procedures that the cell created in such a server, and did not drop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub procedures_left: Vec<String>,
    /// The limits that the config sets for the server, and the effective ones.
    pub limits: Vec<Limit>,
    /// The means by which its processes were frozen between its turns; `None` if they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_by: Option<String>,
    /// The effective settings, sorted by name.
    pub settings: Vec<Setting>,
    /// Declared options of its config that the engine does not have, or may not have; `not_had` in
    /// records of format 1.0.
    #[serde(alias = "not_had")]
    pub unmet_options: Vec<UnmetOption>,
    /// The steps of the cell, in order; their directories are `steps/NN-NAME`. The first ones may
    /// have none: see [`KeptDatabase::steps_left_out`]. Nor have those that are not applicable.
    pub steps: Vec<String>,
    /// The steps that the engine cannot run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applicable: Vec<StepNotApplicable>,
    /// The kept database with which its later steps began; `None` if it loaded its own and
    /// continued with it.
    #[serde(default)]
    pub database: Option<KeptDatabase>,
    /// The identifier of its run; filled in by [`CellDir`](crate::CellDir). Empty in records of
    /// format 1.0, like `files`.
    #[serde(default)]
    pub run: String,
    /// The files of the cell that readers use, such as `steps/01-l.i0/step.json`; filled in by
    /// [`CellDir`](crate::CellDir).
    #[serde(default)]
    pub files: Vec<StepFile>,
}

/// A step that the engine cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepNotApplicable {
    /// The name of the step.
    pub step: String,
    /// The reason.
    pub why: String,
}

impl Cell {
    /// Returns the listed file with this name.
    pub(crate) fn file(&self, name: &str) -> Option<&StepFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

/// The host of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerHost {
    /// On the same host as Assay.
    #[default]
    Local,
    /// On another host.
    Remote,
}
