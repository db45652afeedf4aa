//! The text of a server's configuration file, as far as it is the same for all kinds of servers.

use std::path::PathBuf;

use crate::contract::notation::Notation;
use crate::error::SetupError;
use crate::local::start_options::StartOptions;

/// The comments before each file of the plan, and before the plan's options.
pub(crate) const FILE_HEADER: &str = "# File ";
pub(crate) const SET_HEADER: &str = "# Options of the config.";

/// Connections for assay's own sessions, and for the server's reserve.
const CONNECTIONS_SPARE: u32 = 16;

/// The configuration format of a kind of server.
pub(crate) struct Format {
    pub(crate) server: &'static str,
    pub(crate) notation: &'static dyn Notation,
    /// The line before the options.
    pub(crate) group: &'static str,
    /// The characters in option names besides letters and digits.
    pub(crate) name_chars: &'static [char],
    /// The default limit of connections.
    pub(crate) connections: u32,
    /// Options that turn off what the server does by the clock, for runs that count its work.
    pub(crate) quiet: &'static [(&'static str, &'static str)],
    /// Options that assay sets and the plan cannot: addresses, logs, paths and the user.
    pub(crate) reserved: &'static [&'static str],
}

/// A configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    pub(crate) text: String,
    /// The text of the file for the program that creates the data, if it reads one.
    pub(crate) initial: String,
}

/// The key of an option's name, and its value; `None` for a name without a value.
pub(crate) type OptionValue = (String, Option<String>);

impl Format {
    /// Returns the options of the plan's files, then the plan's own, in the order in which they
    /// take effect.
    ///
    /// # Errors
    /// [`SetupError::Config`] for an option with an invalid name or a value of several lines.
    pub(crate) fn plan_options(
        &self,
        options: &StartOptions<'_>,
    ) -> Result<Vec<OptionValue>, SetupError> {
        let file_options = options.config_files.iter().flat_map(|file| self.notation.options(file));
        let mut plan_options: Vec<OptionValue> =
            file_options.map(|(name, value)| (self.notation.key(&name), value)).collect();

        for (name, value) in options.set {
            self.check_name(name)?;
            // A second line would be an option of its own.
            if value.contains(['\n', '\r', '\0']) {
                return Err(SetupError::option(
                    name,
                    format!("the value of option `{name}` has several lines"),
                    "write the value on one line",
                ));
            }
            let value = Some(value.clone()).filter(|value| !value.is_empty());
            plan_options.push((self.notation.key(name), value));
        }
        Ok(plan_options)
    }

    fn check_name(&self, name: &str) -> Result<(), SetupError> {
        let begins_well = name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
        let is_name_char =
            |char: char| char.is_ascii_alphanumeric() || self.name_chars.contains(&char);
        if begins_well && name.chars().all(is_name_char) {
            return Ok(());
        }

        let extra: Vec<String> = self.name_chars.iter().map(|char| format!("`{char}`")).collect();
        Err(SetupError::option(
            name,
            format!("`{name}` is not a valid name of an option of {}", self.server),
            format!(
                "begin with a letter or `_`, and use only letters, digits, {}",
                extra.join(", ")
            ),
        ))
    }

    /// Joins the sections of a configuration. A later section overrides an earlier one: settings of
    /// the build, the plan's files, its options as `line` writes them, and assay's own
    /// settings.
    pub(crate) fn compose(
        &self,
        options: &StartOptions<'_>,
        build_settings: &str,
        line: impl Fn(&str, &str) -> String,
        own_settings: &str,
    ) -> ConfigText {
        let group = self.group;

        let mut text = build_settings.to_owned();
        let needed = options.connections.saturating_add(CONNECTIONS_SPARE);
        if needed > self.connections {
            text += &format!("\n# Enough for the run's clients.\nmax_connections = {needed}\n");
        }

        if options.wrapper.is_some() {
            text += &format!("\n# Nothing by the clock, so that work can be repeated.\n{group}");
            text.extend(self.quiet.iter().map(|(name, value)| line(name, value) + "\n"));
        }

        for (number, file) in (1..).zip(options.config_files) {
            text += &format!("\n{FILE_HEADER}{number} of the config, verbatim.\n{group}{file}");
            if !file.ends_with('\n') {
                text.push('\n');
            }
        }

        if !options.set.is_empty() {
            text += &format!("\n{SET_HEADER}\n{group}");
            text.extend(options.set.iter().map(|(name, value)| line(name, value) + "\n"));
        }

        text += &format!(
            "\n# Assay's own: its files and addresses, and the log on standard error.\n{group}{own_settings}"
        );

        ConfigText { text, initial: String::new() }
    }
}

/// Returns the text before the closing `quote`. A quote that is doubled or follows `\` does not
/// close the text.
pub(crate) fn unquoted(text: &str, quote: char, unescaped: fn(char) -> char) -> String {
    let mut value = String::new();
    let mut letters = text.chars().peekable();

    while let Some(letter) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(unescaped)),
            _ if letter == quote => match letters.next_if_eq(&quote) {
                Some(letter) => value.push(letter),
                None => break,
            },
            _ => value.push(letter),
        }
    }
    value
}

/// Returns the error for a configuration that a server refuses.
/// `config_file` is the file that it read, if that outlives this error.
pub(crate) fn refused(
    server: &str,
    message: &str,
    help: &str,
    config_file: Option<PathBuf>,
) -> SetupError {
    SetupError::Config {
        what: format!("{server} refuses the configuration: {message}"),
        help: help.to_owned(),
        option: None,
        config_file,
    }
}

/// Returns the remedy for a configuration that a server refuses. It names the options of the
/// configuration that the server's message names.
pub(crate) fn remedy(message: &str, config_text: &str) -> String {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    let words = message.split(|letter| !is_of_name(letter));
    let words: Vec<String> = words.map(|word| normalized(word.trim_end_matches('.'))).collect();

    let mut named: Vec<String> = Vec::new();
    for line in config_text.lines() {
        let name = line.split('=').next().unwrap_or_default().trim();
        // A single word, such as `user` or `port`, may be a part of any message.
        let is_option = name.contains(['_', '-']) && name.chars().all(is_of_name);
        let option = format!("`{name}`");
        if is_option && words.contains(&normalized(name)) && !named.contains(&option) {
            named.push(option);
        }
    }

    match named.as_slice() {
        [] => "correct the option in the config".to_owned(),
        options => format!("correct {} in the config", options.join(" or ")),
    }
}

/// Returns the name of an option with underscores, which some servers treat like hyphens.
fn normalized(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn the_remedy_names_the_options_that_the_server_names() {
        let text =
            "# Options of the config.\nport = 5432\nshared_buffers = '30GB'\nwork_mem = '4MB'\n";
        let memory = "could not map shared memory; use another port, or reduce shared_buffers.";
        assert_eq!(remedy(memory, text), "correct `shared_buffers` in the config");
        let mysql = "[mysqld]\ninnodb-flush-metod=x\n";
        let unknown = "unknown variable 'innodb_flush_metod=x'";
        assert_eq!(remedy(unknown, mysql), "correct `innodb-flush-metod` in the config");
        assert_eq!(remedy("no space left", text), "correct the option in the config");
    }

    /// Calls `compose` with options that have these files, settings and connections.
    pub(crate) fn with_options<T>(
        files: &[&str],
        set: &[(&str, &str)],
        connections: u32,
        compose: impl FnOnce(&StartOptions<'_>) -> T,
    ) -> T {
        let files: Vec<String> = files.iter().map(|file| file.to_string()).collect();
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let set: Vec<(String, String)> = set.iter().map(owned).collect();

        compose(&StartOptions {
            config_files: &files,
            set: &set,
            connections,
            ..StartOptions::default()
        })
    }
}
