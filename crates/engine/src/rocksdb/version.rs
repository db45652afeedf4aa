//! Versions of RocksDB.

use std::fmt;
use std::str::FromStr;

/// A version, as RocksDB numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
    /// The third.
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.trim().split('.').map(str::parse);
        let mut next = || numbers.next().and_then(Result::ok).ok_or(());
        let version = Self {
            major: next()?,
            minor: next()?,
            patch: next()?,
        };
        numbers.next().is_none().then_some(version).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("10.2.1") > version("9.9.3"));
        assert_eq!(version("6.29.5").to_string(), "6.29.5");
        assert!("6.29".parse::<Version>().is_err());
        assert!("6.29.5.1".parse::<Version>().is_err());
        assert!("2.8.0-?".parse::<Version>().is_err());
    }
}
