//! What parameters of tests are: `first + range - 1`, `ids(10)`, `c`.

use words::counted;

use crate::spec::{Draw, Expression};
use crate::wording::{code, did_you_mean, list};

/// The parts of an expression that are known without a definition.
pub(crate) const VARIABLES: [&str; 3] = ["rows", "tables", "thread"];

/// What is drawn, and stands alone.
const DRAWS: [&str; 4] = ["id", "k", "c", "pad"];

const FUNCTIONS: [&str; 5] = ["ids", "ks", "consecutive", "uniform", "zipfian"];

const FORMS: &str = "`id`, `k`, `c`, `pad`, `ids(N)`, `ks(N)`, `consecutive(first, N)`, `uniform(least, most)`, \
     `zipfian(least, most)`, or an integer computed with `+ - * /`";

/// Brackets within brackets: nobody needs as many.
const DEPTH_MOST: u32 = 32;
/// Bytes of an expression: what is read of it is no deeper.
const LONGEST: usize = 1_000;

/// The exponent of sysbench's own zipfian distribution.
pub(crate) const EXPONENT: f64 = 0.8;
/// Beyond it nearly all draws are the first.
pub(crate) const EXPONENT_MOST: f64 = 10.0;

/// Why text is no expression.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) code: &'static str,
    /// The bytes of the text that are wrong.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
}

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Integer,
    Text,
    List,
    /// It could not be read, which was said.
    Unknown,
}

impl Holds {
    pub(crate) fn of(draw: &Draw) -> Self {
        match draw {
            Draw::C | Draw::Pad => Self::Text,
            Draw::Ids(_) | Draw::Ks(_) | Draw::Consecutive(..) => Self::List,
            Draw::Id | Draw::K | Draw::Uniform(..) | Draw::Zipfian(..) | Draw::Value(_) => {
                Self::Integer
            }
        }
    }
}

/// The names that an expression may have in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) arguments: Vec<(String, i64)>,
    pub(crate) parameters: Vec<(String, Holds)>,
    /// Those that something has in it.
    pub(crate) used: Vec<String>,
}

impl Scope {
    /// All names, for people.
    pub(crate) fn names(&self) -> Vec<&str> {
        let arguments = self.arguments.iter().map(|(name, _)| name.as_str());
        let parameters = self.parameters.iter().map(|(name, _)| name.as_str());
        arguments.chain(parameters).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    pub(crate) fn mark(&mut self, name: &str) {
        if !self.used.iter().any(|other| other == name) {
            self.used.push(name.to_owned());
        }
    }
}

/// Whether text may be the name of a parameter or an argument, as far as its letters go.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Reads what a parameter is.
pub(crate) fn draw(text: &str, scope: &mut Scope) -> Result<Draw, Wrong> {
    check_length(text)?;
    let mut parser = Parser::new(text, scope);
    let first = parser.token;
    let Token::Name(name) = first.token else {
        return parser.whole().map(Draw::Value);
    };
    let rest = text[first.end..].trim_start();
    if rest.is_empty() {
        match name {
            "id" => return Ok(Draw::Id),
            "k" => return Ok(Draw::K),
            "c" => return Ok(Draw::C),
            "pad" => return Ok(Draw::Pad),
            _ => {}
        }
    }
    if !rest.starts_with('(') {
        return parser.whole().map(Draw::Value);
    }
    parser.function(name, first)
}

/// Reads an expression whose value is an integer.
pub(crate) fn integer(text: &str, scope: &mut Scope) -> Result<Expression, Wrong> {
    check_length(text)?;
    Parser::new(text, scope).whole()
}

fn check_length(text: &str) -> Result<(), Wrong> {
    if text.len() <= LONGEST {
        return Ok(());
    }
    let message = format!("an expression of {} characters", text.chars().count());
    Err(bad(0, text.len(), message, "too long for anyone"))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Number(&'a str),
    Name(&'a str),
    Symbol(char),
    End,
}

#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    token: Token<'a>,
    start: usize,
    end: usize,
}

struct Parser<'a, 's> {
    text: &'a str,
    scope: &'s mut Scope,
    /// The next one.
    token: Placed<'a>,
    depth: u32,
}

impl<'a, 's> Parser<'a, 's> {
    fn new(text: &'a str, scope: &'s mut Scope) -> Self {
        Self {
            text,
            scope,
            token: token(text, 0),
            depth: 0,
        }
    }

    /// Takes the next token.
    fn next(&mut self) -> Placed<'a> {
        let taken = self.token;
        self.token = token(self.text, taken.end);
        taken
    }

    fn take(&mut self, symbol: char) -> bool {
        let is_next = self.token.token == Token::Symbol(symbol);
        if is_next {
            self.next();
        }
        is_next
    }

    /// An expression that is all of the text.
    fn whole(&mut self) -> Result<Expression, Wrong> {
        let expression = self.sum()?;
        self.end()?;
        Ok(expression)
    }

    fn end(&mut self) -> Result<(), Wrong> {
        match self.token.token {
            Token::End => Ok(()),
            _ => Err(self.unexpected("`+`, `-`, `*`, `/` or nothing")),
        }
    }

    fn sum(&mut self) -> Result<Expression, Wrong> {
        let mut left = self.product()?;
        loop {
            if self.take('+') {
                left = Expression::Sum(Box::new(left), Box::new(self.product()?));
            } else if self.take('-') {
                left = Expression::Difference(Box::new(left), Box::new(self.product()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Result<Expression, Wrong> {
        let mut left = self.factor()?;
        loop {
            if self.take('*') {
                left = Expression::Product(Box::new(left), Box::new(self.factor()?));
            } else if self.take('/') {
                let start = self.token.start;
                let right = self.factor()?;
                let divisor = folded(&right, &self.scope.arguments);
                if divisor == Ok(Expression::Integer(0)) {
                    let end = self.text[..self.token.start].trim_end().len();
                    return Err(bad(start, end, "division by zero".to_owned(), "is 0"));
                }
                left = Expression::Quotient(Box::new(left), Box::new(right));
            } else {
                return Ok(left);
            }
        }
    }

    fn factor(&mut self) -> Result<Expression, Wrong> {
        let placed = self.token;
        match placed.token {
            Token::Number(digits) => {
                self.next();
                digits.parse().map(Expression::Integer).map_err(|_| {
                    let label = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                        "more than 64 bits"
                    } else {
                        "not a whole number"
                    };
                    let message = format!("{} can't be calculated with", code(digits));
                    bad(placed.start, placed.end, message, label)
                })
            }
            Token::Name(name) => {
                self.next();
                self.name(name, placed)
            }
            Token::Symbol('(') => self.deeper(|parser| {
                parser.next();
                let inner = parser.sum()?;
                if parser.take(')') {
                    Ok(inner)
                } else {
                    Err(parser.unexpected("`)`"))
                }
            }),
            Token::Symbol('-') => self.deeper(|parser| {
                parser.next();
                let zero = Box::new(Expression::Integer(0));
                Ok(Expression::Difference(zero, Box::new(parser.factor()?)))
            }),
            _ => Err(self.unexpected("a number, a name or `(`")),
        }
    }

    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Expression, Wrong>,
    ) -> Result<Expression, Wrong> {
        if self.depth == DEPTH_MOST {
            let message = format!("more than {DEPTH_MOST} brackets within brackets");
            return Err(bad(
                self.token.start,
                self.token.end,
                message,
                "too deep for anyone",
            ));
        }
        self.depth += 1;
        let inner = read(self);
        self.depth -= 1;
        inner
    }

    /// A name within an expression.
    fn name(&mut self, name: &str, placed: Placed<'a>) -> Result<Expression, Wrong> {
        let alone = "stands alone: give it a parameter of its own, and use that here";
        if self.token.token == Token::Symbol('(') {
            return Err(if FUNCTIONS.contains(&name) {
                let message = format!("{} within an expression", code(name));
                bad(placed.start, placed.end, message, "not a part of one")
                    .help(format!("{} {alone}", code(name)))
            } else {
                unknown_function(name, placed)
            });
        }
        match name {
            "rows" => return Ok(Expression::Rows),
            "tables" => return Ok(Expression::Tables),
            "thread" => return Ok(Expression::Thread),
            _ => {}
        }
        let holds = self
            .scope
            .parameters
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, holds)| *holds);
        let refuse = |what: &str| {
            let message = format!("{} is {what} and can't be calculated with", code(name));
            Err(bad(placed.start, placed.end, message, "not an integer"))
        };
        match holds {
            Some(Holds::Text) => return refuse("text"),
            Some(Holds::List) => return refuse("a list"),
            Some(Holds::Integer | Holds::Unknown) => {}
            None if self.scope.arguments.iter().any(|(other, _)| other == name) => {}
            None => {
                let mut known = VARIABLES.to_vec();
                known.extend(self.scope.names());
                let help = if DRAWS.contains(&name) || FUNCTIONS.contains(&name) {
                    format!("{} {alone}", code(name))
                } else {
                    format!("{}known here: {}", did_you_mean(name, &known), list(&known))
                };
                let message = format!("unknown name {}", code(name));
                return Err(Wrong {
                    code: "plan::unknown-parameter",
                    ..bad(placed.start, placed.end, message, "not defined before").help(help)
                });
            }
        }
        self.scope.mark(name);
        Ok(Expression::Parameter(name.to_owned()))
    }

    /// A function that is all of the text.
    fn function(&mut self, name: &str, placed: Placed<'a>) -> Result<Draw, Wrong> {
        if !FUNCTIONS.contains(&name) {
            return Err(unknown_function(name, placed));
        }
        self.next();
        self.next();
        let mut values = Vec::new();
        let mut exponent = None;
        if !self.take(')') {
            loop {
                if name == "zipfian" && values.len() == 2 {
                    exponent = Some(self.exponent()?);
                } else {
                    values.push(self.sum()?);
                }
                if self.take(')') {
                    break;
                }
                if exponent.is_some() || !self.take(',') {
                    return Err(self.unexpected("`,` or `)`"));
                }
            }
        }
        let closed = self.text[..self.token.start].trim_end().len();
        self.end()?;
        let wanted = if matches!(name, "ids" | "ks") { 1 } else { 2 };
        let got = values.len();
        let mut values = values.into_iter();
        match (name, values.next(), values.next(), values.next()) {
            ("ids", Some(count), None, _) => Ok(Draw::Ids(count)),
            ("ks", Some(count), None, _) => Ok(Draw::Ks(count)),
            ("consecutive", Some(first), Some(count), None) => Ok(Draw::Consecutive(first, count)),
            ("uniform", Some(least), Some(most), None) => Ok(Draw::Uniform(least, most)),
            ("zipfian", Some(least), Some(most), None) => {
                Ok(Draw::Zipfian(least, most, exponent.unwrap_or(EXPONENT)))
            }
            _ => {
                let message = format!("{} has {}", code(name), counted(got, "argument"));
                let wrong = bad(
                    placed.start,
                    closed,
                    message,
                    &format!("{wanted} are wanted"),
                );
                Err(wrong.help(format!("a parameter is {FORMS}")))
            }
        }
    }

    fn exponent(&mut self) -> Result<f64, Wrong> {
        let placed = self.next();
        let number = match placed.token {
            Token::Number(digits) => digits.parse().ok(),
            _ => None,
        };
        number
            .filter(|exponent| *exponent > 0.0 && *exponent <= EXPONENT_MOST)
            .ok_or_else(|| {
                let got = code(&self.text[placed.start..placed.end]);
                let message = format!("the exponent of a zipfian distribution is {got}");
                let label = format!("expected a number above 0, at most {EXPONENT_MOST}");
                bad(placed.start, placed.end, message, &label)
            })
    }

    fn unexpected(&self, wanted: &str) -> Wrong {
        let Placed { token, start, end } = self.token;
        let message = match token {
            Token::End => "the expression is not complete".to_owned(),
            _ => format!("unexpected {}", code(&self.text[start..end])),
        };
        bad(start, end, message, &format!("expected {wanted}"))
            .help(format!("a parameter is {FORMS}"))
    }
}

fn unknown_function(name: &str, placed: Placed<'_>) -> Wrong {
    let message = format!("unknown function {}", code(name));
    bad(placed.start, placed.end, message, "not a function").help(format!(
        "{}a parameter is {FORMS}",
        did_you_mean(name, &FUNCTIONS)
    ))
}

fn bad(start: usize, end: usize, message: String, label: &str) -> Wrong {
    Wrong {
        code: "plan::bad-expression",
        start,
        end,
        message,
        label: label.to_owned(),
        help: None,
    }
}

impl Wrong {
    fn help(mut self, help: String) -> Self {
        self.help = Some(help);
        self
    }
}

/// The token that begins at `from` or after it.
fn token(text: &str, from: usize) -> Placed<'_> {
    let rest = &text[from..];
    let start = from + (rest.len() - rest.trim_start().len());
    let rest = &text[start..];
    let while_is = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
    let (token, length) = match rest.chars().next() {
        None => (Token::End, 0),
        Some(c) if c.is_ascii_digit() => {
            let length = while_is(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
            (Token::Number(&rest[..length]), length)
        }
        Some(c) if c.is_alphabetic() || c == '_' => {
            let length = while_is(|c| c.is_alphanumeric() || c == '_');
            (Token::Name(&rest[..length]), length)
        }
        Some(c) => (Token::Symbol(c), c.len_utf8()),
    };
    Placed {
        token,
        start,
        end: start + length,
    }
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    DivisionByZero,
    /// What it divides by lies between these, and so may be 0.
    MayDivideByZero(Bounds),
    TooLarge,
}

/// The least and the most that an integer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: i64,
    pub(crate) most: i64,
}

impl Bounds {
    pub(crate) fn new(least: i64, most: i64) -> Self {
        Self { least, most }
    }
}

/// What expressions depend on besides arguments and parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) rows: u64,
    pub(crate) tables: u32,
    /// The most clients of any cell.
    pub(crate) clients: u32,
}

/// The expression with the arguments put in and constants computed.
pub(crate) fn folded(
    expression: &Expression,
    arguments: &[(String, i64)],
) -> Result<Expression, NoValue> {
    type Make = fn(Box<Expression>, Box<Expression>) -> Expression;
    type Compute = fn(i64, i64) -> Option<i64>;
    let (left, right, make, compute): (_, _, Make, Compute) = match expression {
        Expression::Parameter(name) => {
            let argument = arguments.iter().find(|(other, _)| other == name);
            return Ok(match argument {
                Some((_, value)) => Expression::Integer(*value),
                None => expression.clone(),
            });
        }
        Expression::Integer(_) | Expression::Rows | Expression::Tables | Expression::Thread => {
            return Ok(expression.clone());
        }
        Expression::Sum(left, right) => (left, right, Expression::Sum, i64::checked_add),
        Expression::Difference(left, right) => {
            (left, right, Expression::Difference, i64::checked_sub)
        }
        Expression::Product(left, right) => (left, right, Expression::Product, i64::checked_mul),
        Expression::Quotient(left, right) => (left, right, Expression::Quotient, i64::checked_div),
    };
    let (left, right) = (folded(left, arguments)?, folded(right, arguments)?);
    match (&left, &right) {
        (_, Expression::Integer(0)) if matches!(expression, Expression::Quotient(..)) => {
            Err(NoValue::DivisionByZero)
        }
        (Expression::Integer(left), Expression::Integer(right)) => compute(*left, *right)
            .map(Expression::Integer)
            .ok_or(NoValue::TooLarge),
        _ => Ok(make(Box::new(left), Box::new(right))),
    }
}

/// What an expression comes to, where that is known before anything is drawn.
pub(crate) fn constant(expression: &Expression, sizes: &Sizes) -> Option<i64> {
    let value = |expression: &Expression| constant(expression, sizes);
    match expression {
        Expression::Integer(value) => Some(*value),
        Expression::Rows => i64::try_from(sizes.rows).ok(),
        Expression::Tables => Some(sizes.tables.into()),
        Expression::Thread | Expression::Parameter(_) => None,
        Expression::Sum(left, right) => value(left)?.checked_add(value(right)?),
        Expression::Difference(left, right) => value(left)?.checked_sub(value(right)?),
        Expression::Product(left, right) => value(left)?.checked_mul(value(right)?),
        Expression::Quotient(left, right) => value(left)?.checked_div(value(right)?),
    }
}

/// Between what the values of an expression lie, if those of its parameters lie between what `known` says; the last
/// of a name counts.
pub(crate) fn bounds(
    expression: &Expression,
    sizes: &Sizes,
    known: &[(String, Bounds)],
) -> Result<Bounds, NoValue> {
    let (left, right, compute): (_, _, fn(i64, i64) -> Option<i64>) = match expression {
        Expression::Integer(value) => return Ok(Bounds::new(*value, *value)),
        Expression::Rows => {
            let rows = i64::try_from(sizes.rows).map_err(|_| NoValue::TooLarge)?;
            return Ok(Bounds::new(rows, rows));
        }
        Expression::Tables => return Ok(Bounds::new(sizes.tables.into(), sizes.tables.into())),
        Expression::Thread => return Ok(Bounds::new(0, i64::from(sizes.clients.max(1)) - 1)),
        Expression::Parameter(name) => {
            let of_it = known.iter().rev().find(|(other, _)| other == name);
            // What is no integer was refused when it was read.
            return Ok(of_it.map_or(Bounds::new(1, 1), |(_, bounds)| *bounds));
        }
        Expression::Sum(left, right) => (left, right, i64::checked_add),
        Expression::Difference(left, right) => (left, right, i64::checked_sub),
        Expression::Product(left, right) => (left, right, i64::checked_mul),
        Expression::Quotient(left, right) => (left, right, i64::checked_div),
    };
    let (left, right) = (bounds(left, sizes, known)?, bounds(right, sizes, known)?);
    if matches!(expression, Expression::Quotient(..)) && right.least <= 0 && right.most >= 0 {
        return Err(NoValue::MayDivideByZero(right));
    }
    // Each operator is monotonous in both sides, so that its extremes are those of the corners.
    let mut corners = Vec::with_capacity(4);
    for left in [left.least, left.most] {
        for right in [right.least, right.most] {
            corners.push(compute(left, right).ok_or(NoValue::TooLarge)?);
        }
    }
    corners.sort_unstable();
    Ok(Bounds::new(corners[0], corners[3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        rows: 1_000,
        tables: 8,
        clients: 4,
    };

    fn scope() -> Scope {
        Scope {
            arguments: vec![("range".to_owned(), 100)],
            parameters: vec![
                ("first".to_owned(), Holds::Integer),
                ("text".to_owned(), Holds::Text),
            ],
            used: Vec::new(),
        }
    }

    fn value(text: &str) -> Expression {
        folded(
            &integer(text, &mut scope()).unwrap(),
            &[("range".to_owned(), 100)],
        )
        .unwrap()
    }

    /// What is wrong with a text: the part that is shown, and what is said.
    fn wrong(text: &str) -> (String, String) {
        let wrong = draw(text, &mut scope()).unwrap_err();
        (text[wrong.start..wrong.end].to_owned(), wrong.message)
    }

    #[test]
    fn constants_are_computed() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 2 - 3", 5),
            ("100 / 7 / 2", 7),
            ("-5 + 3", -2),
            ("2 * -3", -6),
            ("range * 2", 200),
            ("-7 / 2", -3),
        ] {
            assert_eq!(value(text), Expression::Integer(expected), "{text}");
        }
    }

    #[test]
    fn what_is_drawn_later_stays() {
        let Expression::Sum(left, right) = value("first + (range - 1)") else {
            panic!()
        };
        assert_eq!(*left, Expression::Parameter("first".to_owned()));
        assert_eq!(*right, Expression::Integer(99));
        assert_eq!(constant(&value("rows / 2 + tables"), &SIZES), Some(508));
        assert_eq!(constant(&value("thread + 1"), &SIZES), None);
    }

    #[test]
    fn draws_are_read() {
        let draw = |text| draw(text, &mut scope()).unwrap();
        assert_eq!(draw("id"), Draw::Id);
        assert_eq!(draw(" pad "), Draw::Pad);
        assert_eq!(draw("ids(10)"), Draw::Ids(Expression::Integer(10)));
        assert_eq!(
            draw("consecutive(rows, 10)"),
            Draw::Consecutive(Expression::Rows, Expression::Integer(10))
        );
        let ends = (Expression::Integer(1), Expression::Rows);
        assert_eq!(
            draw("zipfian(1, rows)"),
            Draw::Zipfian(ends.0.clone(), ends.1.clone(), 0.8)
        );
        assert_eq!(
            draw("zipfian(1, rows, 1.25)"),
            Draw::Zipfian(ends.0, ends.1, 1.25)
        );
        assert_eq!(draw("7"), Draw::Value(Expression::Integer(7)));
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_is() {
        for (text, shown, message) in [
            ("first + rage", "rage", "unknown name `rage`"),
            ("first +", "", "the expression is not complete"),
            ("", "", "the expression is not complete"),
            ("first first", "first", "unexpected `first`"),
            ("(1", "", "the expression is not complete"),
            ("1)", ")", "unexpected `)`"),
            ("idz(3)", "idz", "unknown function `idz`"),
            ("1 + ids(3)", "ids", "`ids` within an expression"),
            ("id + 1", "id", "unknown name `id`"),
            (
                "text + 1",
                "text",
                "`text` is text and can't be calculated with",
            ),
            ("rows / (range - 100)", "(range - 100)", "division by zero"),
            ("rows / 0 + 1", "0", "division by zero"),
            ("1.5", "1.5", "`1.5` can't be calculated with"),
            (
                "99999999999999999999",
                "99999999999999999999",
                "`99999999999999999999` can't be calculated with",
            ),
            ("uniform(1)", "uniform(1)", "`uniform` has 1 argument"),
            ("ids()", "ids()", "`ids` has 0 arguments"),
            ("ids(1, 2)", "ids(1, 2)", "`ids` has 2 arguments"),
            ("ids(1", "", "the expression is not complete"),
            ("ids(1) + 1", "+", "unexpected `+`"),
            (
                "zipfian(1, 2, x)",
                "x",
                "the exponent of a zipfian distribution is `x`",
            ),
            (
                "zipfian(1, 2, 0)",
                "0",
                "the exponent of a zipfian distribution is `0`",
            ),
            ("1 + é", "é", "unknown name `é`"),
        ] {
            assert_eq!(
                wrong(text),
                (shown.to_owned(), message.to_owned()),
                "{text}"
            );
        }
        let deep = format!("{}1{}", "(".repeat(33), ")".repeat(33));
        assert_eq!(wrong(&deep).1, "more than 32 brackets within brackets");
        let negative = format!("{}1", "-".repeat(33));
        assert_eq!(wrong(&negative).1, "more than 32 brackets within brackets");
        let long = format!("1{}", "+1".repeat(100_000));
        assert_eq!(wrong(&long).1, "an expression of 200001 characters");
    }

    #[test]
    fn what_has_no_value_is_refused() {
        let no_value = |text: &str, range: i64| {
            let expression = integer(text, &mut scope()).unwrap();
            folded(&expression, &[("range".to_owned(), range)]).unwrap_err()
        };
        assert_eq!(no_value("rows / range", 0), NoValue::DivisionByZero);
        assert_eq!(no_value("range * range", i64::MAX), NoValue::TooLarge);
    }

    #[test]
    fn values_lie_within_their_bounds() {
        let of = |text: &str| {
            let known = [("first".to_owned(), Bounds::new(1, 1_000))];
            bounds(&value(text), &SIZES, &known)
        };
        for (text, least, most) in [
            ("first + range - 1", 100, 1_099),
            ("tables * thread - first", -1_000, 23),
            ("(first - 500) * (first - 500)", -249_500, 250_000),
            ("rows / (first + 1)", 0, 500),
            ("rows / (4 - thread)", 250, 1_000),
        ] {
            assert_eq!(of(text), Ok(Bounds::new(least, most)), "{text}");
        }
        assert_eq!(
            of("rows / (first - 500)"),
            Err(NoValue::MayDivideByZero(Bounds::new(-499, 500)))
        );
        assert_eq!(of("first * 9000000000000000000"), Err(NoValue::TooLarge));
    }
}
