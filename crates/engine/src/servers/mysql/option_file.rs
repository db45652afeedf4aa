//! Parses option files of MySQL and MariaDB, such as `my.cnf`.

use crate::servers::config::unquoted;

/// A line with content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OptionLine<'a> {
    /// The options of another file.
    Include(&'a str),
    /// The options of a directory's files.
    IncludeDirectory(&'a str),
    /// An option of a group; the group is empty before the first one.
    Option {
        group: &'a str,
        name: &'a str,
        /// The value without quotes; `None` for a name without a value.
        value: Option<String>,
    },
}

/// Parses lines such as `name`, `name = value` and `name = "a # b"`. A comment begins with `#`, or
/// `;` at the start of a line.
pub(super) fn lines(text: &str) -> Vec<OptionLine<'_>> {
    let mut group = "";
    let mut lines = Vec::new();

    for line in text.lines().map(str::trim) {
        if let Some(directory) = line.strip_prefix("!includedir") {
            lines.push(OptionLine::IncludeDirectory(directory.trim()));
        } else if let Some(file) = line.strip_prefix("!include") {
            lines.push(OptionLine::Include(file.trim()));
        } else if let Some(head) = line.strip_prefix('[') {
            group = head.split(']').next().unwrap_or_default();
        } else if !line.starts_with(['#', ';']) {
            let end = line.find(['=', '#']).unwrap_or(line.len());
            let name = line[..end].trim();
            let value = line[end..].strip_prefix('=').map(|value| value_in(value.trim()));
            if !name.is_empty() {
                lines.push(OptionLine::Option { group, name, value });
            }
        }
    }
    lines
}

/// Returns a value without its quotes, or without the comment after it.
fn value_in(text: &str) -> String {
    match text.chars().next() {
        Some(quote @ ('\'' | '"')) => unquoted(&text[1..], quote, unescaped),
        _ => text.split('#').next().unwrap_or_default().trim().to_owned(),
    }
}

/// Returns the character that a letter after `\` means.
fn unescaped(letter: char) -> char {
    match letter {
        's' => ' ',
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'b' => '\u{8}',
        other => other,
    }
}

/// Returns the options in a file for a server: those in its groups, and before the first group.
pub(super) fn server_options(text: &str) -> Vec<(&str, Option<String>)> {
    const NOT_SERVERS: [&str; 3] = ["mysqld_safe", "mysqld_multi", "mariadb-client"];

    let server_option = |line| match line {
        OptionLine::Option { group, name, value } => {
            let mut known = ["mysqld", "server", "mariadb"].iter();
            let is_servers = group.is_empty()
                || known.any(|known| group.starts_with(known)) && !NOT_SERVERS.contains(&group);
            is_servers.then_some((name, value))
        }
        OptionLine::Include(_) | OptionLine::IncludeDirectory(_) => None,
    };

    lines(text).into_iter().filter_map(server_option).collect()
}
