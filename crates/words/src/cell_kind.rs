//! The purposes of cells.

use serde::{Deserialize, Serialize};

/// The purpose of a cell.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// Time: throughput, latency and the use of the machine.
    #[default]
    Measured,
    /// The highest rate: tests whose rate is a share of it run as fast as possible, before all others.
    /// That rate is all they measure, so their times are not compared.
    Unlimited,
    /// Functions: a profiler runs beside it, so its times are not compared.
    Profiled,
    /// Exact work: the engine's instructions are counted by valgrind, so its times mean nothing.
    Exact,
}

impl CellKind {
    /// Returns the letter before the number of a repeat: `r1`, `u1`, `p1`, `x1`.
    pub fn letter(self) -> char {
        match self {
            Self::Measured => 'r',
            Self::Unlimited => 'u',
            Self::Profiled => 'p',
            Self::Exact => 'x',
        }
    }

    /// Returns whether the cell's times are compared.
    pub fn is_measured(&self) -> bool {
        *self == Self::Measured
    }
}
