//! What stands in braces in the text of a statement: `{name}` is a placeholder, `{{` and `}}` are one brace each.

use super::expression;

/// A name in braces, with the bytes of all of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Placeholder<'a> {
    pub(crate) name: &'a str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Why braces in SQL are none of a placeholder's, and where.
#[derive(Debug, PartialEq)]
pub(crate) struct BadBrace {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) message: &'static str,
    pub(crate) label: &'static str,
}

/// The placeholders of a statement, or the first brace that is not one's.
pub(crate) fn placeholders(sql: &str) -> Result<Vec<Placeholder<'_>>, BadBrace> {
    let mut placeholders = Vec::new();
    let mut open: Option<usize> = None;
    let mut is_quoted = false;
    let mut letters = sql.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let bad = |start, message, label| BadBrace {
            start,
            end: at + c.len_utf8(),
            message,
            label,
        };
        match (c, open) {
            ('{' | '}', None) if letters.next_if(|(_, next)| *next == c).is_some() => {}
            ('{', Some(start)) => {
                return Err(bad(start, "a `{` follows a `{`", "two `{` before a `}`"));
            }
            ('{', None) if is_quoted => {
                return Err(bad(at, "a parameter within quotes", "takes no quotes"));
            }
            ('{', None) => open = Some(at),
            ('}', None) => return Err(bad(at, "a `}` without its `{`", "nothing is open")),
            ('}', Some(start)) => {
                let name = &sql[start + 1..at];
                if !expression::is_identifier(name) {
                    return Err(bad(
                        start,
                        "braces without a name in them",
                        "expected a name",
                    ));
                }
                placeholders.push(Placeholder {
                    name,
                    start,
                    end: at + 1,
                });
                open = None;
            }
            ('\'', None) => is_quoted = !is_quoted,
            _ => {}
        }
    }
    match open {
        None => Ok(placeholders),
        Some(start) => Err(BadBrace {
            start,
            end: start + 1,
            message: "a `{` without its `}`",
            label: "never closed",
        }),
    }
}

/// The text with other text in place of those placeholders that have some; the rest stays as it is, doubled braces too.
pub(crate) fn filled(sql: &str, text_of: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(sql.len());
    let mut from = 0;
    // A text with bad braces was refused.
    for Placeholder { name, start, end } in placeholders(sql).unwrap_or_default() {
        if let Some(text) = text_of(name) {
            filled.push_str(&sql[from..start]);
            filled.push_str(&text);
            from = end;
        }
    }
    filled.push_str(&sql[from..]);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_braces_are_text_also_within_quotes() {
        let names = |sql| -> Vec<&str> {
            let found = placeholders(sql).unwrap();
            found.iter().map(|it| it.name).collect()
        };
        assert_eq!(names(r#"select '{{"a": {{"b": 1}}}}'"#), [""; 0]);
        assert_eq!(names(r#"select {x}}} {{{y} '{{z}}'"#), ["x", "y"]);
        assert!(placeholders("select '{{x}'").is_err());
        assert!(placeholders("select '{{{x}}}'").is_err());
    }

    #[test]
    fn only_placeholders_are_filled() {
        let filled = filled("{n} {{n}} '{{n}}' {{{n}}} {m}", |name| {
            (name == "n").then(|| "5".to_owned())
        });
        assert_eq!(filled, "5 {{n}} '{{n}}' {{5}} {m}");
    }
}
