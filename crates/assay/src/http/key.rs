//! The key of a server.
//!
//! Every user of this machine can connect to 127.0.0.1. So the server answers only requests that
//! have its key, which it makes when it starts:
//!
//! * Browsers send the key as the first part of the path, in front of relative links. Browsers send
//!   a cookie of 127.0.0.1 to all its ports, including servers of other users, so a cookie would
//!   not keep the key.
//! * Scrapers send a header, `Authorization: Bearer KEY`, because they show paths to their readers.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use fs_err::os::unix::fs::OpenOptionsExt;
use report::terminal_text;
use runner::failure::UsageError;
use rustix::fs::OFlags;
use subtle::ConstantTimeEq;
use words::Secret;

/// The size of a key: 128 bits.
const KEY_BYTES: usize = 16;
/// The permissions of users who are neither the owner nor in the group.
const OTHERS: u32 = 0o007;

/// The key of a server.
pub struct Key(Secret);

impl Key {
    /// Returns a key that nobody can guess.
    pub fn random() -> anyhow::Result<Self> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).context("the system gives no random bytes")?;
        Ok(Self(Secret::new(format!("{:032x}", u128::from_be_bytes(bytes)))))
    }

    /// Returns the path of the first page.
    pub fn path(&self) -> String {
        format!("/{}/", self.0.expose())
    }

    /// Returns the target of a request without the key; `None` if the request does not have the
    /// key.
    pub(super) fn unlock<'r>(
        &self,
        target: &'r str,
        authorization: Option<&str>,
    ) -> Option<&'r str> {
        if authorization.and_then(bearer_token).is_some_and(|token| self.is(token)) {
            return Some(target);
        }

        let after_slash = target.strip_prefix('/')?;
        let (given, _) = after_slash.split_once('/')?;

        // The rest begins with the slash after the key.
        self.is(given).then(|| &after_slash[given.len()..])
    }

    /// Returns whether a text is the key. The time that this takes does not depend on how much of
    /// the text is right.
    fn is(&self, given: &str) -> bool {
        self.0.expose().as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// Writes the key to a file, for scrapers. The file may exist, so that its owner can let a
    /// group read it.
    ///
    /// # Errors
    ///
    /// If the file is not a regular file of this user, if all users can read it, or if it cannot be
    /// written.
    pub(super) fn write_to(&self, path: &Path) -> anyhow::Result<()> {
        let shown = terminal_text(&path.display().to_string());
        let mut file = fs_err::OpenOptions::new()
            .write(true)
            .create(true)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path)
            .with_context(|| format!("cannot write the key to `{shown}`"))?;

        let status = file.metadata()?;
        let is_own = status.uid() == rustix::process::geteuid().as_raw();
        if !status.is_file() || !is_own || status.mode() & OTHERS != 0 {
            let what =
                format!("`{shown}` is not a file of yours that only you or a group can read");
            let help = "name a new file for the key, or remove the permissions of other users";
            return Err(UsageError::new(what, Some(help.into())).into());
        }

        // Only now: a file that is refused keeps its content.
        file.set_len(0)?;
        writeln!(file, "{}", self.0.expose())?;
        Ok(())
    }
}

/// Returns the token of a header `Authorization: Bearer TOKEN`.
fn bearer_token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_have_128_bits_in_hexadecimal_digits() {
        let keys = [Key::random().unwrap(), Key::random().unwrap()];
        let paths = keys.map(|key| key.path());
        assert_ne!(paths[0], paths[1]);
        for path in paths {
            let digits = path.trim_matches('/');
            assert_eq!(digits.len(), 32);
            assert!(digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{path}");
        }
    }

    #[test]
    fn only_the_whole_key_opens_a_path() {
        let key = Key(Secret::new("k3y"));
        assert_eq!(key.unlock("/k3y/", None), Some("/"));
        assert_eq!(key.unlock("/k3y/run?name=a/b", None), Some("/run?name=a/b"));
        assert_eq!(key.unlock("/k3y//run", None), Some("//run"));
        for target in
            ["/", "/k3y", "/k3/", "/k3yy/", "/K3Y/", "//k3y/", "/run/k3y/", "k3y/", "/?k3y/", "*"]
        {
            assert_eq!(key.unlock(target, None), None, "{target}");
        }

        for right in ["Bearer k3y", "bearer k3y"] {
            assert_eq!(key.unlock("/metrics", Some(right)), Some("/metrics"), "{right}");
        }
        for wrong in ["k3y", "Basic k3y", "Bearer", "Bearer ", "Bearer k3", "Bearer k3y k3y"] {
            assert_eq!(key.unlock("/metrics", Some(wrong)), None, "{wrong}");
        }
    }
}
