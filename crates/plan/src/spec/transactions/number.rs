//! The computation of integers: constants, variables, operations and random draws.

/// The computation of an integer.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A constant.
    Constant(i64),
    /// The value at a place among the integers.
    Variable(usize),
    /// An operation on two integers.
    Binary(NumberOperator, Box<[Number; 2]>),
    /// The second if the first is not 0, otherwise the third.
    Choose(Box<[Number; 3]>),
    /// A random number.
    Draw(Box<NumberDraw>),
    /// The second, with random numbers that depend on the first only.
    At(Box<[Number; 2]>),
    /// A number from 0 to 2^63 - 1 that looks random and belongs to this number only.
    Hash(Box<Number>),
    /// The next number of a table's rows, by the table's index.
    Next(usize),
    /// The newest number of a table's rows, by the table's index.
    Newest(usize),
    /// One of the client's homes in a table of this many rows, drawn if there are several; see
    /// [`HomeRule`](super::HomeRule).
    Home(i64),
    /// The number of the client's homes in a table of this many rows.
    HomeCount(i64),
}

impl Number {
    /// Returns a function in the number that draws nothing, but that only clients compute; `None`
    /// without one.
    pub(crate) fn function_of_client(&self) -> Option<&'static str> {
        match self {
            Self::Hash(_) => Some("hash"),
            Self::HomeCount(_) => Some("homes"),
            Self::Binary(_, parts) => parts.iter().find_map(Self::function_of_client),
            Self::Choose(parts) => parts.iter().find_map(Self::function_of_client),
            // Draws are refused there.
            Self::Draw(_) | Self::At(_) | Self::Next(_) | Self::Newest(_) | Self::Home(_) => None,
            Self::Constant(_) | Self::Variable(_) => None,
        }
    }
}

/// An operation on two integers. Comparisons, `and` and `or` give 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, rounded toward zero
    Divide,
    /// `%`, with the sign of the dividend
    Remainder,
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `and`
    And,
    /// `or`
    Or,
}

/// A random number between two bounds, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberDraw {
    /// The distribution.
    pub shape: Shape,
    /// The lower bound.
    pub least: Number,
    /// The upper bound; the lower one is drawn if it is below that.
    pub most: Number,
}

/// The distribution of a random number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Each value is equally likely.
    Uniform,
    /// The n-th value has a probability proportional to n^-`exponent`.
    Zipf {
        /// Above 0.
        exponent: f64,
    },
    /// Likewise, but the frequent values are scattered over the range.
    Scrambled {
        /// Above 0.
        exponent: f64,
    },
    /// Likewise, counted from the upper bound.
    Latest {
        /// Above 0.
        exponent: f64,
    },
    /// The first part of the range has a share of the draws.
    Hot {
        /// The part in percent.
        part: f64,
        /// The share in percent.
        share: f64,
    },
    /// `((uniform(0, x) | uniform(least, most)) + C) % (most - least + 1) + least`, with a constant
    /// C of 0 to `x`.
    NonUniform {
        /// A power of two less 1.
        x: u32,
        /// The number is loaded; C is another one in transactions.
        loads: bool,
    },
}

impl NumberOperator {
    /// Returns the result; `None` if it is not a 64-bit integer.
    #[inline]
    pub fn apply(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
            Self::Equal => Some(i64::from(left == right)),
            Self::Unequal => Some(i64::from(left != right)),
            Self::Less => Some(i64::from(left < right)),
            Self::AtMost => Some(i64::from(left <= right)),
            Self::And => Some(i64::from(left != 0 && right != 0)),
            Self::Or => Some(i64::from(left != 0 || right != 0)),
        }
    }
}
