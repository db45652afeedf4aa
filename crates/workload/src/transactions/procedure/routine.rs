//! Writes the body of a transaction in the procedural language of an engine.

use plan::transactions::{
    Action, List, Number, ScriptStatement, ScriptStatements, SqlPiece, Taken, Transaction,
};
use words::excerpt;

use super::language::{
    Kind, Language, OUTCOME, Parts, Piece, ROWS, Sql, integer_name, list_name, text_name,
};
use super::places::{Places, actions_on};

/// The maximum length of a statement in a message, in characters. MySQL's messages are short.
const EXCERPT_CHARS: usize = 70;

/// A value that the client passes to a procedure, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transactions) enum Argument {
    Integer(usize),
    Text(usize),
    List(List),
}

/// A transaction in the procedural language of an engine.
pub(super) struct Routine {
    pub(super) arguments: Vec<Argument>,
    /// The name and the kind of each argument.
    pub(super) parameters: Vec<(String, Kind)>,
    /// The name and the kind of each variable.
    pub(super) variables: Vec<(String, Kind)>,
    /// The lines of the body.
    pub(super) body: String,
}

impl Routine {
    /// Compiles a transaction.
    pub(super) fn new(
        language: &dyn Language,
        statements: ScriptStatements,
        transaction: &Transaction,
    ) -> Self {
        let actions = actions_on(language.engine(), statements, &transaction.body);
        let mut assigned = Places::default();
        assigned.add_assigned(&actions);
        let mut read = Places::default();
        read.add_read(&actions);

        // What the body reads but does not assign is input.
        let mut arguments = Vec::new();
        let integers = read.integers.difference(&assigned.integers);
        arguments.extend(integers.map(|slot| Argument::Integer(*slot)));
        let texts = read.texts.difference(&assigned.texts);
        arguments.extend(texts.map(|slot| Argument::Text(*slot)));
        let lists = read.lists.iter().filter(|(place, _)| !assigned.lists.contains_key(place));
        arguments.extend(lists.map(|(_, list)| Argument::List(*list)));

        let mut variables = Vec::new();
        let integers = assigned.integers.iter();
        variables.extend(integers.map(|slot| (integer_name(*slot), Kind::Integer)));
        let texts = assigned.texts.iter();
        variables.extend(texts.map(|slot| (text_name(*slot), Kind::Text)));
        let lists = assigned.lists.values();
        variables.extend(lists.map(|list| (list_name(*list), Kind::List(list.capacity))));
        variables.push((ROWS.to_owned(), Kind::Integer));

        let mut writer = Writer { language, lines: String::new(), depth: 1, variables };
        writer.block(&actions);
        Self {
            parameters: arguments.iter().map(|argument| argument.parameter()).collect(),
            arguments,
            variables: writer.variables,
            body: writer.lines,
        }
    }

    /// Returns the kinds of the parameters.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        self.parameters.iter().map(|(_, kind)| *kind).collect()
    }

    /// Returns the parts of the procedure with a name.
    pub(super) fn parts<'a>(&'a self, name: &'a str) -> Parts<'a> {
        Parts { name, parameters: &self.parameters, variables: &self.variables, body: &self.body }
    }
}

impl Argument {
    /// Returns the name and the kind of the parameter.
    fn parameter(self) -> (String, Kind) {
        match self {
            Self::Integer(slot) => (integer_name(slot), Kind::Integer),
            Self::Text(slot) => (text_name(slot), Kind::Text),
            Self::List(list) => (list_name(list), Kind::List(list.capacity)),
        }
    }
}

struct Writer<'a> {
    language: &'a dyn Language,
    lines: String,
    depth: usize,
    /// The variables so far; blocks add some of their own.
    variables: Vec<(String, Kind)>,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.lines.push_str(&"    ".repeat(self.depth));
        self.lines.push_str(line);
        self.lines.push('\n');
    }

    fn all_lines(&mut self, lines: &[String]) {
        for line in lines {
            self.line(line);
        }
    }

    /// Writes lines that run if a condition holds.
    fn if_lines(&mut self, condition: &str, lines: &[String]) {
        self.line(&format!("if {condition} then"));
        self.depth += 1;
        self.all_lines(lines);
        self.depth -= 1;
        self.line("end if;");
    }

    fn assign(&mut self, variable: &str, value: &str) {
        let line = self.language.assignment(variable, value);
        self.line(&line);
    }

    /// Adds a variable of the writer's own, and returns its name.
    fn own_variable(&mut self) -> String {
        let name = format!("assay_x{}", self.variables.len());
        self.variables.push((name.clone(), Kind::Integer));
        name
    }

    fn block(&mut self, actions: &[Action]) {
        for action in actions {
            self.action(action);
        }
    }

    fn nested(&mut self, actions: &[Action]) {
        self.depth += 1;
        self.block(actions);
        // MySQL refuses a branch without statements.
        if actions.is_empty() {
            self.assign(ROWS, ROWS);
        }
        self.depth -= 1;
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Number { slot, value } => {
                self.assign(&integer_name(*slot), &self.language.number(value));
            }
            Action::Text { slot, value } => {
                self.assign(&text_name(*slot), &self.language.text(value));
            }
            Action::List { list, count, value } => {
                let values = self.language.repeated(*list, value, count);
                self.assign(&list_name(*list), &values);
            }
            Action::Statement(statement) => self.statement(statement),
            Action::If { condition, then, otherwise } => {
                let sql = self.language.condition(condition);
                self.line(&format!("if {sql} then"));
                self.nested(then);

                if !otherwise.is_empty() {
                    self.line("else");
                    self.nested(otherwise);
                }

                self.line("end if;");
            }
            Action::ForEach { lists, body } => self.for_each(lists, body),
            Action::ForRange { slot, from, to, body } => self.for_range(*slot, from, to, body),
            Action::Abort => self.all_lines(&self.language.abort()),
            // `actions_on` has replaced these.
            Action::On { .. } => {}
        }
    }

    fn for_each(&mut self, lists: &[(usize, List)], body: &[Action]) {
        let Some((_, first)) = lists.first() else {
            return;
        };
        let index = self.own_variable();
        let [begin, end] = self.language.loop_words();

        self.assign(&index, "0");
        let count = self.language.length(&list_name(*first));
        self.line(&format!("while {index} < {count} {begin}"));
        self.depth += 1;
        for (slot, list) in lists {
            let element = self.language.element(&list_name(*list), &index);
            self.assign(&integer_name(*slot), &element);
        }
        self.block(body);
        self.assign(&index, &format!("{index} + 1"));
        self.depth -= 1;
        self.line(end);
    }

    fn for_range(&mut self, slot: usize, from: &Number, to: &Number, body: &[Action]) {
        let number = integer_name(slot);
        let last = match to {
            Number::Constant(_) => self.language.number(to),
            // The last number is computed once, like the first one.
            _ => {
                let last = self.own_variable();
                self.assign(&last, &self.language.number(to));
                last
            }
        };
        let [begin, end] = self.language.loop_words();

        self.assign(&number, &self.language.number(from));
        self.line(&format!("while {number} <= {last} {begin}"));
        self.nested(body);
        self.depth += 1;
        self.assign(&number, &format!("{number} + 1"));
        self.depth -= 1;
        self.line(end);
    }

    /// Writes a statement, and the check of its rows and of the values that it assigns.
    fn statement(&mut self, statement: &ScriptStatement) {
        let written = self.sql(&statement.pieces);
        let names: Vec<String> = statement.into.iter().map(|taken| variable_name(*taken)).collect();
        let sql = Sql {
            text: &written.text,
            locking: written.locking,
            into: &names,
            returns_rows: returns_rows(statement, &written.shown),
        };

        let shown = format!("`{}`", excerpt(written.shown.trim_end(), EXCERPT_CHARS));
        let rows = statement.rows.as_ref();
        let expected = rows.map(|(least, most)| self.expected(least, most));
        let wrong_rows = |found: Piece<'_>| {
            let (before, after) = ("a statement has ", " rows instead of ");
            let mut message = vec![Piece::Text(before), found, Piece::Text(after)];
            message.extend(expected.iter().flatten().map(Expression::piece));
            message.extend([Piece::Text(": "), Piece::Text(&shown)]);
            self.language.failure(&message)
        };

        let failure = wrong_rows(Piece::Value(ROWS));
        let run = self.language.run(&sql, &wrong_rows(Piece::Text("several")));
        self.all_lines(&run);
        if let Some((least, most)) = rows {
            self.check(least, most, &statement.into, &failure, &shown);
        }
        self.assign(OUTCOME, &format!("{OUTCOME} + {ROWS}"));
    }

    /// Writes the check of a statement's rows, and of the values that it assigns: none may be NULL.
    /// Without a row, they are 0 and empty texts.
    fn check(
        &mut self,
        least: &Number,
        most: &Number,
        into: &[Taken],
        wrong_rows: &[String],
        shown: &str,
    ) {
        if !into.is_empty() && !matches!(least, Number::Constant(1..)) {
            let mut lines = Vec::new();
            for taken in into {
                let value = match taken {
                    Taken::Integer(_) => "0",
                    Taken::Text(_) => "''",
                };
                lines.push(self.language.assignment(&variable_name(*taken), value));
            }
            self.if_lines(&format!("{ROWS} = 0"), &lines);
        }

        let condition = if least == most {
            format!("{ROWS} <> {}", self.language.number(least))
        } else {
            let [least, most] = [least, most].map(|bound| self.language.number(bound));
            format!("{ROWS} < {least} or {ROWS} > {most}")
        };
        if into.is_empty() {
            self.if_lines(&condition, wrong_rows);
            return;
        }

        // One condition for both, which is computed faster than two.
        let nulls = into.iter().map(|taken| format!(" or {} is null", variable_name(*taken)));
        let nulls: String = nulls.collect();
        self.line(&format!("if {condition}{nulls} then"));
        self.depth += 1;
        self.if_lines(&condition, wrong_rows);
        let message = [Piece::Text("a column is NULL: "), Piece::Text(shown)];
        self.all_lines(&self.language.failure(&message));
        self.depth -= 1;
        self.line("end if;");
    }

    /// Returns the expected number of rows as the pieces of a message.
    fn expected(&self, least: &Number, most: &Number) -> Vec<Expression> {
        let bound = |number: &Number| match number {
            Number::Constant(value) => Expression::Text(value.to_string()),
            _ => Expression::Value(self.language.number(number)),
        };
        if least == most {
            return vec![bound(least)];
        }
        vec![bound(least), Expression::Text(" to ".to_owned()), bound(most)]
    }

    /// Writes the text of a statement, after the assignments of parameters that are not simple.
    fn sql(&mut self, pieces: &[SqlPiece]) -> WrittenSql {
        let mut written = WrittenSql::default();
        for (place, piece) in pieces.iter().enumerate() {
            let value = match piece {
                SqlPiece::Fixed(fixed) => {
                    written.text.push_str(fixed);
                    written.shown.push_str(fixed);
                    continue;
                }
                SqlPiece::ForUpdate => {
                    // At the end of a statement, `into` comes before the clause.
                    if pieces[place + 1..].iter().all(is_blank) {
                        written.locking = "for update";
                    } else {
                        written.text.push_str("for update");
                    }
                    continue;
                }

                SqlPiece::Text(slot) => text_name(*slot),
                SqlPiece::Number { value, is_wide } => self.parameter(value, *is_wide),
            };

            written.text.push_str(&value);
            written.shown.push('?');
        }
        written
    }

    /// Returns the parameter of a statement with a number, after its assignment to a variable where
    /// the engine needs that.
    fn parameter(&mut self, number: &Number, is_wide: bool) -> String {
        let expression = self.language.number(number);
        let is_simple = matches!(number, Number::Constant(_) | Number::Variable(_));
        if is_simple || self.language.has_expressions_as_parameters() {
            return self.language.parameter(&expression, is_wide);
        }

        let variable = self.own_variable();
        self.assign(&variable, &expression);
        self.language.parameter(&variable, is_wide)
    }
}

/// A part of a message: a text, or the text of an expression.
enum Expression {
    Text(String),
    Value(String),
}

impl Expression {
    fn piece(&self) -> Piece<'_> {
        match self {
            Self::Text(text) => Piece::Text(text),
            Self::Value(value) => Piece::Value(value),
        }
    }
}

/// The text of a statement.
#[derive(Default)]
struct WrittenSql {
    text: String,
    /// The locking clause.
    locking: &'static str,
    /// The text without values, for messages.
    shown: String,
}

fn is_blank(piece: &SqlPiece) -> bool {
    match piece {
        SqlPiece::Fixed(fixed) => fixed.trim().is_empty(),
        SqlPiece::Number { .. } | SqlPiece::Text(_) | SqlPiece::ForUpdate => false,
    }
}

fn variable_name(taken: Taken) -> String {
    match taken {
        Taken::Integer(slot) => integer_name(slot),
        Taken::Text(slot) => text_name(slot),
    }
}

/// Returns whether a statement returns rows.
fn returns_rows(statement: &ScriptStatement, sql: &str) -> bool {
    let first_word = sql.split(|letter: char| !letter.is_ascii_alphabetic()).next();
    statement.only_reads || first_word.is_some_and(|word| word.eq_ignore_ascii_case("select"))
}
