//! What parameters of tests are: `first + range - 1`, `ids(10)`, `c`.
//!
//! An expression is worked out as far as it is known while it is read, together with the bounds of its value: they choose
//! the type of a parameter, and one that could divide by zero or leave 64 bits is refused.

use std::ops::{Range, RangeInclusive};

use words::counted;

use super::test::{Block, Distribution, Draw, Slot};
use crate::diagnostic::{Diagnostic, Place};
use crate::wording::{choices, code, did_you_mean};

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
const EXPONENT_MOST: f64 = 10.0;

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

/// Reads the exponent of a zipfian distribution.
pub(crate) fn exponent(text: &str) -> Option<f64> {
    let exponent: f64 = text.trim().parse().ok()?;
    (exponent > 0.0 && exponent <= EXPONENT_MOST).then_some(exponent)
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Symbol {
    /// `rows`, `tables`, `thread`
    Variable(Computed),
    Argument(i64),
    Integer {
        slot: Slot,
        bounds: Bounds,
        /// It is the id of a row.
        is_id: bool,
    },
    /// The first of so many.
    List(Slot, usize, Bounds),
    /// Of the column `pad`, or else of `c`.
    Text(Slot, bool),
    /// It could not be read, which was said.
    Unknown,
}

/// The names that expressions and statements may have in them, and what was done with them.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The rows of a table.
    pub(crate) rows: u64,
    pub(crate) named: Vec<(String, Symbol)>,
    /// Those that something has in it.
    pub(crate) used: Vec<String>,
    /// Arguments that make ranges of ids.
    pub(crate) ranges: Vec<String>,
}

impl Scope {
    pub(crate) fn find(&self, name: &str) -> Option<&Symbol> {
        let named = self.named.iter().find(|(other, _)| other == name);
        named.map(|(_, holds)| holds)
    }

    pub(crate) fn mark(&mut self, name: &str) {
        if !self.used.iter().any(|other| other == name) {
            self.used.push(name.to_owned());
        }
    }
}

/// What is wrong with a text. Its place is the bytes of the text.
pub(crate) type ExpressionError = Box<Diagnostic>;

fn bad(
    span: Range<usize>,
    message: impl Into<String>,
    label: impl Into<String>,
) -> ExpressionError {
    let place = Place::File(span.into());
    let mut wrong = Diagnostic::error("plan::bad-expression", place, message);
    wrong.label(label);
    Box::new(wrong)
}

fn too_large(span: Range<usize>) -> ExpressionError {
    bad(span, "a number that 64 bits don't hold", "has no value")
}

/// Whether text may be the name of a parameter or an argument, as far as its letters go.
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

/// Reads a number within `allowed` that is known before anything is drawn.
pub(crate) fn count(
    text: &str,
    scope: &mut Scope,
    allowed: &RangeInclusive<i64>,
) -> Result<u32, ExpressionError> {
    let count = integer(text, scope)?;
    known(&count, 0..text.len(), allowed)
}

fn known(
    (count, _): &Computed,
    span: Range<usize>,
    allowed: &RangeInclusive<i64>,
) -> Result<u32, ExpressionError> {
    let message = match count {
        Expression::Integer(count) if allowed.contains(count) => {
            return Ok(u32::try_from(*count).unwrap_or(u32::MAX));
        }
        Expression::Integer(count) => format!("`{count}` is out of range"),
        _ => "a number that depends on what is drawn".to_owned(),
    };
    let label = format!("allowed: {} to {}", allowed.start(), allowed.end());
    Err(bad(span, message, label))
}

/// Returns what lies from the least of the one to the most of the other; `None` where that is nothing.
pub(crate) fn between(least: Bounds, most: Bounds) -> Option<Bounds> {
    (least.least <= most.most).then(|| Bounds::new(least.least, most.most.max(least.most)))
}

/// Reads what a parameter is, and adds it to a block of which `slot` makes places.
pub(crate) fn draw(
    text: &str,
    scope: &mut Scope,
    block: &mut Block,
    slot: fn(usize) -> Slot,
) -> Result<Symbol, ExpressionError> {
    let keys = Bounds::new(1, i64::try_from(scope.rows).unwrap_or(i64::MAX));
    let mut parser = Parser::new(text, scope)?;
    let first = parser.peek();
    let (name, rest) = (&text[first.clone()], text[first.end..].trim_start());
    let mut add = |draw| slot(block.add(draw));
    Ok(match (name, rest) {
        ("id" | "k", "") => Symbol::Integer {
            slot: add(Draw::Keys(1)),
            bounds: keys,
            is_id: name == "id",
        },
        ("c", "") => Symbol::Text(add(Draw::C), false),
        ("pad", "") => Symbol::Text(add(Draw::Pad), true),
        _ if rest.starts_with('(') && name.starts_with(begins_name) => {
            let (draw, bounds) = parser.function(name, keys)?;
            match draw {
                Draw::Keys(count) | Draw::Consecutive(_, count) => {
                    Symbol::List(add(draw), count, bounds)
                }
                _ => Symbol::Integer {
                    slot: add(draw),
                    bounds,
                    is_id: false,
                },
            }
        }
        _ => {
            let (value, bounds) = parser.whole()?;
            if parser.has_id {
                parser.scope.ranges.extend(parser.arguments);
            }
            Symbol::Integer {
                slot: add(Draw::Value(value)),
                bounds,
                is_id: false,
            }
        }
    })
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

struct Parser<'a, 's> {
    text: &'a str,
    scope: &'s mut Scope,
    /// The end of the last token.
    end: usize,
    /// The id of a row is in it.
    has_id: bool,
    /// The arguments that are in it.
    arguments: Vec<String>,
}

impl<'a, 's> Parser<'a, 's> {
    fn new(text: &'a str, scope: &'s mut Scope) -> Result<Self, ExpressionError> {
        if text.len() > LONGEST {
            let message = format!("an expression of {} characters", text.chars().count());
            return Err(bad(0..text.len(), message, "too long for anyone"));
        }
        Ok(Self {
            text,
            scope,
            end: 0,
            has_id: false,
            arguments: Vec::new(),
        })
    }

    /// Returns where the next token is: a number or a name with all its letters, another character, or nothing at the end.
    fn peek(&self) -> Range<usize> {
        let rest = self.text[self.end..].trim_start();
        let start = self.text.len() - rest.len();
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        let is_of_word = |c: char| c.is_alphanumeric() || c == '_' || is_number && c == '.';
        let word = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let length = match rest.chars().next() {
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

    fn close(&mut self) -> Result<(), ExpressionError> {
        match self.take(")") {
            true => Ok(()),
            false => Err(self.unexpected("`)`")),
        }
    }

    /// An expression that is all of the text.
    fn whole(&mut self) -> Result<Computed, ExpressionError> {
        let expression = self.sum()?;
        self.nothing_more()?;
        Ok(expression)
    }

    fn nothing_more(&self) -> Result<(), ExpressionError> {
        match self.peek().is_empty() {
            true => Ok(()),
            false => Err(self.unexpected("`+`, `-`, `*`, `/` or nothing")),
        }
    }

    fn sum(&mut self) -> Result<Computed, ExpressionError> {
        self.chain(
            &[("+", Operator::Add), ("-", Operator::Subtract)],
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Computed, ExpressionError> {
        self.chain(
            &[("*", Operator::Multiply), ("/", Operator::Divide)],
            Self::factor,
        )
    }

    /// Operands with operators between them, which are worked out from left to right.
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
            let Bounds { least, most } = right.1;
            if *operator == Operator::Divide && least <= 0 && most >= 0 {
                let label = match (least, most) {
                    (0, 0) => "is 0".to_owned(),
                    _ => format!("is between {least} and {most}"),
                };
                return Err(bad(from..self.end, "division by what may be 0", label));
            }
            left = combined(*operator, left, right).ok_or_else(|| too_large(start..self.end))?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Computed, ExpressionError> {
        let span = self.peek();
        let token = &self.text[span.clone()];
        let begins = |c: &char| c.is_ascii_digit() || begins_name(*c) || matches!(c, '(' | '-');
        let Some(first) = token.chars().next().filter(begins) else {
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
                let negated = combined(Operator::Subtract, integer_of(0), operand);
                negated.ok_or_else(|| too_large(span.start..self.end))
            }
            c if c.is_ascii_digit() => token.parse().map(integer_of).map_err(|_| {
                let label = match token.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => "more than 64 bits",
                    false => "not a whole number",
                };
                let message = format!("{} can't be calculated with", code(token));
                bad(span, message, label)
            }),
            _ => self.name(token, span),
        }
    }

    /// A name within an expression.
    fn name(&mut self, name: &str, span: Range<usize>) -> Result<Computed, ExpressionError> {
        let Some(holds) = self.scope.find(name) else {
            let named = self.scope.named.iter();
            let known: Vec<&str> = named.map(|(name, _)| name.as_str()).collect();
            let help = match ALONE.contains(&name) {
                true => format!(
                    "{} stands alone: give it a parameter of its own, and use that here",
                    code(name)
                ),
                false => choices(name, "known here", &known),
            };
            let message = format!("unknown name {}", code(name));
            let mut wrong = bad(span, message, "not defined before");
            wrong.code = "plan::unknown-parameter";
            wrong.help(help);
            return Err(wrong);
        };
        let refuse = |what: &str| {
            let message = format!("{} is {what} and can't be calculated with", code(name));
            Err(bad(span.clone(), message, "not an integer"))
        };
        let computed = match holds {
            Symbol::Text(..) => return refuse("text"),
            Symbol::List(..) => return refuse("a list"),
            Symbol::Variable(computed) => computed.clone(),
            Symbol::Argument(value) => {
                self.arguments.push(name.to_owned());
                integer_of(*value)
            }
            Symbol::Integer {
                slot,
                bounds,
                is_id,
            } => {
                self.has_id |= is_id;
                (Expression::Drawn(*slot, 0), *bounds)
            }
            Symbol::Unknown => integer_of(1),
        };
        self.scope.mark(name);
        Ok(computed)
    }

    /// A function that is all of the text; `keys` are the bounds of ids.
    fn function(&mut self, name: &str, keys: Bounds) -> Result<(Draw, Bounds), ExpressionError> {
        let start = self.peek();
        if !ALONE[4..].contains(&name) {
            let message = format!("unknown function {}", code(name));
            let meant = did_you_mean(name, &ALONE[4..]);
            let mut wrong = bad(start, message, "not a function");
            wrong.help(format!("{meant}a parameter is {FORMS}"));
            return Err(wrong);
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
        self.nothing_more()?;
        let distribution = match name {
            "zipfian" => Distribution::Zipfian { exponent },
            _ => Distribution::Uniform,
        };
        match (name, values.as_slice()) {
            ("ids" | "ks", [(count, span)]) => {
                let count = known(count, span.clone(), &PARAMETERS)?;
                Ok((Draw::Keys(count as usize), keys))
            }
            ("consecutive", [((first, bounds), _), (count, of_count)]) => {
                let count = known(count, of_count.clone(), &PARAMETERS)?;
                let most = bounds.most.checked_add(i64::from(count));
                let most = most.ok_or_else(|| too_large(span))? - 1;
                let draw = Draw::Consecutive(first.clone(), count as usize);
                Ok((draw, Bounds::new(bounds.least, most)))
            }
            ("uniform" | "zipfian", [((least, of_least), _), ((most, of_most), _)]) => {
                let bounds = between(*of_least, *of_most).ok_or_else(|| {
                    let (least, most) = (of_least.least, of_most.most);
                    let message = format!("a least of {least} above a most of {most}");
                    bad(span, message, "the least comes first")
                })?;
                let draw = Draw::Between(least.clone(), most.clone(), distribution);
                Ok((draw, bounds))
            }
            _ => {
                let got = counted(values.len(), "argument");
                let wanted = if matches!(name, "ids" | "ks") { 1 } else { 2 };
                let message = format!("{} has {got}", code(name));
                let mut wrong = bad(span, message, format!("{wanted} are wanted"));
                wrong.help(format!("a parameter is {FORMS}"));
                Err(wrong)
            }
        }
    }

    fn exponent(&mut self) -> Result<f64, ExpressionError> {
        let span = self.peek();
        let token = &self.text[span.clone()];
        self.end = span.end;
        exponent(token).ok_or_else(|| {
            let got = code(token);
            let message = format!("the exponent of a zipfian distribution is {got}");
            let label = format!("expected a number above 0, at most {EXPONENT_MOST}");
            bad(span, message, label)
        })
    }

    /// What is wrong with the next token.
    fn unexpected(&self, wanted: &str) -> ExpressionError {
        let span = self.peek();
        let message = match &self.text[span.clone()] {
            "" => "the expression is not complete".to_owned(),
            token => format!("unexpected {}", code(token)),
        };
        let mut wrong = bad(span, message, format!("expected {wanted}"));
        wrong.help(format!("a parameter is {FORMS}"));
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Expression = Expression::Drawn(Slot::Own(1), 0);

    fn scope() -> Scope {
        let named = |name: &str, holds| (name.to_owned(), holds);
        let first = Symbol::Integer {
            slot: Slot::Own(1),
            bounds: Bounds::new(1, 1_000),
            is_id: true,
        };
        let thread = (Expression::Drawn(Slot::Event(0), 0), Bounds::new(0, 3));
        Scope {
            rows: 1_000,
            named: vec![
                named("rows", Symbol::Variable(integer_of(1_000))),
                named("tables", Symbol::Variable(integer_of(8))),
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
        let draw = |text| {
            let mut block = Block::default();
            draw(text, &mut scope(), &mut block, Slot::Own).unwrap();
            block.draws.remove(0).1
        };
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
            draw(text, &mut scope, &mut Block::default(), Slot::Own).unwrap();
            assert_eq!(scope.ranges, expected, "{text}");
        }
    }

    #[test]
    fn depth_does_no_harm() {
        for open in ["(", "-"] {
            let deep = open.repeat(LONGEST - 1) + "1";
            let _ = integer(&deep, &mut scope());
        }
    }
}
