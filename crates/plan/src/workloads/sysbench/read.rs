//! Reads a test as a plan writes it: statements with their parameters, and arguments that a step
//! may set.

use serde_json::{Value as Json, json};
use words::named_enum;

use super::expression::{Bounds, Computed, Scope, Symbol};
use super::names::{check_name, report_unused};
use super::statement::Reader;
use crate::reading::context::{Context, Section, ValueKind, tables_of};
use crate::reading::value_kinds::{Choice, Flag};
use crate::spec::sysbench::{Block, Group, Slot, TableChoice, Test, TestStatement};
use crate::text::diagnostic::{Diagnostic, Place};
use crate::text::tree::{Node, Value};
use crate::text::wording::code;

named_enum! {
    /// The workload's time that is the duration of a test.
    pub enum TestTime {
        /// `read-time`
        Read = "read",
        /// `write-time`
        Write = "write",
    }
}

/// The options of the workload that a test depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) rows: u64,
    pub(crate) tables: u32,
    /// The most clients of any cell.
    pub(crate) clients: u32,
    /// Statements are prepared by default.
    pub(crate) prepared: bool,
}

/// An integer argument of a test, which steps may set.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: i64,
    place: Place,
}

/// A test whose arguments are known. Its statements are read again for each step that runs it.
#[derive(Clone, Debug)]
pub(crate) struct TestSource {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    /// The test has no errors with the default values of its arguments.
    pub(crate) is_valid: bool,
    path: String,
    /// The place of its name.
    pub(crate) place: Place,
    node: Node,
}

/// A test, with the properties that its steps need.
pub(crate) struct ParsedTest {
    pub(crate) test: Test,
    pub(crate) time: TestTime,
    /// The arguments that determine ranges of ids.
    pub(crate) ranges: Vec<String>,
}

impl TestSource {
    /// Reads the arguments of the test `name` from its table at `path`; `None` if it is not a
    /// table.
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
            let is_known = arguments.iter().any(|argument| argument.name == entry.key);
            if !check_name(cx, &entry.key, entry.key_place, true, is_known) {
                continue;
            }

            let key = format!("{path}.arguments.{}", entry.key);
            let value = Whole.read(cx, &key, &entry.node).unwrap_or(1);
            cx.resolve(key, value.to_string(), entry.node.place);
            arguments.push(Argument { name: entry.key, value, place: entry.key_place });
        }

        Some(Self {
            name: name.to_owned(),
            arguments,
            is_valid: cx.errors() == errors,
            path: path.to_owned(),
            place,
            node,
        })
    }

    /// Reads the test with the default values of its arguments.
    pub(crate) fn read(&mut self, cx: &mut Context<'_>, setting: &Setting) {
        let values: Vec<i64> = self.arguments.iter().map(|argument| argument.value).collect();
        self.is_valid &= self.read_with(cx, &values, setting).is_some();
    }

    /// Reads the test with these values of its arguments; `None` if it has errors.
    pub(crate) fn read_with(
        &self,
        cx: &mut Context<'_>,
        values: &[i64],
        setting: &Setting,
    ) -> Option<ParsedTest> {
        let errors = cx.errors();
        let section = &mut Section::of(cx, &self.path, self.node.clone())?;

        let group = self.group(cx, section);
        // [`TestSource::new`] has read them.
        section.take("arguments");
        let tables = Choice(TableChoice::NAMES);
        let table = cx.value(section, "table", &tables, TableChoice::Random);
        let transaction = cx.value(section, "transaction", &Flag, false);
        let usual = if group == Group::Write { TestTime::Write } else { TestTime::Read };
        let time = cx.value(section, "time", &Choice(TestTime::NAMES), usual);

        let mut scope = scope(setting);
        for (argument, value) in self.arguments.iter().zip(values) {
            scope.named.push((argument.name.clone(), Symbol::Argument(*value)));
        }

        let mut reader = Reader { scope, prepared: setting.prepared, cx };
        // The one integer is the thread's number.
        let mut shared = Block { integers: 1, ..Block::default() };

        let defined = reader.parameters(section, &mut shared, Slot::Event);
        let statements = self.statements(&mut reader, section);
        let Scope { used, ranges, .. } = reader.scope;
        section.finish(cx);

        if cx.errors() != errors {
            return None;
        }

        let arguments =
            self.arguments.iter().map(|argument| (argument.name.as_str(), argument.place));
        let parameters = defined.iter().map(|(name, place)| (name.as_str(), *place));
        report_unused(cx, &self.path, &used, arguments.chain(parameters));
        let test = Test { name: self.name.clone(), group, table, transaction, shared, statements };
        Some(ParsedTest { test, time, ranges })
    }

    fn group(&self, cx: &mut Context<'_>, section: &mut Section) -> Group {
        if section.place_of("group") == Place::Nowhere {
            missing(cx, self.place, &section.name_of("group"))
                .label("expected a group")
                .help("add `group = \"point\"`, or `\"range-1\"`, `\"range-2\"`, `\"write\"`");
        }
        let group = cx.given(section, "group", &Choice(Group::NAMES));
        group.unwrap_or(Group::Point)
    }

    fn statements(&self, reader: &mut Reader<'_, '_>, section: &mut Section) -> Vec<TestStatement> {
        let path = section.name_of("statement");
        let Some(entry) = section.take("statement") else {
            report_no_statements(reader.cx, self.place, &path);
            return Vec::new();
        };
        let nodes = tables_of(reader.cx, &path, entry.node, |cx, place| {
            report_no_statements(cx, place, &path);
        });

        let mut weight_place = None;
        let mut statements = Vec::new();
        for (number, node) in (1..).zip(nodes) {
            let Some((statement, place)) = reader.statement(&format!("{path}.{number}"), node)
            else {
                continue;
            };

            weight_place = weight_place.or(place);
            // A statement with a weight of 0 never runs.
            if statement.weight != Some(0) {
                statements.push(statement);
            }
        }

        if let Some(place) = weight_place
            && statements.iter().all(|statement| statement.weight.is_none())
        {
            let message = format!("all weights of test {} are 0", code(&self.name));
            reader
                .cx
                .error("plan::bad-test", place, message)
                .label("expected at least one weight above 0");
        }
        statements
    }
}

fn report_no_statements(cx: &mut Context<'_>, place: Place, path: &str) {
    missing(cx, place, path).label("no statements").help(format!("add one: `[[{path}]]`"));
}

/// Returns the names that each expression may use.
fn scope(setting: &Setting) -> Scope {
    let rows = i64::try_from(setting.rows).unwrap_or(i64::MAX);
    let threads = Bounds::new(0, i64::from(setting.clients.max(1)) - 1);

    let variables = [
        ("rows", Computed::constant(rows)),
        ("tables", Computed::constant(setting.tables.into())),
        ("thread", Computed::drawn(Slot::Event(0), threads)),
    ];
    let named = variables.map(|(name, computed)| (name.to_owned(), Symbol::Variable(computed)));

    Scope { rows: setting.rows, named: named.to_vec(), used: Vec::new(), ranges: Vec::new() }
}

fn missing<'d>(cx: &'d mut Context<'_>, place: Place, name: &str) -> &'d mut Diagnostic {
    let message = format!("{} is missing", code(name));
    cx.error("plan::missing-key", place, message)
}

/// A 64-bit integer.
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
            cx.error("plan::out-of-range", node.place, message).label("expected a 64-bit integer");
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
