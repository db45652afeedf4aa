//! Reads the statements of a test, with their parameters.

use std::ops::RangeInclusive;

use super::expression::{Computed, PARAMETERS, Scope, Symbol, between};
use super::names::{TABLE, VALUES, check_name, report_unused};
use super::parser::{self, ExpressionError};
use super::placeholder::{Segment, segments};
use crate::reading::context::{Context, Section};
use crate::reading::value_kinds::{Flag, Optional};
use crate::spec::sysbench::{Block, Effect, ExpectedRows, Piece, Slot, TestStatement};
use crate::text::diagnostic::{Diagnostic, Place, Span};
use crate::text::tree::{Entry, Node, Value};
use crate::text::wording::{choices, code, quoted};

const REPEAT: RangeInclusive<i64> = 1..=100_000;
const WEIGHT: RangeInclusive<i64> = 0..=1_000_000;

/// Writes text as in the plan: integers without quotes.
fn shown(node: &Node, text: &str) -> String {
    match node.value {
        Value::Integer(_) => text.to_owned(),
        _ => quoted(text),
    }
}

const EXPRESSION: &str = "an integer or an expression";

/// The text of a statement, or of its rows; `None` if it has errors.
struct Sql {
    text: Option<String>,
    key_place: Place,
    node: Node,
}

/// A constant of a statement; its value is `None` if it has errors.
struct Number {
    value: Option<u32>,
    place: Place,
}

/// Reads the contents of a test, in order.
pub(super) struct Reader<'c, 'x> {
    pub(super) cx: &'c mut Context<'x>,
    pub(super) scope: Scope,
    /// Statements are prepared by default.
    pub(super) prepared: bool,
}

impl Reader<'_, '_> {
    /// Reads an expression with `read`, and adds its text to the resolved values.
    fn computed<T>(
        &mut self,
        path: &str,
        node: &Node,
        expected: &str,
        read: impl FnOnce(&str, &mut Scope) -> Result<T, ExpressionError>,
    ) -> Option<T> {
        let text = match &node.value {
            Value::Integer(digits) => digits,
            _ => self.cx.text(path, node, expected, "")?,
        };

        self.cx.resolve(path, shown(node, text), node.place);

        match read(text, &mut self.scope) {
            Ok(read) => Some(read),
            Err(error) => {
                self.report(*error, node, 0, path);
                None
            }
        }
    }

    /// Reports an error in a node's text. The error's place is relative to byte `lead` of the text;
    /// `context` names the text.
    fn report(&mut self, mut error: Diagnostic, node: &Node, lead: usize, context: &str) {
        if let Place::File(Span { start, end }) = error.place {
            error.place = self.cx.within(node, lead + start, lead + end);
        }
        error.message = format!("{} in {}", error.message, code(context));
        self.cx.diagnostics.push(error);
    }

    /// Reads a constant and its place, if the table has the key.
    fn number(
        &mut self,
        section: &mut Section,
        key: &str,
        allowed: &RangeInclusive<i64>,
    ) -> Option<Number> {
        let node = section.take(key)?.node;
        let value = self.computed(&section.name_of(key), &node, EXPRESSION, |text, scope| {
            parser::count(text, scope, allowed)
        });
        Some(Number { value, place: node.place })
    }

    /// Reads the parameters of a block, and returns their names and places.
    pub(super) fn parameters(
        &mut self,
        section: &mut Section,
        block: &mut Block,
        slot: fn(usize) -> Slot,
    ) -> Vec<(String, Place)> {
        let path = section.name_of("parameters");
        let table = self.cx.table(section, "parameters");
        let mut names = Vec::new();
        for entry in table.entries {
            let (name, place) = (entry.key, entry.key_place);
            let is_known = self.scope.find(&name).is_some();

            if !check_name(self.cx, &name, place, false, is_known) {
                continue;
            }

            let key = format!("{path}.{name}");
            let symbol = self.computed(&key, &entry.node, EXPRESSION, |text, scope| {
                parser::draw(text, scope, block, slot)
            });
            self.scope.named.push((name.clone(), symbol.unwrap_or(Symbol::Unknown)));
            names.push((name, place));
        }
        names
    }

    /// Reads a statement, and the place of its weight.
    pub(super) fn statement(
        &mut self,
        path: &str,
        node: Node,
    ) -> Option<(TestStatement, Option<Place>)> {
        let errors = self.cx.errors();
        let section = &mut Section::of(self.cx, path, node)?;

        let sql = self.sql(section, "sql");
        if sql.is_none() {
            self.report_no_sql(path, section.place);
        }

        let values = self.sql(section, "values");
        let count = self.number(section, "count", &PARAMETERS);
        self.check_rows_to_insert(path, values.as_ref(), count.as_ref());

        let weight = self.number(section, "weight", &WEIGHT);
        let repeat = self.repeat(section);
        let as_the_workload = Optional(Flag, "(as the workload)");
        let prepared = self.cx.value(section, "prepared", &as_the_workload, None);

        let shared = self.scope.named.len();
        let mut own = Block::default();
        let names = self.parameters(section, &mut own, Slot::Own);
        let row = values.as_ref().map(|values| self.row(values));

        // Each row of `values` draws its own parameters, so the rest of the statement cannot use
        // them.
        let hidden = match values {
            Some(_) => self.scope.named.split_off(shared),
            None => Vec::new(),
        };
        let rows = match section.take("rows") {
            Some(entry) => self.rows(&section.name_of("rows"), entry.node),
            None => None,
        };
        section.finish(self.cx);

        let sql = sql?;
        let text = self.pieces(&sql, &hidden, row);
        let count = count.and_then(|count| count.value).unwrap_or(1);
        self.check_parameter_count(path, &sql, text.as_deref().unwrap_or_default(), count);
        if self.cx.errors() == errors {
            let names = names.iter().map(|(name, place)| (name.as_str(), *place));
            report_unused(self.cx, path, &self.scope.used, names);
        }
        self.forget(&names, shared);

        let statement = TestStatement {
            text: text?,
            weight: weight.as_ref().map(|weight| weight.value.unwrap_or(1)),
            repeat,
            prepared: prepared.unwrap_or(self.prepared),
            rows,
            effect: Effect::of(&sql.text?),
            count,
            own,
        };
        Some((statement, weight.map(|weight| weight.place)))
    }

    /// Takes the number of times that an event executes a statement.
    fn repeat(&mut self, section: &mut Section) -> u32 {
        let Some(repeat) = self.number(section, "repeat", &REPEAT) else {
            self.cx.resolve(section.name_of("repeat"), "1".to_owned(), Place::Nowhere);
            return 1;
        };
        repeat.value.unwrap_or(1)
    }

    fn report_no_sql(&mut self, path: &str, place: Place) {
        let message = format!("`{path}.sql` is missing");
        self.cx
            .error("plan::missing-key", place, message)
            .label("expected the statement's text")
            .help("add `sql = \"SELECT c FROM {table} WHERE id = {id}\"`");
    }

    /// Returns the pieces of one row of `values`, after the comma that separates it from the row
    /// before.
    fn row(&mut self, values: &Sql) -> Vec<Piece> {
        let mut row = vec![Piece::Text(", ".to_owned())];
        row.extend(self.pieces(values, &[], None).unwrap_or_default());
        row
    }

    /// Reports a statement that binds more parameters than engines accept.
    fn check_parameter_count(&mut self, path: &str, sql: &Sql, pieces: &[Piece], count: u32) {
        let bound: i64 = pieces.iter().map(|piece| piece.bound(count)).sum();
        if bound > *PARAMETERS.end() {
            let message = format!("{} has {bound} parameters", code(path));
            self.cx
                .error("plan::bad-test", sql.node.place, message)
                .label(format!("at most {} are allowed", PARAMETERS.end()));
        }
    }

    /// Removes a statement's own parameters from the scope, of which the first `shared` are those
    /// of the whole test.
    fn forget(&mut self, own: &[(String, Place)], shared: usize) {
        self.scope.named.truncate(shared);
        self.scope.used.retain(|used| own.iter().all(|(name, _)| name != used));
    }

    /// Reports a statement that has only one of `values` and `count`.
    fn check_rows_to_insert(&mut self, path: &str, values: Option<&Sql>, count: Option<&Number>) {
        match (values, count) {
            (Some(values), None) => {
                self.report_without(path, ["values", "count"], values.key_place);
            }
            (None, Some(count)) => self.report_without(path, ["count", "values"], count.place),
            _ => {}
        }
    }

    fn report_without(&mut self, path: &str, [key, other]: [&str; 2], place: Place) {
        let message = format!("`{path}` has `{key}` but no `{other}`");
        self.cx
            .error("plan::missing-key", place, message)
            .label(format!("`{other}` is missing"))
            .help(
                "`values` is the text of one row, and `count` the number of rows that replace `{values}`",
            );
    }

    /// Takes the text of a statement or of its rows, and adds it to the resolved values.
    fn sql(&mut self, section: &mut Section, key: &str) -> Option<Sql> {
        let path = section.name_of(key);
        let Entry { key_place, node, .. } = section.take(key)?;
        let Some(written) = self.cx.text(&path, &node, "a string", "") else {
            return Some(Sql { text: None, key_place, node });
        };

        let text = written.trim().to_owned();
        // SQL may have several lines.
        let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        let error = if text.is_empty() {
            Some(("is empty", "expected SQL"))
        } else if text.contains(is_control) {
            Some(("holds a control character", "expected text without it"))
        } else {
            None
        };
        if let Some((what, label)) = error {
            let message = format!("{} {what}", code(&path));
            self.cx.error("plan::bad-text", node.place, message).label(label);
            return Some(Sql { text: None, key_place, node });
        }

        self.cx.resolve(path, quoted(&text), node.place);
        Some(Sql { text: Some(text), key_place, node })
    }

    /// Reads `rows = "range"` or `rows = { least = 0, most = 1 }`.
    fn rows(&mut self, path: &str, node: Node) -> Option<ExpectedRows> {
        let place = node.place;
        let (least, most) = if matches!(node.value, Value::Table(_)) {
            let mut section = Section::of(self.cx, path, node)?;
            let least = self.end_of_rows(&mut section, "least");
            let most = self.end_of_rows(&mut section, "most");
            section.finish(self.cx);
            (least?, most?)
        } else {
            let expected = "an integer, an expression, or a table of `least` and `most`";
            let rows = self.computed(path, &node, expected, parser::integer)?;
            (rows.clone(), rows)
        };

        if between(least.bounds, most.bounds).is_none() {
            let message = format!(
                "`least` of {} is greater than `most`: `{}` and `{}`",
                code(path),
                least.bounds.min,
                most.bounds.max
            );
            self.cx.error("plan::bad-test", place, message).label("`least` is always above `most`");
        }

        Some(ExpectedRows {
            least: least.expression,
            most: most.expression,
            answered: most.bounds.min.max(0).cast_unsigned(),
        })
    }

    /// Takes one end of a range of rows.
    fn end_of_rows(&mut self, section: &mut Section, key: &str) -> Option<Computed> {
        let path = section.name_of(key);
        let Some(entry) = section.take(key) else {
            let message = format!("`{}` has no `{key}`", section.path());
            self.cx
                .error("plan::missing-key", section.place, message)
                .label(format!("`{key}` is missing"))
                .help("write `rows = { least = 0, most = 1 }`, or one number");
            return None;
        };
        self.computed(&path, &entry.node, EXPRESSION, parser::integer)
    }

    /// Splits a statement's text into pieces, and reports unknown placeholders. Only `row`, the
    /// text of `values`, may use the names in `hidden`.
    fn pieces(
        &mut self,
        sql: &Sql,
        hidden: &[(String, Symbol)],
        row: Option<Vec<Piece>>,
    ) -> Option<Vec<Piece>> {
        let (node, sql) = (&sql.node, sql.text.as_ref()?);

        // The length of the whitespace that was trimmed at the start.
        let lead = node.text().map_or(0, |text| text.len() - text.trim_start().len());
        let segments = match segments(sql) {
            Ok(segments) => segments,
            Err(error) => {
                self.report(*error, node, lead, sql);
                return None;
            }
        };

        let has_values =
            segments.iter().any(|segment| matches!(segment, Segment::Name { name: VALUES, .. }));
        if row.is_some() && !has_values {
            let message = format!("{} does not say where its rows go", code(sql));
            self.cx
                .error("plan::bad-sql", node.place, message)
                .label("expected `{values}`")
                .help("write `INSERT INTO {table} (k) VALUES {values}`");
        }

        let mut pieces = Vec::new();
        for segment in segments {
            let (name, span) = match segment {
                Segment::Text(text) => {
                    pieces.push(Piece::Text(text));
                    continue;
                }
                Segment::Name { name, span } => (name, span),
            };

            match self.piece(name, row.as_deref()) {
                Some(piece) => {
                    pieces.push(piece);
                    self.scope.mark_used(name);
                }
                // Its definition has an error of its own.
                None if matches!(self.scope.find(name), Some(Symbol::Unknown)) => {}
                None => {
                    let place = self.cx.within(node, lead + span.start, lead + span.end);
                    self.report_unknown(name, place, sql, hidden);
                }
            }
        }
        Some(pieces)
    }

    /// Returns what replaces a placeholder; `None` if its name is unknown, or its definition has an
    /// error. `row` has the pieces of `values`.
    fn piece(&self, name: &str, row: Option<&[Piece]>) -> Option<Piece> {
        if name == TABLE {
            return Some(Piece::Table);
        }
        if let Some(row) = row.filter(|_| name == VALUES) {
            return Some(Piece::Rows(row.to_vec()));
        }

        match self.scope.find(name)? {
            Symbol::Argument(value) => Some(Piece::Text(value.to_string())),
            Symbol::Integer { slot, bounds, .. } => {
                Some(Piece::Integers { first: *slot, count: 1, is_wide: bounds.is_wide() })
            }
            Symbol::List(first, count, bounds) => {
                Some(Piece::Integers { first: *first, count: *count, is_wide: bounds.is_wide() })
            }
            Symbol::Text(slot, is_pad) => Some(Piece::Drawn { slot: *slot, is_pad: *is_pad }),
            Symbol::Variable(_) | Symbol::Unknown => None,
        }
    }

    fn report_unknown(&mut self, name: &str, place: Place, sql: &str, hidden: &[(String, Symbol)]) {
        let mut known = vec![TABLE];
        for (defined, symbol) in &self.scope.named {
            if !matches!(symbol, Symbol::Variable(_)) {
                known.push(defined);
            }
        }

        let (label, help) = if hidden.iter().any(|(hidden, _)| hidden == name) {
            (
                "drawn for each row of `values`",
                "use it in `values`, or define it in the test's `parameters`".to_owned(),
            )
        } else if name == VALUES {
            (
                "the statement has no rows",
                "add `values`, the text of one row, and `count`, the number of rows".to_owned(),
            )
        } else {
            ("not defined", choices(name, "defined names", &known))
        };

        let message = format!("unknown parameter `{{{name}}}` in {}", code(sql));
        self.cx.error("plan::unknown-parameter", place, message).label(label).help(help);
    }
}

impl Piece {
    /// Returns the number of values that it binds, in a statement with `rows` rows.
    fn bound(&self, rows: u32) -> i64 {
        match self {
            Self::Text(_) | Self::Table => 0,
            Self::Integers { count, .. } => i64::try_from(*count).unwrap_or(i64::MAX),
            Self::Drawn { .. } => 1,
            Self::Rows(row) => {
                let of_row: i64 = row.iter().map(|piece| piece.bound(1)).sum();
                of_row.saturating_mul(rows.into())
            }
        }
    }
}
