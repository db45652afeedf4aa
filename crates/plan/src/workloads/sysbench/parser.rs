//! Reads the expressions that define parameters of tests.

use std::ops::{Range, RangeInclusive};

use words::counted;

use super::expression::{Bounds, Computed, EXPONENT, PARAMETERS, Scope, Symbol, between};
use crate::spec::sysbench::{Block, Distribution, Draw, Expression, Operator, Slot};
use crate::text::diagnostic::{Diagnostic, Place};
use crate::text::wording::{choices, code, did_you_mean};

/// Functions that draw a parameter.
const FUNCTIONS: &[&str] = &["ids", "ks", "consecutive", "uniform", "zipfian"];
/// Names that cannot be part of a larger expression.
const ALONE: &[&str] = &["id", "k", "c", "pad", "ids", "ks", "consecutive", "uniform", "zipfian"];

const FORMS: &str = "`id`, `k`, `c`, `pad`, `ids(N)`, `ks(N)`, `consecutive(first, N)`, `uniform(least, most)`, \
     `zipfian(least, most)`, or an integer computed with `+ - * /`";

/// The most bytes of an expression, which also limits the depth of recursion.
const LENGTH_MAX: usize = 250;

/// With a larger exponent nearly all draws would be the first.
const EXPONENT_MAX: f64 = 10.0;

/// Reads the exponent of a zipfian distribution.
pub(crate) fn exponent(text: &str) -> Option<f64> {
    let exponent: f64 = text.trim().parse().ok()?;
    (exponent > 0.0 && exponent <= EXPONENT_MAX).then_some(exponent)
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
    count: &Computed,
    span: Range<usize>,
    allowed: &RangeInclusive<i64>,
) -> Result<u32, ExpressionError> {
    let (min, max) = (allowed.start(), allowed.end());

    let Expression::Integer(count) = count.expression else {
        let label = format!("expected a constant from {min} to {max}");
        return Err(bad(span, "the number depends on drawn values", label));
    };

    if !allowed.contains(&count) {
        let message = format!("`{count}` is out of range");
        return Err(bad(span, message, format!("allowed: {min} to {max}")));
    }
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
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

    // A parameter is a column's value, a function's, or the value of an expression.
    let first = parser.peek();
    let (name, after) = (&text[first.clone()], text[first.end..].trim_start());
    match (name, after) {
        ("id" | "k", "") => {
            let slot = slot(block.add(Draw::Keys(1)));
            Ok(Symbol::Integer { slot, bounds: keys, is_id: name == "id" })
        }
        ("c", "") => Ok(Symbol::Text(slot(block.add(Draw::C)), false)),
        ("pad", "") => Ok(Symbol::Text(slot(block.add(Draw::Pad)), true)),
        _ if after.starts_with('(') && name.starts_with(starts_name) => {
            let Drawn { draw, bounds } = parser.function(name, keys)?;
            let list_length = match draw {
                Draw::Keys(count) | Draw::Consecutive(_, count) => Some(count),
                _ => None,
            };

            let slot = slot(block.add(draw));
            Ok(match list_length {
                Some(count) => Symbol::List(slot, count, bounds),
                None => Symbol::Integer { slot, bounds, is_id: false },
            })
        }
        _ => {
            let Computed { expression, bounds } = parser.whole()?;
            // An argument next to an id is the length of a range of ids.
            if parser.has_id {
                parser.scope.ranges.extend(parser.arguments);
            }

            let slot = slot(block.add(Draw::Value(expression)));
            Ok(Symbol::Integer { slot, bounds, is_id: false })
        }
    }
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// The values that the definition of a parameter draws, with the bounds of integers.
struct Drawn {
    draw: Draw,
    bounds: Bounds,
}

/// A function's arguments.
struct Call {
    arguments: Vec<Argument>,
    distribution: Distribution,
}

struct Argument {
    value: Computed,
    span: Range<usize>,
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
        if &self.text[next.clone()] != symbol {
            return false;
        }
        self.end = next.end;
        true
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
            let right_start = self.peek().start;
            let right = operand(self)?;

            let Bounds { min, max } = right.bounds;
            if *operator == Operator::Divide && min <= 0 && max >= 0 {
                let label = match (min, max) {
                    (0, 0) => "always 0".to_owned(),
                    _ => format!("can be any number from {min} to {max}"),
                };
                return Err(bad(right_start..self.end, "possible division by 0", label));
            }

            left = Computed::combine(*operator, left, right)
                .ok_or_else(|| too_large(start..self.end))?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Computed, ExpressionError> {
        let span = self.peek();
        let token = &self.text[span.clone()];
        match token.chars().next() {
            Some('(') => {
                self.end = span.end;
                let inner = self.sum()?;
                self.close()?;
                Ok(inner)
            }
            Some('-') => {
                self.end = span.end;
                let operand = self.factor()?;
                Computed::combine(Operator::Subtract, Computed::constant(0), operand)
                    .ok_or_else(|| too_large(span.start..self.end))
            }
            Some(first) if first.is_ascii_digit() => {
                self.end = span.end;
                number(token, span)
            }
            Some(first) if starts_name(first) => {
                self.end = span.end;
                self.name(token, span)
            }
            _ => Err(self.unexpected("a number, a name or `(`")),
        }
    }

    /// Reads a name within an expression.
    fn name(&mut self, name: &str, span: Range<usize>) -> Result<Computed, ExpressionError> {
        let Some(symbol) = self.scope.find(name) else {
            return Err(self.undefined(name, span));
        };
        let computed = match symbol {
            Symbol::Text(..) => return Err(no_integer("the text", name, span)),
            Symbol::List(..) => return Err(no_integer("the list", name, span)),
            Symbol::Variable(computed) => computed.clone(),
            Symbol::Argument(value) => {
                self.arguments.push(name.to_owned());
                Computed::constant(*value)
            }
            Symbol::Integer { slot, bounds, is_id } => {
                self.has_id |= is_id;
                Computed::drawn(*slot, *bounds)
            }
            // Its own error is reported already, so any value will do.
            Symbol::Unknown => Computed::constant(1),
        };
        self.scope.mark_used(name);
        Ok(computed)
    }

    /// Returns the error for a name that nothing defines.
    fn undefined(&self, name: &str, span: Range<usize>) -> ExpressionError {
        if ALONE.contains(&name) {
            let message = format!("{} cannot be part of a larger expression", code(name));
            let mut error = bad(span, message, "must be a parameter of its own");
            error.help("define a parameter with it, and use that one here");
            return error;
        }

        let known: Vec<&str> = self.scope.named.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("unknown name {}", code(name));
        let mut error = bad(span, message, "not defined above");
        error.code = "plan::unknown-parameter";
        error.help(choices(name, "defined so far", &known));
        error
    }

    /// Reads a function call that is the whole text; `keys` are the bounds of ids.
    fn function(&mut self, name: &str, keys: Bounds) -> Result<Drawn, ExpressionError> {
        let start = self.peek();
        if !FUNCTIONS.contains(&name) {
            let message = format!("unknown function {}", code(name));
            let suggestion = did_you_mean(name, FUNCTIONS);
            let mut error = bad(start, message, "not a function");
            error.help(format!("{suggestion}a parameter is {FORMS}"));
            return Err(error);
        }
        self.end = start.end;

        let call = self.call(name)?;
        let span = start.start..self.end;
        self.expect_end()?;
        match (name, call.arguments.as_slice()) {
            ("ids" | "ks", [count]) => {
                let count = constant_within(&count.value, count.span.clone(), &PARAMETERS)?;
                Ok(Drawn { draw: Draw::Keys(count as usize), bounds: keys })
            }
            ("consecutive", [first, count]) => consecutive(&first.value, count, span),
            ("uniform" | "zipfian", [least, most]) => {
                between_ends(&least.value, &most.value, call.distribution, span)
            }
            (_, arguments) => Err(wrong_argument_count(name, arguments.len(), span)),
        }
    }

    /// Reads the arguments of a function, with their parentheses.
    fn call(&mut self, name: &str) -> Result<Call, ExpressionError> {
        self.take("(");
        let mut arguments = Vec::new();
        let mut exponent = EXPONENT;
        while !self.take(")") {
            if !arguments.is_empty() && !self.take(",") {
                return Err(self.unexpected("`,` or `)`"));
            }
            // The third argument is no integer, so it is no expression either.
            if name == "zipfian" && arguments.len() == 2 {
                exponent = self.exponent()?;
                self.close()?;
                break;
            }
            let from = self.peek().start;
            let value = self.sum()?;
            arguments.push(Argument { value, span: from..self.peek().start });
        }

        let distribution = match name {
            "zipfian" => Distribution::Zipfian { exponent },
            _ => Distribution::Uniform,
        };
        Ok(Call { arguments, distribution })
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

fn number(token: &str, span: Range<usize>) -> Result<Computed, ExpressionError> {
    token.parse().map(Computed::constant).map_err(|_| {
        let is_whole = token.bytes().all(|byte| byte.is_ascii_digit());
        let label = if is_whole { "too large" } else { "not a whole number" };
        bad(span, format!("{} is not a 64-bit integer", code(token)), label)
    })
}

fn no_integer(what: &str, name: &str, span: Range<usize>) -> ExpressionError {
    bad(span, format!("cannot compute with {what} {}", code(name)), "expected an integer")
}

fn consecutive(
    first: &Computed,
    count: &Argument,
    span: Range<usize>,
) -> Result<Drawn, ExpressionError> {
    let count = constant_within(&count.value, count.span.clone(), &PARAMETERS)?;
    let end = first.bounds.max.checked_add(i64::from(count)).ok_or_else(|| too_large(span))?;
    Ok(Drawn {
        draw: Draw::Consecutive(first.expression.clone(), count as usize),
        bounds: Bounds::new(first.bounds.min, end - 1),
    })
}

fn between_ends(
    least: &Computed,
    most: &Computed,
    distribution: Distribution,
    span: Range<usize>,
) -> Result<Drawn, ExpressionError> {
    let Some(bounds) = between(least.bounds, most.bounds) else {
        let message = format!(
            "the lower bound {} is above the upper bound {}",
            least.bounds.min, most.bounds.max
        );
        return Err(bad(span, message, "expected the lower bound first"));
    };
    let draw = Draw::Between(least.expression.clone(), most.expression.clone(), distribution);
    Ok(Drawn { draw, bounds })
}

fn wrong_argument_count(name: &str, count: usize, span: Range<usize>) -> ExpressionError {
    let expected = match name {
        "ids" | "ks" => "1 argument",
        "zipfian" => "2 or 3 arguments",
        _ => "2 arguments",
    };
    let message = format!("{} has {}", code(name), counted(count, "argument"));
    let mut error = bad(span, message, format!("expected {expected}"));
    error.help(format!("a parameter is {FORMS}"));
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::sysbench::Slot;

    const FIRST: Expression = Expression::Drawn(Slot::Own(1), 0);

    fn scope() -> Scope {
        let named = |name: &str, holds| (name.to_owned(), holds);
        let first =
            Symbol::Integer { slot: Slot::Own(1), bounds: Bounds::new(1, 1_000), is_id: true };
        let thread = Computed::drawn(Slot::Event(0), Bounds::new(0, 3));
        Scope {
            rows: 1_000,
            named: vec![
                named("rows", Symbol::Variable(Computed::constant(1_000))),
                named("tables", Symbol::Variable(Computed::constant(8))),
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
            assert_eq!(computed, Computed::constant(expected), "{text}");
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
            let Computed { expression, bounds } = integer(text, &mut scope()).unwrap();
            assert_eq!(expression.value(&integers, 2), value, "{text}");
            assert_eq!(bounds, Bounds::new(min, max), "{text}");
        }
        let Computed { expression, .. } = integer("500 + first - 1", &mut scope()).unwrap();
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
