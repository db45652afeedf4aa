//! Tables of counters: what an engine calls them, and what they are.

use words::{Counter, CounterKind, Role};

use crate::Rows;

/// One counter that an engine tells under a name of its own.
pub(crate) struct Figure {
    /// The engine's name.
    pub(crate) source: &'static str,
    /// Ours, with the unit last.
    pub(crate) name: &'static str,
    pub(crate) kind: CounterKind,
    pub(crate) role: Option<Role>,
}

impl Figure {
    pub(crate) fn counter(&self, value: f64) -> Counter {
        Counter::new(self.name, value, self.kind).with_role(self.role)
    }
}

/// Returns the figures of tables: each row has a name, and then the figures of what is called so.
pub(crate) fn of_each(rows: Rows, figures: &[&Figure]) -> Vec<Counter> {
    let mut counters = Vec::new();
    for row in rows {
        let mut values = row.into_iter();
        let Some(Some(table)) = values.next() else {
            continue;
        };
        for (value, figure) in values.zip(figures) {
            if let Some(value) = value.and_then(|value| value.parse().ok()) {
                let name = format!("{}.{table}", figure.name);
                counters.push(Counter {
                    name,
                    ..figure.counter(value)
                });
            }
        }
    }
    counters
}

/// Returns names as a list of texts in SQL.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    quoted.join(", ")
}

/// A table of figures: `Cumulative "bytes_out" => "sent_bytes" Work;`, the role at its end if it has one.
macro_rules! figures {
    (@role) => { None };
    (@role $role:ident) => { Some(words::Role::$role) };
    ($($kind:ident $source:literal => $name:literal $($role:ident)?;)*) => {
        &[$($crate::figures::Figure {
            source: $source,
            name: $name,
            kind: words::CounterKind::$kind,
            role: figures!(@role $($role)?),
        }),*]
    };
}
pub(crate) use figures;
