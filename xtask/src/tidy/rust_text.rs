//! Rust source as text: just enough of its grammar to tell code from comments and literals.

/// The source with every comment and the content of every literal blanked out; lines stay where they are.
pub fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_string(&chars, at),
            '\'' => end_of_char(&chars, at),
            'r' if begins_token(&chars, at) => end_of_raw_string(&chars, at),
            _ => at,
        };
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(
                chars[at..end]
                    .iter()
                    .map(|&char| if char == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    code
}

/// Where a word stands in a text: byte offsets at which it is not part of a longer word.
pub fn word_offsets<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
        })
}

/// The line of a byte offset, counted from 1.
pub fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Whether a character may be within a name.
pub fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn end_of_line(chars: &[char], from: usize) -> usize {
    chars[from..]
        .iter()
        .position(|&char| char == '\n')
        .map_or(chars.len(), |length| from + length)
}

fn end_of_block_comment(chars: &[char], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0_usize);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn end_of_string(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `from` itself where the quote begins a lifetime.
fn end_of_char(chars: &[char], from: usize) -> usize {
    match (chars.get(from + 1), chars.get(from + 2)) {
        // What is escaped may be a quote: the end is looked for behind it.
        (Some('\\'), Some(_)) => {
            let rest = chars.get(from + 3..).unwrap_or_default();
            rest.iter()
                .position(|&char| char == '\'')
                .map_or(chars.len(), |length| from + length + 4)
        }
        (Some(_), Some('\'')) => from + 3,
        _ => from,
    }
}

/// `from` itself where the `r` begins something else.
fn end_of_raw_string(chars: &[char], from: usize) -> usize {
    let hashes = chars[from + 1..]
        .iter()
        .take_while(|&&char| char == '#')
        .count();
    let quote = from + 1 + hashes;
    if chars.get(quote) != Some(&'"') {
        return from;
    }
    let mut at = quote + 1;
    while at < chars.len() {
        let closed = chars[at] == '"'
            && chars[at + 1..]
                .iter()
                .take(hashes)
                .filter(|&&char| char == '#')
                .count()
                == hashes;
        if closed {
            return at + 1 + hashes;
        }
        at += 1;
    }
    chars.len()
}

/// Whether the `r` at this place begins a token, alone or as `br` or `cr`.
fn begins_token(chars: &[char], at: usize) -> bool {
    let before = |places: usize| at.checked_sub(places).map(|at| chars[at]);
    match before(1) {
        Some('b' | 'c') => !before(2).is_some_and(is_of_word),
        other => !other.is_some_and(is_of_word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        let code = code_only(source);
        let squeezed = code.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed, expected);
        assert_eq!(
            code.matches('\n').count(),
            source.matches('\n').count(),
            "lines moved"
        );
    }

    #[test]
    fn comments_are_not_code() {
        check("a // unsafe\nb", "a b");
        check("a /* x /* unsafe */ y\n */ b", "a b");
        check("/// unsafe\nfn f() {}", "fn f() {}");
        check("a / b", "a / b");
    }

    #[test]
    fn literals_are_not_code() {
        check(r#"f("unsafe \" // x", g)"#, "f( , g)");
        check("f(r\"a\\\", g)", "f( , g)");
        check("f(r##\"a \"# unsafe\"##, g)", "f( , g)");
        check("f(br#\"unsafe\"#, g)", "f(b , g)");
        check("f('\"', b'\\'', '\\\\', g) // x", "f( , b , , g)");
        check("f('\\u{1F600}', g)", "f( , g)");
    }

    #[test]
    fn names_that_look_like_literals_are_code() {
        check(
            "fn f<'a>(x: &'a str) -> &'a str { x }",
            "fn f<'a>(x: &'a str) -> &'a str { x }",
        );
        check("r#type + var\"x\"", "r#type + var");
        check(
            "'outer: loop { break 'outer; }",
            "'outer: loop { break 'outer; }",
        );
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_text() {
        check("a \"b", "a");
        check("a r#\"b", "a");
        check("a /* b", "a");
        check("a '\\", "a '\\");
    }

    #[test]
    fn a_word_is_not_found_within_a_longer_one() {
        let text = "unsafe_code unsafe{ not_unsafe\n(unsafe)";
        let lines: Vec<usize> = word_offsets(text, "unsafe")
            .map(|at| line_at(text, at))
            .collect();
        assert_eq!(lines, [1, 2]);
    }
}
