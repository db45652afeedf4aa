//! Identifies a cell of a plan's matrix.

use serde::{Deserialize, Serialize};
use words::CellKind;

/// A target, its load and a repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CellKey {
    /// The target's name: `build.config`.
    pub target: String,
    /// The workload's variant, if the plan has variants.
    pub variant: Option<String>,
    /// The number of clients.
    pub clients: u32,
    /// The number of the repeat, from 1; 0 means all repeats, and JSON then omits it.
    #[serde(default, skip_serializing_if = "is_all")]
    pub repeat: u32,
    /// The purpose of the cell. The cells of each kind are counted on their own, from 1.
    #[serde(default, rename = "cell_kind", skip_serializing_if = "CellKind::is_measured")]
    pub kind: CellKind,
}

impl CellKey {
    /// Returns the key of one repeat of a target with a number of clients.
    pub fn new(target: &str, variant: Option<&str>, clients: u32, repeat: u32) -> Self {
        Self {
            target: target.to_owned(),
            variant: variant.map(str::to_owned),
            clients,
            repeat,
            kind: CellKind::Measured,
        }
    }

    /// Returns the key of all repeats.
    pub fn all_repeats(&self) -> Self {
        Self { repeat: 0, ..self.clone() }
    }

    /// Returns the key of another target with the same load and repeat.
    pub fn of_target(&self, target: &str) -> Self {
        Self { target: target.to_owned(), ..self.clone() }
    }

    /// Returns the variant and the number of clients. Targets are compared if both are equal.
    pub fn load(&self) -> (Option<&str>, u32) {
        (self.variant.as_deref(), self.clients)
    }

    /// Returns the target with its load in words: `pg.a cached c8`.
    pub fn target_and_load(&self) -> String {
        let variant = self.variant.as_ref().map_or(String::new(), |variant| format!(" {variant}"));
        format!("{}{variant} c{}", self.target, self.clients)
    }

    /// Returns whether two cells have the same target and load, of whichever kind.
    pub fn is_same_work_as(&self, other: &Self) -> bool {
        self.target == other.target && self.load() == other.load()
    }

    /// Returns whether two cells differ at most in their repeats.
    pub fn is_repeat_of(&self, other: &Self) -> bool {
        self.is_same_work_as(other) && self.kind == other.kind
    }
}

/// Returns whether a number of a repeat means all repeats.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_all(repeat: &u32) -> bool {
    *repeat == 0
}
