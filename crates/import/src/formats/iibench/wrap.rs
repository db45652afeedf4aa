//! Counts that only grow, in 32 bits.

use crate::text::{Doubt, Refusal};

/// The number of values of 32 bits.
const WRAP: i64 = 1 << 32;

/// The largest part of all values that a count grows by between two lines. A larger growth is a
/// fall of a count that does not wrap.
const GROWTH_MAX: i64 = WRAP / 4;

/// A count that only grows, and may wrap.
#[derive(Default)]
pub struct Growing {
    last: Option<i64>,
    /// The growth since the first line.
    pub sum: u64,
    name: &'static str,
    /// The first line with a wrap, and the number of them.
    wrapped: Option<(u64, u64)>,
}

impl Growing {
    /// Returns the growth since the last line.
    ///
    /// # Errors
    /// The count falls, and not as one of 32 bits does.
    pub fn next(&mut self, text: &str, name: &'static str, line: u64) -> Result<u64, Refusal> {
        self.name = name;
        let no_count = || Refusal::at(line, format!("{name} is not a count"));
        let value = text.parse::<i64>().ok().filter(|value| value.unsigned_abs() < 1 << 60);
        let value = value.ok_or_else(no_count)?;
        let last = self.last.replace(value).unwrap_or(0);

        let mut growth = value - last;
        if growth < 0 {
            growth += WRAP;
            let is_wrap = (0..GROWTH_MAX).contains(&growth) && last.abs() < WRAP;
            if !is_wrap {
                let text = format!("{name} falls from {last} to {value}, and counts only grow");
                return Err(Refusal::at(line, text));
            }
            let (first, count) = self.wrapped.unwrap_or((line, 0));
            self.wrapped = Some((first, count + 1));
        }

        let growth = growth as u64;
        self.sum = self.sum.saturating_add(growth);
        Ok(growth)
    }

    /// Returns what is doubtful about the count.
    pub fn doubt(&self) -> Option<Doubt> {
        let (line, count) = self.wrapped?;
        let text = format!(
            "`{}` wraps in 32 bits {count} times; what it lost is added, and rates of the file are wrong from here on",
            self.name
        );
        Some(Doubt::at("import::wrap", line, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_is_added_and_named_and_another_fall_is_refused() {
        let mut growing = Growing::default();
        for (text, growth) in
            [("2147423296", 2_147_423_296), ("-2147460996", 83_004), ("-2147393296", 67_700)]
        {
            assert_eq!(growing.next(text, "t_ins", 7).unwrap(), growth);
        }
        assert_eq!(growing.sum, 2_147_574_000);
        assert_eq!(growing.doubt().unwrap().line, Some(7));
        assert!(growing.next("-2147483000", "t_ins", 9).is_err());
        assert!(growing.next("-9223372036854775808", "t_ins", 10).is_err());
    }
}
