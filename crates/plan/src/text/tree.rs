//! The values of a plan before they are interpreted, each with its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::text::diagnostic::Place;
use crate::text::wording::quoted;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// A value of TOML, or of a `--set` argument.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    /// An integer, in decimal digits unless it is too large for any number of a plan.
    Integer(String),
    Float(String),
    Boolean(bool),
    Datetime,
    List(Vec<Node>),
    Table(Table),
    /// The text after `=` in a `--set` argument: a number or text, as the key needs it.
    Bare(String),
}

/// Keys and values, in the order of the file; those that `--set` added come last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Node {
    /// Copies a value from the TOML parser; `place` turns a range of the parsed text into a place.
    pub(crate) fn new(value: &Spanned<DeValue<'_>>, place: &dyn Fn(Range<usize>) -> Place) -> Self {
        let span = value.span();

        let value = match value.get_ref() {
            DeValue::Array(list) => {
                Value::List(list.iter().map(|value| Self::new(value, place)).collect())
            }
            DeValue::Table(table) => Value::Table(Table::new(table, place)),
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(integer) => Value::Integer(
                i128::from_str_radix(integer.as_str(), integer.radix())
                    .map_or(integer.to_string(), |number| number.to_string()),
            ),
            DeValue::Float(float) => Value::Float(float.as_str().to_owned()),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(_) => Value::Datetime,
        };

        Self { value, place: place(span) }
    }

    /// Returns the name of the value's type, with an article.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.value {
            Value::String(_) => "a string",
            Value::Bare(_) => "a value",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Datetime => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Returns a number, a boolean or text as TOML writes it.
    pub(crate) fn literal(&self) -> Option<String> {
        match &self.value {
            Value::String(text) => Some(quoted(text)),
            Value::Integer(text) | Value::Float(text) => Some(text.clone()),
            Value::Boolean(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// Returns the text of a node that is text or can be read as text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) | Value::Bare(text) => Some(text),
            _ => None,
        }
    }
}

impl Table {
    /// Copies a table from the TOML parser, in the order of the text.
    pub(crate) fn new(table: &DeTable<'_>, place: &dyn Fn(Range<usize>) -> Place) -> Self {
        let mut pairs: Vec<_> = table.iter().collect();
        pairs.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, _)| Entry {
            key: toml::de::DeString::to_string(key.get_ref()),
            key_place: place(key.span()),
            node: Node::new(value, place),
        };
        Self { entries: pairs.into_iter().map(entry).collect() }
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// Returns the entry of a key; adds it at the end if there is none.
    pub(crate) fn get_or_put(&mut self, key: &str, new: impl FnOnce() -> Entry) -> &mut Entry {
        match self.entries.iter().position(|entry| entry.key == key) {
            Some(at) => &mut self.entries[at],
            None => self.entries.push_mut(new()),
        }
    }

    /// Removes and returns an entry.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }

    /// Replaces the entry of the same key, or adds it at the end.
    pub(crate) fn put(&mut self, entry: Entry) {
        match self.get_mut(&entry.key) {
            Some(existing) => *existing = entry,
            None => self.entries.push(entry),
        }
    }
}
