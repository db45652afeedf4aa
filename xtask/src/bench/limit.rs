//! A figure of ours that has no peer, measured several times, and the most that it may be.

use super::pair::median;

/// Which of the rounds counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The least: of a loop that only computes, whatever else the machine does can only add to it.
    Least,
    /// The one in the middle.
    Median,
}

/// One figure.
pub struct Limit {
    /// Its name, with its unit last.
    pub name: &'static str,
    /// What it may be at most; `None`: it is shown only.
    pub at_most: Option<f64>,
    /// Which of its values counts.
    pub pick: Pick,
}

impl Limit {
    /// A line about the figure, and whether it keeps its limit.
    pub fn judge(&self, values: &[f64]) -> (String, bool) {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let middle = median(values.iter().copied());
        let (got, word) = match self.pick {
            Pick::Least => (least, "least"),
            Pick::Median => (middle, "median"),
        };
        let facts = format!(
            "{} - median {middle:.3}, {least:.3} to {most:.3} in {} rounds",
            self.name,
            values.len()
        );
        match self.at_most {
            None => (format!("       {facts}"), true),
            Some(limit) => {
                // Also without any value: then there is none that keeps it.
                let holds = got <= limit && !values.is_empty();
                let verdict = if holds { "ok    " } else { "FAILED" };
                (format!("{verdict} {facts} - {word} at most {limit}"), holds)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(at_most: Option<f64>, pick: Pick) -> Limit {
        Limit {
            name: "loop_ns_per_op",
            at_most,
            pick,
        }
    }

    #[test]
    fn the_value_that_counts_decides() {
        let values = [45.0, 39.0, 42.0];
        assert!(limit(Some(39.0), Pick::Least).judge(&values).1);
        assert!(!limit(Some(39.0), Pick::Median).judge(&values).1);
        assert!(limit(Some(42.0), Pick::Median).judge(&values).1);
        let (line, _) = limit(Some(40.0), Pick::Median).judge(&values);
        assert_eq!(
            line,
            "FAILED loop_ns_per_op - median 42.000, 39.000 to 45.000 in 3 rounds - median at most 40"
        );
    }

    #[test]
    fn without_a_limit_it_is_shown_and_without_a_value_no_limit_is_kept() {
        assert!(limit(None, Pick::Median).judge(&[1e9]).1);
        assert!(!limit(Some(1.0), Pick::Median).judge(&[]).1);
        assert!(!limit(Some(1.0), Pick::Least).judge(&[]).1);
    }
}
