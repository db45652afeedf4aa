//! JSON as text that a terminal may show.

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::text::is_printable;

/// Returns indented JSON. Characters that a terminal would obey, or that hide or turn text, are
/// escaped; they can only be in strings.
///
/// # Errors
/// The value cannot be written as JSON.
pub fn json_text(value: &Value) -> serde_json::Result<String> {
    let json = serde_json::to_string_pretty(value)?;
    let mut text = String::with_capacity(json.len() + 1);
    for letter in json.chars() {
        if letter == '\n' || is_printable(letter) {
            text.push(letter);
        } else {
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        }
    }

    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_what_a_terminal_would_obey() {
        let value = serde_json::json!({ "a\u{9b}": "\u{202e}b\u{1b}[31m", "c": "é\n" });
        let text = json_text(&value).unwrap();
        let expected = "{\n  \"a\\u009b\": \"\\u202eb\\u001b[31m\",\n  \"c\": \"é\\n\"\n}\n";
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
