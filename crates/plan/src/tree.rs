//! The values of a plan before anyone knows what they mean, each with its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Place;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    /// A number, in decimal digits where it is an integer of the size that numbers have.
    Integer(String),
    Float(String),
    Boolean(bool),
    Datetime,
    List(Vec<Node>),
    Table(Table),
    /// What follows `=` in a `--set` argument: a number where one is wanted, and text where text is.
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
    /// Copies what the TOML parser made; `place` turns a range of the parsed text into a place.
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
        Self {
            value,
            place: place(span),
        }
    }

    /// Returns what sort of value it is, with its article.
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

    /// Returns its text, if it is text or may be taken as such.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) | Value::Bare(text) => Some(text),
            _ => None,
        }
    }
}

impl Table {
    /// Copies what the TOML parser made, in the order of the text.
    pub(crate) fn new(table: &DeTable<'_>, place: &dyn Fn(Range<usize>) -> Place) -> Self {
        let mut pairs: Vec<_> = table.iter().collect();
        pairs.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, _)| Entry {
            key: toml::de::DeString::to_string(key.get_ref()),
            key_place: place(key.span()),
            node: Node::new(value, place),
        };
        Self {
            entries: pairs.into_iter().map(entry).collect(),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// Returns the entry of a key, which is put at the end where there is none.
    pub(crate) fn get_or_put(&mut self, key: &str, new: impl FnOnce() -> Entry) -> &mut Entry {
        match self.entries.iter().position(|entry| entry.key == key) {
            Some(at) => &mut self.entries[at],
            None => self.entries.push_mut(new()),
        }
    }

    /// Takes an entry out.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }

    /// Puts an entry in the place of the one of the same key, or at the end.
    pub(crate) fn put(&mut self, entry: Entry) {
        match self.get_mut(&entry.key) {
            Some(existing) => *existing = entry,
            None => self.entries.push(entry),
        }
    }
}
