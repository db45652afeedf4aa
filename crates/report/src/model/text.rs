//! Makes text of other sources safe to show.
//!
//! Names, messages and plans come from engines and other hosts. Nothing of them may move the cursor
//! of a terminal, hide text or reach a browser's parser as a control character. Each printer calls
//! one of these functions for each text that Assay did not write itself.

use std::path::Path;

/// Makes text of other sources safe to print. Removes control characters and marks that change the
/// direction of writing, so that a server's message or a name cannot move the cursor, color the
/// screen or hide text. Line breaks and tabs become spaces.
pub fn terminal_text(text: &str) -> String {
    text.chars()
        .filter_map(|letter| match letter {
            '\n' | '\t' => Some(' '),
            _ => printable(letter),
        })
        .collect()
}

/// Returns whether a character is neither a control character nor changes the direction of writing.
pub fn is_printable(letter: char) -> bool {
    printable(letter).is_some()
}

/// Returns the character unless a terminal would obey it: a control character, or a mark that turns
/// the direction of writing.
pub(crate) fn printable(letter: char) -> Option<char> {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (!letter.is_control() && !turns).then_some(letter)
}

/// Removes control characters from text of other sources; keeps line breaks and tabs.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|letter| match letter {
            '\n' | '\t' => Some(letter),
            _ => printable(letter),
        })
        .collect()
}

/// Returns the URL of a file, which a terminal can open: a space in a path would end it.
pub fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
            byte => url += &format!("%{byte:02X}"),
        }
    }

    url
}
