//! Expressions while they are read: what their names mean, and the bounds of their values.
//!
//! While an expression is read (see `parser`), its known parts are computed, together with the
//! bounds of its value. The bounds choose the type of a parameter. An expression that could divide
//! by zero or exceed 64 bits is refused, so that an event never has to check.

use std::ops::RangeInclusive;

use crate::spec::sysbench::{Expression, Operator, Slot};

/// The exponent of sysbench's own zipfian distribution.
pub(crate) const EXPONENT: f64 = 0.8;
/// SQLite allows 32766 parameters, servers 65535.
pub(crate) const PARAMETERS: RangeInclusive<i64> = 1..=32_000;

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
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Computed {
    pub(crate) expression: Expression,
    pub(crate) bounds: Bounds,
}

impl Computed {
    pub(crate) fn constant(value: i64) -> Self {
        Self { expression: Expression::Integer(value), bounds: Bounds::new(value, value) }
    }

    pub(crate) fn drawn(slot: Slot, bounds: Bounds) -> Self {
        Self { expression: Expression::Drawn(slot, 0), bounds }
    }

    /// Applies an operation to two expressions. Returns `None` if a value may not fit in 64 bits.
    pub(crate) fn combine(operator: Operator, left: Self, right: Self) -> Option<Self> {
        // Each operator is monotonic in both operands, so its extremes are at the corners.
        let corners = [
            operator.apply(left.bounds.min, right.bounds.min)?,
            operator.apply(left.bounds.min, right.bounds.max)?,
            operator.apply(left.bounds.max, right.bounds.min)?,
            operator.apply(left.bounds.max, right.bounds.max)?,
        ];
        let min = corners.into_iter().fold(i64::MAX, i64::min);
        let max = corners.into_iter().fold(i64::MIN, i64::max);

        let expression = match (operator, left.expression, right.expression) {
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

        Some(Self { expression, bounds: Bounds::new(min, max) })
    }
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
        /// The integer is the id of a row.
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

    pub(crate) fn mark_used(&mut self, name: &str) {
        if !self.used.iter().any(|other| other == name) {
            self.used.push(name.to_owned());
        }
    }
}

/// Returns the bounds of a value between two others; `None` if the lower one is always above the
/// upper one.
pub(crate) fn between(lower: Bounds, upper: Bounds) -> Option<Bounds> {
    (lower.min <= upper.max).then(|| Bounds::new(lower.min, upper.max.max(lower.max)))
}
