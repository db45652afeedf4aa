//! The durability of writes to engines with keys and values.

use serde::{Deserialize, Serialize};

/// The events that a write survives once it has returned, from none to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing: unflushed data is lost when the process ends unexpectedly. The write is not logged.
    None,
    /// The end of the process. A crash of the machine may lose it: it is in the log, but maybe not
    /// on the device.
    Process,
    /// A crash of the machine: it is in the log on the device.
    Machine,
}

impl Durability {
    /// All values, by name.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("process", Self::Process), ("machine", Self::Machine)];

    /// Returns the value's name in plans and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Process => "process",
            Self::Machine => "machine",
        }
    }
}
