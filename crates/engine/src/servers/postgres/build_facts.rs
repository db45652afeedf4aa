//! The compilation of a build of PostgreSQL, as settings.

use words::Setting;

use super::session::PostgresSession;
use crate::contract::Session;
use crate::error::Error;

/// Compiler and flags. Ordinary users cannot read the second one.
const VERSION: &str = "select version()";
const CONFIG: &str =
    "select name, setting from pg_config where name in ('CC', 'CFLAGS', 'CONFIGURE')";

/// The setting with the compiler's flags.
pub(super) const FLAGS: &str = "build.cflags";

/// The text before the compiler in the version.
const COMPILED_BY: &str = ", compiled by ";

/// The error code for a missing privilege.
const DENIED: &str = "42501";

/// Reads how the server was compiled. Paths, which differ between all builds, are left out.
pub(super) fn read(session: &mut PostgresSession) -> Result<Vec<Setting>, Error> {
    let version = session.query_column(VERSION)?.concat();

    let mut settings: Vec<Setting> =
        compiler(&version).map(|name| Setting::new("build.compiler", name)).into_iter().collect();

    let rows = match session.query(CONFIG) {
        Err(error) if error.code.as_deref() == Some(DENIED) => Vec::new(),
        rows => rows?,
    };

    for row in rows {
        let [Some(name), Some(value)] = row.as_slice() else {
            continue;
        };
        match name.as_str() {
            "CONFIGURE" => settings.extend(configured(value)),
            "CFLAGS" => settings.push(Setting::new(FLAGS, without_paths(value))),
            _ => {}
        }
    }

    Ok(settings)
}

/// Returns the compiler in a version such as `PostgreSQL 15.4 on x86_64-pc-linux-gnu, compiled by
/// gcc (Debian 12.2.0-14) 12.2.0, 64-bit`.
fn compiler(version: &str) -> Option<&str> {
    let (_, compiler) = version.split_once(COMPILED_BY)?;
    Some(compiler.rsplit_once(", ").map_or(compiler, |(name, _)| name))
}

/// Returns flags without those that have a path.
fn without_paths(flags: &str) -> String {
    let words = flags.split_ascii_whitespace().filter(|word| !word.contains('/'));
    Vec::from_iter(words).join(" ")
}

/// Returns flags without those that choose warnings, which change no code. Those of the linker, the
/// preprocessor and the assembler begin like them.
pub(super) fn without_warnings(flags: &str) -> String {
    let is_warning = |word: &str| {
        word.starts_with("-W") && !["-Wl,", "-Wp,", "-Wa,"].iter().any(|of| word.starts_with(of))
    };
    let words = flags.split_ascii_whitespace().filter(|word| !is_warning(word));
    Vec::from_iter(words).join(" ")
}

/// Returns the features in the arguments of `configure`, such as `'--with-icu'
/// '--with-blocksize=16'`. Variables, which follow without hyphens, shape the flags.
fn configured(arguments: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    for argument in arguments.split('\'') {
        let Some(option) = argument.trim().strip_prefix("--") else {
            continue;
        };

        let (name, value) = option.split_once('=').unwrap_or((option, "yes"));
        let is_feature = ["with-", "without-", "enable-", "disable-"];
        if is_feature.iter().any(|start| name.starts_with(start)) && !value.contains('/') {
            settings.push(Setting::new(format!("build.configure.{name}"), value.trim()));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_what_the_version_says() {
        let text = "PostgreSQL 15.4 (Debian 15.4-1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit";
        assert_eq!(compiler(text), Some("gcc (Debian 12.2.0-14) 12.2.0"));
        assert_eq!(compiler("PostgreSQL"), None);
    }

    #[test]
    fn features_are_settings_and_paths_are_not() {
        let text = " '--prefix=/usr' '--with-icu' '--with-blocksize=16' '--with-system-tzdata=/usr/share' 'CFLAGS=-O2 -g' '--disable-rpath'";
        let settings = configured(text);
        let pairs: Vec<(&str, &str)> = settings
            .iter()
            .map(|setting| (setting.name.as_str(), setting.value.as_str()))
            .collect();
        let expected = [
            ("build.configure.with-icu", "yes"),
            ("build.configure.with-blocksize", "16"),
            ("build.configure.disable-rpath", "yes"),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(without_paths("-O2 -ffile-prefix-map=/build=. -g"), "-O2 -g");
    }
}
