//! The specs of `assay fetch`: `postgres@17.2`, `debian:sid/mysql-server-core`, `dir:/opt/pg=mine`.

use std::fmt;
use std::path::PathBuf;

use crate::error::BuildError;
use crate::sources::products::Product;

/// A spec, which says what build to fetch.
#[derive(Clone, Debug)]
pub enum Spec {
    /// A version of a product, which Maven's repositories or npm's registry have.
    Release {
        /// The product.
        product: &'static Product,
        /// A version or the beginning of one: `17`, `17.2`.
        version: String,
    },
    /// Packages of a Debian suite, with their dependencies.
    Debian {
        /// The suite, such as `bookworm` or `sid`.
        suite: String,
        /// The names of the packages.
        packages: Vec<String>,
    },
    /// A directory or a library of the user.
    Directory {
        /// The directory or library.
        path: PathBuf,
        /// The name to register the build under.
        name: Option<String>,
    },
}

const FORMS: &str = "write `postgres@17.2`, `mariadb@11.4.5`, `mysql@8.0`, `rocksdb@9.9.3`, `speedb@2.8.0`, `sqlite@3.46.1`, \
`debian:SUITE/PACKAGE,...`, or `dir:/PATH=NAME`";

impl Spec {
    /// Parses a spec.
    pub fn parse(text: &str) -> Result<Self, BuildError> {
        let invalid =
            |why: String| BuildError::usage(format!("invalid build spec `{text}`: {why}"), FORMS);

        if let Some(path_and_name) = text.strip_prefix("dir:") {
            return Self::directory(path_and_name, invalid);
        }
        if let Some(suite_and_packages) = text.strip_prefix("debian:") {
            return Self::debian(suite_and_packages).map_err(invalid);
        }

        Self::release(text).map_err(invalid)
    }

    fn directory(
        path_and_name: &str,
        invalid: impl Fn(String) -> BuildError,
    ) -> Result<Self, BuildError> {
        let (path, name) = match path_and_name.rsplit_once('=') {
            Some((path, name)) => (path, Some(name)),
            None => (path_and_name, None),
        };

        if path.is_empty() {
            return Err(invalid("the path is missing after `dir:`".into()));
        }

        name.map_or(Ok(()), check_name)?;
        Ok(Self::Directory { path: path.into(), name: name.map(str::to_owned) })
    }

    fn debian(suite_and_packages: &str) -> Result<Self, String> {
        let Some((suite, list)) = suite_and_packages.split_once('/') else {
            return Err("the packages are missing after the suite".into());
        };
        let packages: Vec<&str> = list.split(',').collect();

        // Only names may reach apt's command line, never an option or a path.
        let mut words = [suite].into_iter().chain(packages.iter().copied());
        if let Some(bad) = words.find(|word| !is_word(word, "+-.")) {
            return Err(format!("`{bad}` is not the name of a suite or a package"));
        }

        let packages = packages.into_iter().map(str::to_owned).collect();
        Ok(Self::Debian { suite: suite.into(), packages })
    }

    fn release(text: &str) -> Result<Self, String> {
        let Some((name, version)) = text.split_once('@') else {
            return Err("it has neither `@VERSION` nor a prefix `debian:` or `dir:`".into());
        };
        let Some(product) = Product::named(name) else {
            return Err(format!("unknown product `{name}`"));
        };

        let is_number = version.starts_with(|char: char| char.is_ascii_digit());
        if !is_number || !is_word(version, ".-") {
            return Err(format!("`{version}` is not a version number"));
        }

        Ok(Self::Release { product, version: version.into() })
    }

    /// Returns the product and the version of a release; `None` for anything else.
    pub fn release_of(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Release { product, version } => Some((product.name, version)),
            Self::Debian { .. } | Self::Directory { .. } => None,
        }
    }

    /// Returns the engine that runs the build; `None` when only fetching it will show that.
    pub fn engine(&self) -> Option<&'static str> {
        match self {
            Self::Release { product, .. } => Some(product.engine),
            Self::Debian { .. } | Self::Directory { .. } => None,
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release { product, version } => write!(f, "{}@{version}", product.name),
            Self::Debian { suite, packages } => write!(f, "debian:{suite}/{}", packages.join(",")),
            Self::Directory { path, .. } => write!(f, "dir:{}", path.display()),
        }
    }
}

/// Checks that `name` may be the name of a build, which is also the name of its folder and is
/// written in plans.
pub fn check_name(name: &str) -> Result<(), BuildError> {
    if is_word(name, "._+-") && name != DOWNLOADS && name.len() <= 100 {
        return Ok(());
    }
    Err(BuildError::usage(
        format!("invalid build name `{name}`"),
        "begin with a letter or digit, continue with letters, digits, `.`, `_`, `+` and `-`, up to 100 characters; \
        `downloads` is reserved",
    ))
}

/// Returns true when `text` begins with a letter or digit, and has only letters, digits and the
/// characters of `others`.
pub fn is_word(text: &str, others: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric();
    text.starts_with(is_plain) && text.chars().all(|char| is_plain(char) || others.contains(char))
}

/// The folder of the store that holds downloads instead of a build.
pub const DOWNLOADS: &str = "downloads";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::is_version;

    #[test]
    fn each_form_is_parsed() {
        for text in ["postgres@17.2", "debian:bookworm/mariadb-server,mariadb-plugin-rocksdb"] {
            assert_eq!(Spec::parse(text).unwrap().to_string(), text);
        }
        let Ok(Spec::Directory { path, name }) = Spec::parse("dir:/opt/a=b=mine") else {
            panic!("not a directory");
        };
        assert_eq!((path, name), ("/opt/a=b".into(), Some("mine".into())));
    }

    #[test]
    fn an_invalid_spec_is_refused() {
        for bad in [
            "",
            "postgres",
            "oracle@9",
            "postgres@",
            "postgres@latest",
            "postgres@17:x",
            "debian:sid",
            "debian:sid/",
            "debian:sid/--force",
            "debian:../x/y",
            "debian:-o/y",
            "dir:",
            "dir:/opt/x=../y",
        ] {
            assert!(Spec::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_version_continues_only_after_a_period() {
        assert!(is_version("17.2.0", "17.2") && is_version("17.2", "17.2"));
        assert!(!is_version("17.20", "17.2") && !is_version("1", "17"));
    }

    #[test]
    fn a_name_is_a_single_folder() {
        assert!(check_name("pg-17.2_x").is_ok());
        for bad in ["", ".", "..", ".lock", "a/b", "downloads", "-x"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
