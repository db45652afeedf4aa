//! Typed access to the tree: takes values out, says what is wrong with them, notes each with its origin.

use crate::diagnostic::{Diagnostic, Place, Span, line_starts, position_among};
use crate::spec::{Origin, Resolved};
use crate::tree::{Entry, Node, Table, Value};
use crate::wording::{code, did_you_mean, list};

/// What is collected while a plan is read.
pub(crate) struct Context<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) resolved: Vec<Resolved>,
}

/// A value, where it was given, and whether it is what was meant: after an error it is the default, so that reading
/// goes on, but nothing may be concluded from it.
#[derive(Clone, Debug)]
pub(crate) struct Field<T> {
    pub(crate) value: T,
    /// [`Place::Nowhere`] for a default.
    pub(crate) place: Place,
    pub(crate) trusted: bool,
}

impl<T> Field<T> {
    /// A value that nobody gave.
    pub(crate) fn default_of(value: T) -> Self {
        Self {
            value,
            place: Place::Nowhere,
            trusted: true,
        }
    }
}

/// Why a value could not be read: what to say; nothing when it is said already.
pub(crate) struct Fault(pub(crate) Vec<Diagnostic>);

impl Fault {
    pub(crate) const SAID: Self = Self(Vec::new());
}

impl From<Diagnostic> for Fault {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

/// A kind of value: how it is read and how it is written.
pub(crate) trait Kind {
    type Value;

    /// Reads the value of the key `name`.
    fn read(&self, name: &str, node: &Node) -> Result<Self::Value, Fault>;

    /// Writes it as a plan does.
    fn show(&self, value: &Self::Value) -> String;

    /// The way out for a list that has a value twice.
    fn help_for_twice(&self) -> Option<String> {
        None
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            line_starts: line_starts(text),
            diagnostics: Vec::new(),
            resolved: Vec::new(),
        }
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Notes a value for people.
    pub(crate) fn resolve(&mut self, key: impl Into<String>, value: String, place: Place) {
        self.resolved.push(Resolved {
            key: key.into(),
            value,
            origin: self.origin(place),
            place,
        });
    }

    pub(crate) fn origin(&self, place: Place) -> Origin {
        match place {
            Place::File(span) => {
                let (line, column) = position_among(self.text, &self.line_starts, span.start);
                Origin::File { line, column }
            }
            Place::Set { .. } => Origin::Set,
            Place::Nowhere => Origin::Default,
        }
    }

    /// The place of the bytes `start..end` of a node's text; of all of it where the plan writes the text otherwise.
    pub(crate) fn within(&self, node: &Node, start: usize, end: usize) -> Place {
        let Some(text) = node.text() else {
            return node.place;
        };
        let shifted = |span: Span, by: usize| Span {
            start: span.start + by + start,
            end: span.start + by + end,
        };
        match node.place {
            Place::File(span) => {
                let written = self.text.get(span.start..span.end).unwrap_or_default();
                // After three quotes a newline may follow that is not part of the text.
                let quotes = ["\"\"\"\n", "'''\n", "\"\"\"", "'''", "\"", "'"];
                let lead = quotes.into_iter().find(|quotes| {
                    let rest = written.strip_prefix(quotes);
                    rest.and_then(|rest| rest.strip_suffix(quotes.trim_end())) == Some(text)
                });
                match lead {
                    Some(lead) => Place::File(shifted(span, lead.len())),
                    None => node.place,
                }
            }
            Place::Set { index, span } if span.end - span.start == text.len() => Place::Set {
                index,
                span: shifted(span, 0),
            },
            Place::Set { .. } | Place::Nowhere => node.place,
        }
    }

    /// Reads a node; reports what is wrong with it.
    pub(crate) fn read<K: Kind>(&mut self, name: &str, node: &Node, kind: &K) -> Option<K::Value> {
        match kind.read(name, node) {
            Ok(value) => Some(value),
            Err(Fault(diagnostics)) => {
                self.diagnostics.extend(diagnostics);
                None
            }
        }
    }

    /// Takes the value of a key, or its default, and notes it.
    pub(crate) fn field<K: Kind>(
        &mut self,
        section: &mut Section,
        key: &str,
        kind: &K,
        default: K::Value,
    ) -> Field<K::Value> {
        let name = section.name_of(key);
        let field = match section.take(key) {
            None => Field::default_of(default),
            Some(entry) => match self.read(&name, &entry.node, kind) {
                Some(value) => Field {
                    value,
                    place: entry.node.place,
                    trusted: true,
                },
                None => Field {
                    value: default,
                    place: entry.node.place,
                    trusted: false,
                },
            },
        };
        self.resolve(name, kind.show(&field.value), field.place);
        field
    }

    /// Takes the value of a key alone, which no other key's depends on.
    pub(crate) fn value<K: Kind>(
        &mut self,
        section: &mut Section,
        key: &str,
        kind: &K,
        default: K::Value,
    ) -> K::Value {
        self.field(section, key, kind, default).value
    }

    /// Takes the values of two keys, of which the first may not be above the second.
    pub(crate) fn pair<K: Kind>(
        &mut self,
        section: &mut Section,
        [least_key, most_key]: [&str; 2],
        kind: &K,
        [least, most]: [K::Value; 2],
    ) -> (K::Value, K::Value)
    where
        K::Value: PartialOrd,
    {
        let least = self.field(section, least_key, kind, least);
        let most = self.field(section, most_key, kind, most);
        if least.trusted && most.trusted && least.value > most.value {
            // At the one that was given: the other may be a default.
            let (here, there, label) = if least.place == Place::Nowhere {
                (most.place, least.place, "below the least")
            } else {
                (least.place, most.place, "above the most")
            };
            let message = format!(
                "`{}` is above `{}`: {} and {}",
                section.name_of(least_key),
                section.name_of(most_key),
                code(kind.show(&least.value).trim_matches('"')),
                code(kind.show(&most.value).trim_matches('"'))
            );
            let diagnostic = Diagnostic::error("plan::conflict", here, message)
                .label(label)
                .also(there, "the other")
                .help(format!(
                    "give both, the least first: `{least_key}`, `{most_key}`"
                ));
            self.report(diagnostic);
        }
        (least.value, most.value)
    }

    /// A value of a step that follows from one of the workload, and then has its origin.
    pub(crate) fn inherited<K: Kind, T>(
        &mut self,
        section: &mut Section,
        key: &str,
        kind: &K,
        from: &Field<T>,
        value: K::Value,
    ) -> Field<K::Value> {
        let mut field = self.field(section, key, kind, value);
        if field.place == Place::Nowhere {
            field.place = from.place;
            field.trusted = from.trusted;
            let origin = self.origin(from.place);
            if let Some(resolved) = self.resolved.last_mut() {
                (resolved.origin, resolved.place) = (origin, from.place);
            }
        }
        field
    }
}

/// A table whose keys are known.
pub(crate) struct Section {
    path: String,
    table: Table,
    /// Where its header is.
    pub(crate) place: Place,
}

impl Section {
    /// Takes a table; reports keys that it can't have. `path` is its dotted name, empty for the whole plan.
    pub(crate) fn new(
        cx: &mut Context<'_>,
        path: &str,
        table: Table,
        place: Place,
        keys: &[&str],
    ) -> Self {
        let (known, unknown): (Vec<Entry>, Vec<Entry>) = table
            .entries
            .into_iter()
            .partition(|entry| keys.contains(&entry.key.as_str()));
        for entry in unknown {
            let message = match path {
                "" => format!("unknown key {} at the top of the plan", code(&entry.key)),
                _ => format!(
                    "unknown key {} in {}",
                    code(&entry.key),
                    code(&format!("[{path}]"))
                ),
            };
            let label = if path.is_empty() {
                "not a key".into()
            } else {
                format!("not a key of `[{path}]`")
            };
            let help = if keys.is_empty() {
                "there are no keys here".to_owned()
            } else {
                format!(
                    "{}keys here: {}",
                    did_you_mean(&entry.key, keys),
                    list(keys)
                )
            };
            cx.report(
                Diagnostic::error("plan::unknown-key", entry.key_place, message)
                    .label(label)
                    .help(help),
            );
        }
        Self {
            path: path.to_owned(),
            table: Table { entries: known },
            place,
        }
    }

    /// As [`Section::new`], from the node that should be the table. `None` when it isn't.
    pub(crate) fn of(cx: &mut Context<'_>, path: &str, node: Node, keys: &[&str]) -> Option<Self> {
        let place = node.place;
        let table = table_of(cx, path, node)?;
        Some(Self::new(cx, path, table, place, keys))
    }

    /// A table that nobody wrote.
    pub(crate) fn empty(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            table: Table::default(),
            place: Place::Nowhere,
        }
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        self.table.take(key)
    }

    pub(crate) fn name_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

/// The table that a node is; reports one that is none.
pub(crate) fn table_of(cx: &mut Context<'_>, path: &str, node: Node) -> Option<Table> {
    match node.value {
        Value::Table(table) => Some(table),
        Value::Broken => None,
        _ => {
            cx.report(
                wrong_type(path, &node, "a table")
                    .help(format!("write {}", code(&format!("[{path}]")))),
            );
            None
        }
    }
}

/// The text that a node is; `wrong` says what is wrong with one that is none.
pub(crate) fn text_of(node: &Node, wrong: impl FnOnce() -> Diagnostic) -> Result<&str, Fault> {
    match (node.text(), &node.value) {
        (Some(text), _) => Ok(text),
        (None, Value::Broken) => Err(Fault::SAID),
        (None, _) => Err(wrong().into()),
    }
}

pub(crate) fn wrong_type(name: &str, node: &Node, wanted: &str) -> Diagnostic {
    Diagnostic::error(
        "plan::wrong-type",
        node.place,
        format!("{} is {}, not {wanted}", code(name), node.sort()),
    )
    .label(format!("expected {wanted}"))
}
