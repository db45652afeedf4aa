//! Integer expressions of parameters: as a test has them, and as they are evaluated in the measured path.
//!
//! What is known before the step is worked out then. So are the bounds of every value: they choose the type of a
//! parameter, and an expression that could divide by zero or leave 64 bits is refused before anything runs.

/// An integer made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// This one.
    Integer(i64),
    /// The rows of a table, as it is loaded.
    Rows,
    /// The number of tables.
    Tables,
    /// The number of the client, from 0.
    Thread,
    /// A parameter that was defined before.
    Parameter(String),
    /// Both together.
    Sum(Box<Expression>, Box<Expression>),
    /// The first without the second.
    Difference(Box<Expression>, Box<Expression>),
    /// One times the other.
    Product(Box<Expression>, Box<Expression>),
    /// The first by the second, rounded towards zero.
    Quotient(Box<Expression>, Box<Expression>),
}

/// What expressions may speak of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Environment {
    pub(super) rows: u64,
    pub(super) tables: u32,
    pub(super) thread: u32,
}

/// Where a value lies: among those of the event, or among those of one execution of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Event(usize),
    Own(usize),
}

impl Place {
    /// Its index among all, for an execution whose own values begin at `base`.
    #[inline]
    pub(super) fn index(self, base: usize) -> usize {
        match self {
            Self::Event(index) => index,
            Self::Own(index) => base + index,
        }
    }
}

/// The smallest and the largest value that there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) least: i64,
    pub(super) most: i64,
}

impl Bounds {
    pub(super) fn new(least: i64, most: i64) -> Self {
        Self { least, most }
    }

    fn only(value: i64) -> Self {
        Self::new(value, value)
    }

    /// Whether all values fit into 32 bits.
    pub(super) fn is_narrow(self) -> bool {
        self.least >= i32::MIN.into() && self.most <= i32::MAX.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
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

/// An expression as it is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Constant(i64),
    /// A value and so much more: what most expressions come to.
    Offset(Place, i64),
    Binary(Operator, Box<(Code, Code)>),
}

impl Code {
    /// Its value, for an execution whose own values begin at `base`.
    #[inline]
    pub(super) fn value(&self, values: &[i64], base: usize) -> i64 {
        match self {
            Self::Constant(value) => *value,
            Self::Offset(place, more) => values[place.index(base)] + more,
            Self::Binary(operator, sides) => {
                let left = sides.0.value(values, base);
                let right = sides.1.value(values, base);
                // The bounds were looked at: there is a result.
                operator.apply(left, right).unwrap_or_default()
            }
        }
    }
}

/// What a name stands for in an expression; an error says why it can't be there.
pub(super) trait Names {
    fn integer(&self, name: &str) -> Result<(Place, Bounds), String>;
}

/// Makes an expression ready to be evaluated, and tells between which bounds its value lies.
pub(super) fn compile(
    expression: &Expression,
    environment: &Environment,
    names: &impl Names,
) -> Result<(Code, Bounds), String> {
    let constant = |value: i64| Ok((Code::Constant(value), Bounds::only(value)));
    let binary = |operator, left: &Expression, right: &Expression| {
        let left = compile(left, environment, names)?;
        let right = compile(right, environment, names)?;
        combine(operator, left, right)
    };
    match expression {
        Expression::Integer(value) => constant(*value),
        Expression::Rows => constant(i64::try_from(environment.rows).unwrap_or(i64::MAX)),
        Expression::Tables => constant(environment.tables.into()),
        Expression::Thread => constant(environment.thread.into()),
        Expression::Parameter(name) => {
            let (place, bounds) = names.integer(name)?;
            Ok((Code::Offset(place, 0), bounds))
        }
        Expression::Sum(left, right) => binary(Operator::Add, left, right),
        Expression::Difference(left, right) => binary(Operator::Subtract, left, right),
        Expression::Product(left, right) => binary(Operator::Multiply, left, right),
        Expression::Quotient(left, right) => binary(Operator::Divide, left, right),
    }
}

fn combine(
    operator: Operator,
    (left, of_left): (Code, Bounds),
    (right, of_right): (Code, Bounds),
) -> Result<(Code, Bounds), String> {
    if operator == Operator::Divide && of_right.least <= 0 && of_right.most >= 0 {
        return Err(format!(
            "what is divided by may be 0: it is between {} and {}",
            of_right.least, of_right.most
        ));
    }
    // Each operator is monotonous in both sides, so that its extremes are those of the corners.
    let mut bounds: Option<Bounds> = None;
    for left in [of_left.least, of_left.most] {
        for right in [of_right.least, of_right.most] {
            let value = operator
                .apply(left, right)
                .ok_or("a value that 64 bits don't hold")?;
            let known = bounds.unwrap_or(Bounds::only(value));
            bounds = Some(Bounds::new(known.least.min(value), known.most.max(value)));
        }
    }
    let bounds = bounds.unwrap_or(Bounds::only(0));
    let code = match (operator, left, right) {
        (_, Code::Constant(_), Code::Constant(_)) => Code::Constant(bounds.least),
        (Operator::Add, Code::Offset(place, more), Code::Constant(by))
        | (Operator::Add, Code::Constant(by), Code::Offset(place, more))
            if more.checked_add(by).is_some() =>
        {
            Code::Offset(place, more + by)
        }
        (Operator::Subtract, Code::Offset(place, more), Code::Constant(by))
            if more.checked_sub(by).is_some() =>
        {
            Code::Offset(place, more - by)
        }
        (_, left, right) => Code::Binary(operator, Box::new((left, right))),
    };
    Ok((code, bounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl Names for One {
        fn integer(&self, name: &str) -> Result<(Place, Bounds), String> {
            match name {
                "first" => Ok((Place::Own(1), Bounds::new(1, 1000))),
                _ => Err(format!("`{name}` is not defined")),
            }
        }
    }

    const ENVIRONMENT: Environment = Environment {
        rows: 1000,
        tables: 8,
        thread: 3,
    };

    fn pair(left: Expression, right: Expression) -> (Box<Expression>, Box<Expression>) {
        (Box::new(left), Box::new(right))
    }

    fn first() -> Expression {
        Expression::Parameter("first".into())
    }

    fn compiled(expression: Expression) -> Result<(Code, Bounds), String> {
        compile(&expression, &ENVIRONMENT, &One)
    }

    #[test]
    fn what_is_known_before_is_not_worked_out_again() {
        let (left, right) = pair(Expression::Rows, Expression::Integer(2));
        let half = Expression::Quotient(left, right);
        assert_eq!(compiled(half.clone()).unwrap().0, Code::Constant(500));
        let (left, right) = pair(half, first());
        let sum = Expression::Sum(left, right);
        let (left, right) = pair(sum, Expression::Integer(1));
        let (code, bounds) = compiled(Expression::Difference(left, right)).unwrap();
        assert_eq!(code, Code::Offset(Place::Own(1), 499));
        assert_eq!(bounds, Bounds::new(500, 1499));
        assert_eq!(code.value(&[0, 0, 0, 7], 2), 506);
    }

    #[test]
    fn what_is_not_known_is_worked_out_by_the_rules() {
        let (left, right) = pair(Expression::Tables, first());
        let difference = Expression::Difference(left, right);
        let (left, right) = pair(difference, Expression::Thread);
        let (code, bounds) = compiled(Expression::Product(left, right)).unwrap();
        assert_eq!(code.value(&[0, 10], 0), -6);
        assert_eq!(bounds, Bounds::new(-2976, 21));
    }

    #[test]
    fn what_may_fail_is_refused() {
        let (left, right) = pair(first(), Expression::Integer(500));
        let may_be_zero = Expression::Difference(left, right);
        let (left, right) = pair(Expression::Rows, may_be_zero);
        let message = compiled(Expression::Quotient(left, right)).unwrap_err();
        assert!(message.contains("between -499 and 500"), "{message}");
        let (left, right) = pair(Expression::Integer(i64::MAX), first());
        let message = compiled(Expression::Sum(left, right)).unwrap_err();
        assert!(message.contains("64 bits"), "{message}");
        assert!(compiled(Expression::Parameter("last".into())).is_err());
    }
}
