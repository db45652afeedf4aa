//! The key of a kept database: all that made it.

use builds::hash;
use serde::{Deserialize, Serialize};

/// The format of kept databases. It changes when databases of the earlier format cannot be used.
pub(super) const FORMAT: u32 = 2;

/// A fact that shapes a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPart {
    /// The name: `seed`, `config.page_size`.
    pub name: String,
    /// The value.
    pub value: String,
}

/// All that made a database. Equal keys mean equal databases if only steps that load made them:
/// measured steps write something else each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub(super) parts: Vec<KeyPart>,
}

impl Key {
    /// Returns the key of a database that these parts made.
    pub(crate) fn new(mut parts: Vec<KeyPart>) -> Self {
        parts.insert(0, KeyPart { name: "format".to_owned(), value: FORMAT.to_string() });
        Self { parts }
    }

    /// Returns the SHA-256 of all parts in hexadecimal.
    pub fn fingerprint(&self) -> String {
        let parts = self.parts.iter().map(|part| format!("{:?}={:?}\n", part.name, part.value));
        hash::of_bytes(parts.collect::<String>().as_bytes())
    }

    /// Returns a part.
    pub(super) fn part(&self, name: &str) -> Option<&str> {
        let part = self.parts.iter().find(|part| part.name == name)?;
        Some(&part.value)
    }

    /// Returns the name of the database in its folder.
    pub fn name(&self) -> String {
        let engine = self.part("engine").unwrap_or("database");
        format!("{engine}-{}", &self.fingerprint()[..12])
    }
}
