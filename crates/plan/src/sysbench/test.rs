//! A test as a plan writes it: its statements with their parameters, and arguments that a step may set.

use std::ops::RangeInclusive;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::kinds::{Choice, Flag, Optional};
use crate::reader::{Context, Fault, Kind, Section, table_of, text_of, wrong_type};
use crate::spec::{Draw, Expression, Group, Parameter, TableChoice, Test, TestStatement};
use crate::tree::{Entry, Node, Value};
use crate::wording::{code, did_you_mean, list, quoted};

use super::expression::{self, Bounds, Holds, NoValue, Scope, Sizes, VARIABLES};
use super::placeholder::{Placeholder, filled, placeholders};

const KEYS: [&str; 7] = [
    "group",
    "arguments",
    "table",
    "transaction",
    "time",
    "parameters",
    "statement",
];
const STATEMENT_KEYS: [&str; 8] = [
    "sql",
    "values",
    "count",
    "weight",
    "repeat",
    "prepared",
    "parameters",
    "rows",
];
const ROWS_KEYS: [&str; 2] = ["least", "most"];

/// What stands for a table's name.
const TABLE: &str = "table";
/// What stands for the rows of a statement that has several.
const VALUES: &str = "values";

/// SQLite takes 32766 parameters, servers take 65535.
const PARAMETERS_MOST: i64 = 32_000;
const REPEAT_MOST: i64 = 100_000;
const WEIGHT_MOST: i64 = 1_000_000;

/// Which of the workload's times a test runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeOf {
    Read,
    Write,
}

/// An integer of a test that steps may set.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: i64,
}

/// A test whose arguments are not put in yet.
#[derive(Clone, Debug)]
pub(crate) struct TestText {
    pub(crate) name: String,
    pub(crate) time: TimeOf,
    pub(crate) arguments: Vec<Argument>,
    /// Nothing is wrong with it.
    pub(crate) trusted: bool,
    group: Group,
    table: TableChoice,
    transaction: bool,
    parameters: Vec<Defined>,
    statements: Vec<StatementText>,
}

/// A parameter and where it is defined.
#[derive(Clone, Debug)]
struct Defined {
    name: String,
    draw: Draw,
    place: Place,
}

#[derive(Clone, Debug)]
struct StatementText {
    sql: String,
    sql_place: Place,
    values: Option<Values>,
    weight: Option<(Expression, Place)>,
    repeat: (Expression, Place),
    prepared: Option<bool>,
    rows: Option<(Expression, Expression)>,
    rows_place: Place,
    parameters: Vec<Defined>,
}

/// The rows of a statement that has several: the text of one, and how many.
#[derive(Clone, Debug)]
struct Values {
    text: String,
    count: Expression,
    place: Place,
}

/// What a test depends on besides its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) sizes: Sizes,
    /// Its statements are prepared where it does not say.
    pub(crate) prepared: bool,
}

/// Why a test has no meaning with its arguments.
#[derive(Debug)]
pub(crate) struct Meaningless {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) label: String,
}

/// Reads the test `name` from its table at `path`; `None` when it is no table.
pub(crate) fn read(
    cx: &mut Context<'_>,
    path: &str,
    name: &str,
    place: Place,
    node: Node,
) -> Option<TestText> {
    let errors = cx.diagnostics.len();
    let section = &mut Section::with_keys(cx, path, node, &KEYS)?;
    let group = group(cx, section, place);
    let table = Choice(&[
        ("random", TableChoice::Random),
        ("thread", TableChoice::Thread),
        ("first", TableChoice::First),
    ]);
    let table = cx.field(section, "table", &table, TableChoice::Random);
    let transaction = cx.field(section, "transaction", &Flag, false);
    let time = Choice(&[("read", TimeOf::Read), ("write", TimeOf::Write)]);
    let usual = if group == Group::Write {
        TimeOf::Write
    } else {
        TimeOf::Read
    };
    let time = cx.field(section, "time", &time, usual);

    let mut scope = Scope::default();
    let mut places = Vec::new();
    let arguments = arguments(cx, section, &mut scope, &mut places);
    let parameters = parameters(cx, section, &mut scope);
    let statements = statements(cx, section, &mut scope, place);
    let defined = parameters.iter().map(|it| (it.name.as_str(), it.place));
    let all = places.iter().map(|(name, place)| (name.as_str(), *place));
    let trusted = is_right_since(cx, errors);
    if trusted {
        report_unused(cx, path, &scope, all.chain(defined));
    }
    Some(TestText {
        name: name.to_owned(),
        time: time.value,
        arguments,
        trusted,
        group,
        table: table.value,
        transaction: transaction.value,
        parameters,
        statements,
    })
}

/// Whether nothing but warnings came after the first `count` diagnostics.
fn is_right_since(cx: &Context<'_>, count: usize) -> bool {
    let mut since = cx.diagnostics.iter().skip(count);
    !since.any(|it| it.severity == Severity::Error)
}

fn group(cx: &mut Context<'_>, section: &mut Section, place: Place) -> Group {
    const CHOICE: Choice<Group> = Choice(&[
        ("point", Group::Point),
        ("range-1", Group::Range1),
        ("range-2", Group::Range2),
        ("write", Group::Write),
    ]);
    let name = section.name_of("group");
    let Some(entry) = section.take("group") else {
        cx.report(
            Diagnostic::error(
                "plan::missing-key",
                place,
                format!("{} is missing", code(&name)),
            )
            .label("in which group?")
            .help("add `group = \"point\"`, or `\"range-1\"`, `\"range-2\"`, `\"write\"`"),
        );
        return Group::Point;
    };
    let group = cx.read(&name, &entry.node, &CHOICE);
    let group = group.unwrap_or(Group::Point);
    cx.resolve(name, CHOICE.show(&group), entry.node.place);
    group
}

/// Reads the arguments; notes where each is in `places`.
fn arguments(
    cx: &mut Context<'_>,
    section: &mut Section,
    scope: &mut Scope,
    places: &mut Vec<(String, Place)>,
) -> Vec<Argument> {
    let path = section.name_of("arguments");
    let table = section
        .take("arguments")
        .and_then(|entry| table_of(cx, &path, entry.node))
        .unwrap_or_default();
    let mut arguments = Vec::new();
    for Entry {
        key,
        key_place,
        node,
    } in table.entries
    {
        if !name_is_good(cx, scope, &key, key_place, "argument") {
            continue;
        }
        let name = format!("{path}.{key}");
        let value = cx.read(&name, &node, &Whole);
        let value = value.unwrap_or(1);
        cx.resolve(name, value.to_string(), node.place);
        scope.arguments.push((key.clone(), value));
        places.push((key.clone(), key_place));
        arguments.push(Argument { name: key, value });
    }
    arguments
}

/// Reports a name that no parameter can have.
fn name_is_good(cx: &mut Context<'_>, scope: &Scope, name: &str, place: Place, what: &str) -> bool {
    let is_argument = what == "argument";
    let label = if !expression::is_identifier(name) || name.contains("__") {
        "expected lower-case letters, digits and single `_`"
    } else if is_argument && name.ends_with(|c: char| c.is_ascii_digit()) {
        "ends with a digit"
    } else if VARIABLES.contains(&name) || name == TABLE || name == VALUES {
        "has a meaning of its own"
    } else if is_argument && super::RUN_KEYS.contains(&name) {
        "a key of every step"
    } else if scope.has(name) {
        "defined already"
    } else {
        return true;
    };
    cx.report(
        Diagnostic::error(
            "plan::bad-name",
            place,
            format!("the {what} {} has a name that cannot be used", code(name)),
        )
        .label(label)
        .help("call it otherwise: it stands in expressions, and in SQL between `{` and `}`"),
    );
    false
}

fn parameters(cx: &mut Context<'_>, section: &mut Section, scope: &mut Scope) -> Vec<Defined> {
    let path = section.name_of("parameters");
    let table = section
        .take("parameters")
        .and_then(|entry| table_of(cx, &path, entry.node))
        .unwrap_or_default();
    let mut parameters = Vec::new();
    for entry in table.entries {
        if !name_is_good(cx, scope, &entry.key, entry.key_place, "parameter") {
            continue;
        }
        let path = format!("{path}.{}", entry.key);
        let draw = draw(cx, &path, &entry.node, scope);
        let holds = draw.as_ref().map_or(Holds::Unknown, Holds::of);
        scope.parameters.push((entry.key.clone(), holds));
        if let Some(draw) = draw {
            parameters.push(Defined {
                name: entry.key,
                draw,
                place: entry.key_place,
            });
        }
    }
    parameters
}

/// Reads what a parameter is, and notes it.
fn draw(cx: &mut Context<'_>, path: &str, node: &Node, scope: &mut Scope) -> Option<Draw> {
    let text = text_or_integer(cx, path, node, "an integer or an expression")?;
    cx.resolve(path, shown(node, &text), node.place);
    let read = expression::draw(&text, scope);
    understood(cx, path, node, read)
}

/// Reads an expression whose value is an integer.
fn integer(cx: &mut Context<'_>, path: &str, node: &Node, scope: &mut Scope) -> Option<Expression> {
    let text = text_or_integer(cx, path, node, "an integer or an expression")?;
    let read = expression::integer(&text, scope);
    understood(cx, path, node, read)
}

fn text_or_integer(cx: &mut Context<'_>, path: &str, node: &Node, wanted: &str) -> Option<String> {
    if let Value::Integer(digits) = &node.value {
        return Some(digits.clone());
    }
    match text_of(node, || wrong_type(path, node, wanted)) {
        Ok(text) => Some(text.to_owned()),
        Err(Fault(diagnostics)) => {
            cx.diagnostics.extend(diagnostics);
            None
        }
    }
}

/// Text as the plan writes it: integers without quotes.
fn shown(node: &Node, text: &str) -> String {
    match node.value {
        Value::Integer(_) => text.to_owned(),
        _ => quoted(text),
    }
}

/// Reports why text is no expression.
fn understood<T>(
    cx: &mut Context<'_>,
    path: &str,
    node: &Node,
    read: Result<T, expression::Wrong>,
) -> Option<T> {
    let wrong = match read {
        Ok(read) => return Some(read),
        Err(wrong) => wrong,
    };
    let place = cx.within(node, wrong.start, wrong.end);
    let message = format!("{} in {}", wrong.message, code(path));
    let mut diagnostic = Diagnostic::error(wrong.code, place, message).label(wrong.label);
    diagnostic.help.extend(wrong.help);
    cx.report(diagnostic);
    None
}

fn statements(
    cx: &mut Context<'_>,
    section: &mut Section,
    scope: &mut Scope,
    place: Place,
) -> Vec<StatementText> {
    let path = section.name_of("statement");
    let missing = |place| {
        Diagnostic::error(
            "plan::missing-key",
            place,
            format!("{} is missing", code(&path)),
        )
        .label("a test without statements")
        .help(format!("add one: `[[{path}]]`"))
    };
    let Some(entry) = section.take("statement") else {
        cx.report(missing(place));
        return Vec::new();
    };
    let nodes = match entry.node.value {
        Value::List(nodes) if nodes.is_empty() => {
            cx.report(missing(entry.node.place));
            return Vec::new();
        }
        Value::List(nodes) => nodes,
        _ => {
            cx.report(
                wrong_type(&path, &entry.node, "a list of tables")
                    .help(format!("write it with two brackets: `[[{path}]]`")),
            );
            return Vec::new();
        }
    };
    (1..)
        .zip(nodes)
        .filter_map(|(number, node): (usize, Node)| {
            statement(cx, &format!("{path}.{number}"), node, scope)
        })
        .collect()
}

fn statement(
    cx: &mut Context<'_>,
    path: &str,
    node: Node,
    scope: &mut Scope,
) -> Option<StatementText> {
    let errors = cx.diagnostics.len();
    let section = &mut Section::with_keys(cx, path, node, &STATEMENT_KEYS)?;
    let place = section.place;
    let Some(sql) = section.take("sql") else {
        cx.report(
            Diagnostic::error("plan::missing-key", place, format!("`{path}` has no `sql`"))
                .label("a statement without its text")
                .help("add `sql = \"SELECT c FROM {table} WHERE id = {id}\"`"),
        );
        return None;
    };
    let sql_text = sql_text(cx, &section.name_of("sql"), &sql.node);
    let (values, count) = (section.take("values"), section.take("count"));
    let values_text = values
        .as_ref()
        .and_then(|it| sql_text_of(cx, &section.name_of("values"), it));
    let count = count.map(|entry| {
        let place = entry.node.place;
        (expression_of(cx, section, "count", &entry, scope), place)
    });
    let weight = section.take("weight").map(|entry| {
        let place = entry.node.place;
        (expression_of(cx, section, "weight", &entry, scope), place)
    });
    let repeat = match section.take("repeat") {
        None => {
            cx.resolve(section.name_of("repeat"), "1".to_owned(), Place::Nowhere);
            (Expression::Integer(1), Place::Nowhere)
        }
        Some(entry) => {
            let repeat = expression_of(cx, section, "repeat", &entry, scope);
            (repeat.unwrap_or(Expression::Integer(1)), entry.node.place)
        }
    };
    let prepared = Optional(Flag, "(as the workload)");
    let prepared = cx.field(section, "prepared", &prepared, None);
    let shared = scope.parameters.len();
    let parameters = parameters(cx, section, scope);
    let own = scope.parameters[shared..].to_vec();
    let rows = section.take("rows");
    let rows_place = rows.as_ref().map_or(Place::Nowhere, |it| it.node.place);
    if values.is_some() {
        // Each row of `values` has parameters of its own: there is none for all of them.
        scope.parameters.truncate(shared);
    }
    let rows = rows.and_then(|entry| rows_of(cx, &section.name_of("rows"), entry.node, scope));
    scope.parameters.truncate(shared);
    scope.parameters.extend(own.iter().cloned());
    let own: Vec<String> = own.into_iter().map(|(name, _)| name).collect();

    if let Some(text) = &sql_text {
        let hidden: &[String] = if values.is_some() { &own } else { &[] };
        check_sql(cx, &sql.node, text, scope, hidden, values.is_some());
    }
    if let (Some(text), Some(entry)) = (&values_text, &values) {
        check_sql(cx, &entry.node, text, scope, &[], false);
    }
    match (&values, &count) {
        (Some(it), None) => report_without(cx, path, "values", "count", it.key_place),
        (None, Some((_, place))) => report_without(cx, path, "count", "values", *place),
        _ => {}
    }
    if is_right_since(cx, errors) {
        let defined = parameters.iter().map(|it| (it.name.as_str(), it.place));
        report_unused(cx, path, scope, defined);
    }
    scope.parameters.truncate(shared);
    scope.used.retain(|name| !own.contains(name));

    let values = match (values_text, count) {
        (Some(text), Some((Some(count), place))) => Some(Values { text, count, place }),
        _ => None,
    };
    Some(StatementText {
        sql: sql_text?,
        sql_place: sql.node.place,
        values,
        weight: weight.and_then(|(weight, place)| Some((weight?, place))),
        repeat,
        prepared: prepared.value,
        rows,
        rows_place,
        parameters,
    })
}

fn report_without(cx: &mut Context<'_>, path: &str, key: &str, other: &str, place: Place) {
    cx.report(
        Diagnostic::error(
            "plan::missing-key",
            place,
            format!("`{path}` has `{key}` and no `{other}`"),
        )
        .label(format!("`{other}` is missing"))
        .help("`values` is the text of one row, and `count` says how many stand for `{values}`"),
    );
}

/// Reads an expression, and notes it.
fn expression_of(
    cx: &mut Context<'_>,
    section: &Section,
    key: &str,
    entry: &Entry,
    scope: &mut Scope,
) -> Option<Expression> {
    let path = section.name_of(key);
    let text = text_or_integer(cx, &path, &entry.node, "an integer or an expression")?;
    cx.resolve(&path, shown(&entry.node, &text), entry.node.place);
    integer(cx, &path, &entry.node, scope)
}

fn sql_text_of(cx: &mut Context<'_>, path: &str, entry: &Entry) -> Option<String> {
    sql_text(cx, path, &entry.node)
}

/// Reads the text of a statement, and notes it.
fn sql_text(cx: &mut Context<'_>, path: &str, node: &Node) -> Option<String> {
    let text = cx.read(path, node, &Sql)?;
    cx.resolve(path, quoted(&text), node.place);
    Some(text)
}

/// `rows = "range"`, `rows = { least = 0, most = 1 }`
fn rows_of(
    cx: &mut Context<'_>,
    path: &str,
    node: Node,
    scope: &mut Scope,
) -> Option<(Expression, Expression)> {
    let place = node.place;
    if !matches!(node.value, Value::Table(_)) {
        let text = text_or_integer(
            cx,
            path,
            &node,
            "an integer, an expression, or a table of `least` and `most`",
        )?;
        cx.resolve(path, shown(&node, &text), place);
        let rows = integer(cx, path, &node, scope)?;
        return Some((rows.clone(), rows));
    }
    let mut section = Section::with_keys(cx, path, node, &ROWS_KEYS)?;
    let mut end = |cx: &mut Context<'_>, key: &str| {
        let Some(entry) = section.take(key) else {
            cx.report(
                Diagnostic::error(
                    "plan::missing-key",
                    place,
                    format!("`{path}` has no `{key}`"),
                )
                .label(format!("`{key}` is missing"))
                .help("write `rows = { least = 0, most = 1 }`, or one number"),
            );
            return None;
        };
        expression_of(cx, &section, key, &entry, scope)
    };
    let (least, most) = (end(cx, "least"), end(cx, "most"));
    Some((least?, most?))
}

/// An integer, as it is.
pub(crate) struct Whole;

impl Kind for Whole {
    type Value = i64;

    fn read(&self, name: &str, node: &Node) -> Result<i64, Fault> {
        match &node.value {
            Value::Integer(text) | Value::Bare(text) => text.parse().map_err(|_| {
                Diagnostic::error(
                    "plan::out-of-range",
                    node.place,
                    format!("{} is out of range: {}", code(name), code(text)),
                )
                .label("not an integer of 64 bits")
                .into()
            }),
            _ => Err(wrong_type(name, node, "an integer").into()),
        }
    }

    fn show(&self, value: &i64) -> String {
        value.to_string()
    }
}

/// The text of a statement; it may have several lines.
struct Sql;

impl Kind for Sql {
    type Value = String;

    fn read(&self, name: &str, node: &Node) -> Result<String, Fault> {
        let text = text_of(node, || wrong_type(name, node, "a string"))?;
        let bad = |what: &str, label: &str| {
            let message = format!("{} {what}", code(name));
            Err(Diagnostic::error("plan::bad-text", node.place, message)
                .label(label)
                .into())
        };
        if text.trim().is_empty() {
            return bad("is empty", "nothing here");
        }
        if text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
        {
            return bad("holds a control character", "must be text");
        }
        Ok(text.trim().to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

/// Reports placeholders that stand for nothing. Those of `hidden` may only be in the rows of a statement with several.
fn check_sql(
    cx: &mut Context<'_>,
    node: &Node,
    sql: &str,
    scope: &mut Scope,
    hidden: &[String],
    has_values: bool,
) {
    // What was trimmed away before it.
    let lead = node
        .text()
        .map_or(0, |text| text.len() - text.trim_start().len());
    let found = match placeholders(sql) {
        Ok(found) => found,
        Err(brace) => {
            let place = cx.within(node, lead + brace.start, lead + brace.end);
            cx.report(
                Diagnostic::error(
                    "plan::bad-sql",
                    place,
                    format!("{} in {}", brace.message, code(sql)),
                )
                .label(brace.label)
                .help(
                    "braces hold the name of a parameter: `WHERE id = {id}`; `{{` and `}}` are one brace each",
                ),
            );
            return;
        }
    };
    let mut has_place_for_values = false;
    for Placeholder { name, start, end } in found {
        if name == TABLE {
            continue;
        }
        if name == VALUES && has_values {
            has_place_for_values = true;
            continue;
        }
        let is_hidden = hidden.iter().any(|other| other == name);
        if scope.has(name) && !is_hidden {
            scope.mark(name);
            continue;
        }
        let mut known = vec![TABLE];
        known.extend(scope.names());
        known.retain(|name| !hidden.iter().any(|other| other == name));
        let (label, help) = if is_hidden {
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
            (
                "not defined",
                format!("{}known here: {}", did_you_mean(name, &known), list(&known)),
            )
        };
        let place = cx.within(node, lead + start, lead + end);
        cx.report(
            Diagnostic::error(
                "plan::unknown-parameter",
                place,
                format!("unknown parameter `{{{name}}}` in {}", code(sql)),
            )
            .label(label)
            .help(help),
        );
    }
    if has_values && !has_place_for_values {
        cx.report(
            Diagnostic::error(
                "plan::bad-sql",
                node.place,
                format!("{} has no place for its rows", code(sql)),
            )
            .label("no `{values}`")
            .help("write `INSERT INTO {table} (k) VALUES {values}`"),
        );
    }
}

fn report_unused<'n>(
    cx: &mut Context<'_>,
    path: &str,
    scope: &Scope,
    names: impl Iterator<Item = (&'n str, Place)>,
) {
    for (name, place) in names {
        if !scope.used.iter().any(|used| used == name) {
            cx.report(
                Diagnostic::warning(
                    "plan::unused-parameter",
                    place,
                    format!("{} is used nowhere in {}", code(name), code(path)),
                )
                .label("has no effect"),
            );
        }
    }
}

impl TestText {
    /// The test with arguments put in, in the order of its own.
    pub(crate) fn with(&self, values: &[i64], setting: &Setting) -> Result<Test, Meaningless> {
        let names = self.arguments.iter().map(|it| it.name.clone());
        let filler = Filler {
            arguments: names.zip(values.iter().copied()).collect(),
            setting: *setting,
        };
        let mut known = Vec::new();
        let parameters = filler.parameters(&self.parameters, &mut known)?;
        let mut statements = Vec::new();
        for text in &self.statements {
            let statement = filler.statement(text, &parameters, &known)?;
            if statement.weight != Some(0) {
                statements.push(statement);
            }
        }
        let weighted = self.statements.iter().find_map(|it| it.weight.as_ref());
        if let Some((_, place)) = weighted
            && statements.iter().all(|it| it.weight.is_none())
        {
            return Err(Meaningless {
                place: *place,
                message: "has weights that are all 0".to_owned(),
                label: "an event runs one of the statements with a weight".to_owned(),
            });
        }
        Ok(Test {
            name: self.name.clone(),
            group: self.group,
            table: self.table,
            transaction: self.transaction,
            statements,
            parameters,
        })
    }

    /// Returns whether a parameter is as far from an id of the table as the argument says: a range of ids.
    pub(crate) fn is_range(&self, argument: &str) -> bool {
        let is_of = |own: &[Defined]| {
            let all = || self.parameters.iter().chain(own);
            let is_id = |name: &str| all().any(|it| it.name == name && it.draw == Draw::Id);
            own.iter().any(|it| match &it.draw {
                Draw::Value(value) => {
                    value.names(argument)
                        && all().any(|it| is_id(&it.name) && value.names(&it.name))
                }
                _ => false,
            })
        };
        is_of(&self.parameters) || self.statements.iter().any(|it| is_of(&it.parameters))
    }

    /// The test with its own arguments.
    pub(crate) fn with_defaults(&self, setting: &Setting) -> Result<Test, Meaningless> {
        let values: Vec<i64> = self.arguments.iter().map(|it| it.value).collect();
        self.with(&values, setting)
    }
}

/// Puts arguments in.
struct Filler {
    arguments: Vec<(String, i64)>,
    setting: Setting,
}

/// Parameters that are defined before, with what they lie between.
type Known = [(String, Bounds)];

impl Filler {
    fn fold(&self, expression: &Expression, place: Place) -> Result<Expression, Meaningless> {
        expression::folded(expression, &self.arguments).map_err(|why| no_value(why, place))
    }

    fn constant(&self, expression: &Expression) -> Option<i64> {
        expression::constant(expression, &self.setting.sizes)
    }

    /// An expression with arguments put in, and what it lies between.
    fn bounded(
        &self,
        expression: &Expression,
        place: Place,
        known: &Known,
    ) -> Result<(Expression, Bounds), Meaningless> {
        let folded = self.fold(expression, place)?;
        let bounds = expression::bounds(&folded, &self.setting.sizes, known);
        let bounds = bounds.map_err(|why| no_value(why, place))?;
        Ok((folded, bounds))
    }

    /// A number that has to be known before anything is drawn, within `allowed`.
    fn count(
        &self,
        expression: &Expression,
        place: Place,
        what: &str,
        allowed: RangeInclusive<i64>,
    ) -> Result<i64, Meaningless> {
        let wrong = |message: String| Meaningless {
            place,
            message,
            label: format!("allowed: {} to {}", allowed.start(), allowed.end()),
        };
        let folded = self.fold(expression, place)?;
        let count = self
            .constant(&folded)
            .ok_or_else(|| wrong(format!("has {what} that depends on what is drawn")))?;
        if allowed.contains(&count) {
            Ok(count)
        } else {
            Err(wrong(format!("has {what} of {count}")))
        }
    }

    fn list(&self, count: &Expression, place: Place) -> Result<Expression, Meaningless> {
        self.count(count, place, "a list", 1..=PARAMETERS_MOST)
            .map(Expression::Integer)
    }

    /// Two ends, the least first, and what lies between them.
    fn ends(
        &self,
        least: &Expression,
        most: &Expression,
        place: Place,
        known: &Known,
    ) -> Result<((Expression, Expression), Bounds), Meaningless> {
        let (least, of_least) = self.bounded(least, place, known)?;
        let (most, of_most) = self.bounded(most, place, known)?;
        if of_least.least > of_most.most {
            return Err(Meaningless {
                place,
                message: format!(
                    "has a least of {} above a most of {}",
                    of_least.least, of_most.most
                ),
                label: "the least comes first".to_owned(),
            });
        }
        let bounds = Bounds::new(of_least.least, of_most.most.max(of_least.most));
        Ok(((least, most), bounds))
    }

    /// What a parameter is, and what its values lie between.
    fn draw(
        &self,
        draw: &Draw,
        place: Place,
        known: &Known,
    ) -> Result<(Draw, Bounds), Meaningless> {
        let rows = i64::try_from(self.setting.sizes.rows).unwrap_or(i64::MAX);
        let of_row = Bounds::new(1, rows);
        Ok(match draw {
            Draw::Id | Draw::K | Draw::C | Draw::Pad => (draw.clone(), of_row),
            Draw::Ids(count) => (Draw::Ids(self.list(count, place)?), of_row),
            Draw::Ks(count) => (Draw::Ks(self.list(count, place)?), of_row),
            Draw::Consecutive(first, count) => {
                let ((first, _), count) =
                    (self.bounded(first, place, known)?, self.list(count, place)?);
                let last = Expression::Sum(Box::new(first.clone()), Box::new(count.clone()));
                let (_, bounds) = self.bounded(&last, place, known)?;
                (Draw::Consecutive(first, count), bounds)
            }
            Draw::Uniform(least, most) => {
                let ((least, most), bounds) = self.ends(least, most, place, known)?;
                (Draw::Uniform(least, most), bounds)
            }
            Draw::Zipfian(least, most, exponent) => {
                let ((least, most), bounds) = self.ends(least, most, place, known)?;
                (Draw::Zipfian(least, most, *exponent), bounds)
            }
            Draw::Value(value) => {
                let (value, bounds) = self.bounded(value, place, known)?;
                (Draw::Value(value), bounds)
            }
        })
    }

    /// Fills parameters and notes what each lies between.
    fn parameters(
        &self,
        parameters: &[Defined],
        known: &mut Vec<(String, Bounds)>,
    ) -> Result<Vec<Parameter>, Meaningless> {
        let fill = |it: &Defined| {
            let (draw, bounds) = self.draw(&it.draw, it.place, known)?;
            known.push((it.name.clone(), bounds));
            let name = it.name.clone();
            Ok(Parameter { name, draw })
        };
        parameters.iter().map(fill).collect()
    }

    fn statement(
        &self,
        text: &StatementText,
        shared: &[Parameter],
        known: &Known,
    ) -> Result<TestStatement, Meaningless> {
        let (repeat, repeat_place) = (&text.repeat.0, text.repeat.1);
        let repeat = self.count(repeat, repeat_place, "a `repeat`", 1..=REPEAT_MOST)?;
        let weight = match &text.weight {
            None => None,
            Some((weight, place)) => {
                let weight = self.count(weight, *place, "a `weight`", 0..=WEIGHT_MOST)?;
                Some(u32::try_from(weight).unwrap_or(u32::MAX))
            }
        };
        let mut known = known.to_vec();
        let mut sql = text.sql.clone();
        let mut parameters = self.parameters(&text.parameters, &mut known)?;
        let bound_by = |text: &str| bound(text, shared.iter().chain(&parameters));
        let mut bound = bound_by(&sql);
        let mut count = 0;
        if let Some(values) = &text.values {
            count = self.count(
                &values.count,
                values.place,
                "a `count`",
                1..=PARAMETERS_MOST,
            )?;
            bound += count.saturating_mul(bound_by(&values.text));
        }
        if bound > PARAMETERS_MOST {
            return Err(Meaningless {
                place: text.sql_place,
                message: format!("has a statement with {bound} parameters"),
                label: format!("allowed: {PARAMETERS_MOST}"),
            });
        }
        if let Some(values) = &text.values {
            let (texts, own) = rows_of_values(&values.text, &parameters, count);
            sql = filled(&sql, |name| (name == VALUES).then(|| texts.clone()));
            parameters = own;
        }
        let rows = match &text.rows {
            None => None,
            Some((least, most)) => Some(self.ends(least, most, text.rows_place, &known)?.0),
        };
        // Arguments are constants of the text.
        let sql = filled(&sql, |name| {
            let argument = self.arguments.iter().find(|(known, _)| known == name);
            argument.map(|(_, value)| value.to_string())
        });
        Ok(TestStatement {
            sql,
            weight,
            repeat: u32::try_from(repeat).unwrap_or(u32::MAX),
            prepared: text.prepared.unwrap_or(self.setting.prepared),
            rows,
            parameters,
        })
    }
}

fn no_value(why: NoValue, place: Place) -> Meaningless {
    let (message, label) = match why {
        NoValue::DivisionByZero => ("divides by zero".to_owned(), "has no value"),
        NoValue::MayDivideByZero(Bounds { least, most }) => (
            format!("divides by what may be 0: it is between {least} and {most}"),
            "may have no value",
        ),
        NoValue::TooLarge => (
            "has a number in it that 64 bits don't hold".to_owned(),
            "has no value",
        ),
    };
    Meaningless {
        place,
        message,
        label: label.to_owned(),
    }
}

/// How many values are bound to a text.
fn bound<'p>(sql: &str, known: impl Iterator<Item = &'p Parameter> + Clone) -> i64 {
    // A text with bad braces was refused.
    let placeholders = placeholders(sql).unwrap_or_default();
    let values = |name: &str| match known.clone().find(|it| it.name == name).map(|it| &it.draw) {
        None => 0,
        Some(
            Draw::Ids(Expression::Integer(count))
            | Draw::Ks(Expression::Integer(count))
            | Draw::Consecutive(_, Expression::Integer(count)),
        ) => *count,
        Some(_) => 1,
    };
    placeholders.iter().map(|it| values(it.name)).sum()
}

/// `count` rows of a statement, each with parameters of its own: `k` becomes `k__1`, `k__2` ...
fn rows_of_values(text: &str, own: &[Parameter], count: i64) -> (String, Vec<Parameter>) {
    let mut rows = Vec::new();
    let mut parameters = Vec::new();
    for number in 1..=count {
        let renamed = |name: &str| {
            let is_own = own.iter().any(|it| it.name == name);
            is_own.then(|| format!("{name}__{number}"))
        };
        for Parameter { name, draw } in own {
            parameters.push(Parameter {
                name: format!("{name}__{number}"),
                draw: draw.renamed(&renamed),
            });
        }
        rows.push(filled(text, |name| {
            renamed(name).map(|new| format!("{{{new}}}"))
        }));
    }
    (rows.join(", "), parameters)
}

impl Draw {
    fn renamed(&self, name: &dyn Fn(&str) -> Option<String>) -> Self {
        match self {
            Self::Id | Self::K | Self::C | Self::Pad => self.clone(),
            Self::Ids(count) => Self::Ids(count.renamed(name)),
            Self::Ks(count) => Self::Ks(count.renamed(name)),
            Self::Consecutive(first, count) => {
                Self::Consecutive(first.renamed(name), count.renamed(name))
            }
            Self::Uniform(least, most) => Self::Uniform(least.renamed(name), most.renamed(name)),
            Self::Zipfian(least, most, exponent) => {
                Self::Zipfian(least.renamed(name), most.renamed(name), *exponent)
            }
            Self::Value(value) => Self::Value(value.renamed(name)),
        }
    }
}

impl Expression {
    fn names(&self, wanted: &str) -> bool {
        match self {
            Self::Parameter(name) => name == wanted,
            Self::Sum(left, right)
            | Self::Difference(left, right)
            | Self::Product(left, right)
            | Self::Quotient(left, right) => left.names(wanted) || right.names(wanted),
            Self::Integer(_) | Self::Rows | Self::Tables | Self::Thread => false,
        }
    }

    fn renamed(&self, name: &dyn Fn(&str) -> Option<String>) -> Self {
        let boxed = |it: &Self| Box::new(it.renamed(name));
        match self {
            Self::Integer(_) | Self::Rows | Self::Tables | Self::Thread => self.clone(),
            Self::Parameter(old) => Self::Parameter(name(old).unwrap_or_else(|| old.clone())),
            Self::Sum(left, right) => Self::Sum(boxed(left), boxed(right)),
            Self::Difference(left, right) => Self::Difference(boxed(left), boxed(right)),
            Self::Product(left, right) => Self::Product(boxed(left), boxed(right)),
            Self::Quotient(left, right) => Self::Quotient(boxed(left), boxed(right)),
        }
    }
}
