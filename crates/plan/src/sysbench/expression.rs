//! The expressions that define parameters of tests: `first + range - 1`, `ids(10)`, `c`.
//!
//! While an expression is read, its known parts are computed, together with the bounds of its
//! value. The bounds choose the type of a parameter. An expression that could divide by zero or
//! exceed 64 bits is refused.

use std::ops::{Range, RangeInclusive};

use words::counted;

use super::test::{Block, Distribution, Draw, Slot};
use crate::diagnostic::{Diagnostic, Place};
use crate::wording::{choices, code, did_you_mean};

/// Names that can't be part of a larger expression; the last five are functions.
const ALONE: [&str; 9] = ["id", "k", "c", "pad", "ids", "ks", "consecutive", "uniform", "zipfian"];

const FORMS: &str = "`id`, `k`, `c`, `pad`, `ids(N)`, `ks(N)`, `consecutive(first, N)`, `uniform(least, most)`, \
     `zipfian(least, most)`, or an integer computed with `+ - * /`";

/// The most bytes of an expression, which also limits the depth of recursion.
const LENGTH_MAX: usize = 250;

/// The exponent of sysbench's own zipfian distribution.
pub(crate) const EXPONENT: f64 = 0.8;
/// With a larger exponent nearly all draws would be the first.
const EXPONENT_MAX: f64 = 10.0;

/// SQLite allows 32766 parameters, servers 65535.
pub(crate) const PARAMETERS: RangeInclusive<i64> = 1..=32_000;

/// The computation of an integer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant.
    Integer(i64),
    /// A drawn value plus a constant, which most expressions simplify to.
    Drawn(Slot, i64),
    /// An operation on two expressions.
    Binary(Operator, Box<(Expression, Expression)>),
}

/// An operation on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, rounded toward zero
    Divide,
}

impl Operator {
    /// Returns the result; `None` if it is not a 64-bit integer.
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
    /// Returns its value, for an execution whose own integers start at `base`.
    #[inline]
    pub fn value(&self, integers: &[i64], base: usize) -> i64 {
        match self {
            Self::Integer(value) => *value,
            // The bounds show that the sum fits, even where the constant alone would overflow.
            Self::Drawn(slot, offset) => integers[slot.index(base)].wrapping_add(*offset),
            Self::Binary(operator, sides) => {
                let left = sides.0.value(integers, base);
                let right = sides.1.value(integers, base);
                // The bounds show that there is a result.
                operator.apply(left, right).unwrap_or_default()
            }
        }
    }

    /// Returns whether its value is known before anything is drawn: it depends on nothing but the
    /// number of the thread.
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Drawn(slot, _) => *slot == Slot::Event(0),
            Self::Binary(_, sides) => sides.0.is_fixed() && sides.1.is_fixed(),
        }
    }
}

/// The smallest and the largest value of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: i64,
    pub(crate) max: i64,
}

impl Bounds {
    pub(crate) fn new(min: i64, max: i64) -> Self {
        Self { min, max }
    }

    pub(crate) fn is_wide(self) -> bool {
        self.min < i32::MIN.into() || self.max > i32::MAX.into()
    }
}

/// An expression, with the bounds of its value.
pub(crate) type Computed = (Expression, Bounds);

/// Returns a constant with its bounds.
pub(crate) fn constant(value: i64) -> Computed {
    (Expression::Integer(value), Bounds::new(value, value))
}

/// Returns an operation on two expressions; `None` if a value may not fit in 64 bits.
fn combined(
    operator: Operator,
    (left, of_left): Computed,
    (right, of_right): Computed,
) -> Option<Computed> {
    // Each operator is monotonic in both operands, so its extremes are at the corners.
    let ends = |bounds: Bounds| [bounds.min, bounds.max];
    let corner = |left| ends(of_right).map(|right| operator.apply(left, right));
    let [[a, b], [c, d]] = ends(of_left).map(corner);
    let corners = [a?, b?, c?, d?];
    let min = corners.into_iter().fold(i64::MAX, i64::min);
    let max = corners.into_iter().fold(i64::MIN, i64::max);
    let expression = match (operator, left, right) {
        (_, Expression::Integer(_), Expression::Integer(_)) => Expression::Integer(min),
        (Operator::Add, Expression::Drawn(slot, offset), Expression::Integer(by))
        | (Operator::Add, Expression::Integer(by), Expression::Drawn(slot, offset)) => {
            Expression::Drawn(slot, offset.wrapping_add(by))
        }
        (Operator::Subtract, Expression::Drawn(slot, offset), Expression::Integer(by)) => {
            Expression::Drawn(slot, offset.wrapping_sub(by))
        }
        (_, left, right) => Expression::Binary(operator, Box::new((left, right))),
    };
    Some((expression, Bounds::new(min, max)))
}

/// Reads the exponent of a zipfian distribution.
pub(crate) fn exponent(text: &str) -> Option<f64> {
    let exponent: f64 = text.trim().parse().ok()?;
    (exponent > 0.0 && exponent <= EXPONENT_MAX).then_some(exponent)
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Symbol {
    /// `rows`, `tables`, `thread`
    Variable(Computed),
    Argument(i64),
    /// A drawn integer.
    Integer {
        slot: Slot,
        bounds: Bounds,
        /// It is the id of a row.
        is_id: bool,
    },
    /// Several drawn integers: the slot of the first, and how many.
    List(Slot, usize, Bounds),
    /// A drawn text, and whether it is for the column `pad`; if not, it is for `c`.
    Text(Slot, bool),
    /// A parameter whose definition has an error, which is already reported.
    Unknown,
}

/// The names that expressions and statements may use, and which of them they use.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The rows of a table.
    pub(crate) rows: u64,
    pub(crate) named: Vec<(String, Symbol)>,
    /// The names that are used.
    pub(crate) used: Vec<String>,
    /// Arguments that make ranges of ids.
    pub(crate) ranges: Vec<String>,
}

impl Scope {
    /// Returns the meaning of a name.
    pub(crate) fn find(&self, name: &str) -> Option<&Symbol> {
        let named = self.named.iter().find(|(other, _)| other == name);
        named.map(|(_, symbol)| symbol)
    }

    /// Marks a name as used.
    pub(crate) fn mark_used(&mut self, name: &str) {
        if !self.used.iter().any(|other| other == name) {
            self.used.push(name.to_owned());
        }
    }
}

/// The fault of a text. Its place is a range of bytes of the text.
pub(crate) type ExpressionError = Box<Diagnostic>;

fn bad(
    span: Range<usize>,
    message: impl Into<String>,
    label: impl Into<String>,
) -> ExpressionError {
    let place = Place::File(span.into());
    let mut error = Diagnostic::error("plan::bad-expression", place, message);
    error.label(label);
    Box::new(error)
}

fn too_large(span: Range<usize>) -> ExpressionError {
    bad(span, "the result may not fit in 64 bits", "can overflow")
}

/// Returns whether text has only characters that the name of a parameter or an argument may have.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Reads an expression whose value is an integer.
pub(crate) fn integer(text: &str, scope: &mut Scope) -> Result<Computed, ExpressionError> {
    Parser::new(text, scope)?.whole()
}

/// Reads a constant within `allowed`.
pub(crate) fn count(
    text: &str,
    scope: &mut Scope,
    allowed: &RangeInclusive<i64>,
) -> Result<u32, ExpressionError> {
    let count = integer(text, scope)?;
    constant_within(&count, 0..text.len(), allowed)
}

/// Returns the value of a constant within `allowed`.
fn constant_within(
    (count, _): &Computed,
    span: Range<usize>,
    allowed: &RangeInclusive<i64>,
) -> Result<u32, ExpressionError> {
    let (min, max) = (allowed.start(), allowed.end());
    Err(match count {
        Expression::Integer(count) if allowed.contains(count) => {
            return Ok(u32::try_from(*count).unwrap_or(u32::MAX));
        }
        Expression::Integer(count) => {
            let message = format!("`{count}` is out of range");
            bad(span, message, format!("allowed: {min} to {max}"))
        }
        _ => {
            let label = format!("expected a constant from {min} to {max}");
            bad(span, "the number depends on drawn values", label)
        }
    })
}

/// Returns the bounds of a value between two others; `None` if the lower one is always above the
/// upper one.
pub(crate) fn between(lower: Bounds, upper: Bounds) -> Option<Bounds> {
    (lower.min <= upper.max).then(|| Bounds::new(lower.min, upper.max.max(lower.max)))
}

/// Reads the definition of a parameter, and adds it to a block, for whose positions `slot` makes
/// slots.
pub(crate) fn draw(
    text: &str,
    scope: &mut Scope,
    block: &mut Block,
    slot: fn(usize) -> Slot,
) -> Result<Symbol, ExpressionError> {
    let keys = Bounds::new(1, i64::try_from(scope.rows).unwrap_or(i64::MAX));
    let mut parser = Parser::new(text, scope)?;
    let first = parser.peek();
    let (name, after) = (&text[first.clone()], text[first.end..].trim_start());
    let mut add = |draw| slot(block.add(draw));
    Ok(match (name, after) {
        ("id" | "k", "") => {
            Symbol::Integer { slot: add(Draw::Keys(1)), bounds: keys, is_id: name == "id" }
        }
        ("c", "") => Symbol::Text(add(Draw::C), false),
        ("pad", "") => Symbol::Text(add(Draw::Pad), true),
        _ if after.starts_with('(') && name.starts_with(starts_name) => {
            let (draw, bounds) = parser.function(name, keys)?;
            match draw {
                Draw::Keys(count) | Draw::Consecutive(_, count) => {
                    Symbol::List(add(draw), count, bounds)
                }
                _ => Symbol::Integer { slot: add(draw), bounds, is_id: false },
            }
        }
        _ => {
            let (value, bounds) = parser.whole()?;
            if parser.has_id {
                parser.scope.ranges.extend(parser.arguments);
            }
            Symbol::Integer { slot: add(Draw::Value(value)), bounds, is_id: false }
        }
    })
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// A recursive descent parser of expressions.
struct Parser<'a, 's> {
    text: &'a str,
    scope: &'s mut Scope,
    /// The end of the last token.
    end: usize,
    /// The expression uses the id of a row.
    has_id: bool,
    /// The arguments that the expression uses.
    arguments: Vec<String>,
}

impl<'a, 's> Parser<'a, 's> {
    fn new(text: &'a str, scope: &'s mut Scope) -> Result<Self, ExpressionError> {
        if text.len() > LENGTH_MAX {
            let message = format!("an expression of {} bytes", text.len());
            let label = format!("at most {LENGTH_MAX} bytes are allowed");
            return Err(bad(0..text.len(), message, label));
        }
        Ok(Self { text, scope, end: 0, has_id: false, arguments: Vec::new() })
    }

    /// Returns the range of the next token: a number, a name, another character, or an empty range
    /// at the end.
    fn peek(&self) -> Range<usize> {
        let ahead = self.text[self.end..].trim_start();
        let start = self.text.len() - ahead.len();
        let is_number = ahead.starts_with(|c: char| c.is_ascii_digit());
        let is_in_word = |c: char| c.is_alphanumeric() || c == '_' || is_number && c == '.';
        let word = ahead.find(|c| !is_in_word(c)).unwrap_or(ahead.len());
        let length = match ahead.chars().next() {
            Some(c) if word == 0 => c.len_utf8(),
            _ => word,
        };
        start..start + length
    }

    /// Takes the next token if it is this symbol.
    fn take(&mut self, symbol: &str) -> bool {
        let next = self.peek();
        let is_next = &self.text[next.clone()] == symbol;
        if is_next {
            self.end = next.end;
        }
        is_next
    }

    /// Takes a closing parenthesis.
    fn close(&mut self) -> Result<(), ExpressionError> {
        if self.take(")") { Ok(()) } else { Err(self.unexpected("`)`")) }
    }

    /// Reads an expression that is the whole text.
    fn whole(&mut self) -> Result<Computed, ExpressionError> {
        let expression = self.sum()?;
        self.expect_end()?;
        Ok(expression)
    }

    fn expect_end(&self) -> Result<(), ExpressionError> {
        if self.peek().is_empty() {
            Ok(())
        } else {
            Err(self.unexpected("`+`, `-`, `*`, `/` or the end"))
        }
    }

    fn sum(&mut self) -> Result<Computed, ExpressionError> {
        self.chain(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Computed, ExpressionError> {
        self.chain(&[("*", Operator::Multiply), ("/", Operator::Divide)], Self::factor)
    }

    /// Reads operands with operators between them, which are applied from left to right.
    fn chain(
        &mut self,
        operators: &[(&str, Operator)],
        operand: fn(&mut Self) -> Result<Computed, ExpressionError>,
    ) -> Result<Computed, ExpressionError> {
        let start = self.peek().start;
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.take(symbol)) {
            let from = self.peek().start;
            let right = operand(self)?;
            let Bounds { min, max } = right.1;
            if *operator == Operator::Divide && min <= 0 && max >= 0 {
                let label = match (min, max) {
                    (0, 0) => "always 0".to_owned(),
                    _ => format!("can be any number from {min} to {max}"),
                };
                return Err(bad(from..self.end, "possible division by 0", label));
            }
            left = combined(*operator, left, right).ok_or_else(|| too_large(start..self.end))?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Computed, ExpressionError> {
        let span = self.peek();
        let token = &self.text[span.clone()];
        let starts_operand =
            |c: &char| c.is_ascii_digit() || starts_name(*c) || matches!(c, '(' | '-');
        let Some(first) = token.chars().next().filter(starts_operand) else {
            return Err(self.unexpected("a number, a name or `(`"));
        };
        self.end = span.end;
        match first {
            '(' => {
                let inner = self.sum()?;
                self.close()?;
                Ok(inner)
            }
            '-' => {
                let operand = self.factor()?;
                let negated = combined(Operator::Subtract, constant(0), operand);
                negated.ok_or_else(|| too_large(span.start..self.end))
            }
            c if c.is_ascii_digit() => token.parse().map(constant).map_err(|_| {
                let label = if token.bytes().all(|byte| byte.is_ascii_digit()) {
                    "too large"
                } else {
                    "not a whole number"
                };
                let message = format!("{} is not a 64-bit integer", code(token));
                bad(span, message, label)
            }),
            _ => self.name(token, span),
        }
    }

    /// Reads a name within an expression.
    fn name(&mut self, name: &str, span: Range<usize>) -> Result<Computed, ExpressionError> {
        let Some(symbol) = self.scope.find(name) else {
            if ALONE.contains(&name) {
                let message = format!("{} can't be part of a larger expression", code(name));
                let mut error = bad(span, message, "must be a parameter of its own");
                error.help("define a parameter with it, and use that one here");
                return Err(error);
            }
            let named = self.scope.named.iter();
            let known: Vec<&str> = named.map(|(name, _)| name.as_str()).collect();
            let message = format!("unknown name {}", code(name));
            let mut error = bad(span, message, "not defined above");
            error.code = "plan::unknown-parameter";
            error.help(choices(name, "defined so far", &known));
            return Err(error);
        };
        let refuse = |what: &str| {
            let message = format!("can't compute with {what} {}", code(name));
            Err(bad(span.clone(), message, "expected an integer"))
        };
        let computed = match symbol {
            Symbol::Text(..) => return refuse("the text"),
            Symbol::List(..) => return refuse("the list"),
            Symbol::Variable(computed) => computed.clone(),
            Symbol::Argument(value) => {
                self.arguments.push(name.to_owned());
                constant(*value)
            }
            Symbol::Integer { slot, bounds, is_id } => {
                self.has_id |= is_id;
                (Expression::Drawn(*slot, 0), *bounds)
            }
            Symbol::Unknown => constant(1),
        };
        self.scope.mark_used(name);
        Ok(computed)
    }

    /// Reads a function call that is the whole text; `keys` are the bounds of ids.
    fn function(&mut self, name: &str, keys: Bounds) -> Result<(Draw, Bounds), ExpressionError> {
        let start = self.peek();
        if !ALONE[4..].contains(&name) {
            let message = format!("unknown function {}", code(name));
            let suggestion = did_you_mean(name, &ALONE[4..]);
            let mut error = bad(start, message, "not a function");
            error.help(format!("{suggestion}a parameter is {FORMS}"));
            return Err(error);
        }
        self.end = start.end;
        self.take("(");
        let (mut values, mut exponent) = (Vec::new(), EXPONENT);
        while !self.take(")") {
            if !values.is_empty() && !self.take(",") {
                return Err(self.unexpected("`,` or `)`"));
            }
            if name == "zipfian" && values.len() == 2 {
                exponent = self.exponent()?;
                self.close()?;
                break;
            }
            let from = self.peek().start;
            values.push((self.sum()?, from..self.peek().start));
        }
        let span = start.start..self.end;
        self.expect_end()?;
        let distribution = match name {
            "zipfian" => Distribution::Zipfian { exponent },
            _ => Distribution::Uniform,
        };
        match (name, values.as_slice()) {
            ("ids" | "ks", [(count, span)]) => {
                let count = constant_within(count, span.clone(), &PARAMETERS)?;
                Ok((Draw::Keys(count as usize), keys))
            }
            ("consecutive", [((first, bounds), _), (count, of_count)]) => {
                let count = constant_within(count, of_count.clone(), &PARAMETERS)?;
                let max = bounds.max.checked_add(i64::from(count));
                let max = max.ok_or_else(|| too_large(span))? - 1;
                let draw = Draw::Consecutive(first.clone(), count as usize);
                Ok((draw, Bounds::new(bounds.min, max)))
            }
            ("uniform" | "zipfian", [((min, of_min), _), ((max, of_max), _)]) => {
                let bounds = between(*of_min, *of_max).ok_or_else(|| {
                    let (min, max) = (of_min.min, of_max.max);
                    let message = format!("the lower bound {min} is above the upper bound {max}");
                    bad(span, message, "expected the lower bound first")
                })?;
                let draw = Draw::Between(min.clone(), max.clone(), distribution);
                Ok((draw, bounds))
            }
            _ => {
                let got = counted(values.len(), "argument");
                let expected = match name {
                    "ids" | "ks" => "1 argument",
                    "zipfian" => "2 or 3 arguments",
                    _ => "2 arguments",
                };
                let message = format!("{} has {got}", code(name));
                let mut error = bad(span, message, format!("expected {expected}"));
                error.help(format!("a parameter is {FORMS}"));
                Err(error)
            }
        }
    }

    fn exponent(&mut self) -> Result<f64, ExpressionError> {
        let span = self.peek();
        let token = &self.text[span.clone()];
        self.end = span.end;
        exponent(token).ok_or_else(|| {
            let got = code(token);
            let message = format!("invalid exponent {got} of a zipfian distribution");
            let label = format!("expected a number above 0 and up to {EXPONENT_MAX}");
            bad(span, message, label)
        })
    }

    /// Returns the error for a next token that is not `expected`.
    fn unexpected(&self, expected: &str) -> ExpressionError {
        let span = self.peek();
        let message = match &self.text[span.clone()] {
            "" => "incomplete expression".to_owned(),
            token => format!("unexpected {}", code(token)),
        };
        let mut error = bad(span, message, format!("expected {expected}"));
        error.help(format!("a parameter is {FORMS}"));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Expression = Expression::Drawn(Slot::Own(1), 0);

    fn scope() -> Scope {
        let named = |name: &str, holds| (name.to_owned(), holds);
        let first =
            Symbol::Integer { slot: Slot::Own(1), bounds: Bounds::new(1, 1_000), is_id: true };
        let thread = (Expression::Drawn(Slot::Event(0), 0), Bounds::new(0, 3));
        Scope {
            rows: 1_000,
            named: vec![
                named("rows", Symbol::Variable(constant(1_000))),
                named("tables", Symbol::Variable(constant(8))),
                named("thread", Symbol::Variable(thread)),
                named("range", Symbol::Argument(100)),
                named("first", first),
                named("text", Symbol::Text(Slot::Own(0), false)),
                named("list", Symbol::List(Slot::Own(2), 5, Bounds::new(1, 9))),
            ],
            used: Vec::new(),
            ranges: Vec::new(),
        }
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
            ("rows / 2 + tables", 508),
        ] {
            let computed = integer(text, &mut scope()).unwrap();
            assert_eq!(computed, constant(expected), "{text}");
        }
    }

    #[test]
    fn drawn_values_are_computed_later_and_lie_within_their_bounds() {
        // Thread 2 has drawn 7 for `first`.
        let integers = [2, 0, 0, 7];
        for (text, value, min, max) in [
            ("first + (range - 1)", 106, 100, 1_099),
            ("500 + first - 1", 506, 500, 1_499),
            ("tables * thread - first", 9, -1_000, 23),
            ("(first - 500) * (first - 500)", 243_049, -249_500, 250_000),
            ("rows / (first + 1)", 125, 0, 500),
            ("rows / (4 - thread)", 500, 250, 1_000),
        ] {
            let (expression, bounds) = integer(text, &mut scope()).unwrap();
            assert_eq!(expression.value(&integers, 2), value, "{text}");
            assert_eq!(bounds, Bounds::new(min, max), "{text}");
        }
        let (expression, _) = integer("500 + first - 1", &mut scope()).unwrap();
        assert_eq!(expression, Expression::Drawn(Slot::Own(1), 499));
    }

    #[test]
    fn definitions_of_parameters_are_read() {
        let draw = |text| {
            let mut block = Block::default();
            draw(text, &mut scope(), &mut block, Slot::Own).unwrap();
            block.draws.remove(0).1
        };
        let rows = Expression::Integer(1_000);
        let zipfian = |exponent| Distribution::Zipfian { exponent };
        let from_one = |max, distribution| Draw::Between(Expression::Integer(1), max, distribution);
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
    fn an_argument_in_an_expression_with_an_id_makes_a_range() {
        for (text, expected) in
            [("first + range - 1", &["range"][..]), ("range * 2", &[]), ("ids(range)", &[])]
        {
            let mut scope = scope();
            draw(text, &mut scope, &mut Block::default(), Slot::Own).unwrap();
            assert_eq!(scope.ranges, expected, "{text}");
        }
    }

    #[test]
    fn deep_expressions_do_not_overflow_the_stack() {
        for open in ["(", "-"] {
            let deep = open.repeat(LENGTH_MAX - 1) + "1";
            let _ = integer(&deep, &mut scope());
        }
    }
}
