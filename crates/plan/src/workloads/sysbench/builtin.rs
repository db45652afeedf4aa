//! The built-in tests, in the form in which plans define their own, and the built-in lists of
//! steps.

use std::sync::LazyLock;

use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::document;
use crate::reading::value_kinds::{Line, ListOf};
use crate::text::diagnostic::Place;
use crate::text::tree::Entry;

use super::StepList;
use super::read::TestSource;

/// Tests as in a plan, and a table of lists of steps.
pub(super) const TEXT: &str = include_str!("builtin.toml");

/// The built-in tests and lists of steps.
pub(super) struct Builtin {
    pub(super) tests: Vec<TestSource>,
    orders: Vec<(String, Vec<String>)>,
}

pub(super) static BUILTIN: LazyLock<Builtin> =
    // A unit test checks that this reports nothing.
    LazyLock::new(|| Builtin::read(&mut Context::new(TEXT)));

impl Builtin {
    /// Reads [`TEXT`].
    pub(super) fn read(cx: &mut Context<'_>) -> Self {
        let table = document::read(cx, TEXT).unwrap_or_default();
        let section = &mut Section::new("", table, Place::Nowhere);

        let (mut tests, mut orders) = (Vec::new(), Vec::new());
        for Entry { key, node, .. } in cx.table(section, "test").entries {
            tests.extend(TestSource::new(cx, &key, &key, Place::Nowhere, node));
        }

        for Entry { key, node, .. } in cx.table(section, "order").entries {
            let with_places = ListOf(Line, "a list of steps").read(cx, &key, &node);
            let steps = with_places.into_iter().flatten().map(|(step, _)| step);
            orders.push((key, steps.collect()));
        }

        Self { tests, orders }
    }

    /// Returns the steps of a built-in list.
    pub(super) fn order(&self, order: StepList) -> &[String] {
        let found = self.orders.iter().find(|(name, _)| name == order.name());
        found.map_or(&[], |(_, steps)| steps)
    }
}
