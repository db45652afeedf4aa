//! Reads a whole script: its tables, transactions, tests and checks.

use super::bounded::Bounded;
use super::parser::{Draws, Fault, Parser, Symbol, fault};
use super::table_values::DefinedTable;
use crate::spec::transactions::{
    ColumnValue, DataCheck, Expected, Mix, Number, NumberOperator, Script, ScriptColumn,
    ScriptStatement, ScriptTable, ScriptType, SqlPiece, TextValue,
};
use crate::text::wording::{choices, code};

/// The most rows of a table.
const ROWS_MAX: i64 = 10_000_000_000_000;
/// The longest text of a column.
const LENGTH_MAX: i64 = 16_000;
/// The most columns of a table.
const COLUMNS_MAX: usize = 200;

const TYPES: [&str; 6] = ["int", "bigint", "decimal", "char", "varchar", "timestamp"];
const ITEMS: &str = "`table`, `transaction`, `test` or `check`";

/// The values on which a script depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) scale: i64,
    pub(super) clients: u32,
}

/// Reads a script.
pub(super) fn script(text: &str, sizes: Sizes) -> Result<Script, Fault> {
    let scale = Bounded::constant(sizes.scale);
    let clients = Bounded::constant(sizes.clients.max(1).into());
    let globals = [
        ("scale".to_owned(), Symbol::Number(scale)),
        ("clients".to_owned(), Symbol::Number(clients)),
    ];

    let mut parser = Parser::new(text);
    let mut script = Script::default();
    loop {
        let keyword = parser.peek();
        parser.at = keyword.end;
        match &text[keyword.clone()] {
            "" => break,
            "table" => {
                let table = parser.table(&globals)?;
                refuse_twice("table", &table.name, &script.tables, |table| &table.name, keyword)?;
                parser.tables.push(DefinedTable {
                    name: table.name.clone(),
                    rows: table.rows,
                    has_condition: table.condition.is_some(),
                });
                script.tables.push(table);
            }
            "transaction" => {
                let transaction = parser.transaction(&globals, sizes.clients)?;
                let name = &transaction.name;
                let known = &script.transactions;
                refuse_twice("transaction", name, known, |known| &known.name, keyword)?;
                script.transactions.push(transaction);
            }
            "test" => {
                let test = parser.test(&script)?;
                refuse_twice("test", &test.name, &script.tests, |test| &test.name, keyword)?;
                script.tests.push(test);
            }
            "check" => {
                let check = parser.check(&script, &globals)?;
                script.checks.push(check);
            }
            _ => {
                parser.at = keyword.start;
                return Err(parser.unexpected(ITEMS));
            }
        }
    }

    add_tests_of_transactions(&mut script);

    if script.transactions.is_empty() || script.tables.is_empty() {
        let what = "a script needs a table and a transaction";
        return Err(fault("plan::bad-script", 0..text.len().min(1), what, "nothing to measure"));
    }

    Ok(script)
}

/// Adds a test of each transaction that no test is named after.
fn add_tests_of_transactions(script: &mut Script) {
    for (index, transaction) in script.transactions.iter().enumerate() {
        if !script.tests.iter().any(|test| test.name == transaction.name) {
            let name = transaction.name.clone();
            let parts = vec![(index, 1)];
            script.tests.push(Mix { name, parts, is_defined: false, per_minute: None });
        }
    }
}

fn refuse_twice<T>(
    what: &str,
    name: &str,
    known: &[T],
    name_of: fn(&T) -> &String,
    span: std::ops::Range<usize>,
) -> Result<(), Fault> {
    if !known.iter().any(|known| name_of(known) == name) {
        return Ok(());
    }
    let message = format!("{what} {} is defined twice", code(name));
    Err(fault("plan::bad-name", span, message, "the second one"))
}

impl Parser<'_> {
    /// Takes a table after its keyword.
    fn table(&mut self, globals: &[(String, Symbol)]) -> Result<ScriptTable, Fault> {
        let span = self.peek();
        let name = self.name("the name of a table")?.to_owned();

        // The first integer is the row's number, whose bounds the rows give, which come last.
        self.scope.named = globals.to_vec();
        (self.scope.integers, self.scope.texts) = (1, 0);
        self.scope.draws = Draws::Allowed;
        self.scope.is_table = true;
        let row = Bounded::variable(0, (1, ROWS_MAX));
        self.scope.named.push(("row".to_owned(), Symbol::Number(row)));

        self.expect("(")?;
        let mut columns = vec![self.column()?];
        while self.take(",") {
            columns.push(self.column()?);
        }
        self.expect(")")?;
        if columns.len() > COLUMNS_MAX {
            let message = format!("table {} has {} columns", code(&name), columns.len());
            let label = format!("at most {COLUMNS_MAX} are allowed");
            return Err(fault("plan::out-of-range", span, message, label));
        }

        let key = if self.take("key") { self.known_names(&columns)? } else { Vec::new() };
        let mut indexes = Vec::new();
        while self.take("index") {
            let index = self.name("the name of an index")?.to_owned();
            indexes.push((index, self.known_names(&columns)?));
        }
        self.expect("rows")?;
        let rows = self.constant("the number of rows", 0..=ROWS_MAX)?.unsigned_abs();
        let condition = if self.take("where") { Some(self.number()?.number) } else { None };
        self.expect(";")?;

        let integers = self.scope.integers;
        Ok(ScriptTable { name, columns, key, indexes, rows, condition, integers })
    }

    /// Takes names of columns in parentheses.
    fn known_names(&mut self, columns: &[ScriptColumn]) -> Result<Vec<String>, Fault> {
        let start = self.peek().start;
        let names = self.names("the name of a column")?;
        let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        match names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(names),
            Some(unknown) => {
                let message = format!("unknown column {}", code(unknown));
                let mut fault = fault(
                    "plan::unknown-name",
                    start..self.at,
                    message,
                    "not a column of the table",
                );
                fault.help(choices(unknown, "columns", &known));
                Err(fault)
            }
        }
    }

    fn column(&mut self) -> Result<ScriptColumn, Fault> {
        let name = self.name("the name of a column")?.to_owned();
        let kind = self.column_type()?;
        let nullable = self.take("null");
        if !self.take("=") {
            let value = usual_value(kind, nullable);
            return Ok(ScriptColumn { name, kind, nullable, value, condition: None });
        }

        let value = self.column_value(kind)?;
        let when = self.peek();
        let condition = if self.take("when") { Some(self.number()?.number) } else { None };
        if condition.is_some() && !nullable {
            let message = format!("column {} has a condition, but cannot be NULL", code(&name));
            let mut fault = fault("plan::bad-script", when, message, "NULL where it does not hold");
            fault.help("write `null` after the column's type");
            return Err(fault);
        }
        Ok(ScriptColumn { name, kind, nullable, value, condition })
    }

    fn column_type(&mut self) -> Result<ScriptType, Fault> {
        let span = self.peek();
        let name = self.name("the type of a column")?;
        let kind = match name {
            "int" => ScriptType::Int,
            "bigint" => ScriptType::Bigint,
            "timestamp" => ScriptType::Timestamp,
            "char" => ScriptType::Char(self.column_length()?),
            "varchar" => ScriptType::Varchar(self.column_length()?),
            "decimal" => self.decimal_type()?,
            _ => {
                let message = format!("unknown type {}", code(name));
                let mut fault = fault("plan::bad-script", span, message, "not a type");
                fault.help(choices(name, "types", &TYPES));
                return Err(fault);
            }
        };
        Ok(kind)
    }

    /// Takes the length of a type of texts: `(20)`.
    fn column_length(&mut self) -> Result<u32, Fault> {
        self.expect("(")?;
        let length = self.constant("the length", 1..=LENGTH_MAX)?;
        self.expect(")")?;
        Ok(u32::try_from(length).unwrap_or(u32::MAX))
    }

    /// Takes the digits of a decimal number, and those after its point: `(12, 2)`.
    fn decimal_type(&mut self) -> Result<ScriptType, Fault> {
        self.expect("(")?;
        let digits = self.constant("the number of digits", 1..=18)?;
        self.expect(",")?;
        let decimals = self.constant("the number of decimals", 0..=digits)?;
        self.expect(")")?;

        let count = |constant| u32::try_from(constant).unwrap_or(u32::MAX);
        Ok(ScriptType::Decimal { digits: count(digits), decimals: count(decimals) })
    }

    /// Takes the value of a column of this type.
    fn column_value(&mut self, kind: ScriptType) -> Result<ColumnValue, Fault> {
        match kind {
            _ if self.take("null") => Ok(ColumnValue::Null),
            ScriptType::Char(_) | ScriptType::Varchar(_) => {
                self.text_value().map(ColumnValue::Text)
            }
            ScriptType::Timestamp => {
                self.expect("now")?;
                Ok(ColumnValue::Now)
            }
            ScriptType::Int | ScriptType::Bigint | ScriptType::Decimal { .. } => {
                Ok(ColumnValue::Number(self.number()?.number))
            }
        }
    }

    /// Takes a test after its keyword.
    fn test(&mut self, script: &Script) -> Result<Mix, Fault> {
        let name = self.name("the name of a test")?.to_owned();
        self.expect("=")?;

        let mut parts = Vec::new();
        loop {
            let transaction = self.known_transaction(script)?;
            let has_weight = self.ahead().starts_with(|c: char| c.is_ascii_digit());
            let weight = if has_weight { self.constant("a weight", 1..=1_000_000)? } else { 1 };
            parts.push((transaction, u32::try_from(weight).unwrap_or(1)));
            if !self.take(",") {
                break;
            }
        }

        let per_minute = self.rate_per_minute()?;
        self.expect(";")?;
        Ok(Mix { name, parts, is_defined: true, per_minute })
    }

    /// Takes the name of a test's throughput per minute; `None` if the test has none.
    fn rate_per_minute(&mut self) -> Result<Option<String>, Fault> {
        if !self.take("per") {
            return Ok(None);
        }
        self.expect("minute")?;

        let span = self.peek();
        let Some(name) = self.quoted('"') else {
            return Err(self.unexpected("the name of the rate, in double quotes"));
        };
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            let message = "a rate needs a name of one line";
            return Err(fault("plan::bad-text", span, message, "expected text"));
        }
        Ok(Some(name))
    }

    /// Takes the name of a transaction that is defined above, and returns its index.
    fn known_transaction(&mut self, script: &Script) -> Result<usize, Fault> {
        let span = self.peek();
        let name = self.name("the name of a transaction")?;
        let mut transactions = script.transactions.iter();
        transactions.position(|transaction| transaction.name == name).ok_or_else(|| {
            let known: Vec<&str> =
                script.transactions.iter().map(|known| known.name.as_str()).collect();
            let message = format!("unknown transaction {}", code(name));
            let mut fault = fault("plan::unknown-name", span, message, "not defined above");
            fault.help(choices(name, "transactions above", &known));
            fault
        })
    }

    /// Takes a check after its keyword.
    fn check(&mut self, script: &Script, globals: &[(String, Symbol)]) -> Result<DataCheck, Fault> {
        let Some(name) = self.quoted('"') else {
            return Err(self.unexpected("what is checked, in double quotes"));
        };
        self.scope.named = globals.to_vec();
        let only_after_load = self.take("after");
        if only_after_load {
            self.expect("load")?;
        }
        self.expect("=")?;
        let expected = self.expected(script)?;
        self.expect(":")?;

        let start = self.peek().start;
        let ScriptStatement { pieces, .. } = self.sql()?;
        let mut sql = String::new();
        for piece in pieces {
            match piece {
                SqlPiece::Fixed(fixed) => sql.push_str(&fixed),
                SqlPiece::Number { value: Number::Constant(value), .. } => {
                    sql.push_str(&value.to_string());
                }
                _ => {
                    let message = "a parameter of a check is not a constant";
                    let label = "a check has no values but `scale` and `clients`";
                    return Err(fault("plan::bad-sql", start..self.at, message, label));
                }
            }
        }
        Ok(DataCheck { name, only_after_load, sql, expected })
    }

    /// Takes the value that a check expects: constants and numbers of commits with `+` or `-`
    /// between them.
    fn expected(&mut self, script: &Script) -> Result<Expected, Fault> {
        let mut expected = Expected { constant: 0, committed: Vec::new() };
        let mut sign = 1;
        loop {
            if self.take("committed") {
                self.expect("(")?;
                expected.committed.push((self.known_transaction(script)?, sign));
                self.expect(")")?;
            } else {
                let start = self.peek().start;
                let term = self.term()?;
                let sum = NumberOperator::Multiply
                    .apply(term, sign)
                    .and_then(|term| expected.constant.checked_add(term));
                expected.constant = sum.ok_or_else(|| {
                    let message = "the result needs more than 64 bits";
                    fault("plan::bad-expression", start..self.at, message, "too large")
                })?;
            }

            if self.take("+") {
                sign = 1;
            } else if self.take("-") {
                sign = -1;
            } else {
                return Ok(expected);
            }
        }
    }

    /// Takes a constant term.
    fn term(&mut self) -> Result<i64, Fault> {
        let start = self.peek().start;
        let value = self.product()?.as_constant();
        value.ok_or_else(|| {
            let message = "the expected value is not a constant";
            fault("plan::bad-expression", start..self.at, message, "expected a constant")
        })
    }
}

/// Returns the value of a column for which a script has none. An empty table needs none.
fn usual_value(kind: ScriptType, nullable: bool) -> ColumnValue {
    match kind {
        _ if nullable => ColumnValue::Null,
        ScriptType::Timestamp => ColumnValue::Now,
        ScriptType::Char(_) | ScriptType::Varchar(_) => {
            ColumnValue::Text(TextValue::Constant(String::new()))
        }
        _ => ColumnValue::Number(Bounded::constant(0).number),
    }
}
