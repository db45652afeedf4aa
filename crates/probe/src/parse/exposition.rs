//! The text in which exporters of Prometheus print their metrics. The page of an exporter is a
//! stranger's: what is not understood is left out.

use std::borrow::Cow;

/// One line of such a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Metric<'t> {
    /// The name.
    pub(crate) name: &'t str,
    /// The text between the braces, empty without.
    labels: &'t str,
    /// The value, which is neither negative nor infinite.
    pub(crate) value: f64,
}

impl<'t> Metric<'t> {
    /// Returns the value of a label; `None` if the line does not have it, or is damaged.
    pub(crate) fn label(&self, wanted: &str) -> Option<Cow<'t, str>> {
        let mut rest = self.labels;
        loop {
            let (name, after) = rest.split_once('=')?;
            let text = after.trim_start().strip_prefix('"')?;
            let end = end_of_quoted(text)?;

            if name.trim() == wanted {
                return Some(unescaped(&text[..end]));
            }
            rest = text[end + 1..].trim_start().trim_start_matches(',');
        }
    }
}

/// Returns the metrics of a page, without lines that have none.
pub(crate) fn metrics(page: &str) -> impl Iterator<Item = Metric<'_>> {
    page.lines().filter_map(parse_line)
}

fn parse_line(line: &str) -> Option<Metric<'_>> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }

    let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at(name_end);
    let (labels, rest) = match rest.strip_prefix('{') {
        None => ("", rest),
        Some(inside) => {
            let end = end_of_labels(inside)?;
            (&inside[..end], &inside[end + 1..])
        }
    };

    // A time may follow the value.
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(Metric { name, labels, value })
}

/// Returns the position of the quote that ends text after a quote.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the position of the brace that ends labels: values may have braces.
fn end_of_labels(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the value of a label without its escapes: `\\`, `\"` and `\n`.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }

    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => {}
            },
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_labels_and_values() {
        let page = "# HELP a b\n# TYPE a counter\nplain 3\n\
                    labeled{cpu=\"0\",mode=\"user\"} 1.5e+03 1700000000\n\
                    odd{path=\"a\\\"}\\\\\\n\", device = \"x\",} 7\n";
        let all: Vec<Metric<'_>> = metrics(page).collect();
        let names: Vec<(&str, f64)> =
            all.iter().map(|metric| (metric.name, metric.value)).collect();
        assert_eq!(names, [("plain", 3.0), ("labeled", 1500.0), ("odd", 7.0)]);
        assert_eq!(all[1].label("mode").as_deref(), Some("user"));
        assert_eq!(all[1].label("cp"), None);
        assert_eq!(all[2].label("path").as_deref(), Some("a\"}\\\n"));
        assert_eq!(all[2].label("device").as_deref(), Some("x"));
    }

    #[test]
    fn lines_that_are_not_understood_are_left_out() {
        for line in [
            "",
            "a",
            "a{",
            "a{b=\"c\"",
            "a{b=\"c} 1",
            "a x",
            "a NaN",
            "a +Inf",
            "a -1",
            "{} ",
            "a{b} ",
            "a\u{301}{=} \u{1f980}",
        ] {
            assert_eq!(metrics(line).next(), None, "{line}");
        }
        // A label that is damaged has no value, and the line is no panic.
        for line in ["a{b} 1", "a{b=c} 1", "a{b=\"\\\"} 1", "a{=,=\"} 1", "a{,,} 1"] {
            for metric in metrics(line) {
                assert_eq!(metric.label("b"), None, "{line}");
            }
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        const LETTERS: &[u8] = b"ab{}=\"\\,# \n\t0.e-+\xc3\xa9\xff";
        // A simple generator of numbers, the same in each run.
        let mut state = 1_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        for _ in 0..20_000 {
            let length = next() % 40;
            let bytes: Vec<u8> = (0..length).map(|_| LETTERS[next() % LETTERS.len()]).collect();
            let page = String::from_utf8_lossy(&bytes);
            for metric in metrics(&page) {
                let _ = (metric.label("a"), metric.label("b"), metric.label(""));
                assert!(metric.value >= 0.0);
            }
        }
    }
}
