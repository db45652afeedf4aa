//! The query of an address.

/// The values that an address gives, by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of an address after `?`.
    pub(super) fn read(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (decoded(name), decoded(value))).collect())
    }

    /// Returns a value; empty if the address does not have it.
    pub(super) fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns a value that is given and not empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }
}

/// Returns text in which `+` and `%20` are spaces. Bytes that are no text become signs that stand
/// for unknown letters.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();

    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match (first, escaped(after)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(first),
        }
    }

    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the byte that two hexadecimal digits stand for.
fn escaped(text: &[u8]) -> Option<u8> {
    let digits = text.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_out_of_an_address_as_they_went_in() {
        let query = Query::read("name=a%20b%26c%3Dd&q=x+y&odd=%zz%4&empty=&odd=second&bytes=%FF");
        assert_eq!(query.text("name"), "a b&c=d");
        assert_eq!(query.text("q"), "x y");
        assert_eq!(query.text("odd"), "%zz%4");
        assert_eq!(query.given("empty"), None);
        assert_eq!(query.text("bytes"), "\u{fffd}");
        assert_eq!(query.text("missing"), "");
    }
}
