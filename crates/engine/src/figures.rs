//! Tables of counters: what an engine calls them, and what they are.

use words::{Counter, CounterKind, Role};

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
