//! Writes names and text from a plan for messages and listings.

use toml_writer::{ToTomlKey, ToTomlValue, TomlKeyBuilder, TomlStringBuilder};
use words::redact;

/// Beyond this many characters, text from a plan is cut in messages.
const LENGTH_MAX: usize = 60;

/// Quotes text from a plan for a message: in backticks, on one line, without control characters or
/// passwords, and cut after [`LENGTH_MAX`] characters.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::from("`");
    let text = redact(text);

    for (count, c) in text.chars().enumerate() {
        if count == LENGTH_MAX {
            out.push_str("...");
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }

    out.push('`');
    out
}

/// Lists names for a message.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    names.iter().map(|name| code(name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Returns the name that `got` is most likely a misspelling of; one with `_` may be meant with `-`.
pub(crate) fn nearest<'n, T: AsRef<str>>(got: &str, names: &'n [T]) -> Option<&'n str> {
    words::nearest(&got.replace('_', "-"), names.iter().map(AsRef::as_ref))
}

/// Begins a line of help with ``did you mean `x`? ``, or with nothing.
pub(crate) fn did_you_mean<T: AsRef<str>>(got: &str, names: &[T]) -> String {
    nearest(got, names).map_or(String::new(), |name| format!("did you mean {}? ", code(name)))
}

/// Returns a line of help that suggests the name nearest to `got` and lists all `names`.
pub(crate) fn choices<T: AsRef<str>>(got: &str, what: &str, names: &[T]) -> String {
    format!("{}{what}: {}", did_you_mean(got, names), list(names))
}

/// Writes text as a TOML string.
pub fn quoted(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}

/// Writes one part of a dotted TOML key, in quotes where it needs them.
pub fn key_part(key: &str) -> String {
    TomlKeyBuilder::new(key).as_default().to_toml_key()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["clients", "repeats", "order", "keep-data"];
        assert_eq!(nearest("client", &names), Some("clients"));
        assert_eq!(nearest("keep_data", &names), Some("keep-data"));
        assert_eq!(nearest("Order", &names), Some("order"));
        assert_eq!(nearest("threads", &names), None);
        assert_eq!(nearest("x", &names), None);
    }

    #[test]
    fn messages_hold_no_passwords_and_no_control_characters() {
        assert_eq!(code("postgres://a:b@c"), "`postgres://a:***@c`");
        assert_eq!(code("a\u{1b}[2Jb\n"), "`a\\u{1b}[2Jb\\n`");
        assert_eq!(code(&"x".repeat(61)), format!("`{}...`", "x".repeat(60)));
    }

    #[test]
    fn text_is_quoted_as_toml_reads_it() {
        for text in ["plain", "a\"b", "tab\tline\nbell\u{7}", "back\\slash", "ü"] {
            let line = format!("a = {}", quoted(text));
            let table = toml::de::DeTable::parse(&line).unwrap();
            assert_eq!(table.get_ref()["a"].get_ref().as_str(), Some(text), "{line}");
        }
    }
}
