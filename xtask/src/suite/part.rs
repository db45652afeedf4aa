//! Parts of the suite, for several machines.

use anyhow::{Result, bail};

/// One of several parts that together are the whole suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of this part, from 1.
    number: usize,
    /// The number of parts.
    count: usize,
}

impl Default for Part {
    /// Returns the whole suite.
    fn default() -> Self {
        Self { number: 1, count: 1 }
    }
}

impl Part {
    /// Reads a part such as `1/2`.
    ///
    /// # Errors
    ///
    /// Fails if the number is not between one and the number of parts.
    pub fn parse(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Some(Self { number: number.parse().ok()?, count: count.parse().ok()? })
        });
        match numbers {
            Some(part) if part.number >= 1 && part.number <= part.count => Ok(part),
            _ => bail!("invalid part `{text}`; expected `--part NUMBER/COUNT`, such as `1/2`"),
        }
    }

    /// Returns whether this is not the whole suite.
    pub fn is_partial(self) -> bool {
        self.count > 1
    }

    /// Keeps every so many of some items, so that each is in exactly one part.
    pub fn of<T>(self, items: Vec<T>) -> Vec<T> {
        items.into_iter().skip(self.number - 1).step_by(self.count).collect()
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_in_exactly_one_part() {
        let items: Vec<u32> = (0..10).collect();
        let mut found = Vec::new();
        for part in ["1/3", "2/3", "3/3"] {
            found.extend(Part::parse(part).unwrap().of(items.clone()));
        }
        found.sort_unstable();
        assert_eq!(found, items);
        assert_eq!(Part::default().of(items.clone()), items);
    }

    #[test]
    fn a_part_beyond_the_last_is_refused() {
        for text in ["0/2", "3/2", "1", "1/", "a/b", "1/0"] {
            assert!(Part::parse(text).is_err(), "{text}");
        }
    }
}
