//! The expressions that define parameters of tests: `first + range - 1`, `ids(10)`, `c`.

/// The position of a value, among those of the event or of one execution of the statement. Integers
/// and texts are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Among the values of the event.
    Event(usize),
    /// Among the values of the execution.
    Own(usize),
}

impl Slot {
    /// Returns the slot's index among all values, for an execution whose own values start at
    /// `base`.
    #[inline]
    pub fn index(self, base: usize) -> usize {
        match self {
            Self::Event(index) => index,
            Self::Own(index) => base + index,
        }
    }
}

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
    pub(crate) fn apply(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
        }
    }
}

impl Expression {
    /// Returns the value of the expression, for an execution whose own integers start at `base`.
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
