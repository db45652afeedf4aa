//! Removes from text what is nobody else's business: secrets, and the places of one machine.

use std::collections::HashSet;
use std::path::Path;

use record::Run;

/// The text in place of a secret.
const SECRET: &str = "***";
/// The text in place of a directory of the machine that measured.
const DIRECTORY: &str = "DIRECTORY";
/// The text in place of a home directory.
const HOME: &str = "~";

/// Words in the names of options whose values are secrets, or name hosts.
const SECRET_WORDS: [&str; 6] =
    ["password", "passphrase", "secret", "conninfo", "authentication_string", "credential"];

/// Parts of such names between dots and underscores: `my.api_token`, `s3.pwd`.
const SECRET_PARTS: [&str; 9] =
    ["apikey", "auth", "bearer", "cookie", "pass", "passwd", "pin", "pwd", "token"];
/// Parts that stand before `key` in the name of a secret, or after it. Others are no secrets:
/// `key_buffer_size`.
const KEY_PARTS: [&str; 6] = ["access", "account", "api", "id", "private", "signing"];

/// The beginnings of values that are secrets, whatever their names.
const SECRET_BEGINNINGS: [&str; 6] = ["AKIA", "ASIA", "Basic ", "Bearer ", "ghp_", "-----BEGIN"];

/// The folders of home directories.
const HOMES: [&str; 2] = ["/home/", "/Users/"];

/// Names of users and hosts that say nothing about anybody, and that reports have as words.
const COMMON_NAMES: [&str; 6] = ["root", "user", "postgres", "mysql", "nobody", "localhost"];

/// Shorter texts would occur in others by chance.
const LENGTH_MIN: usize = 4;

/// The texts to remove from every file of a bundle.
pub struct Scrubber {
    /// Texts, the longest first, and what stands for them.
    replacements: Vec<(String, String)>,
}

impl Scrubber {
    /// Finds what is to be removed from texts about a run. `plan` is that of the bundle, which lacks
    /// the values `left_out`, as TOML. Names of the host and the user that are in it are no
    /// secrets, but words such as `debian`.
    pub fn of(run: &Run, directory: &Path, plan: &str, left_out: &[String]) -> Self {
        let mut replacements: Vec<(String, String)> = Vec::new();
        let mut replace = |text: &str, by: &str| {
            if text.len() >= LENGTH_MIN {
                let forms = written_forms(text).into_iter();
                replacements.extend(forms.map(|form| (form, by.to_owned())));
            }
        };

        for option in run.targets.iter().flat_map(|target| &target.declared) {
            let is_left_out = left_out.contains(&plan::quoted(&option.value));
            if is_left_out || is_secret(&option.name) || is_secret_value(&option.value) {
                replace(&option.value, SECRET);
                replace(&option.canonical, SECRET);
            }
        }

        // The folder of the run and the one around it, which is that of all runs.
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        for folder in absolute.ancestors().take(2) {
            replace(&folder.display().to_string(), DIRECTORY);
        }
        for invocation in &run.invocations {
            replace(&invocation.data_dir, DIRECTORY);
        }
        for build in run.builds.iter().filter(|build| build.source.starts_with('/')) {
            replace(&build.source, DIRECTORY);
        }
        if let Some(home) = std::env::home_dir() {
            replace(&home.display().to_string(), HOME);
        }

        let system = rustix::system::uname();
        let mut names = vec![(system.nodename().to_string_lossy().into_owned(), "HOST")];
        for variable in ["LOGNAME", "USER", "SUDO_USER"] {
            if let Ok(user) = std::env::var(variable) {
                names.push((user, "USER"));
            }
        }
        for (name, by) in names {
            if !plan.contains(&name) && !COMMON_NAMES.contains(&name.as_str()) {
                replace(&name, by);
            }
        }

        // The longest first: what is a part of another text must not break that one.
        replacements.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { replacements }
    }

    /// Returns a text without what is removed.
    pub fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for (text, by) in &self.replacements {
            clean = replaced_words(&clean, text, by);
        }

        // Only now: a connection string without its password is no longer that of the run.
        clean = words::redact(&clean);
        for folder in HOMES {
            clean = without_users(&clean, folder);
        }

        clean
    }
}

/// Returns the forms that a text has in the files of a bundle: as it is, and in the texts of JSON,
/// TOML and Markdown.
fn written_forms(text: &str) -> HashSet<String> {
    let mut forms = HashSet::from([text.to_owned(), report::markdown_escaped(text)]);
    for quoted in [plan::quoted(text), serde_json::Value::from(text).to_string()] {
        forms.insert(quoted.trim_matches('"').to_owned());
    }
    forms
}

/// Returns whether the value of an option is a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let parts: Vec<&str> = name.split(['.', '_']).collect();
    let is_key = |two: &[&str]| {
        two[0] == "key" && KEY_PARTS.contains(&two[1])
            || two[1] == "key" && KEY_PARTS.contains(&two[0])
    };

    SECRET_WORDS.iter().any(|word| name.contains(word))
        || parts.iter().any(|part| SECRET_PARTS.contains(part))
        || parts.windows(2).any(is_key)
}

/// Returns whether a value looks like a secret, whatever the name of its option.
pub fn is_secret_value(value: &str) -> bool {
    SECRET_BEGINNINGS.iter().any(|beginning| value.starts_with(beginning))
}

/// Replaces a text where it is not a part of a longer word.
fn replaced_words(text: &str, word: &str, by: &str) -> String {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        // The letter before may be the end of what was written last.
        let begins_inside = before.chars().next_back().or_else(|| out.chars().next_back());
        let is_part = begins_inside.is_some_and(is_of_word) && word.starts_with(is_of_word)
            || after.starts_with(is_of_word) && word.ends_with(is_of_word);

        out.push_str(before);
        out.push_str(if is_part { word } else { by });
        rest = after;
    }
    out + rest
}

/// Replaces the names of users in paths below the folder of home directories.
fn without_users(text: &str, folder: &str) -> String {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(folder) {
        out.push_str(&rest[..at]);
        out.push_str(HOME);
        rest = rest[at + folder.len()..].trim_start_matches(is_of_name);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_places_are_removed() {
        let option = |name: &str, value: &str| words::DeclaredOption {
            name: name.into(),
            value: value.into(),
            ..words::DeclaredOption::default()
        };
        let declared = vec![
            option("primary_conninfo", "host=db1 password=hunter2"),
            option("my.auth", "a_\"b\"_c"),
            option("my.size", "anything"),
            option("work_mem", "4MB"),
        ];
        let run = Run {
            targets: vec![record::Target { declared, ..record::Target::default() }],
            invocations: vec![record::Invocation {
                data_dir: "/srv/joe/data".into(),
                ..record::Invocation::default()
            }],
            ..Run::default()
        };
        let scrubber =
            Scrubber::of(&run, Path::new("/srv/joe/results/run1"), "", &["\"anything\"".into()]);
        for (text, clean) in [
            ("set = \"host=db1 password=hunter2\"", "set = \"***\""),
            ("/srv/joe/results/run1/x and /srv/joe/data", "DIRECTORY/x and DIRECTORY"),
            ("postgres://joe:pw@db/x", "postgres://joe:***@db/x"),
            ("/home/joe/pg and /Users/ann.b/x", "~/pg and ~/x"),
            ("work_mem = 4MB", "work_mem = 4MB"),
            // As Markdown, TOML and JSON write it.
            ("my.auth: a\\_\"b\"\\_c", "my.auth: ***"),
            ("auth = \"a_\\\"b\\\"_c\"", "auth = \"***\""),
            ("my.size (4 → anything)", "my.size (4 → ***)"),
        ] {
            assert_eq!(scrubber.clean(text), clean);
        }
    }

    #[test]
    fn secrets_are_known_by_names_and_by_the_beginnings_of_values() {
        for name in [
            "my.api_token",
            "my.pwd",
            "my.auth",
            "my.access_key_id",
            "my.pin",
            "ssl-private-key",
            "default_password_lifetime",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["key_buffer_size", "innodb_spin_wait_delay", "foreign_key_checks", "author"] {
            assert!(!is_secret(name), "{name}");
        }
        assert!(is_secret_value("Bearer abc") && is_secret_value("AKIAIOSFODNN7"));
        assert!(!is_secret_value("4MB"));
    }

    #[test]
    fn a_part_of_a_longer_word_stays() {
        assert_eq!(replaced_words("anna ann ann.x ann_b", "ann", "U"), "anna U U.x ann_b");
    }
}
