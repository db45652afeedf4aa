//! What `assay fetch` is asked for: `postgres@17.2`, `debian:sid/mysql-server-core`, `dir:/opt/pg=mine`.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::sources::maven::Product;

/// A build as it is asked for.
#[derive(Clone, Debug)]
pub enum Spec {
    /// A version of a product that is packed as a Java artifact.
    Release {
        /// Which product.
        product: &'static Product,
        /// `17`, `17.2`: a version, or the beginning of one.
        version: String,
    },
    /// Packages of a suite of Debian, with all that they depend on.
    Debian {
        /// `bookworm`, `sid`
        suite: String,
        /// The packages, in their order.
        packages: Vec<String>,
    },
    /// A directory of the user's, or one library.
    Directory {
        /// Where it is.
        path: PathBuf,
        /// The name to be registered by.
        name: Option<String>,
    },
}

const FORMS: &str = "a spec is `postgres@17.2`, `mariadb@11.4.5`, `mysql@8.0`, `rocksdb@9.9.3`, `speedb@2.8.0`, \
                     `debian:SUITE/PACKAGE,...`, or `dir:/PATH=NAME`";

impl Spec {
    /// Reads a spec.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong =
            |what: String| Error::usage(format!("`{text}` is no spec of a build: {what}"), FORMS);
        if let Some(rest) = text.strip_prefix("dir:") {
            let named = rest.rsplit_once('=').map(|(path, name)| (path, Some(name)));
            let (path, name) = named.unwrap_or((rest, None));
            if path.is_empty() {
                return Err(wrong("it names no directory".into()));
            }
            name.map_or(Ok(()), check_name)?;
            return Ok(Self::Directory {
                path: path.into(),
                name: name.map(str::to_owned),
            });
        }
        if let Some(rest) = text.strip_prefix("debian:") {
            let Some((suite, packages)) = rest.split_once('/') else {
                return Err(wrong("it names no package".into()));
            };
            let packages: Vec<String> = packages.split(',').map(str::to_owned).collect();
            // What reaches apt is a suite and names of packages, never an option or a path.
            let mut words = vec![suite];
            words.extend(packages.iter().map(String::as_str));
            if let Some(bad) = words.iter().find(|word| !is_word(word, "+-.")) {
                return Err(wrong(format!("`{bad}` is no name of a suite or a package")));
            }
            return Ok(Self::Debian {
                suite: suite.into(),
                packages,
            });
        }
        let Some((product, version)) = text.split_once('@') else {
            return Err(wrong("it has neither `@` nor a known prefix".into()));
        };
        let Some(product) = Product::named(product) else {
            return Err(wrong(format!("`{product}` is not known")));
        };
        let is_number = version.starts_with(|char: char| char.is_ascii_digit());
        if !is_number || !is_word(version, ".-") {
            return Err(wrong(format!("`{version}` is no version")));
        }
        Ok(Self::Release {
            product,
            version: version.into(),
        })
    }

    /// Returns the engine that it is of; `None` where that is known once it is fetched.
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

/// A build's name: it is a folder's too, and stands in plans.
pub fn check_name(name: &str) -> Result<(), Error> {
    if is_word(name, "._+-") && name != DOWNLOADS && name.len() <= 100 {
        return Ok(());
    }
    Err(Error::usage(
        format!("`{name}` can't be the name of a build"),
        "a name begins with a letter or digit, and goes on with letters, digits, `.`, `_`, `+` and `-`",
    ))
}

/// Returns whether a text begins with a letter or digit, and goes on with these and the characters of `others`.
fn is_word(text: &str, others: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric();
    text.starts_with(is_plain)
        && text
            .chars()
            .all(|char| is_plain(char) || others.contains(char))
}

/// The folder of the store that is no build.
pub const DOWNLOADS: &str = "downloads";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::is_version;

    #[test]
    fn each_form_is_read() {
        for text in [
            "postgres@17.2",
            "debian:bookworm/mariadb-server,mariadb-plugin-rocksdb",
        ] {
            assert_eq!(Spec::parse(text).unwrap().to_string(), text);
        }
        let Ok(Spec::Directory { path, name }) = Spec::parse("dir:/opt/a=b=mine") else {
            panic!("it names a directory");
        };
        assert_eq!((path, name), ("/opt/a=b".into(), Some("mine".into())));
    }

    #[test]
    fn what_is_no_spec_is_refused() {
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
    fn a_version_goes_on_only_after_a_point() {
        assert!(is_version("17.2.0", "17.2") && is_version("17.2", "17.2"));
        assert!(!is_version("17.20", "17.2") && !is_version("1", "17"));
    }

    #[test]
    fn names_are_folders_and_nothing_else() {
        assert!(check_name("pg-17.2_x").is_ok());
        for bad in ["", ".", "..", ".lock", "a/b", "downloads", "-x"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
