//! SPDX licence expressions: enough of Annex D of the SPDX specification 2.3 to say whether what is allowed satisfies one.

/// Why an expression can't be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Nothing where a licence was expected.
    Ended,
    /// A word where another was expected.
    Unexpected(String),
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Ended => write!(f, "it ends where a licence was expected"),
            Malformed::Unexpected(word) => write!(f, "`{word}` is not expected there"),
        }
    }
}

/// Whether the allowed licences are enough to use what stands under an expression: one side of each `OR`, both of each
/// `AND`. A `WITH` only gives more rights and a `+` only more versions to choose from, so the licence alone decides.
///
/// The `/` of old manifests is an `OR`. Names are compared without case, operators with it, as the specification says.
pub fn is_satisfied(expression: &str, allowed: &[&str]) -> Result<bool, Malformed> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        allowed,
    };
    let satisfied = parser.either()?;
    match parser.words.first() {
        Some(word) => Err(Malformed::Unexpected((*word).to_owned())),
        None => Ok(satisfied),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn either(&mut self) -> Result<bool, Malformed> {
        let mut satisfied = self.both()?;
        while self.takes("OR") {
            // Both sides are read, whatever the first one says.
            satisfied |= self.both()?;
        }
        Ok(satisfied)
    }

    fn both(&mut self) -> Result<bool, Malformed> {
        let mut satisfied = self.one()?;
        while self.takes("AND") {
            satisfied &= self.one()?;
        }
        Ok(satisfied)
    }

    fn one(&mut self) -> Result<bool, Malformed> {
        if self.takes("(") {
            let satisfied = self.either()?;
            return match self.takes(")") {
                true => Ok(satisfied),
                false => Err(self.fault()),
            };
        }
        let licence = self.name()?;
        if self.takes("WITH") {
            self.name()?;
        }
        let licence = licence.strip_suffix('+').unwrap_or(&licence);
        Ok(self
            .allowed
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(licence)))
    }

    fn name(&mut self) -> Result<String, Malformed> {
        match self.words.split_first() {
            Some((word, rest)) if !matches!(*word, "AND" | "OR" | "WITH" | "(" | ")") => {
                self.words = rest;
                Ok((*word).to_owned())
            }
            _ => Err(self.fault()),
        }
    }

    fn takes(&mut self, wanted: &str) -> bool {
        match self.words.split_first() {
            Some((word, rest)) if *word == wanted => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn fault(&self) -> Malformed {
        self.words.first().map_or(Malformed::Ended, |word| {
            Malformed::Unexpected((*word).to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["MIT", "Apache-2.0", "Unicode-3.0"];

    #[track_caller]
    fn check(expression: &str, expected: bool) {
        assert_eq!(
            is_satisfied(expression, ALLOWED),
            Ok(expected),
            "{expression}"
        );
    }

    #[test]
    fn one_side_of_an_or_is_enough() {
        check("MIT OR GPL-3.0-only", true);
        check("GPL-3.0-only OR MIT", true);
        check("GPL-3.0-only OR LGPL-2.1-or-later", false);
        check("GPL-3.0-only/MIT", true);
        check("GPL-3.0-only / AGPL-3.0-only", false);
    }

    #[test]
    fn both_sides_of_an_and_are_needed() {
        check("MIT AND Apache-2.0", true);
        check("MIT AND GPL-3.0-only", false);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("(MIT OR Apache-2.0) AND GPL-3.0-only", false);
    }

    #[test]
    fn and_binds_closer_than_or() {
        check("MIT OR Apache-2.0 AND GPL-3.0-only", true);
        check("GPL-3.0-only AND MIT OR Apache-2.0", true);
        check("GPL-3.0-only AND (MIT OR Apache-2.0)", false);
        check("((GPL-3.0-only AND MIT))", false);
    }

    #[test]
    fn an_exception_or_a_later_version_takes_nothing_away() {
        check("Apache-2.0 WITH LLVM-exception", true);
        check("Apache-2.0 WITH LLVM-exception AND MIT", true);
        check("GPL-2.0-only WITH Classpath-exception-2.0", false);
        check("Apache-2.0+", true);
        check("GPL-2.0+", false);
    }

    #[test]
    fn names_are_compared_whole_and_without_case() {
        check("mit", true);
        check("MIT-0", false);
        check("LicenseRef-MIT", false);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let unexpected = |word: &str| Err(Malformed::Unexpected(word.to_owned()));
        assert_eq!(is_satisfied("", ALLOWED), Err(Malformed::Ended));
        assert_eq!(is_satisfied("MIT OR", ALLOWED), Err(Malformed::Ended));
        assert_eq!(is_satisfied("(MIT", ALLOWED), Err(Malformed::Ended));
        assert_eq!(is_satisfied("MIT)", ALLOWED), unexpected(")"));
        assert_eq!(
            is_satisfied("MIT Apache-2.0", ALLOWED),
            unexpected("Apache-2.0")
        );
        assert_eq!(is_satisfied("AND MIT", ALLOWED), unexpected("AND"));
        assert_eq!(is_satisfied("MIT WITH", ALLOWED), Err(Malformed::Ended));
    }
}
