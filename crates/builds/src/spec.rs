//! What `assay fetch` is asked for: `postgres@17.2`, `debian:sid/mysql-server-core`, `dir:/opt/pg=mine`.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::sources::maven::Product;

/// A build as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
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
            let (path, name) = match rest.rsplit_once('=') {
                Some((path, name)) => (path, Some(name)),
                None => (rest, None),
            };
            if path.is_empty() {
                return Err(wrong("it names no directory".into()));
            }
            if let Some(name) = name {
                check_name(name)?;
            }
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
            let is_word = |word: &str| {
                word.starts_with(|char: char| char.is_ascii_alphanumeric())
                    && word
                        .chars()
                        .all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
            };
            if let Some(bad) = std::iter::once(suite)
                .chain(packages.iter().map(String::as_str))
                .find(|word| !is_word(word))
            {
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
        let is_version = version.starts_with(|char: char| char.is_ascii_digit())
            && version
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || ".-".contains(char));
        if !is_version {
            return Err(wrong(format!("`{version}` is no version")));
        }
        Ok(Self::Release {
            product,
            version: version.into(),
        })
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
    let is_name = name.starts_with(|char: char| char.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "._+-".contains(char))
        && name != DOWNLOADS
        && name.len() <= 100;
    if is_name {
        return Ok(());
    }
    Err(Error::usage(
        format!("`{name}` can't be the name of a build"),
        "a name begins with a letter or digit, and goes on with letters, digits, `.`, `_`, `+` and `-`",
    ))
}

/// The folder of the store that is no build.
pub const DOWNLOADS: &str = "downloads";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::is_version;

    #[test]
    fn each_form_is_read() {
        assert_eq!(
            Spec::parse("postgres@17.2").unwrap(),
            Spec::Release {
                product: Product::named("postgres").unwrap(),
                version: "17.2".into()
            }
        );
        let debian = "debian:bookworm/mariadb-server,mariadb-plugin-rocksdb";
        let spec = Spec::parse(debian).unwrap();
        assert_eq!(
            spec,
            Spec::Debian {
                suite: "bookworm".into(),
                packages: vec!["mariadb-server".into(), "mariadb-plugin-rocksdb".into()]
            }
        );
        assert_eq!(spec.to_string(), debian);
        assert_eq!(
            Spec::parse("dir:/opt/a=b=mine").unwrap(),
            Spec::Directory {
                path: "/opt/a=b".into(),
                name: Some("mine".into())
            }
        );
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
