//! The computation of an integer with the bounds of its value.

use crate::spec::transactions::{Number, NumberDraw, NumberOperator, Shape};

/// An integer's computation, with the bounds of its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounded {
    pub(super) number: Number,
    /// The smallest value.
    pub(super) min: i64,
    /// The largest value.
    pub(super) max: i64,
    /// It draws random numbers.
    pub(super) draws: bool,
}

impl Bounded {
    pub(super) fn constant(value: i64) -> Self {
        Self { number: Number::Constant(value), min: value, max: value, draws: false }
    }

    pub(super) fn variable(slot: usize, (min, max): (i64, i64)) -> Self {
        Self { number: Number::Variable(slot), min, max, draws: false }
    }

    /// Returns a random number between two others.
    pub(super) fn draw(shape: Shape, least: Self, most: Self) -> Self {
        let (min, max) = (least.min, most.max.max(least.max));
        let draw = NumberDraw { shape, least: least.number, most: most.number };
        Self { number: Number::Draw(Box::new(draw)), min, max, draws: true }
    }

    /// Returns one of two numbers, by a condition.
    pub(super) fn choose(condition: Self, first: Self, second: Self) -> Self {
        let (min, max) = (first.min.min(second.min), first.max.max(second.max));
        let draws = condition.draws || first.draws || second.draws;
        let parts = [condition.number, first.number, second.number];
        Self { number: Number::Choose(Box::new(parts)), min, max, draws }
    }

    /// Returns a number whose draws depend on a key only.
    pub(super) fn at(key: Self, value: Self) -> Self {
        let (min, max, draws) = (value.min, value.max, value.draws || key.draws);
        Self { number: Number::At(Box::new([key.number, value.number])), min, max, draws }
    }

    /// Returns the number that a hash makes of another one.
    pub(super) fn hash(of: Self) -> Self {
        let number = Number::Hash(Box::new(of.number));
        Self { number, min: 0, max: i64::MAX, draws: of.draws }
    }

    /// Returns the next or the newest number of a table's rows, at least `min`. Another attempt
    /// would get another one, as of a draw.
    pub(super) fn row_number(number: Number, min: u64) -> Self {
        Self { number, min: min.cast_signed(), max: i64::MAX, draws: true }
    }

    /// Returns one of the client's homes in a table.
    pub(super) fn home(rows: i64) -> Self {
        Self { number: Number::Home(rows), min: 1, max: rows, draws: true }
    }

    /// Returns the number of the client's homes in a table.
    pub(super) fn home_count(rows: i64) -> Self {
        Self { number: Number::HomeCount(rows), min: 1, max: rows, draws: false }
    }

    /// Applies an operation. A constant operation is computed; `None` if it has no result.
    pub(super) fn combine(operator: NumberOperator, left: Self, right: Self) -> Option<Self> {
        if let (Number::Constant(left), Number::Constant(right)) = (&left.number, &right.number) {
            return operator.apply(*left, *right).map(Self::constant);
        }

        let (min, max) = bounds(operator, &left, &right);
        let draws = left.draws || right.draws;
        let sides = Box::new([left.number, right.number]);
        Some(Self { number: Number::Binary(operator, sides), min, max, draws })
    }

    /// Returns the value of a constant.
    pub(super) fn as_constant(&self) -> Option<i64> {
        match self.number {
            Number::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns whether the value may need more than 32 bits.
    pub(super) fn is_wide(&self) -> bool {
        self.min < i32::MIN.into() || self.max > i32::MAX.into()
    }
}

/// Returns the bounds of a result, as far as 64 bits hold them: an operation beyond that fails.
fn bounds(operator: NumberOperator, left: &Bounded, right: &Bounded) -> (i64, i64) {
    const ALL: (i64, i64) = (i64::MIN, i64::MAX);
    match operator {
        NumberOperator::Add => {
            (left.min.saturating_add(right.min), left.max.saturating_add(right.max))
        }
        NumberOperator::Subtract => {
            (left.min.saturating_sub(right.max), left.max.saturating_sub(right.min))
        }
        NumberOperator::Multiply => corners(left, right, i64::saturating_mul),
        // A divisor of either sign may be 1 or -1.
        NumberOperator::Divide if right.min > 0 => corners(left, right, |a, b| a / b),
        NumberOperator::Divide => ALL,
        NumberOperator::Remainder if right.min > 0 => {
            let most = right.max - 1;
            (left.min.clamp(-most, 0), left.max.clamp(0, most))
        }
        NumberOperator::Remainder => ALL,
        _ => (0, 1),
    }
}

/// Returns the bounds of an operation that is monotonic in both operands.
fn corners(left: &Bounded, right: &Bounded, apply: fn(i64, i64) -> i64) -> (i64, i64) {
    let corners = [
        apply(left.min, right.min),
        apply(left.min, right.max),
        apply(left.max, right.min),
        apply(left.max, right.max),
    ];
    let min = corners.into_iter().fold(i64::MAX, i64::min);
    let max = corners.into_iter().fold(i64::MIN, i64::max);
    (min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_all_results() {
        let range = |min, max| Bounded::variable(0, (min, max));
        for (operator, left, right, expected) in [
            (NumberOperator::Add, (1, 5), (-2, 3), (-1, 8)),
            (NumberOperator::Subtract, (1, 5), (-2, 3), (-2, 7)),
            (NumberOperator::Multiply, (-2, 5), (-3, 4), (-15, 20)),
            (NumberOperator::Divide, (-7, 9), (2, 3), (-3, 4)),
            (NumberOperator::Remainder, (-7, 99), (1, 10), (-7, 9)),
            (NumberOperator::Less, (1, 5), (1, 5), (0, 1)),
            (NumberOperator::Add, (1, i64::MAX), (1, 1), (2, i64::MAX)),
        ] {
            let (left, right) = (range(left.0, left.1), range(right.0, right.1));
            let result = Bounded::combine(operator, left, right).unwrap();
            assert_eq!((result.min, result.max), expected, "{operator:?}");
        }
    }

    #[test]
    fn constants_are_computed() {
        let combine = |operator, left, right| {
            Bounded::combine(operator, Bounded::constant(left), Bounded::constant(right))
        };
        assert_eq!(combine(NumberOperator::Remainder, -7, 3), Some(Bounded::constant(-1)));
        assert_eq!(combine(NumberOperator::Divide, 1, 0), None);
        assert_eq!(combine(NumberOperator::Multiply, i64::MAX, 2), None);
    }
}
