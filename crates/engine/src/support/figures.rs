//! Tables of counters, with the engine's names, assay's names and their roles.

use words::{Counter, CounterKind, Role};

use crate::contract::Rows;

/// A counter that an engine reports under its own name.
pub(crate) struct Figure {
    /// The engine's name.
    pub(crate) source: &'static str,
    /// Assay's name, which ends with the unit.
    pub(crate) name: &'static str,
    pub(crate) kind: CounterKind,
    pub(crate) role: Option<Role>,
}

impl Figure {
    pub(crate) fn counter(&self, value: f64) -> Counter {
        Counter::new(self.name, value, self.kind).with_role(self.role)
    }
}

/// Returns the counters of tables. Each row has a table's name, followed by its figures.
pub(crate) fn table_counters<'f>(
    rows: Rows,
    figures: impl IntoIterator<Item = &'f Figure> + Clone,
) -> Vec<Counter> {
    let mut counters = Vec::new();

    for row in rows {
        let mut values = row.into_iter();
        let Some(Some(table)) = values.next() else {
            continue;
        };

        for (value, figure) in values.zip(figures.clone()) {
            if let Some(value) = value.and_then(|value| value.parse().ok()) {
                let name = format!("{}.{table}", figure.name);
                counters.push(Counter { name, ..figure.counter(value) });
            }
        }
    }

    counters
}

/// Returns states of sessions from rows of a state and a number of sessions.
pub(crate) fn session_states(rows: Rows) -> Vec<(String, u64)> {
    let states = rows.into_iter().filter_map(|row| match <[Option<String>; 2]>::try_from(row) {
        Ok([Some(state), Some(count)]) => Some((state, count.parse().ok()?)),
        _ => None,
    });
    states.collect()
}

/// Returns a part of an engine's status with its heading.
pub(crate) fn status_section(name: &str, text: &str) -> String {
    format!("==== {name} ====\n{}\n\n", text.trim())
}

/// Returns names as a comma-separated list of SQL string literals.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    quoted.join(", ")
}

/// Builds a table of figures from lines such as `Cumulative "bytes_out" => "sent_bytes" Work;`. The
/// role is optional.
macro_rules! figures {
    (@role) => { None };
    (@role $role:ident) => { Some(words::Role::$role) };
    ($($kind:ident $source:literal => $name:literal $($role:ident)?;)*) => {
        &[$($crate::support::figures::Figure {
            source: $source,
            name: $name,
            kind: words::CounterKind::$kind,
            role: figures!(@role $($role)?),
        }),*]
    };
}
pub(crate) use figures;
