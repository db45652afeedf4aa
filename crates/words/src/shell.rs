//! Words of the commands that messages tell the user to type.

/// Characters beside letters and digits that mean nothing to a shell.
const PLAIN_MARKS: &str = "@._-/=:,+";

/// Returns `word` as a POSIX shell reads it back: as it is if nothing in it means anything to a
/// shell, otherwise in single quotes.
///
/// ```
/// assert_eq!(words::shell_quoted("results/run-1"), "results/run-1");
/// assert_eq!(words::shell_quoted("my runs/it's"), r"'my runs/it'\''s'");
/// assert_eq!(words::shell_quoted(""), "''");
/// ```
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || PLAIN_MARKS.contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
