//! Typed access to the tree: takes values out, reports what is wrong with them, and notes each with
//! its origin.

use serde_json::Value as Json;

use crate::spec::Resolved;
use crate::text::diagnostic::{Diagnostic, Place, Severity};
use crate::text::tree::{Entry, Node, Table, Value};
use crate::text::wording::{choices, code, nearest};

/// The diagnostics and values that are collected while a plan is read.
pub(crate) struct Context<'a> {
    text: &'a str,
    /// The first byte of each line of the text.
    line_starts: Vec<usize>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) resolved: Vec<Resolved>,
    /// Each key that is read and its JSON schema, while the schema of plans is made.
    pub(crate) schemas: Option<Vec<(String, Option<Json>)>>,
    /// Returns the table of a plan in which a key belongs. A function, since only the schema of
    /// whole plans knows, and the schema is made by reading plans.
    pub(crate) table_with: fn(&str) -> Option<String>,
}

/// A value, its place, and whether it is what the plan says: after an error it is the default, so
/// that reading can continue, but no check may rely on it.
#[derive(Clone, Debug)]
pub(crate) struct Field<T> {
    pub(crate) value: T,
    /// [`Place::Nowhere`] for a default.
    pub(crate) place: Place,
    pub(crate) trusted: bool,
}

/// A kind of value: how it is read and written.
pub(crate) trait ValueKind {
    type Value;

    /// Reads the value of the key `name`; reports what is wrong with it.
    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Self::Value>;

    /// Formats the value as plans write it.
    fn show(&self, value: &Self::Value) -> String;

    fn schema(&self) -> Json;

    /// Returns the help for a list that has `value` twice.
    fn help_for_duplicate(&self, _value: &Self::Value) -> String {
        "remove one of them".to_owned()
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
        let line_starts = std::iter::once(0).chain(after_newlines).collect();

        Self {
            text,
            line_starts,
            diagnostics: Vec::new(),
            resolved: Vec::new(),
            schemas: None,
            table_with: |_| None,
        }
    }

    /// Reports an error; the caller can add a label, other places and help.
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        place: Place,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let diagnostic = Diagnostic::error(code, place, message);
        self.diagnostics.push_mut(diagnostic)
    }

    /// Reports a warning, in the same way as [`Context::error`].
    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        place: Place,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let warning = self.error(code, place, message);
        warning.severity = Severity::Warning;
        warning
    }

    pub(crate) fn wrong_type(
        &mut self,
        name: &str,
        node: &Node,
        expected: &str,
    ) -> &mut Diagnostic {
        let message = format!("{} is {}, not {expected}", code(name), node.type_name());
        self.error("plan::wrong-type", node.place, message).label(format!("expected {expected}"))
    }

    /// Returns the text of a node; reports a node that is not text.
    pub(crate) fn text<'n>(
        &mut self,
        name: &str,
        node: &'n Node,
        expected: &str,
        help: &str,
    ) -> Option<&'n str> {
        let text = node.text();
        if text.is_none() {
            self.wrong_type(name, node, expected).help(help);
        }
        text
    }

    /// Returns the number of errors so far.
    pub(crate) fn errors(&self) -> usize {
        let severities = self.diagnostics.iter().map(|diagnostic| diagnostic.severity);
        severities.filter(|severity| *severity == Severity::Error).count()
    }

    /// Notes a value for listings.
    pub(crate) fn resolve(&mut self, key: impl Into<String>, value: String, place: Place) {
        self.resolve_at(self.resolved.len(), key, value, place);
    }

    /// Notes a value at an index among the others.
    pub(crate) fn resolve_at(
        &mut self,
        at: usize,
        key: impl Into<String>,
        value: String,
        place: Place,
    ) {
        let value = Resolved { key: key.into(), value, origin: self.origin(place), place };
        self.resolved.insert(at, value);
    }

    /// Names the origin of a value at `place`.
    fn origin(&self, place: Place) -> String {
        match place {
            Place::File(span) => {
                let line = self.line_starts.partition_point(|&start| start <= span.start);
                let line_start = self.line_starts[line - 1];

                let before = &self.text[line_start..self.text.floor_char_boundary(span.start)];
                format!("plan:{line}:{}", before.chars().count() + 1)
            }
            Place::Set { .. } => "--set".to_owned(),
            Place::Nowhere => "default".to_owned(),
        }
    }

    /// Gives the last noted value the origin and the place of the value that it follows from.
    pub(crate) fn follows_from(&mut self, place: Place) {
        let origin = self.origin(place);
        if let Some(resolved) = self.resolved.last_mut() {
            (resolved.origin, resolved.place) = (origin, place);
        }
    }

    /// Returns the place of the bytes `start..end` of a node's text, or of the whole node if the
    /// plan escapes characters of the text.
    pub(crate) fn within(&self, node: &Node, start: usize, end: usize) -> Place {
        let (text, place) = (node.text().unwrap_or_default(), node.place);

        // The length of the quotes before the text.
        let lead = match place {
            Place::File(span) => {
                let written = self.text.get(span.start..span.end).unwrap_or_default();
                written.find(text)
            }
            Place::Set { span, .. } if span.end - span.start == text.len() => Some(0),
            Place::Set { .. } | Place::Nowhere => None,
        };

        match lead {
            Some(lead) => place.part(lead + start, lead + end),
            None => place,
        }
    }

    /// Takes a table; returns an empty one if the plan has none.
    pub(crate) fn table(&mut self, section: &mut Section, key: &str) -> Table {
        let path = section.name_of(key);
        match section.take(key) {
            Some(entry) => table_of(self, &path, entry.node).unwrap_or_default(),
            None => Table::default(),
        }
    }

    /// Takes the value of a key that has no default, and notes it.
    pub(crate) fn given<K: ValueKind>(
        &mut self,
        section: &mut Section,
        key: &str,
        kind: &K,
    ) -> Option<K::Value> {
        let name = section.name_of(key);
        self.note_schema(&name, kind, None);
        let node = section.take(key)?.node;
        let value = kind.read(self, &name, &node)?;
        self.resolve(name, kind.show(&value), node.place);
        Some(value)
    }

    /// Takes the value of a key, or its default, and notes it.
    pub(crate) fn field<K: ValueKind>(
        &mut self,
        section: &mut Section,
        key: &str,
        kind: &K,
        default: K::Value,
    ) -> Field<K::Value> {
        let name = section.name_of(key);
        self.note_schema(&name, kind, Some(&default));

        let field = match section.take(key).map(|entry| entry.node) {
            None => Field { value: default, place: Place::Nowhere, trusted: true },
            Some(node) => {
                let read = kind.read(self, &name, &node);
                let trusted = read.is_some();
                Field { value: read.unwrap_or(default), place: node.place, trusted }
            }
        };

        self.resolve(name, kind.show(&field.value), field.place);
        field
    }

    /// Notes the schema of a key, if schemas are wanted.
    pub(crate) fn note_schema<K: ValueKind>(
        &mut self,
        name: &str,
        kind: &K,
        default: Option<&K::Value>,
    ) {
        let Some(schemas) = &mut self.schemas else {
            return;
        };

        let mut schema = kind.schema();
        // The remark for an absent value is not JSON.
        let shown = default.map(|value| kind.show(value));
        if let Some(default) = shown.and_then(|shown| serde_json::from_str(&shown).ok()) {
            schema["default"] = default;
        }
        schemas.push((name.to_owned(), Some(schema)));
    }

    /// Takes the value of a key that no check of other keys needs.
    pub(crate) fn value<K: ValueKind>(
        &mut self,
        section: &mut Section,
        key: &str,
        kind: &K,
        default: K::Value,
    ) -> K::Value {
        self.field(section, key, kind, default).value
    }

    /// Takes the values of two keys; reports a first value that is greater than the second.
    pub(crate) fn pair<K: ValueKind>(
        &mut self,
        section: &mut Section,
        [min_key, max_key]: [&str; 2],
        kind: &K,
        [min, max]: [K::Value; 2],
    ) -> (K::Value, K::Value)
    where
        K::Value: PartialOrd,
    {
        let least = self.field(section, min_key, kind, min);
        let most = self.field(section, max_key, kind, max);

        if least.trusted && most.trusted && least.value > most.value {
            let name = section.name_of(min_key);
            let min =
                EndOfRange { key: min_key, shown: kind.show(&least.value), place: least.place };
            let max = EndOfRange { key: max_key, shown: kind.show(&most.value), place: most.place };
            self.report_empty_range(&name, &min, &max);
        }
        (least.value, most.value)
    }

    /// Reports two values of which the first, with the dotted name `name`, is greater than the
    /// second.
    fn report_empty_range(&mut self, name: &str, min: &EndOfRange<'_>, max: &EndOfRange<'_>) {
        let (min_key, max_key) = (min.key, max.key);
        let min_shown = code(min.shown.trim_matches('"'));
        let max_shown = code(max.shown.trim_matches('"'));
        let message = format!("`{name}` is greater than `{max_key}`: {min_shown} and {max_shown}");

        // A default has no place: the error is then about the other value.
        if min.place == Place::Nowhere {
            self.error("plan::conflict", max.place, message)
                .label(format!("less than the default of `{min_key}`, {min_shown}"))
                .help(format!("set `{min_key}` too, to at most {max_shown}"));
        } else if max.place == Place::Nowhere {
            self.error("plan::conflict", min.place, message)
                .label(format!("greater than the default of `{max_key}`, {max_shown}"))
                .help(format!("set `{max_key}` too, to at least {min_shown}"));
        } else {
            self.error("plan::conflict", min.place, message)
                .label(format!("greater than `{max_key}`"))
                .also(max.place, "the maximum")
                .help(format!("lower `{min_key}`, or raise `{max_key}`"));
        }
    }

    /// Takes a value of a step whose default follows from a value of the workload, and then has
    /// that one's origin.
    pub(crate) fn inherited<K: ValueKind, T>(
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
            self.follows_from(from.place);
        }
        field
    }
}

/// One of the two values that bound a range.
struct EndOfRange<'a> {
    key: &'a str,
    shown: String,
    place: Place,
}

/// A table whose keys are read one by one.
pub(crate) struct Section {
    path: String,
    table: Table,
    /// The keys that it may have: those that were read.
    keys: Vec<String>,
    /// The place of its header.
    pub(crate) place: Place,
}

impl Section {
    /// Wraps a table; `path` is its dotted name, empty for the whole plan.
    pub(crate) fn new(path: &str, table: Table, place: Place) -> Self {
        Self { path: path.to_owned(), table, keys: Vec::new(), place }
    }

    /// Wraps the table of a node; reports a node that is not a table.
    pub(crate) fn of(cx: &mut Context<'_>, path: &str, node: Node) -> Option<Self> {
        let place = node.place;
        let table = table_of(cx, path, node)?;
        Some(Self::new(path, table, place))
    }

    /// Removes and returns the entry of a key, which is thereby allowed.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        self.allow(key);
        self.table.take(key)
    }

    /// Allows a key that is read elsewhere.
    pub(crate) fn allow(&mut self, key: &str) {
        if !self.keys.iter().any(|known| known == key) {
            self.keys.push(key.to_owned());
        }
    }

    /// Returns the place of a key's value.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        let entry = self.table.entries.iter().find(|entry| entry.key == key);
        entry.map_or(Place::Nowhere, |entry| entry.node.place)
    }

    /// Takes the one of these keys that the table has, and finishes. Reports any further one, and
    /// calls `missing` if there is none.
    pub(crate) fn take_one(
        &mut self,
        cx: &mut Context<'_>,
        keys: &[&str],
        [label, help]: [&str; 2],
        missing: impl FnOnce(&mut Context<'_>),
    ) -> Option<Entry> {
        let mut entries: Vec<Entry> = keys.iter().filter_map(|key| self.take(key)).collect();
        entries.sort_by_key(|entry| entry.key_place);

        let errors = cx.errors();
        self.finish(cx);

        // An unknown key is probably a misspelling of one of them.
        if entries.is_empty() && cx.errors() == errors {
            missing(cx);
        }

        for other in entries.iter().skip(1) {
            let one = code(&self.name_of(&entries[0].key));
            let two = code(&self.name_of(&other.key));
            let message = format!("{one} and {two} cannot be combined");
            cx.error("plan::conflict", other.key_place, message)
                .label(label)
                .also(entries[0].key_place, "first given here")
                .help(help);
        }

        let entry = entries.pop()?;
        entries.is_empty().then_some(entry)
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the dotted name of a key.
    pub(crate) fn name_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports the keys that were not read.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(schemas) = &mut cx.schemas {
            schemas.extend(self.keys.iter().map(|key| (self.name_of(key), None)));
        }

        for entry in &self.table.entries {
            if !self.keys.contains(&entry.key) {
                self.report_unknown_key(cx, entry);
            }
        }
        // A table that finishes twice reports a key once.
        self.table.entries.retain(|entry| self.keys.contains(&entry.key));
    }

    fn report_unknown_key(&self, cx: &mut Context<'_>, entry: &Entry) {
        let key = code(&entry.key);
        let message = match self.path.as_str() {
            "" => format!("unknown key {key} at the top of the plan"),
            path => format!("unknown key {key} in `[{path}]`"),
        };
        let help = if self.keys.is_empty() {
            "this table has no keys: remove this one".to_owned()
        } else {
            choices(&entry.key, "available keys", &self.keys)
        };

        // In these tables an unknown key is more likely a name than a key of another table.
        let has_names = self.path == "config" || self.path.contains(".test.");
        let mut owner = None;
        if !has_names && nearest(&entry.key, &self.keys).is_none() {
            owner = (cx.table_with)(&entry.key);
        }

        cx.error("plan::unknown-key", entry.key_place, message)
            .label("not a key of this table")
            .help(owner.map_or(String::new(), |table| format!("{key} is a key {table}")))
            .help(help);
    }
}

/// Returns the table of a node; reports a node that is not a table.
pub(crate) fn table_of(cx: &mut Context<'_>, path: &str, node: Node) -> Option<Table> {
    match node.value {
        Value::Table(table) => Some(table),
        _ => {
            cx.wrong_type(path, &node, "a table")
                .help(format!("write it as a table: {}", code(&format!("[{path}]"))));
            None
        }
    }
}

/// Returns the tables of a list; reports a node that is not a list, and calls `missing` for an
/// empty one.
pub(crate) fn tables_of(
    cx: &mut Context<'_>,
    path: &str,
    node: Node,
    missing: impl FnOnce(&mut Context<'_>, Place),
) -> Vec<Node> {
    match node.value {
        Value::List(nodes) => {
            if nodes.is_empty() {
                missing(cx, node.place);
            }
            nodes
        }
        _ => {
            cx.wrong_type(path, &node, "a list of tables")
                .help(format!("write it with two brackets: `[[{path}]]`"));
            Vec::new()
        }
    }
}
