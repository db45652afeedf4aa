//! What parameters of tests are: `first + range - 1`, `ids(10)`, `c`.
//!
//! An expression is worked out as far as it is known while it is read, together with the bounds of its value: they choose
//! the type of a parameter, and one that could divide by zero or leave 64 bits is refused.

use std::ops::RangeInclusive;

use words::counted;

use super::test::{Draw, Slot};
use crate::spec::Distribution;
use crate::wording::{code, did_you_mean, list};

/// What stands alone.
const ALONE: [&str; 9] = [
    "id",
    "k",
    "c",
    "pad",
    "ids",
    "ks",
    "consecutive",
    "uniform",
    "zipfian",
];

const FORMS: &str = "`id`, `k`, `c`, `pad`, `ids(N)`, `ks(N)`, `consecutive(first, N)`, `uniform(least, most)`, \
     `zipfian(least, most)`, or an integer computed with `+ - * /`";

/// Bytes of an expression: what is read of it is no deeper.
const LONGEST: usize = 250;

/// The exponent of sysbench's own zipfian distribution.
pub(crate) const EXPONENT: f64 = 0.8;
/// Beyond it nearly all draws are the first.
pub(crate) const EXPONENT_MOST: f64 = 10.0;

/// SQLite takes 32766 parameters, servers take 65535.
pub(crate) const PARAMETERS: RangeInclusive<i64> = 1..=32_000;

/// An integer that is computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// This one.
    Integer(i64),
    /// A value that was drawn, and so much more: what most expressions come to.
    Drawn(Slot, i64),
    /// One of two others.
    Binary(Operator, Box<(Expression, Expression)>),
}

/// What is done to two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, rounded towards zero
    Divide,
}

impl Operator {
    /// `None` where the result is not an integer of 64 bits.
    #[inline]
    fn apply(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
        }
    }
}

impl Expression {
    /// Returns its value, for an execution whose own integers begin at `base`.
    #[inline]
    pub fn value(&self, integers: &[i64], base: usize) -> i64 {
        match self {
            Self::Integer(value) => *value,
            // The sum fits, and then it is right whatever the offset is.
            Self::Drawn(slot, more) => integers[slot.index(base)].wrapping_add(*more),
            Self::Binary(operator, sides) => {
                let left = sides.0.value(integers, base);
                let right = sides.1.value(integers, base);
                // The bounds were looked at: there is a result.
                operator.apply(left, right).unwrap_or_default()
            }
        }
    }

    /// Returns whether its value is known before anything is drawn: only the number of the thread is in it.
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Drawn(slot, _) => *slot == Slot::Event(0),
            Self::Binary(_, sides) => sides.0.is_fixed() && sides.1.is_fixed(),
        }
    }
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

    pub(crate) fn is_wide(self) -> bool {
        self.least < i32::MIN.into() || self.most > i32::MAX.into()
    }
}

/// An expression, and what its value lies between.
pub(crate) type Computed = (Expression, Bounds);

pub(crate) fn integer_of(value: i64) -> Computed {
    (Expression::Integer(value), Bounds::new(value, value))
}

/// `None` where a value may be one that 64 bits don't hold.
fn combined(
    operator: Operator,
    (left, of_left): Computed,
    (right, of_right): Computed,
) -> Option<Computed> {
    // Each operator is monotonic in both sides, so that its extremes are those of the corners.
    let ends = |bounds: Bounds| [bounds.least, bounds.most];
    let corner = |left| ends(of_right).map(|right| operator.apply(left, right));
    let [[a, b], [c, d]] = ends(of_left).map(corner);
    let corners = [a?, b?, c?, d?];
    let least = corners.into_iter().fold(i64::MAX, i64::min);
    let most = corners.into_iter().fold(i64::MIN, i64::max);
    let expression = match (operator, left, right) {
        (_, Expression::Integer(_), Expression::Integer(_)) => Expression::Integer(least),
        (Operator::Add, Expression::Drawn(slot, more), Expression::Integer(by))
        | (Operator::Add, Expression::Integer(by), Expression::Drawn(slot, more)) => {
            Expression::Drawn(slot, more.wrapping_add(by))
        }
        (Operator::Subtract, Expression::Drawn(slot, more), Expression::Integer(by)) => {
            Expression::Drawn(slot, more.wrapping_sub(by))
        }
        (_, left, right) => Expression::Binary(operator, Box::new((left, right))),
    };
    Some((expression, Bounds::new(least, most)))
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Holds {
    /// `rows`, `tables`, `thread`
    Variable(Computed),
    Argument(i64),
    Integer(Slot, Bounds),
    /// The first of so many.
    List(Slot, usize, Bounds),
    /// Of the column `pad`, or else of `c`.
    Text(Slot, bool),
    /// It could not be read, which was said.
    Unknown,
}

/// A name that expressions and statements may have in them.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) holds: Holds,
    /// It is the id of a row.
    pub(crate) is_id: bool,
}

/// The names that are known, and what was done with them.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The rows of a table.
    pub(crate) rows: u64,
    pub(crate) named: Vec<Named>,
    /// Those that something has in it.
    pub(crate) used: Vec<String>,
    /// Arguments that make ranges of ids.
    pub(crate) ranges: Vec<String>,
}

impl Scope {
    pub(crate) fn find(&self, name: &str) -> Option<&Named> {
        self.named.iter().find(|named| named.name == name)
    }

    pub(crate) fn mark(&mut self, name: &str) {
        if !self.used.iter().any(|other| other == name) {
            self.used.push(name.to_owned());
        }
    }

    /// The names for people.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.named.iter().map(|named| named.name.as_str()).collect()
    }
}

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

impl Wrong {
    fn help(mut self, help: String) -> Self {
        self.help = Some(help);
        self
    }
}

fn bad(
    (start, end): (usize, usize),
    message: impl Into<String>,
    label: impl Into<String>,
) -> Wrong {
    Wrong {
        code: "plan::bad-expression",
        start,
        end,
        message: message.into(),
        label: label.into(),
        help: None,
    }
}

/// Whether text may be the name of a parameter or an argument, as far as its letters go.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Reads an expression whose value is an integer.
pub(crate) fn integer(text: &str, scope: &mut Scope) -> Result<Computed, Wrong> {
    Parser::new(text, scope)?.whole()
}

/// Reads a number within `allowed` that is known before anything is drawn.
pub(crate) fn count(
    text: &str,
    scope: &mut Scope,
    allowed: &RangeInclusive<i64>,
) -> Result<u32, Wrong> {
    let count = integer(text, scope)?;
    known(&count, (0, text.len()), allowed)
}

fn known(
    count: &Computed,
    span: (usize, usize),
    allowed: &RangeInclusive<i64>,
) -> Result<u32, Wrong> {
    let label = format!("allowed: {} to {}", allowed.start(), allowed.end());
    match count.0 {
        Expression::Integer(count) if allowed.contains(&count) => {
            Ok(u32::try_from(count).unwrap_or(u32::MAX))
        }
        Expression::Integer(count) => Err(bad(span, format!("`{count}` is out of range"), label)),
        _ => Err(bad(span, "a number that depends on what is drawn", label)),
    }
}

/// Returns what lies from the least of the one to the most of the other; `None` where that is nothing.
pub(crate) fn between(least: Bounds, most: Bounds) -> Option<Bounds> {
    (least.least <= most.most).then(|| Bounds::new(least.least, most.most.max(least.most)))
}

/// What a parameter is, and what its values lie between if they are integers.
pub(crate) struct Drawn {
    pub(crate) draw: Draw,
    pub(crate) bounds: Bounds,
    pub(crate) is_list: bool,
    pub(crate) is_id: bool,
}

impl Drawn {
    fn new(draw: Draw, bounds: Bounds) -> Self {
        let is_list = matches!(draw, Draw::Consecutive(..));
        Self {
            draw,
            bounds,
            is_list,
            is_id: false,
        }
    }
}

/// Reads what a parameter is.
pub(crate) fn draw(text: &str, scope: &mut Scope) -> Result<Drawn, Wrong> {
    let rows = i64::try_from(scope.rows).unwrap_or(i64::MAX);
    let mut parser = Parser::new(text, scope)?;
    let first = parser.token;
    if let Token::Name(name) = first.token {
        let rest = text[first.end..].trim_start();
        if rest.starts_with('(') {
            return parser.function(name, first);
        }
        let keys = Drawn::new(Draw::Keys(1), Bounds::new(1, rows));
        match name {
            _ if !rest.is_empty() => {}
            "id" => {
                return Ok(Drawn {
                    is_id: true,
                    ..keys
                });
            }
            "k" => return Ok(keys),
            "c" => return Ok(Drawn::new(Draw::C, keys.bounds)),
            "pad" => return Ok(Drawn::new(Draw::Pad, keys.bounds)),
            _ => {}
        }
    }
    let (value, bounds) = parser.whole()?;
    let (ids, arguments) = (parser.has_id, parser.arguments);
    if ids {
        scope.ranges.extend(arguments);
    }
    Ok(Drawn::new(Draw::Value(value), bounds))
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

impl Placed<'_> {
    fn span(&self) -> (usize, usize) {
        (self.start, self.end)
    }
}

struct Parser<'a, 's> {
    text: &'a str,
    scope: &'s mut Scope,
    /// The next one.
    token: Placed<'a>,
    /// The end of the last one.
    end: usize,
    /// The id of a row is in it.
    has_id: bool,
    /// The arguments that are in it.
    arguments: Vec<String>,
}

impl<'a, 's> Parser<'a, 's> {
    fn new(text: &'a str, scope: &'s mut Scope) -> Result<Self, Wrong> {
        if text.len() > LONGEST {
            let message = format!("an expression of {} characters", text.chars().count());
            return Err(bad((0, text.len()), message, "too long for anyone"));
        }
        Ok(Self {
            text,
            scope,
            token: token(text, 0),
            end: 0,
            has_id: false,
            arguments: Vec::new(),
        })
    }

    /// Takes the next token.
    fn next(&mut self) -> Placed<'a> {
        let taken = self.token;
        self.token = token(self.text, taken.end);
        self.end = taken.end;
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
    fn whole(&mut self) -> Result<Computed, Wrong> {
        let expression = self.sum()?;
        self.nothing_more()?;
        Ok(expression)
    }

    fn nothing_more(&self) -> Result<(), Wrong> {
        match self.token.token {
            Token::End => Ok(()),
            _ => Err(self.unexpected("`+`, `-`, `*`, `/` or nothing")),
        }
    }

    fn sum(&mut self) -> Result<Computed, Wrong> {
        self.chain(
            &[('+', Operator::Add), ('-', Operator::Subtract)],
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Computed, Wrong> {
        self.chain(
            &[('*', Operator::Multiply), ('/', Operator::Divide)],
            Self::factor,
        )
    }

    /// Operands with operators between them, which are worked out from left to right.
    fn chain(
        &mut self,
        operators: &[(char, Operator)],
        operand: fn(&mut Self) -> Result<Computed, Wrong>,
    ) -> Result<Computed, Wrong> {
        let start = self.token.start;
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.take(*symbol)) {
            let from = self.token.start;
            let right = operand(self)?;
            let Bounds { least, most } = right.1;
            if *operator == Operator::Divide && least <= 0 && most >= 0 {
                let label = match (least, most) {
                    (0, 0) => "is 0".to_owned(),
                    _ => format!("is between {least} and {most}"),
                };
                let message = "division by what may be 0";
                return Err(bad((from, self.end), message, label));
            }
            left = combined(*operator, left, right).ok_or_else(|| {
                let message = "a number that 64 bits don't hold";
                bad((start, self.end), message, "has no value")
            })?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Computed, Wrong> {
        let placed = self.next();
        match placed.token {
            Token::Number(digits) => digits.parse().map(integer_of).map_err(|_| {
                let label = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    "more than 64 bits"
                } else {
                    "not a whole number"
                };
                let message = format!("{} can't be calculated with", code(digits));
                bad(placed.span(), message, label)
            }),
            Token::Name(name) => self.name(name, placed),
            Token::Symbol('(') => {
                let inner = self.sum()?;
                match self.take(')') {
                    true => Ok(inner),
                    false => Err(self.unexpected("`)`")),
                }
            }
            Token::Symbol('-') => {
                let operand = self.factor()?;
                combined(Operator::Subtract, integer_of(0), operand).ok_or_else(|| {
                    let message = "a number that 64 bits don't hold";
                    bad((placed.start, self.end), message, "has no value")
                })
            }
            _ => {
                self.token = placed;
                Err(self.unexpected("a number, a name or `(`"))
            }
        }
    }

    /// A name within an expression.
    fn name(&mut self, name: &str, placed: Placed<'a>) -> Result<Computed, Wrong> {
        let Some(named) = self.scope.find(name) else {
            let known = self.scope.names();
            let help = match ALONE.contains(&name) {
                true => format!(
                    "{} stands alone: give it a parameter of its own, and use that here",
                    code(name)
                ),
                false => format!("{}known here: {}", did_you_mean(name, &known), list(&known)),
            };
            let message = format!("unknown name {}", code(name));
            return Err(Wrong {
                code: "plan::unknown-parameter",
                ..bad(placed.span(), message, "not defined before").help(help)
            });
        };
        let refuse = |what: &str| {
            let message = format!("{} is {what} and can't be calculated with", code(name));
            Err(bad(placed.span(), message, "not an integer"))
        };
        let computed = match &named.holds {
            Holds::Text(..) => return refuse("text"),
            Holds::List(..) => return refuse("a list"),
            Holds::Variable(computed) => computed.clone(),
            Holds::Argument(value) => {
                self.arguments.push(name.to_owned());
                integer_of(*value)
            }
            Holds::Integer(slot, bounds) => (Expression::Drawn(*slot, 0), *bounds),
            Holds::Unknown => integer_of(1),
        };
        self.has_id |= named.is_id;
        self.scope.mark(name);
        Ok(computed)
    }

    /// A function that is all of the text.
    fn function(&mut self, name: &str, placed: Placed<'a>) -> Result<Drawn, Wrong> {
        if !ALONE[4..].contains(&name) {
            let message = format!("unknown function {}", code(name));
            let help = did_you_mean(name, &ALONE[4..]);
            return Err(bad(placed.span(), message, "not a function")
                .help(format!("{help}a parameter is {FORMS}")));
        }
        self.next();
        self.next();
        let (mut values, mut exponent) = (Vec::new(), EXPONENT);
        while !self.take(')') {
            if !values.is_empty() && !self.take(',') {
                return Err(self.unexpected("`,` or `)`"));
            }
            let start = self.token.start;
            if name == "zipfian" && values.len() == 2 {
                exponent = self.exponent()?;
                if !self.take(')') {
                    return Err(self.unexpected("`)`"));
                }
                break;
            }
            values.push((self.sum()?, (start, self.token.start)));
        }
        let span = (placed.start, self.end);
        self.nothing_more()?;
        let rows = i64::try_from(self.scope.rows).unwrap_or(i64::MAX);
        let distribution = match name {
            "zipfian" => Distribution::Zipfian { exponent },
            _ => Distribution::Uniform,
        };
        match (name, values.as_slice()) {
            ("ids" | "ks", [(count, span)]) => {
                let count = known(count, *span, &PARAMETERS)?;
                let keys = Drawn::new(Draw::Keys(count as usize), Bounds::new(1, rows));
                Ok(Drawn {
                    is_list: true,
                    ..keys
                })
            }
            ("consecutive", [((first, bounds), _), (count, of_count)]) => {
                let count = known(count, *of_count, &PARAMETERS)?;
                let most = bounds
                    .most
                    .checked_add(i64::from(count))
                    .ok_or_else(|| bad(span, "a number that 64 bits don't hold", "has no value"))?;
                let draw = Draw::Consecutive(first.clone(), count as usize);
                Ok(Drawn::new(draw, Bounds::new(bounds.least, most - 1)))
            }
            ("uniform" | "zipfian", [((least, of_least), _), ((most, of_most), _)]) => {
                let bounds = between(*of_least, *of_most).ok_or_else(|| {
                    let (least, most) = (of_least.least, of_most.most);
                    let message = format!("a least of {least} above a most of {most}");
                    bad(span, message, "the least comes first")
                })?;
                let draw = Draw::Between(least.clone(), most.clone(), distribution);
                Ok(Drawn::new(draw, bounds))
            }
            _ => {
                let got = counted(values.len(), "argument");
                let message = format!("{} has {got}", code(name));
                let wanted = if matches!(name, "ids" | "ks") { 1 } else { 2 };
                Err(bad(span, message, format!("{wanted} are wanted"))
                    .help(format!("a parameter is {FORMS}")))
            }
        }
    }

    fn exponent(&mut self) -> Result<f64, Wrong> {
        let placed = self.next();
        let number = match placed.token {
            Token::Number(digits) => digits.parse().ok(),
            _ => None,
        };
        let is_allowed = |exponent: &f64| *exponent > 0.0 && *exponent <= EXPONENT_MOST;
        number.filter(is_allowed).ok_or_else(|| {
            let got = code(&self.text[placed.start..placed.end]);
            let message = format!("the exponent of a zipfian distribution is {got}");
            let label = format!("expected a number above 0, at most {EXPONENT_MOST}");
            bad(placed.span(), message, label)
        })
    }

    fn unexpected(&self, wanted: &str) -> Wrong {
        let Placed { token, start, end } = self.token;
        let message = match token {
            Token::End => "the expression is not complete".to_owned(),
            _ => format!("unexpected {}", code(&self.text[start..end])),
        };
        bad((start, end), message, format!("expected {wanted}"))
            .help(format!("a parameter is {FORMS}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Expression = Expression::Drawn(Slot::Own(1), 0);

    fn scope() -> Scope {
        let named = |name: &str, holds| Named {
            name: name.to_owned(),
            holds,
            is_id: name == "first",
        };
        let thread = (Expression::Drawn(Slot::Event(0), 0), Bounds::new(0, 3));
        Scope {
            rows: 1_000,
            named: vec![
                named("rows", Holds::Variable(integer_of(1_000))),
                named("tables", Holds::Variable(integer_of(8))),
                named("thread", Holds::Variable(thread)),
                named("range", Holds::Argument(100)),
                named("first", Holds::Integer(Slot::Own(1), Bounds::new(1, 1_000))),
                named("text", Holds::Text(Slot::Own(0), false)),
                named("list", Holds::List(Slot::Own(2), 5, Bounds::new(1, 9))),
            ],
            used: Vec::new(),
            ranges: Vec::new(),
        }
    }

    #[test]
    fn what_is_known_is_computed() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 2 - 3", 5),
            ("100 / 7 / 2", 7),
            ("-5 + 3", -2),
            ("2 * -3", -6),
            ("range * 2", 200),
            ("-7 / 2", -3),
            ("rows / 2 + tables", 508),
        ] {
            let computed = integer(text, &mut scope()).unwrap();
            assert_eq!(computed, integer_of(expected), "{text}");
        }
    }

    #[test]
    fn what_is_drawn_later_is_computed_then_and_lies_within_its_bounds() {
        // With 7 drawn for `first`, by thread 2.
        let integers = [2, 0, 0, 7];
        for (text, value, least, most) in [
            ("first + (range - 1)", 106, 100, 1_099),
            ("500 + first - 1", 506, 500, 1_499),
            ("tables * thread - first", 9, -1_000, 23),
            ("(first - 500) * (first - 500)", 243_049, -249_500, 250_000),
            ("rows / (first + 1)", 125, 0, 500),
            ("rows / (4 - thread)", 500, 250, 1_000),
        ] {
            let (expression, bounds) = integer(text, &mut scope()).unwrap();
            assert_eq!(expression.value(&integers, 2), value, "{text}");
            assert_eq!(bounds, Bounds::new(least, most), "{text}");
        }
        let (expression, _) = integer("500 + first - 1", &mut scope()).unwrap();
        assert_eq!(expression, Expression::Drawn(Slot::Own(1), 499));
    }

    #[test]
    fn draws_are_read() {
        let draw = |text| draw(text, &mut scope()).unwrap().draw;
        let rows = Expression::Integer(1_000);
        let zipfian = |exponent| Distribution::Zipfian { exponent };
        let from_one =
            |most, distribution| Draw::Between(Expression::Integer(1), most, distribution);
        for (text, expected) in [
            ("id", Draw::Keys(1)),
            (" pad ", Draw::Pad),
            ("ids(10)", Draw::Keys(10)),
            ("consecutive(rows, 10)", Draw::Consecutive(rows.clone(), 10)),
            ("uniform(1, first)", from_one(FIRST, Distribution::Uniform)),
            ("zipfian(1, rows)", from_one(rows.clone(), zipfian(0.8))),
            ("zipfian(1, rows, 1.25)", from_one(rows, zipfian(1.25))),
            ("7", Draw::Value(Expression::Integer(7))),
        ] {
            assert_eq!(draw(text), expected, "{text}");
        }
    }

    #[test]
    fn an_argument_beside_an_id_makes_a_range() {
        for (text, expected) in [
            ("first + range - 1", &["range"][..]),
            ("range * 2", &[]),
            ("ids(range)", &[]),
        ] {
            let mut scope = scope();
            draw(text, &mut scope).unwrap();
            assert_eq!(scope.ranges, expected, "{text}");
        }
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
            ("1 + ids(3)", "ids", "unknown name `ids`"),
            ("id + 1", "id", "unknown name `id`"),
            (
                "text + 1",
                "text",
                "`text` is text and can't be calculated with",
            ),
            (
                "list + 1",
                "list",
                "`list` is a list and can't be calculated with",
            ),
            (
                "1 + rows / (range - 100)",
                "(range - 100)",
                "division by what may be 0",
            ),
            ("rows / 0 + 1", "0", "division by what may be 0"),
            (
                "rows / (first - 500)",
                "(first - 500)",
                "division by what may be 0",
            ),
            (
                "2 * (first * 9000000000000000000)",
                "first * 9000000000000000000",
                "a number that 64 bits don't hold",
            ),
            ("1.5", "1.5", "`1.5` can't be calculated with"),
            (
                "99999999999999999999",
                "99999999999999999999",
                "`99999999999999999999` can't be calculated with",
            ),
            ("uniform(1)", "uniform(1)", "`uniform` has 1 argument"),
            (
                "uniform(2, 1)",
                "uniform(2, 1)",
                "a least of 2 above a most of 1",
            ),
            ("ids()", "ids()", "`ids` has 0 arguments"),
            ("ids(1, 2)", "ids(1, 2)", "`ids` has 2 arguments"),
            ("ids(0)", "0", "`0` is out of range"),
            (
                "ids(first)",
                "first",
                "a number that depends on what is drawn",
            ),
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
            let Err(wrong) = draw(text, &mut scope()) else {
                panic!("`{text}` was taken");
            };
            let what = (&text[wrong.start..wrong.end], wrong.message.as_str());
            assert_eq!(what, (shown, message), "{text}");
        }
        let long = format!("1{}", "+1".repeat(100_000));
        let wrong = integer(&long, &mut scope()).unwrap_err();
        assert_eq!(wrong.message, "an expression of 200001 characters");
        for open in ["(", "-"] {
            let deep = open.repeat(LONGEST - 1) + "1";
            let _ = integer(&deep, &mut scope());
        }
    }
}
