//! Which cell of a plan's matrix something belongs to.

use serde::{Deserialize, Serialize};

/// Which target was measured, under which load, and in which repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CellKey {
    /// The target's name: `build.config`.
    pub target: String,
    /// The workload's variant, where a plan has several.
    pub variant: Option<String>,
    /// Clients.
    pub clients: u32,
    /// Which repeat, from 1; 0 stands for all of them, and JSON then says nothing of it.
    #[serde(default, skip_serializing_if = "is_all")]
    pub repeat: u32,
}

impl CellKey {
    /// Returns the key of one repeat of a target with so many clients.
    pub fn new(target: &str, variant: Option<&str>, clients: u32, repeat: u32) -> Self {
        Self {
            target: target.to_owned(),
            variant: variant.map(str::to_owned),
            clients,
            repeat,
        }
    }

    /// Returns the key of all repeats.
    pub fn all_repeats(&self) -> Self {
        Self {
            repeat: 0,
            ..self.clone()
        }
    }

    /// Returns the key of another target's cell in the same repeat of the same load.
    pub fn of_target(&self, target: &str) -> Self {
        Self {
            target: target.to_owned(),
            ..self.clone()
        }
    }

    /// Returns the variant and the number of clients: targets are compared where both are the same.
    pub fn load(&self) -> (Option<&str>, u32) {
        (self.variant.as_deref(), self.clients)
    }

    /// Returns whether two cells differ in nothing but their repeat.
    pub fn is_repeat_of(&self, other: &Self) -> bool {
        self.target == other.target && self.load() == other.load()
    }
}

/// Returns whether a number of a repeat stands for all of them.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_all(repeat: &u32) -> bool {
    *repeat == 0
}
