//! The values of a plan before anyone knows what they mean, each with its place.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostic::{Place, Span};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
    /// The text of a `--set` argument's scalar: `17` is an integer where one is wanted and text where text is.
    pub(crate) bare: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    /// The digits as written, without underscores, and the number where it is one that fits.
    Integer(String, Option<i128>),
    Float(String, f64),
    Boolean(bool),
    Datetime,
    List(Vec<Node>),
    Table(Table),
    /// Something that is no TOML, which was said already.
    Broken,
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
    /// What sort of value it is, with its article.
    pub(crate) fn sort(&self) -> &'static str {
        match &self.value {
            Value::String(_) => "a string",
            Value::Integer(..) => "an integer",
            Value::Float(..) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Datetime => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Broken => "nothing",
        }
    }

    /// Its text, if it is text or may be taken as such.
    pub(crate) fn text(&self) -> Option<&str> {
        match (&self.value, &self.bare) {
            (Value::String(text), _) => Some(text),
            (_, Some(bare)) => Some(bare),
            _ => None,
        }
    }
}

impl Table {
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// Takes an entry out.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }
}

/// Makes tables and nodes of what the TOML parser made.
pub(crate) struct Builder<'a> {
    /// Turns a range of the parsed text into a place.
    pub(crate) place: &'a dyn Fn(std::ops::Range<usize>) -> Place,
    /// Where the text is no TOML: values that touch these are broken.
    pub(crate) broken: &'a [Span],
}

impl Builder<'_> {
    pub(crate) fn table(&self, table: &DeTable<'_>) -> Table {
        let mut entries: Vec<_> = table
            .iter()
            .filter(|(key, _)| !self.is_broken(key.span()))
            .map(|(key, value)| (key.span().start, self.entry(key, value)))
            .collect();
        // The parser sorts keys by name; people read in the order of the file.
        entries.sort_by_key(|(start, _)| *start);
        Table {
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }

    fn entry(&self, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) -> Entry {
        Entry {
            key: key.get_ref().to_string(),
            key_place: (self.place)(key.span()),
            node: self.node(value),
        }
    }

    pub(crate) fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let sort = match value.get_ref() {
            DeValue::Array(list) => {
                Value::List(list.iter().map(|value| self.node(value)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
            _ if self.is_broken(value.span()) => Value::Broken,
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(integer) => Value::Integer(
                integer.to_string(),
                i128::from_str_radix(integer.as_str(), integer.radix()).ok(),
            ),
            DeValue::Float(float) => Value::Float(
                float.as_str().to_owned(),
                float.as_str().parse().unwrap_or(f64::NAN),
            ),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(_) => Value::Datetime,
        };
        Node {
            value: sort,
            place: (self.place)(value.span()),
            bare: None,
        }
    }

    fn is_broken(&self, range: std::ops::Range<usize>) -> bool {
        self.broken
            .iter()
            .any(|span| span.start <= range.end && range.start <= span.end)
    }
}
