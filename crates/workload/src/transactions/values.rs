//! Computes integers and texts of scripts. What is known before the first operation is computed when
//! a connection is opened.

use std::fmt::Write as _;

use engine::{Error, ErrorClass};
use plan::transactions::{HomeRule, Homes, Number, NumberOperator, Shape, TextValue};

use super::distribution::RangeSampler;
use crate::Random;
use crate::hash::hash;
use crate::numbers::ClientNumbers;

/// The syllables of `lastname`, one for each digit.
pub(super) const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The values and the random numbers of a connection, or of the rows of a table.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) integers: Vec<i64>,
    pub(super) texts: Vec<String>,
    /// Draws integers.
    pub(super) choices: Random,
    /// Draws texts.
    pub(super) letters: Random,
    /// The streams of keys, each of which draws integers; see [`Number::At`].
    pub(super) keyed: Random,
    /// The row numbers of each table; empty if no value asks for them.
    pub(super) numbers: Vec<ClientNumbers>,
}

/// The constants of all values that a connection computes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    /// The seed of the constants of non-uniform numbers.
    pub(super) seed: u64,
    /// The client that runs transactions. Rows have no homes, so those of a load are of any client.
    pub(super) client: ClientOfMany,
}

impl Constants {
    /// Returns the constants of loaded rows.
    pub(super) fn of_rows(seed: u64) -> Self {
        Self { seed, client: ClientOfMany { number: 0, count: 1, rule: HomeRule::Fixed } }
    }
}

/// A client among those of a step, with the rule that gives it its homes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientOfMany {
    pub(super) number: u32,
    pub(super) count: u32,
    pub(super) rule: HomeRule,
}

impl ClientOfMany {
    /// Returns the client's homes in a table of this many rows.
    fn homes(self, rows: i64) -> Homes {
        self.rule.homes(rows, self.number, self.count)
    }
}

/// The computation of an integer; see [`Number`].
#[derive(Debug)]
pub(super) enum Computation {
    Constant(i64),
    Variable(usize),
    Binary(NumberOperator, Box<[Computation; 2]>),
    Choose(Box<[Computation; 3]>),
    /// A random number between constant bounds.
    Draw(Box<RangeSampler>),
    /// A random number between two bounds that are computed.
    DrawBetween(Box<DrawBetween>),
    At(Box<[Computation; 2]>),
    Hash(Box<Computation>),
    /// The next row number of a table.
    Next(usize),
    /// The newest row number of a table.
    Newest(usize),
}

#[derive(Debug)]
pub(super) struct DrawBetween {
    shape: Shape,
    seed: u64,
    least: Computation,
    most: Computation,
}

impl Computation {
    /// Prepares a computation.
    pub(super) fn new(number: &Number, constants: Constants) -> Self {
        let part = |part: &Number| Self::new(part, constants);
        match number {
            Number::Constant(value) => Self::Constant(*value),
            Number::Variable(slot) => Self::Variable(*slot),
            Number::Binary(operator, sides) => {
                Self::Binary(*operator, Box::new(sides.each_ref().map(part)))
            }
            Number::Choose(parts) => Self::Choose(Box::new(parts.each_ref().map(part))),
            Number::At(parts) => Self::At(Box::new(parts.each_ref().map(part))),
            Number::Hash(number) => Self::Hash(Box::new(part(number))),

            Number::Next(table) => Self::Next(*table),
            Number::Newest(table) => Self::Newest(*table),

            Number::Home(rows) => {
                let homes = constants.client.homes(*rows);
                if homes.count() == 1 {
                    return Self::Constant(homes.first);
                }
                let sampler =
                    RangeSampler::new(Shape::Uniform, homes.first, homes.last, constants.seed);
                Self::Draw(Box::new(sampler))
            }
            Number::HomeCount(rows) => Self::Constant(constants.client.homes(*rows).count()),

            Number::Draw(draw) => {
                let (shape, seed) = (draw.shape, constants.seed);
                match (part(&draw.least), part(&draw.most)) {
                    (Self::Constant(least), Self::Constant(most)) => {
                        Self::Draw(Box::new(RangeSampler::new(shape, least, most, seed)))
                    }
                    (least, most) => {
                        Self::DrawBetween(Box::new(DrawBetween { shape, seed, least, most }))
                    }
                }
            }
        }
    }

    /// Computes the value.
    ///
    /// # Errors
    /// A division by 0, or a result of more than 64 bits.
    #[inline]
    pub(super) fn value(&self, values: &mut Values) -> Result<i64, Error> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(slot) => Ok(values.integers[*slot]),
            Self::Binary(operator, sides) => {
                let left = sides[0].value(values)?;
                let right = sides[1].value(values)?;
                operator.apply(left, right).ok_or_else(|| no_result(*operator, left, right))
            }
            Self::Choose(parts) => {
                let [condition, first, second] = &**parts;
                let chosen = if condition.value(values)? != 0 { first } else { second };
                chosen.value(values)
            }

            // Draws of the value come from the key's own stream, and those after it from the outer one.
            Self::At(parts) => {
                let key = parts[0].value(values)?;
                let stream = values.keyed.at(key.cast_unsigned());
                let outer = std::mem::replace(&mut values.choices, stream);
                let value = parts[1].value(values);
                values.choices = outer;
                value
            }

            Self::Hash(number) => Ok(hash(number.value(values)?)),
            Self::Next(table) => Ok(values.numbers[*table].next()),
            Self::Newest(table) => Ok(values.numbers[*table].newest()),

            Self::Draw(sampler) => Ok(sampler.draw(&mut values.choices)),
            Self::DrawBetween(draw) => {
                let least = draw.least.value(values)?;
                let most = draw.most.value(values)?;
                let sampler = RangeSampler::new(draw.shape, least, most, draw.seed);
                Ok(sampler.draw(&mut values.choices))
            }
        }
    }
}

#[cold]
fn no_result(operator: NumberOperator, left: i64, right: i64) -> Error {
    let operator = match operator {
        NumberOperator::Add => "+",
        NumberOperator::Subtract => "-",
        NumberOperator::Multiply => "*",
        NumberOperator::Divide => "/",
        NumberOperator::Remainder => "%",
        _ => "?",
    };
    let what = "has no result of 64 bits in the script";
    Error::new(ErrorClass::Other, format!("`{left} {operator} {right}` {what}"))
}

/// The computation of a text; see [`TextValue`].
#[derive(Debug)]
pub(super) enum TextComputation {
    Constant(String),
    Variable(usize),
    Letters(Computation, Computation),
    Digits(Computation),
    LastName(Computation),
    Either(Computation, Box<[TextComputation; 2]>),
    Numbered(String, Computation),
}

impl TextComputation {
    /// Prepares a computation.
    pub(super) fn new(text: &TextValue, constants: Constants) -> Self {
        let number = |number: &Number| Computation::new(number, constants);
        match text {
            TextValue::Constant(text) => Self::Constant(text.clone()),
            TextValue::Variable(slot) => Self::Variable(*slot),
            TextValue::Letters(least, most) => Self::Letters(number(least), number(most)),
            TextValue::Digits(count) => Self::Digits(number(count)),
            TextValue::LastName(digits) => Self::LastName(number(digits)),
            TextValue::Either(condition, texts) => {
                let texts = texts.each_ref().map(|text| Self::new(text, constants));
                Self::Either(number(condition), Box::new(texts))
            }
            TextValue::Numbered(prefix, suffix) => Self::Numbered(prefix.clone(), number(suffix)),
        }
    }

    /// Appends the text to `written`.
    ///
    /// # Errors
    /// Those of [`Computation::value`].
    #[inline]
    pub(super) fn write(&self, values: &mut Values, written: &mut String) -> Result<(), Error> {
        match self {
            Self::Constant(text) => written.push_str(text),
            Self::Variable(slot) => written.push_str(&values.texts[*slot]),

            Self::Letters(least, most) => {
                let least = least.value(values)?.max(0).unsigned_abs();
                let most = most.value(values)?.max(0).unsigned_abs();
                let length = least + values.letters.below(most.saturating_sub(least) + 1);
                for _ in 0..length {
                    let letter = values.letters.below(LETTERS.len() as u64);
                    written.push(char::from(LETTERS[letter as usize]));
                }
            }
            Self::Digits(count) => {
                for _ in 0..count.value(values)? {
                    let digit = values.letters.below(10);
                    written.push(char::from(b'0' + digit as u8));
                }
            }

            Self::Either(condition, texts) => {
                let chosen = if condition.value(values)? != 0 { &texts[0] } else { &texts[1] };
                chosen.write(values, written)?;
            }
            Self::Numbered(prefix, number) => {
                written.push_str(prefix);
                let _ = write!(written, "{}", number.value(values)?);
            }
            Self::LastName(number) => {
                let number = number.value(values)?.rem_euclid(1000) as usize;
                for digit in [number / 100, number / 10 % 10, number % 10] {
                    written.push_str(SYLLABLES[digit]);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let random = Random::stream(1, &[]);
        Values {
            integers: vec![7, 0],
            texts: vec!["own".to_owned()],
            choices: random.clone(),
            letters: random.clone(),
            keyed: random,
            numbers: Vec::new(),
        }
    }

    #[test]
    fn a_last_name_has_a_syllable_for_each_digit() {
        for (number, expected) in
            [(371, "PRICALLYOUGHT"), (0, "BARBARBAR"), (1999, "EINGEINGEING"), (40, "BARPRESBAR")]
        {
            let mut written = String::new();
            let text = TextValue::LastName(Number::Constant(number));
            TextComputation::new(&text, Constants::of_rows(1))
                .write(&mut values(), &mut written)
                .unwrap();
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn random_texts_have_their_lengths() {
        let bounds = [5, 9].map(Number::Constant);
        let [least, most] = bounds;
        let letters = TextComputation::new(&TextValue::Letters(least, most), Constants::of_rows(1));
        let digits =
            TextComputation::new(&TextValue::Digits(Number::Constant(4)), Constants::of_rows(1));
        let mut values = values();
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let (mut first, mut second) = (String::new(), String::new());
            letters.write(&mut values, &mut first).unwrap();
            digits.write(&mut values, &mut second).unwrap();
            lengths.insert(first.len());
            assert!(second.len() == 4 && second.bytes().all(|byte| byte.is_ascii_digit()));
        }
        assert_eq!(Vec::from_iter(lengths), [5, 6, 7, 8, 9]);
    }

    /// The rows that YCSB's generator of scrambled numbers asks for: several numbers of a Zipf
    /// distribution mean the same row.
    #[test]
    fn a_hash_of_zipfian_numbers_has_the_sum_of_their_shares() {
        const DRAWS: u32 = 400_000;
        const ROWS: i64 = 50;
        let draw = plan::transactions::NumberDraw {
            shape: Shape::Zipf { exponent: 0.99 },
            least: Number::Constant(1),
            most: Number::Constant(1000),
        };
        let hashed = Number::Hash(Box::new(Number::Draw(Box::new(draw))));
        let sides = Box::new([hashed, Number::Constant(ROWS)]);
        let computation = Computation::new(
            &Number::Binary(NumberOperator::Remainder, sides),
            Constants::of_rows(1),
        );
        let mut values = values();
        let mut counts = vec![0_u32; ROWS as usize];
        for _ in 0..DRAWS {
            counts[computation.value(&mut values).unwrap() as usize] += 1;
        }

        let mut expected = vec![0.0; ROWS as usize];
        for number in 1..=1000 {
            expected[(hash(number) % ROWS) as usize] += (number as f64).powf(-0.99);
        }
        let total: f64 = expected.iter().sum();
        let chi_square: f64 = counts
            .iter()
            .zip(expected)
            .map(|(count, share)| {
                let mean = f64::from(DRAWS) * share / total;
                (f64::from(*count) - mean).powi(2) / mean
            })
            .sum();
        // 49 degrees of freedom, as far as four standard deviations.
        assert!(chi_square < 49.0 + 4.0 * 98_f64.sqrt(), "{chi_square}");
    }

    #[test]
    fn a_computation_without_a_result_is_an_error() {
        let sides = [Number::Variable(0), Number::Variable(1)];
        let number = Number::Binary(NumberOperator::Divide, Box::new(sides));
        let error =
            Computation::new(&number, Constants::of_rows(1)).value(&mut values()).unwrap_err();
        assert_eq!(error.message, "`7 / 0` has no result of 64 bits in the script");
    }
}
