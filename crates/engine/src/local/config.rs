//! The text of a server's configuration file: what is alike in all kinds.

use super::server::StartOptions;
use crate::SetupError;
use crate::notation::Notation;

/// What stands before a file of the plan, and before its options.
pub(crate) const FILE_HEADER: &str = "# File ";
pub(crate) const SET_HEADER: &str = "# Options of the config.";

/// Connections that assay's own sessions and a server's reserve need.
const CONNECTIONS_SPARE: u32 = 16;

/// How one kind of server has its configuration.
pub(crate) struct Format {
    /// The server's name.
    pub(crate) server: &'static str,
    pub(crate) notation: &'static dyn Notation,
    /// The line before options.
    pub(crate) group: &'static str,
    /// What else than letters and digits is in the names of options.
    pub(crate) name_chars: &'static [char],
    /// Connections that a fresh installation allows.
    pub(crate) connections: u32,
    /// What assay decides, whatever the plan says: where the server listens and logs, where its files are, and as whom
    /// it runs.
    pub(crate) ours: &'static [&'static str],
}

/// A configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    /// Its text.
    pub(crate) text: String,
    /// That of the run which makes a server's data, where it reads one.
    pub(crate) initial: String,
    /// Options of the plan that it overrides, for people.
    pub(crate) notes: Vec<String>,
}

/// An option by the key of its name; `None` is the value of a word that stands alone.
pub(crate) type Given = (String, Option<String>);

impl Format {
    /// Returns the options of the plan's files and then its own, in the order in which they hold.
    ///
    /// # Errors
    /// [`SetupError::Config`] for an option whose name can't be one, or whose value is of several lines.
    pub(crate) fn given(&self, options: &StartOptions<'_>) -> Result<Vec<Given>, SetupError> {
        let files = options.config_files.iter();
        let of_files = files.flat_map(|file| self.notation.options(file));
        let mut given: Vec<Given> = of_files
            .map(|(name, value)| (self.notation.key(&name), value))
            .collect();
        for (name, value) in options.set {
            let is_part =
                |char: char| char.is_ascii_alphanumeric() || self.name_chars.contains(&char);
            if !name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
                || !name.chars().all(is_part)
            {
                let extra: Vec<String> = self
                    .name_chars
                    .iter()
                    .map(|char| format!("`{char}`"))
                    .collect();
                return Err(SetupError::Config {
                    what: format!("`{name}` can't be the name of an option of {}", self.server),
                    help: format!("names are letters, digits, {}", extra.join(", ")),
                });
            }
            if value.contains(['\n', '\r', '\0']) {
                return Err(SetupError::Config {
                    what: format!("option `{name}` has a value of several lines"),
                    help: "write it in one line".into(),
                });
            }
            let value = Some(value.clone()).filter(|value| !value.is_empty());
            given.push((self.notation.key(name), value));
        }
        Ok(given)
    }

    /// Puts the parts together, of which a later one wins: how the server is `built`, the plan's files, its options as
    /// `line` writes them, and what is assay's own.
    pub(crate) fn compose(
        &self,
        options: &StartOptions<'_>,
        given: &[Given],
        built: &str,
        line: impl Fn(&str, &str) -> String,
        own: &str,
    ) -> ConfigText {
        let group = self.group;
        let mut text = built.to_owned();
        let wanted = options.connections.saturating_add(CONNECTIONS_SPARE);
        if wanted > self.connections {
            text += &format!("\n# Enough for the run's clients.\nmax_connections = {wanted}\n");
        }
        for (number, file) in (1..).zip(options.config_files) {
            text += &format!("\n{FILE_HEADER}{number} of the config, verbatim.\n{group}{file}");
            if !file.ends_with('\n') {
                text.push('\n');
            }
        }
        if !options.set.is_empty() {
            text += &format!("\n{SET_HEADER}\n{group}");
            text.extend(
                options
                    .set
                    .iter()
                    .map(|(name, value)| line(name, value) + "\n"),
            );
        }
        text += &format!(
            "\n# Assay's own: its files, a private socket, and the log on standard error.\n{group}{own}"
        );
        let overridden = self
            .ours
            .iter()
            .filter(|ours| given.iter().any(|(key, _)| key == *ours));
        let notes = overridden.map(|name| {
            format!(
                "option `{name}` of the config is not used: assay decides where its servers listen and log, and where \
                 their files are"
            )
        });
        ConfigText {
            text,
            initial: String::new(),
            notes: notes.collect(),
        }
    }
}

/// Returns what stands before the closing `quote`; a doubled quote or one after `\` does not close.
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

/// Returns the error of a configuration that a server refuses.
pub(crate) fn refused(server: &str, complaint: &str, help: String) -> SetupError {
    SetupError::Config {
        what: format!("{server} refuses it: {complaint}"),
        help,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::limits::Limits;

    /// What a configuration is composed of: files, options, and connections that the run needs.
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
            build: "",
            data_dir: "".as_ref(),
            config_files: &files,
            set: &set,
            user: None,
            guard_exe: "".as_ref(),
            log: "".as_ref(),
            connections,
            limits: &Limits::default(),
            timeout: std::time::Duration::MAX,
            stop: &AtomicBool::new(false),
        })
    }
}
