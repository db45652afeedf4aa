//! Reads the tokens, the values and the names of a script.

use std::ops::Range;

use super::bounded::Bounded;
use super::table_values::DefinedTable;
use crate::spec::transactions::{List, NumberOperator, Shape};
use crate::text::diagnostic::{Diagnostic, Place};
use crate::text::wording::{choices, code};

/// The deepest nesting of values and blocks, which limits recursion.
const DEPTH_MAX: u32 = 60;
/// With a larger exponent nearly all draws would be the most frequent value.
const EXPONENT_MAX: f64 = 10.0;

/// Functions of integers, each with its parameters.
const FUNCTIONS: [(&str, &str); 13] = [
    ("if", "CONDITION, A, B"),
    ("at", "KEY, VALUE"),
    ("uniform", "A, B"),
    ("zipf", "A, B, EXPONENT"),
    ("scrambled", "A, B, EXPONENT"),
    ("latest", "A, B, EXPONENT"),
    ("hot", "A, B, PART, SHARE"),
    ("nurand", "X, A, B"),
    ("hash", "N"),
    ("next", "TABLE"),
    ("newest", "TABLE"),
    ("home", "TABLE"),
    ("homes", "TABLE"),
];
/// Functions of integers that draw nothing themselves, and that servers can compute, too.
const FIXED_FUNCTIONS: [&str; 2] = ["if", "at"];

/// The fault of a script. Its place is a range of bytes of the script.
pub(super) type Fault = Box<Diagnostic>;

/// Returns a fault; the caller can add help.
pub(super) fn fault(
    code: &'static str,
    span: Range<usize>,
    message: impl Into<String>,
    label: impl Into<String>,
) -> Fault {
    let mut fault = Diagnostic::error(code, Place::File(span.into()), message);
    fault.label(label);
    Box::new(fault)
}

/// The meaning of a name in a value.
#[derive(Clone, Debug)]
pub(super) enum Symbol {
    Number(Bounded),
    /// A text, by its place.
    Text(usize),
    /// A list, and the bounds of its values.
    List(List, (i64, i64)),
}

/// The permission to draw random values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Draws {
    #[default]
    Allowed,
    /// Not here, for this reason.
    Refused(&'static str),
}

/// The names that values may use, and the places of variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) named: Vec<(String, Symbol)>,
    pub(super) integers: usize,
    pub(super) texts: usize,
    pub(super) draws: Draws,
    /// Values are those of a table's rows.
    pub(super) is_table: bool,
    /// The places of the variables that may change.
    pub(super) changeable: Vec<usize>,
    /// The tables whose next or newest row is asked for, by their indexes.
    pub(super) numbered_tables: Vec<usize>,
    /// The tables, by their indexes, of which the transaction asks for the client's homes.
    pub(super) homes: Vec<usize>,
}

impl Scope {
    pub(super) fn find(&self, name: &str) -> Option<&Symbol> {
        let named = self.named.iter().find(|(other, _)| other == name);
        named.map(|(_, symbol)| symbol)
    }

    /// Reserves places for integers, and returns the first.
    pub(super) fn add_integers(&mut self, count: usize) -> usize {
        self.integers += count;
        self.integers - count
    }

    /// Reserves a place for a text.
    pub(super) fn add_text(&mut self) -> usize {
        self.texts += 1;
        self.texts - 1
    }
}

/// A recursive descent parser of scripts.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    /// The end of the last token.
    pub(super) at: usize,
    pub(super) scope: Scope,
    /// The tables so far.
    pub(super) tables: Vec<DefinedTable>,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, scope: Scope::default(), tables: Vec::new(), depth: 0 }
    }

    /// Returns the place of the next token: a word, a number, a text in quotes, a symbol, or an
    /// empty range at the end.
    pub(super) fn peek(&self) -> Range<usize> {
        self.token_after(self.at)
    }

    /// Returns the place of the first token after a place.
    pub(super) fn token_after(&self, at: usize) -> Range<usize> {
        let start = self.after_blanks(at);
        let ahead = &self.text[start..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let word = ahead.find(|c| !is_word(c)).unwrap_or(ahead.len());

        let length = if ahead.starts_with(|c: char| c.is_ascii_digit()) {
            // A point belongs to a number if a digit follows.
            let rest = &ahead[word..];
            let is_decimal =
                rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit());
            let decimals = if is_decimal {
                1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1)
            } else {
                0
            };
            word + decimals
        } else if word > 0 {
            word
        } else if ["!=", "<=", ">=", ".."].iter().any(|symbol| ahead.starts_with(symbol)) {
            2
        } else if ahead.starts_with(['\'', '"']) {
            quoted_length(ahead)
        } else {
            ahead.chars().next().map_or(0, char::len_utf8)
        };
        start..start + length
    }

    /// Returns the place after the whitespace and comments at a place.
    fn after_blanks(&self, mut at: usize) -> usize {
        loop {
            let ahead = self.text[at..].trim_start();
            at = self.text.len() - ahead.len();
            if !ahead.starts_with("--") {
                return at;
            }
            at += ahead.find('\n').unwrap_or(ahead.len());
        }
    }

    /// Returns the next token.
    pub(super) fn ahead(&self) -> &'a str {
        &self.text[self.peek()]
    }

    /// Takes the next token if it is this one.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let next = self.peek();
        let is_it = &self.text[next.clone()] == token;
        if is_it {
            self.at = next.end;
        }
        is_it
    }

    /// Takes this token.
    pub(super) fn expect(&mut self, token: &str) -> Result<(), Fault> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(&code(token))) }
    }

    /// Returns the fault of a next token that is not `expected`.
    pub(super) fn unexpected(&self, expected: &str) -> Fault {
        let span = self.peek();
        let message = match &self.text[span.clone()] {
            "" => "the script ends too early".to_owned(),
            token => format!("unexpected {}", code(token)),
        };
        fault("plan::bad-script", span, message, format!("expected {expected}"))
    }

    /// Takes a name: lower-case letters, digits and `_`.
    pub(super) fn name(&mut self, what: &str) -> Result<&'a str, Fault> {
        let span = self.peek();
        let name = &self.text[span.clone()];
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.bytes().all(is_plain) {
            let mut fault = self.unexpected(what);
            fault.help("names have lower-case letters, digits and `_`");
            return Err(fault);
        }
        self.at = span.end;
        Ok(name)
    }

    /// Takes a list of names in parentheses.
    pub(super) fn names(&mut self, what: &str) -> Result<Vec<String>, Fault> {
        self.expect("(")?;
        let mut names = vec![self.name(what)?.to_owned()];
        while self.take(",") {
            names.push(self.name(what)?.to_owned());
        }
        self.expect(")")?;
        Ok(names)
    }

    /// Takes a text in quotes of this kind; `None` if there is none.
    pub(super) fn quoted(&mut self, quote: char) -> Option<String> {
        let span = self.peek();
        let inner = self.text[span.clone()].strip_prefix(quote)?.strip_suffix(quote)?;
        self.at = span.end;
        let doubled = [quote, quote].iter().collect::<String>();
        Some(inner.replace(&doubled, &quote.to_string()))
    }

    /// Runs a part of the parser one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.depth == DEPTH_MAX {
            let label = format!("more than {DEPTH_MAX} levels");
            return Err(fault("plan::bad-script", self.peek(), "nested too deeply", label));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// Takes the computation of an integer.
    pub(super) fn number(&mut self) -> Result<Bounded, Fault> {
        self.nested(|parser| parser.chain(&[("or", NumberOperator::Or)], Self::conjunction))
    }

    fn conjunction(&mut self) -> Result<Bounded, Fault> {
        self.chain(&[("and", NumberOperator::And)], Self::comparison)
    }

    fn comparison(&mut self) -> Result<Bounded, Fault> {
        if self.take("not") {
            let operand = self.nested(Self::comparison)?;
            return self.combined(NumberOperator::Equal, operand, Bounded::constant(0), self.at);
        }

        let start = self.peek().start;
        let left = self.sum()?;
        let (operator, is_swapped) = match self.ahead() {
            "=" => (NumberOperator::Equal, false),
            "!=" => (NumberOperator::Unequal, false),
            "<" => (NumberOperator::Less, false),
            "<=" => (NumberOperator::AtMost, false),
            ">" => (NumberOperator::Less, true),
            ">=" => (NumberOperator::AtMost, true),
            _ => return Ok(left),
        };
        self.at = self.peek().end;
        let right = self.sum()?;
        if is_swapped {
            self.combined(operator, right, left, start)
        } else {
            self.combined(operator, left, right, start)
        }
    }

    fn sum(&mut self) -> Result<Bounded, Fault> {
        let operators = [("+", NumberOperator::Add), ("-", NumberOperator::Subtract)];
        self.chain(&operators, Self::product)
    }

    pub(super) fn product(&mut self) -> Result<Bounded, Fault> {
        let operators = [
            ("*", NumberOperator::Multiply),
            ("/", NumberOperator::Divide),
            ("%", NumberOperator::Remainder),
        ];
        self.chain(&operators, Self::factor)
    }

    /// Takes operands with operators between them, which apply from left to right.
    fn chain(
        &mut self,
        operators: &[(&str, NumberOperator)],
        operand: fn(&mut Self) -> Result<Bounded, Fault>,
    ) -> Result<Bounded, Fault> {
        let start = self.peek().start;
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.take(symbol)) {
            let right = operand(self)?;
            left = self.combined(*operator, left, right, start)?;
        }
        Ok(left)
    }

    fn combined(
        &self,
        operator: NumberOperator,
        left: Bounded,
        right: Bounded,
        start: usize,
    ) -> Result<Bounded, Fault> {
        let is_divided = matches!(operator, NumberOperator::Divide | NumberOperator::Remainder);
        let by_zero = is_divided && right.as_constant() == Some(0);
        let combined = Bounded::combine(operator, left, right).filter(|_| !by_zero);
        combined.ok_or_else(|| {
            let why = if by_zero { "division by 0" } else { "the result needs more than 64 bits" };
            fault("plan::bad-expression", start..self.at, why, "has no result")
        })
    }

    /// Takes a number, a name, a call, or a computation in parentheses, with any minus before it.
    fn factor(&mut self) -> Result<Bounded, Fault> {
        let span = self.peek();
        let token = &self.text[span.clone()];

        match token.chars().next() {
            Some('(') => {
                self.at = span.end;
                let inner = self.number()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some('-') => {
                self.at = span.end;
                let operand = self.nested(Self::factor)?;
                let zero = Bounded::constant(0);
                self.combined(NumberOperator::Subtract, zero, operand, span.start)
            }
            Some(digit) if digit.is_ascii_digit() => {
                self.at = span.end;
                whole_number(token, span)
            }
            Some(letter) if letter.is_alphabetic() || letter == '_' => {
                self.at = span.end;
                if self.ahead() == "(" {
                    self.call(token, span)
                } else {
                    self.variable(token, span)
                }
            }
            _ => Err(self.unexpected("a number, a name or `(`")),
        }
    }

    fn variable(&self, name: &str, span: Range<usize>) -> Result<Bounded, Fault> {
        match self.scope.find(name) {
            Some(Symbol::Number(number)) => Ok(number.clone()),
            Some(Symbol::Text(_)) => {
                let message = format!("{} is a text", code(name));
                Err(fault("plan::bad-expression", span, message, "expected an integer"))
            }
            Some(Symbol::List(..)) => {
                let message = format!("{} is a list", code(name));
                Err(fault("plan::bad-expression", span, message, "expected an integer"))
            }
            None => Err(self.undefined(name, span)),
        }
    }

    /// Returns the fault of a name that nothing defines.
    pub(super) fn undefined(&self, name: &str, span: Range<usize>) -> Fault {
        let known: Vec<&str> = self.scope.named.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("unknown name {}", code(name));
        let mut fault = fault("plan::unknown-parameter", span, message, "not defined above");
        fault.help(choices(name, "defined so far", &known));
        fault
    }

    /// Takes the arguments of a function of integers, and returns its result.
    fn call(&mut self, name: &str, span: Range<usize>) -> Result<Bounded, Fault> {
        let Some((_, parameters)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let known = FUNCTIONS.map(|(name, _)| name);
            let message = format!("unknown function {}", code(name));
            let mut fault = fault("plan::bad-expression", span, message, "not a function");
            fault.help(choices(name, "functions of integers", &known));
            return Err(fault);
        };

        self.expect("(")?;
        let result = self.nested(|parser| parser.arguments(name)).map_err(|mut fault| {
            fault.help(format!("write {}", code(&format!("{name}({parameters})"))));
            fault
        })?;
        self.expect(")")?;

        if let Draws::Refused(why) = &self.scope.draws
            && !FIXED_FUNCTIONS.contains(&name)
        {
            let does = match name {
                "next" | "newest" => "draws a row's number",
                "hash" | "homes" => "computes a number of the client",
                _ => "draws a random number",
            };
            let message = format!("{} {does} here", code(name));
            return Err(fault("plan::bad-expression", span.start..self.at, message, *why));
        }
        Ok(result)
    }

    /// Takes what is between the parentheses of a function of integers.
    fn arguments(&mut self, name: &str) -> Result<Bounded, Fault> {
        if name == "if" {
            let condition = self.number()?;
            self.expect(",")?;
            let first = self.number()?;
            self.expect(",")?;
            let second = self.number()?;
            return Ok(Bounded::choose(condition, first, second));
        }

        if name == "at" {
            if !self.scope.is_table {
                return Err(self.unexpected("a table around `at`"));
            }
            let key = self.number()?;
            self.expect(",")?;
            return Ok(Bounded::at(key, self.number()?));
        }

        match name {
            "hash" => Ok(Bounded::hash(self.number()?)),
            "next" | "newest" => self.row_number(name),
            "home" | "homes" => self.home(name),
            _ => self.draw(name),
        }
    }

    /// Takes the arguments of a function that draws a random number.
    fn draw(&mut self, name: &str) -> Result<Bounded, Fault> {
        // Of all draws, only `nurand` has an argument before the range.
        let mut x = 0;
        if name == "nurand" {
            x = self.decimal("a power of two less 1", 1.0..=f64::from(u32::MAX))? as u32;
            self.expect(",")?;
        }

        let least = self.number()?;
        self.expect(",")?;
        let most = self.number()?;

        let shape = match name {
            "uniform" => Shape::Uniform,
            "nurand" => Shape::NonUniform { x, loads: self.scope.is_table },
            "hot" => {
                self.expect(",")?;
                let part = self.decimal("percent of the range", 0.0..=100.0)?;
                self.expect(",")?;
                Shape::Hot { part, share: self.decimal("percent of the draws", 0.0..=100.0)? }
            }
            _ => {
                self.expect(",")?;
                let exponent = self.decimal("an exponent", 0.001..=EXPONENT_MAX)?;
                match name {
                    "scrambled" => Shape::Scrambled { exponent },
                    "latest" => Shape::Latest { exponent },
                    _ => Shape::Zipf { exponent },
                }
            }
        };
        Ok(Bounded::draw(shape, least, most))
    }

    /// Takes a constant with or without decimals.
    fn decimal(
        &mut self,
        what: &str,
        allowed: std::ops::RangeInclusive<f64>,
    ) -> Result<f64, Fault> {
        let span = self.peek();
        let value: Option<f64> = self.text[span.clone()].parse().ok();
        let Some(value) = value.filter(|value| allowed.contains(value)) else {
            let expected = format!("{what} from {} to {}", allowed.start(), allowed.end());
            return Err(self.unexpected(&expected));
        };
        self.at = span.end;
        Ok(value)
    }

    /// Takes a constant integer within bounds.
    pub(super) fn constant(
        &mut self,
        what: &str,
        allowed: std::ops::RangeInclusive<i64>,
    ) -> Result<i64, Fault> {
        let start = self.peek().start;
        let value = self.number()?.as_constant();
        value.filter(|value| allowed.contains(value)).ok_or_else(|| {
            let (least, most) = (allowed.start(), allowed.end());
            let message = format!("{what} must be a constant from {least} to {most}");
            fault("plan::bad-expression", start..self.at, message, "not such a number")
        })
    }
}

/// Returns the constant that digits stand for.
fn whole_number(digits: &str, span: Range<usize>) -> Result<Bounded, Fault> {
    let Ok(number) = digits.parse::<i64>() else {
        let message = format!("{} is not a 64-bit integer", code(digits));
        return Err(fault("plan::bad-expression", span, message, "expected a whole number"));
    };
    Ok(Bounded::constant(number))
}

/// Returns the length of a text in quotes, at the beginning of `ahead`. Quotes in it are doubled. A
/// text that does not end is only its quote.
fn quoted_length(ahead: &str) -> usize {
    let quote = &ahead[..1];
    let mut at = 1;
    while let Some(found) = ahead[at..].find(quote) {
        at += found + 1;
        if !ahead[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    1
}
