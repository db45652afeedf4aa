//! Passwords of connection URLs in text that is not a URL alone: a plan, a `--set` argument, a message.

use std::ops::Range;

/// `text` with `***` for every password of a URL in it. What is recorded of a plan and of a command line goes through
/// this.
pub fn redact(text: &str) -> String {
    replaced(text, passwords(text), |_| "***".to_owned())
}

/// Redacts as [`redact`] does, and also removes text that stands in the place of a port but is not one. For messages.
pub(crate) fn redact_whole(text: &str) -> String {
    replaced(text, secrets(text), |_| "***".to_owned())
}

/// As [`redact`], but as long in bytes as `text`, so that ranges of it stay what they are.
pub(crate) fn mask(text: &str) -> String {
    replaced(text, secrets(text), |secret| "*".repeat(secret.len()))
}

fn replaced(text: &str, secrets: Vec<Range<usize>>, by: impl Fn(Range<usize>) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for secret in secrets {
        out.push_str(&text[from..secret.start]);
        from = secret.end;
        out.push_str(&by(secret));
    }
    out.push_str(&text[from..]);
    out
}

/// Passwords, and ports of servers' URLs without an `@` that are no numbers: passwords whose host is missing.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = passwords(text);
    for scheme in ["postgres://", "postgresql://", "mysql://", "mariadb://"] {
        for (at, _) in text.match_indices(scheme) {
            let start = at + scheme.len();
            let end = start + length_of(&text[..start - "://".len()], &text[start..]);
            let url = &text[start..end];
            let authority = &url[..url.find(['/', '?']).unwrap_or(url.len())];
            if let Some((_, port)) = authority.rsplit_once(':')
                && !url.contains('@')
                && !authority.ends_with(']')
                && !port.bytes().all(|byte| byte.is_ascii_digit())
            {
                found.push(start + authority.len() - port.len()..end);
            }
        }
    }
    found.sort_by_key(|range| range.start);
    // A `password` parameter may lie within.
    found.dedup_by(|next, last| next.start < last.end);
    found
}

/// Where the passwords are: between `:` and the last `@` of what may be the authority of a URL, and the value of a
/// `password` parameter of one. In order, apart from each other.
fn passwords(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(slashes) = text[from..].find("://") {
        let start = from + slashes + "://".len();
        let end = start + length_of(&text[..from + slashes], &text[start..]);
        let url = &text[start..end];
        let mut done = 0;
        if let Some(at) = url.rfind('@')
            && let Some(colon) = url[..at].find(':')
        {
            found.push(start + colon + 1..start + at);
            done = at;
        }
        while let Some(parameter) = url[done..].find("password=") {
            let value = done + parameter + "password=".len();
            let end = url[value..].find('&').map_or(url.len(), |end| value + end);
            found.push(start + value..start + end);
            done = end;
        }
        from = end;
    }
    found.retain(|range| !range.is_empty());
    found
}

/// How far a URL goes whose text from `://` on is `after`. In doubt too far: a password need not be encoded as it
/// should be.
fn length_of(before: &str, after: &str) -> usize {
    let scheme_start = before
        .rfind(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'))
        .map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
    let quote = before[..scheme_start]
        .chars()
        .next_back()
        .filter(|c| matches!(c, '"' | '\'' | '`'));
    let is_server = before[scheme_start..].starts_with("postgres");
    let mut is_escaped = false;
    let is_end = |c: char| {
        let was_escaped = is_escaped;
        is_escaped = c == '\\' && !was_escaped;
        match quote {
            _ if c == '\n' => true,
            Some(quote) => c == quote && !was_escaped,
            None => c.is_whitespace() && !is_server,
        }
    };
    after.find(is_end).unwrap_or(after.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_redacted_wherever_a_url_stands() {
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
    fn a_password_that_should_be_encoded_and_is_not_is_redacted() {
        for text in [
            "url = \"postgres://a:x'y z@h\"",
            "url = \"postgres://a:x\\\"y@h\"",
            "url = 'postgres://a:x\"y@h'",
            "build.a.url=postgres://a:x y'z\"@h",
            "url = \"postgres://a:xy@h",
        ] {
            let redacted = redact(text);
            assert!(
                redacted.contains("postgres://a:***@h"),
                "{text} became {redacted}"
            );
        }
    }

    #[test]
    fn a_password_whose_host_is_missing_is_not_shown() {
        for (text, shown) in [
            (
                "url = \"postgresql://u:s3cret\"",
                "url = \"postgresql://u:***\"",
            ),
            ("mysql://u:s3/cret?password=x", "mysql://u:***"),
            ("postgres://h:5432/d", "postgres://h:5432/d"),
            ("postgres://[::1]/d", "postgres://[::1]/d"),
        ] {
            assert_eq!(redact_whole(text), shown);
            assert_eq!(mask(text).len(), text.len());
            assert!(!mask(text).contains("s3"), "{}", mask(text));
        }
    }

    #[test]
    fn masked_text_keeps_its_length() {
        for text in [
            "postgres://joe:päss@db",
            "x = 1",
            "postgres://a:b@c?password=é",
        ] {
            let masked = mask(text);
            assert_eq!(masked.len(), text.len());
            assert!(
                !masked.contains("päss") && !masked.contains('é'),
                "{masked}"
            );
        }
    }
}
