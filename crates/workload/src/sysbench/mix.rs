//! Which statements of a test one event runs: all that have no weight, and one of those that have.

use super::test::TestStatement;
use crate::Random;

/// The statements with a weight.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    /// The place of each among all statements, and the sum of its weight and of those before it.
    choices: Vec<(usize, u64)>,
    sum: u64,
}

impl Mix {
    /// The mix of a test; `None` where each event runs all statements.
    pub(super) fn new(statements: &[TestStatement]) -> Option<Self> {
        let mut sum = 0;
        let choices: Vec<(usize, u64)> = statements
            .iter()
            .enumerate()
            .filter_map(|(place, statement)| {
                sum += u64::from(statement.weight?);
                Some((place, sum))
            })
            .collect();
        (sum > 0).then_some(Self { choices, sum })
    }

    /// The place of the statement that an event runs, each as often as its weight says.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let drawn = random.below(self.sum);
        let at = self.choices.partition_point(|&(_, sum)| sum <= drawn);
        self.choices[at].0
    }
}
