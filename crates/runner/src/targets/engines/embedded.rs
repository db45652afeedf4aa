//! The engine that is only a part of assay.

use engine::null;
use plan::Build;

use super::sql::SqlTarget;
use super::{BuildFacts, EngineRow};
use crate::prepare::trials::Configs;
use crate::targets::running::{Leftovers, RunningTarget};
use crate::targets::site::CellSite;
use crate::targets::workloads::sql::LoadEngine;

/// The engine that stores nothing.
pub struct Null;

impl EngineRow for Null {
    fn find(&self, _: &Build, _: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        Ok(BuildFacts::bundled(env!("CARGO_PKG_VERSION")))
    }

    fn start(&self, _: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        Ok(Box::new(SqlTarget::new(null::Null, Leftovers::default())))
    }

    fn connect(&self, _: Option<&str>) -> anyhow::Result<Box<dyn LoadEngine>> {
        Ok(Box::new(null::Null))
    }
}
