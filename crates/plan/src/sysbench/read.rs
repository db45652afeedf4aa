//! A test as a plan writes it: its statements with their parameters, and arguments that a step may set.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};
use words::named_enum;

use super::expression::{self, Bounds, Expression, ExpressionError, PARAMETERS, Scope, Symbol};
use super::placeholder::{Segment, parts};
use super::test::{
    Block, Effect, ExpectedRows, Group, Piece, Slot, TableChoice, Test, TestStatement,
};
use crate::diagnostic::{Diagnostic, Place, Span};
use crate::reader::{Context, Section, ValueKind, tables_of};
use crate::tree::{Entry, Node, Value};
use crate::value_kinds::{Choice, Flag, Optional};
use crate::wording::{choices, code, quoted};

/// What stands for a table's name.
const TABLE: &str = "table";
/// What stands for the rows of a statement that has several.
const VALUES: &str = "values";

const REPEAT: RangeInclusive<i64> = 1..=100_000;
const WEIGHT: RangeInclusive<i64> = 0..=1_000_000;

named_enum! {
    /// Which of the workload's times a test runs for.
    pub enum TestTime {
        /// `read-time`
        Read = "read",
        /// `write-time`
        Write = "write",
    }
}

/// What a test depends on besides its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) rows: u64,
    pub(crate) tables: u32,
    /// The most clients of any cell.
    pub(crate) clients: u32,
    /// Its statements are prepared where it does not say.
    pub(crate) prepared: bool,
}

/// An integer of a test that steps may set.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: i64,
    place: Place,
}

/// A test whose arguments are known, and that is read anew for each step that sets them.
#[derive(Clone, Debug)]
pub(crate) struct TestSource {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    /// Nothing is wrong with it as long as no step sets an argument.
    pub(crate) trusted: bool,
    path: String,
    /// Of its name.
    pub(crate) place: Place,
    node: Node,
}

/// A test, and what else its text says.
pub(crate) struct ParsedTest {
    pub(crate) test: Test,
    pub(crate) time: TestTime,
    /// The arguments that make ranges of ids.
    pub(crate) ranges: Vec<String>,
}

impl TestSource {
    /// Takes the test `name` from its table at `path`; `None` when it is no table.
    pub(crate) fn new(
        cx: &mut Context<'_>,
        path: &str,
        name: &str,
        place: Place,
        node: Node,
    ) -> Option<Self> {
        let errors = cx.errors();
        let section = &mut Section::of(cx, path, node.clone())?;
        let mut arguments: Vec<Argument> = Vec::new();
        for entry in cx.table(section, "arguments").entries {
            let (name, place) = (entry.key, entry.key_place);
            let is_known = arguments.iter().any(|it| it.name == name);
            if !name_is_good(cx, &name, place, true, is_known) {
                continue;
            }
            let key = format!("{path}.arguments.{name}");
            let value = Whole.read(cx, &key, &entry.node).unwrap_or(1);
            cx.resolve(key, value.to_string(), entry.node.place);
            arguments.push(Argument { name, value, place });
        }
        Some(Self {
            name: name.to_owned(),
            arguments,
            trusted: cx.errors() == errors,
            path: path.to_owned(),
            place,
            node,
        })
    }

    /// Reads it with its own arguments.
    pub(crate) fn read(&mut self, cx: &mut Context<'_>, setting: &Setting) {
        let values: Vec<i64> = self.arguments.iter().map(|it| it.value).collect();
        self.trusted &= self.with(cx, &values, setting).is_some();
    }

    /// Reads it with arguments in the order of its own; `None` where it can't be.
    pub(crate) fn with(
        &self,
        cx: &mut Context<'_>,
        values: &[i64],
        setting: &Setting,
    ) -> Option<ParsedTest> {
        let errors = cx.errors();
        let section = &mut Section::of(cx, &self.path, self.node.clone())?;
        let group = self.group(cx, section);
        section.take("arguments");
        let table = Choice(TableChoice::NAMES);
        let table = cx.value(section, "table", &table, TableChoice::Random);
        let transaction = cx.value(section, "transaction", &Flag, false);
        let usual = if group == Group::Write {
            TestTime::Write
        } else {
            TestTime::Read
        };
        let time = cx.value(section, "time", &Choice(TestTime::NAMES), usual);

        let arguments = self.arguments.iter().zip(values);
        let arguments = arguments.map(|(it, value)| (it.name.clone(), Symbol::Argument(*value)));
        let mut reader = Reader {
            scope: scope(setting, arguments),
            prepared: setting.prepared,
            cx,
        };
        // The number of the thread.
        let mut shared = Block {
            integers: 1,
            ..Block::default()
        };
        let defined = reader.parameters(section, &mut shared, Slot::Event);
        let statements = self.statements(&mut reader, section);
        let Scope { used, ranges, .. } = reader.scope;
        section.finish(cx);
        if cx.errors() != errors {
            return None;
        }
        let arguments = self.arguments.iter().map(|it| (it.name.as_str(), it.place));
        let defined = defined.iter().map(|(name, place)| (name.as_str(), *place));
        report_unused(cx, &self.path, &used, arguments.chain(defined));
        let test = Test {
            name: self.name.clone(),
            group,
            table,
            transaction,
            shared,
            statements,
        };
        Some(ParsedTest { test, time, ranges })
    }

    fn group(&self, cx: &mut Context<'_>, section: &mut Section) -> Group {
        if section.place_of("group") == Place::Nowhere {
            missing(cx, self.place, &section.name_of("group"))
                .label("in which group?")
                .help("add `group = \"point\"`, or `\"range-1\"`, `\"range-2\"`, `\"write\"`");
        }
        let group = cx.given(section, "group", &Choice(Group::NAMES));
        group.unwrap_or(Group::Point)
    }

    fn statements(&self, reader: &mut Reader<'_, '_>, section: &mut Section) -> Vec<TestStatement> {
        let path = section.name_of("statement");
        let none = |cx: &mut Context<'_>, place| {
            missing(cx, place, &path)
                .label("a test without statements")
                .help(format!("add one: `[[{path}]]`"));
        };
        let Some(entry) = section.take("statement") else {
            none(reader.cx, self.place);
            return Vec::new();
        };
        let nodes = tables_of(reader.cx, &path, entry.node, none);
        let mut weighted = None;
        let mut statements = Vec::new();
        for (number, node) in (1..).zip(nodes) {
            let path = format!("{path}.{number}");
            let Some((statement, place)) = reader.statement(&path, node) else {
                continue;
            };
            weighted = weighted.or(place);
            if statement.weight != Some(0) {
                statements.push(statement);
            }
        }
        if let Some(place) = weighted
            && statements.iter().all(|it| it.weight.is_none())
        {
            let message = format!("test {} has weights that are all 0", code(&self.name));
            reader
                .cx
                .error("plan::bad-test", place, message)
                .label("an event runs one of the statements with a weight");
        }
        statements
    }
}

/// The names that are known before any parameter.
fn scope(setting: &Setting, arguments: impl Iterator<Item = (String, Symbol)>) -> Scope {
    let rows = i64::try_from(setting.rows).unwrap_or(i64::MAX);
    let threads = Bounds::new(0, i64::from(setting.clients.max(1)) - 1);
    let variables = [
        ("rows", expression::integer_of(rows)),
        ("tables", expression::integer_of(setting.tables.into())),
        ("thread", (Expression::Drawn(Slot::Event(0), 0), threads)),
    ];
    let variables = variables.map(|(name, computed)| (name.to_owned(), Symbol::Variable(computed)));
    let all = variables.into_iter().chain(arguments);
    Scope {
        rows: setting.rows,
        named: all.collect(),
        used: Vec::new(),
        ranges: Vec::new(),
    }
}

fn missing<'d>(cx: &'d mut Context<'_>, place: Place, name: &str) -> &'d mut Diagnostic {
    let message = format!("{} is missing", code(name));
    cx.error("plan::missing-key", place, message)
}

/// Reports a name that no parameter can have.
fn name_is_good(
    cx: &mut Context<'_>,
    name: &str,
    place: Place,
    is_argument: bool,
    is_known: bool,
) -> bool {
    let label = if !expression::is_identifier(name) {
        "expected lower-case letters, digits and `_`"
    } else if is_argument && name.ends_with(|c: char| c.is_ascii_digit()) {
        "ends with a digit"
    } else if ["rows", "tables", "thread", TABLE, VALUES].contains(&name) {
        "has a meaning of its own"
    } else if is_argument && super::RUN_KEYS.contains(&name) {
        "a key of every step"
    } else if is_known {
        "defined already"
    } else {
        return true;
    };
    let what = if is_argument { "argument" } else { "parameter" };
    let message = format!("the {what} {} has a name that cannot be used", code(name));
    cx.error("plan::bad-name", place, message)
        .label(label)
        .help("call it otherwise: it stands in expressions, and in SQL between `{` and `}`");
    false
}

fn report_unused<'n>(
    cx: &mut Context<'_>,
    path: &str,
    used: &[String],
    names: impl Iterator<Item = (&'n str, Place)>,
) {
    for (name, place) in names.filter(|(name, _)| !used.iter().any(|used| used == name)) {
        let message = format!("{} is used nowhere in {}", code(name), code(path));
        cx.warning("plan::unused-parameter", place, message)
            .label("has no effect");
    }
}

/// Text as the plan writes it: integers without quotes.
fn shown(node: &Node, text: &str) -> String {
    match node.value {
        Value::Integer(_) => text.to_owned(),
        _ => quoted(text),
    }
}

const EXPRESSION: &str = "an integer or an expression";

/// The text of a statement, or of its rows; `None` where it is none.
struct Sql {
    text: Option<String>,
    key_place: Place,
    node: Node,
}

/// Reads what stands in a test, one thing after the other.
struct Reader<'c, 'x> {
    cx: &'c mut Context<'x>,
    scope: Scope,
    prepared: bool,
}

impl Reader<'_, '_> {
    /// Reads text with `read`, and notes it.
    fn computed<T>(
        &mut self,
        path: &str,
        node: &Node,
        wanted: &str,
        read: impl FnOnce(&str, &mut Scope) -> Result<T, ExpressionError>,
    ) -> Option<T> {
        let text = match &node.value {
            Value::Integer(digits) => digits,
            _ => self.cx.text(path, node, wanted, "")?,
        };
        self.cx.resolve(path, shown(node, text), node.place);
        match read(text, &mut self.scope) {
            Ok(read) => Some(read),
            Err(wrong) => {
                self.report(*wrong, node, 0, path);
                None
            }
        }
    }

    /// Reports what is wrong with a part of a node's text, from its byte `lead` on.
    fn report(&mut self, mut wrong: Diagnostic, node: &Node, lead: usize, of: &str) {
        if let Place::File(Span { start, end }) = wrong.place {
            wrong.place = self.cx.within(node, lead + start, lead + end);
        }
        wrong.message = format!("{} in {}", wrong.message, code(of));
        self.cx.diagnostics.push(wrong);
    }

    /// Reads a number that is known before anything is drawn, if the key is there, and its place.
    fn number(
        &mut self,
        section: &mut Section,
        key: &str,
        allowed: &RangeInclusive<i64>,
    ) -> Option<(Option<u32>, Place)> {
        let node = section.take(key)?.node;
        let read = |text: &str, scope: &mut Scope| expression::count(text, scope, allowed);
        let number = self.computed(&section.name_of(key), &node, EXPRESSION, read);
        Some((number, node.place))
    }

    /// Reads the parameters of a block, and returns their names and places.
    fn parameters(
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
            if !name_is_good(self.cx, &name, place, false, is_known) {
                continue;
            }
            let path = format!("{path}.{name}");
            let holds = self.computed(&path, &entry.node, EXPRESSION, |text, scope| {
                expression::draw(text, scope, block, slot)
            });
            let holds = holds.unwrap_or(Symbol::Unknown);
            self.scope.named.push((name.clone(), holds));
            names.push((name, place));
        }
        names
    }

    /// Reads a statement, and the place of its weight.
    fn statement(&mut self, path: &str, node: Node) -> Option<(TestStatement, Option<Place>)> {
        let errors = self.cx.errors();
        let section = &mut Section::of(self.cx, path, node)?;
        let sql = self.sql(section, "sql");
        if sql.is_none() {
            let message = format!("`{path}` has no `sql`");
            self.cx
                .error("plan::missing-key", section.place, message)
                .label("a statement without its text")
                .help("add `sql = \"SELECT c FROM {table} WHERE id = {id}\"`");
        }
        let values = self.sql(section, "values");
        let count = self.number(section, "count", &PARAMETERS);
        match (&values, &count) {
            (Some(values), None) => {
                self.report_without(path, ["values", "count"], values.key_place)
            }
            (None, Some((_, place))) => self.report_without(path, ["count", "values"], *place),
            _ => {}
        }
        let weight = self.number(section, "weight", &WEIGHT);
        let repeat = self.number(section, "repeat", &REPEAT);
        if repeat.is_none() {
            let name = section.name_of("repeat");
            self.cx.resolve(name, "1".to_owned(), Place::Nowhere);
        }
        let prepared = Optional(Flag, "(as the workload)");
        let prepared = self.cx.value(section, "prepared", &prepared, None);

        let shared = self.scope.named.len();
        let mut own = Block::default();
        let names = self.parameters(section, &mut own, Slot::Own);
        let row = values
            .as_ref()
            .and_then(|values| self.pieces(values, &[], None));
        // Each row of `values` has parameters of its own: there is none for all of them.
        let hidden = match values {
            Some(_) => self.scope.named.split_off(shared),
            None => Vec::new(),
        };
        let rows = section.take("rows");
        let rows = rows.and_then(|entry| self.rows(&section.name_of("rows"), entry.node));
        section.finish(self.cx);
        let sql = sql?;
        let comma = Piece::Text(", ".to_owned());
        let row = values.map(|_| [vec![comma], row.unwrap_or_default()].concat());
        let text = self.pieces(&sql, &hidden, row);
        let count = count.map_or(1, |(count, _)| count.unwrap_or(1));
        let bound: i64 = text.iter().flatten().map(|piece| piece.bound(count)).sum();
        if bound > *PARAMETERS.end() {
            let message = format!("{} has {bound} parameters", code(path));
            self.cx
                .error("plan::bad-test", sql.node.place, message)
                .label(format!("allowed: {}", PARAMETERS.end()));
        }
        if self.cx.errors() == errors {
            let names = names.iter().map(|(name, place)| (name.as_str(), *place));
            report_unused(self.cx, path, &self.scope.used, names);
        }
        self.scope.named.truncate(shared);
        let is_own = |used: &String| names.iter().any(|(name, _)| name == used);
        self.scope.used.retain(|used| !is_own(used));

        let statement = TestStatement {
            text: text?,
            weight: weight.map(|(weight, _)| weight.unwrap_or(1)),
            repeat: repeat.map_or(1, |(repeat, _)| repeat.unwrap_or(1)),
            prepared: prepared.unwrap_or(self.prepared),
            rows,
            effect: Effect::of(&sql.text?),
            count,
            own,
        };
        Some((statement, weight.map(|(_, place)| place)))
    }

    fn report_without(&mut self, path: &str, [key, other]: [&str; 2], place: Place) {
        let message = format!("`{path}` has `{key}` and no `{other}`");
        self.cx
            .error("plan::missing-key", place, message)
            .label(format!("`{other}` is missing"))
            .help(
                "`values` is the text of one row, and `count` says how many stand for `{values}`",
            );
    }

    /// Takes the text of a statement or of its rows, and notes it.
    fn sql(&mut self, section: &mut Section, key: &str) -> Option<Sql> {
        let path = section.name_of(key);
        let Entry {
            key_place, node, ..
        } = section.take(key)?;
        let text = self.cx.text(&path, &node, "a string", "");
        let text = text.map(|text| text.trim().to_owned());
        // It may have several lines.
        let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        let wrong = match text.as_deref() {
            Some("") => Some(("is empty", "nothing here")),
            Some(text) if text.contains(is_control) => {
                Some(("holds a control character", "must be text"))
            }
            _ => None,
        };
        if let Some((what, label)) = wrong {
            let message = format!("{} {what}", code(&path));
            self.cx
                .error("plan::bad-text", node.place, message)
                .label(label);
        } else if let Some(text) = &text {
            self.cx.resolve(path, quoted(text), node.place);
        }
        Some(Sql {
            text: text.filter(|_| wrong.is_none()),
            key_place,
            node,
        })
    }

    /// `rows = "range"`, `rows = { least = 0, most = 1 }`
    fn rows(&mut self, path: &str, node: Node) -> Option<ExpectedRows> {
        let place = node.place;
        let is_table = matches!(node.value, Value::Table(_));
        let (least, most) = if is_table {
            let mut section = Section::of(self.cx, path, node)?;
            let mut ends = ["least", "most"].map(|key| {
                let Some(entry) = section.take(key) else {
                    let message = format!("`{path}` has no `{key}`");
                    self.cx
                        .error("plan::missing-key", place, message)
                        .label(format!("`{key}` is missing"))
                        .help("write `rows = { least = 0, most = 1 }`, or one number");
                    return None;
                };
                let path = section.name_of(key);
                self.computed(&path, &entry.node, EXPRESSION, expression::integer)
            });
            section.finish(self.cx);
            (ends[0].take()?, ends[1].take()?)
        } else {
            let wanted = "an integer, an expression, or a table of `least` and `most`";
            let rows = self.computed(path, &node, wanted, expression::integer)?;
            (rows.clone(), rows)
        };
        let ((least, of_least), (most, of_most)) = (least, most);
        if expression::between(of_least, of_most).is_none() {
            let message = format!(
                "{} has a least of {} above a most of {}",
                code(path),
                of_least.least,
                of_most.most
            );
            self.cx
                .error("plan::bad-test", place, message)
                .label("the least comes first");
        }
        Some(ExpectedRows {
            least,
            most,
            answered: of_most.least.max(0).cast_unsigned(),
        })
    }

    /// Takes a statement's text apart, and reports placeholders that stand for nothing. `hidden` may only be in the rows
    /// of `values`, which are `row`.
    fn pieces(
        &mut self,
        sql: &Sql,
        hidden: &[(String, Symbol)],
        row: Option<Vec<Piece>>,
    ) -> Option<Vec<Piece>> {
        let (node, sql) = (&sql.node, sql.text.as_ref()?);
        // What was trimmed away before it.
        let lead = node
            .text()
            .map_or(0, |text| text.len() - text.trim_start().len());
        let parts = match parts(sql) {
            Ok(parts) => parts,
            Err(wrong) => {
                self.report(*wrong, node, lead, sql);
                return None;
            }
        };
        let has_values = parts
            .iter()
            .any(|part| matches!(part, Segment::Name { name: VALUES, .. }));
        if row.is_some() && !has_values {
            let message = format!("{} has no place for its rows", code(sql));
            self.cx
                .error("plan::bad-sql", node.place, message)
                .label("no `{values}`")
                .help("write `INSERT INTO {table} (k) VALUES {values}`");
        }
        let mut pieces = Vec::new();
        for part in parts {
            let (name, span) = match part {
                Segment::Text(text) => {
                    pieces.push(Piece::Text(text));
                    continue;
                }
                Segment::Name { name, span } => (name, span),
            };
            let holds = self.scope.find(name).cloned();
            let integers = |first, count, bounds: Bounds| Piece::Integers {
                first,
                count,
                is_wide: bounds.is_wide(),
            };
            pieces.push(match (holds, &row) {
                _ if name == TABLE => Piece::Table,
                (_, Some(row)) if name == VALUES => Piece::Rows(row.clone()),
                (Some(Symbol::Argument(value)), _) => Piece::Text(value.to_string()),
                (Some(Symbol::Integer { slot, bounds, .. }), _) => integers(slot, 1, bounds),
                (Some(Symbol::List(first, count, bounds)), _) => integers(first, count, bounds),
                (Some(Symbol::Text(slot, is_pad)), _) => Piece::Drawn { slot, is_pad },
                (Some(Symbol::Unknown), _) => continue,
                (Some(Symbol::Variable(_)) | None, _) => {
                    let place = self.cx.within(node, lead + span.start, lead + span.end);
                    self.report_unknown(name, place, sql, hidden);
                    continue;
                }
            });
            self.scope.mark(name);
        }
        Some(pieces)
    }

    fn report_unknown(&mut self, name: &str, place: Place, sql: &str, hidden: &[(String, Symbol)]) {
        let mut known = vec![TABLE];
        for (name, holds) in &self.scope.named {
            if !matches!(holds, Symbol::Variable(_)) {
                known.push(name);
            }
        }
        let (label, help) = if hidden.iter().any(|(hidden, _)| hidden == name) {
            (
                "drawn for each row of `values`",
                "use it in `values`, or define it in the test's `parameters`".to_owned(),
            )
        } else if name == VALUES {
            (
                "there are no rows to stand here",
                "give `values` and `count`".to_owned(),
            )
        } else {
            ("not defined", choices(name, "known here", &known))
        };
        let message = format!("unknown parameter `{{{name}}}` in {}", code(sql));
        self.cx
            .error("plan::unknown-parameter", place, message)
            .label(label)
            .help(help);
    }
}

impl Piece {
    /// Returns how many values are bound to it, in a statement with so many rows.
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

/// An integer, as it is.
pub(crate) struct Whole;

impl ValueKind for Whole {
    type Value = i64;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<i64> {
        let (Value::Integer(text) | Value::Bare(text)) = &node.value else {
            cx.wrong_type(name, node, "an integer");
            return None;
        };
        let value = text.parse().ok();
        if value.is_none() {
            let message = format!("{} is out of range: {}", code(name), code(text));
            cx.error("plan::out-of-range", node.place, message)
                .label("not an integer of 64 bits");
        }
        value
    }

    fn show(&self, value: &i64) -> String {
        value.to_string()
    }

    fn schema(&self) -> Json {
        json!({ "type": "integer" })
    }
}
