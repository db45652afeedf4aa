//! The engine that is only a part of assay.

use engine::null;

use super::TargetStarter;
use super::sql::SqlTarget;
use crate::targets::running::{Leftovers, RunningTarget};
use crate::targets::site::CellSite;
use crate::targets::workloads::sql::LoadEngine;

/// The engine that stores nothing.
pub struct Null;

impl TargetStarter for Null {
    fn start(&self, _: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        Ok(Box::new(SqlTarget::new(null::Null, Leftovers::default())))
    }

    fn connect(&self, _: Option<&str>) -> anyhow::Result<Box<dyn LoadEngine>> {
        Ok(Box::new(null::Null))
    }
}
