//! Keeps passwords from being printed, and removes them from text.

use std::fmt;
use std::ops::Range;

/// A password, or a URL that may hold one: it cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, only for connecting.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Replaces every password in URLs within `text` with `***`. The text may be a URL, a plan, an
/// argument or a message.
///
/// When in doubt, replaces too much: a port that is not a number may be a password without a host.
pub fn redact(text: &str) -> String {
    replaced(text, |_| "***".to_owned())
}

/// Replaces passwords as [`redact`] does, but keeps the length in bytes, so that ranges of the text
/// stay valid.
pub fn mask(text: &str) -> String {
    replaced(text, |length| "*".repeat(length))
}

fn replaced(text: &str, replacement: impl Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for secret in passwords(text) {
        out.push_str(&text[from..secret.start]);
        out.push_str(&replacement(secret.len()));
        from = secret.end;
    }
    out.push_str(&text[from..]);
    out
}

/// Returns the ranges of passwords, in ascending order: the text between `:` and the last `@` of a
/// URL, the value of a `password` parameter, and in a server's URL without `@` a port that is not a
/// number. Outside of URLs, the value of `password` in a connection string of `libpq`, and what is
/// between `:` and `@` in a plan's `url` without a scheme.
fn passwords(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut from = 0;
    while let Some(slashes) = text[from..].find("://") {
        let scheme = scheme_before(&text[from..from + slashes]);
        let start = from + slashes + "://".len();
        let before = text[..start - "://".len() - scheme.len()].chars().next_back();
        let is_server =
            ["postgres", "mysql", "mariadb"].iter().any(|prefix| scheme.starts_with(prefix));
        let end = start + length_of(&text[start..], before, is_server);

        ranges.extend(passwords_outside_urls(text, from..start));
        let url = &text[start..end];
        for range in passwords_in_url(url, is_server) {
            ranges.push(start + range.start..start + range.end);
        }
        from = end;
    }
    ranges.extend(passwords_outside_urls(text, from..text.len()));
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// Returns the ranges of passwords in `within`, a part of a text without a URL.
fn passwords_outside_urls(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let mut ranges = passwords_in_words(text, within.clone());
    ranges.extend(passwords_without_scheme(text, within));
    ranges.sort_by_key(|range| range.start);

    // A value can be found in both ways. What is masked once must not be masked again.
    let mut end = 0;
    ranges.retain(|range| {
        let is_apart = range.start >= end;
        end = end.max(range.end);
        is_apart
    });
    ranges
}

/// Returns the ranges of what looks like a password in the values of `url` keys, as in
/// `url = "joe:s3cret@db"`. Such a plan is refused, and the message shows the line.
fn passwords_without_scheme(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    const KEY: &str = "url";
    let mut ranges = Vec::new();
    let mut from = within.start;
    while let Some(key) = text[from..within.end].find(KEY) {
        from += key + KEY.len();
        let line = text[from..within.end].lines().next().unwrap_or("");
        let Some(value) = line.trim_start().strip_prefix('=') else { continue };

        let start = from + line.len() - value.len();
        let Some(at) = value.rfind('@') else { continue };
        // After a mistyped scheme, as in `postgres:/joe:s3cret@db`, the next colon counts.
        let mut colons = value[..at].match_indices(':').map(|(colon, _)| colon + 1);
        if let Some(password) = colons.find(|after| !value[*after..].starts_with('/')) {
            ranges.push(start + password..start + at);
        }
    }
    ranges
}

/// Returns the ranges of the values of `password=` in `within`, a part of a text without a URL. A
/// value in quotes may contain spaces.
fn passwords_in_words(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    const KEY: &str = "password=";
    let mut ranges = Vec::new();
    let mut from = within.start;
    while let Some(key) = text[from..within.end].find(KEY) {
        let value = from + key + KEY.len();
        let rest = &text[value..within.end];
        let length = match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => rest[1..].find([quote, '\n']).map(|end| end + 1),
            _ => rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '&')),
        };
        let end = value + length.unwrap_or(rest.len());
        ranges.push(value..end);
        from = end;
    }
    ranges
}

/// Returns the ranges of passwords in a URL without its scheme.
fn passwords_in_url(url: &str, is_server: bool) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut done = 0;

    let authority = &url[..url.find(['/', '?']).unwrap_or(url.len())];
    if let Some(at) = url.rfind('@') {
        if let Some(colon) = url[..at].find(':') {
            ranges.push(colon + 1..at);
            done = at;
        }
    } else if let Some(colon) = authority.rfind(':')
        && is_server
        // The colons of an IPv6 address are in brackets.
        && !authority.ends_with(']')
        && !authority[colon + 1..].bytes().all(|byte| byte.is_ascii_digit())
    {
        ranges.push(colon + 1..url.len());
        done = url.len();
    }

    while let Some(parameter) = url[done..].find("password=") {
        let value = done + parameter + "password=".len();
        let end = url[value..].find('&').map_or(url.len(), |end| value + end);
        ranges.push(value..end);
        done = end;
    }
    ranges
}

/// Returns the URL scheme at the end of `text`.
fn scheme_before(text: &str) -> &str {
    text.rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'))
        .next()
        .unwrap_or("")
}

/// Returns the length of a URL at the start of `text`, which follows `://`. `before` is the
/// character before the URL. When in doubt, the URL is too long, because a password may lack the
/// required encoding.
fn length_of(text: &str, before: Option<char>, is_server: bool) -> usize {
    let quote = before.filter(|c| matches!(c, '"' | '\'' | '`'));
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        let is_end = match quote {
            _ if c == '\n' => true,
            Some(quote) => c == quote && !is_escaped,
            None => c.is_whitespace() && !is_server,
        };
        if is_end {
            return at;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(***)");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn passwords_are_redacted_in_any_text_with_urls() {
        let text = "[build.a]\nurl = \"postgresql://joe:s3cr@t@db:5432/x?sslmode=require\" # mine\nok = \"a:b@c\"";
        assert_eq!(
            redact(text),
            "[build.a]\nurl = \"postgresql://joe:***@db:5432/x?sslmode=require\" # mine\nok = \"a:b@c\""
        );
        assert_eq!(
            redact("build.a.url=postgres://db/x?password=pw&a=b"),
            "build.a.url=postgres://db/x?password=***&a=b"
        );
        assert_eq!(redact("postgres://joe@db/x"), "postgres://joe@db/x");
        assert_eq!(
            redact("'postgres://a:b@c' \"postgres://d:e@f\""),
            "'postgres://a:***@c' \"postgres://d:***@f\""
        );
        let comment = "# see https://a.b:80/c and write to d@e";
        assert_eq!(redact(comment), comment);
    }

    #[test]
    fn passwords_of_connection_strings_are_redacted() {
        for (text, shown) in [
            ("url = \"host=h password=s3cret user=u\"", "url = \"host=h password=*** user=u\""),
            ("conninfo = 'user=u password=s3cret'", "conninfo = 'user=u password=***'"),
            ("build.a.url=host=h password=s3cret", "build.a.url=host=h password=***"),
            ("x = \"password='s3 cret' user=u\"", "x = \"password=***' user=u\""),
            ("a://b:c@d password=s3cret\ny = 1", "a://b:***@d password=***\ny = 1"),
            ("password = 1 # password=", "password = 1 # password="),
            ("url = \"joe:s3cret@db/x\"", "url = \"joe:***@db/x\""),
            (
                "url=\"postgres:/joe:s3@cret@db\"\nb = \"c:d@e\"",
                "url=\"postgres:/joe:***@db\"\nb = \"c:d@e\"",
            ),
            ("build.a.url=joe:password=s3cret@db", "build.a.url=joe:***@db"),
            ("url = \"/run/db\" # a@b", "url = \"/run/db\" # a@b"),
        ] {
            assert_eq!(redact(text), shown);
            assert_eq!(mask(text).len(), text.len());
        }
    }

    #[test]
    fn a_password_without_the_required_encoding_is_redacted() {
        for text in [
            "url = \"postgres://a:x'y z@h\"",
            "url = \"postgres://a:x\\\"y@h\"",
            "url = 'postgres://a:x\"y@h'",
            "build.a.url=postgres://a:x y'z\"@h",
            "url = \"postgres://a:xy@h",
        ] {
            let redacted = redact(text);
            assert!(redacted.contains("postgres://a:***@h"), "{text} became {redacted}");
        }
    }

    #[test]
    fn a_password_whose_host_is_missing_is_not_shown() {
        for (text, shown) in [
            ("url = \"postgresql://u:s3cret\"", "url = \"postgresql://u:***\""),
            ("mysql://u:s3/cret?password=x", "mysql://u:***"),
            ("postgres://h:5432/d", "postgres://h:5432/d"),
            ("postgres://[::1]/d", "postgres://[::1]/d"),
        ] {
            assert_eq!(redact(text), shown);
            assert!(!mask(text).contains("s3"), "{}", mask(text));
        }
    }

    #[test]
    fn masked_text_keeps_its_length() {
        for text in ["postgres://joe:päss@db", "x = 1", "postgres://a:b@c?password=é"] {
            let masked = mask(text);
            assert_eq!(masked.len(), text.len());
            assert!(!masked.contains("päss") && !masked.contains('é'), "{masked}");
        }
    }
}
