//! The system user that a server runs as: servers refuse to run as root.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::SetupError;

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SystemUser {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The users in /etc/passwd; those of a directory service are not looked up.
fn users() -> Vec<SystemUser> {
    parse(&fs::read_to_string("/etc/passwd").unwrap_or_default())
}

fn parse(passwd: &str) -> Vec<SystemUser> {
    passwd
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?.to_string();
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            Some(SystemUser { name, uid, gid })
        })
        .collect()
}

/// The name of this process's user.
pub(crate) fn own_name() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw();
    let own = users().into_iter().find(|user| user.uid == uid);
    own.map(|user| user.name)
}

/// Who runs a server whose files go into `parent`, when nobody was asked for: `preferred` if there is one of that
/// name, else the directory's owner, else `nobody`.
fn chosen(preferred: &str, parent: &Path) -> Option<SystemUser> {
    let users = users();
    let by_name = |name: &str| users.iter().find(|user| user.name == name).cloned();
    let owner = || {
        let uid = parent
            .ancestors()
            .find_map(|path| fs::metadata(path).ok())?
            .uid();
        let mut users = users.iter();
        users.find(|user| uid != 0 && user.uid == uid).cloned()
    };
    by_name(preferred)
        .or_else(owner)
        .or_else(|| by_name("nobody"))
}

/// Who runs `server`, whose packages make the user `preferred`: nobody else, unless assay is root. `asked` is what the
/// plan says.
///
/// # Errors
/// [`SetupError::Config`] when assay is root and there is no other user, or the one asked for is not to be had.
pub(crate) fn server_user(
    server: &str,
    asked: Option<&str>,
    preferred: &str,
    parent: &Path,
) -> Result<Option<SystemUser>, SetupError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let no_user = |what: String| SetupError::Config {
        what,
        help: format!(
            "{server} refuses to run as root: name another user of this system as `server-user`"
        ),
    };
    match asked {
        None => chosen(preferred, parent).map(Some).ok_or_else(|| {
            no_user(format!(
                "assay is root, and `/etc/passwd` has neither `{preferred}` nor `nobody`"
            ))
        }),
        Some(name) => match users().into_iter().find(|user| user.name == name) {
            Some(user) if user.uid == 0 => Err(no_user(format!("server user `{name}` is root"))),
            Some(user) => Ok(Some(user)),
            None => Err(no_user(format!(
                "server user `{name}` is not in `/etc/passwd`"
            ))),
        },
    }
}

impl SystemUser {
    /// Whether it can get to the programs in `bin_dir`, of `build`, and to `data_dir`, which is given to it.
    ///
    /// # Errors
    /// Naming the directory that it can't enter.
    pub(crate) fn check_access(
        &self,
        bin_dir: &Path,
        build: &str,
        data_dir: &Path,
    ) -> Result<(), SetupError> {
        let name = &self.name;
        let what = |barred: &Path| {
            format!(
                "user `{name}`, who runs the server, can't enter `{}`",
                barred.display()
            )
        };
        if let Some(barred) = self.barred_at(bin_dir) {
            return Err(SetupError::Build {
                build: build.to_string(),
                what: what(&barred),
                help: format!(
                    "`chmod a+x {}`, or move the build elsewhere",
                    barred.display()
                ),
            });
        }
        // The data directory itself is given to the user.
        if let Some(barred) = data_dir.parent().and_then(|parent| self.barred_at(parent)) {
            return Err(SetupError::Directory {
                path: data_dir.to_path_buf(),
                what: what(&barred),
                help: format!(
                    "`chmod a+x {}`, or choose another data directory",
                    barred.display()
                ),
            });
        }
        Ok(())
    }

    /// Gives `path` to it.
    pub(crate) fn own(&self, path: &Path) -> Result<(), SetupError> {
        fs::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))?;
        Ok(())
    }

    /// The first directory on the way to `path`, it included, that the user can't enter. Only owner, group and mode
    /// are looked at.
    fn barred_at(&self, path: &Path) -> Option<PathBuf> {
        let outwards: Vec<&Path> = path.ancestors().collect();
        let mut inwards = outwards.into_iter().rev();
        let barred = inwards.find(|path| !path.as_os_str().is_empty() && !self.may_enter(path))?;
        Some(barred.to_path_buf())
    }

    fn may_enter(&self, directory: &Path) -> bool {
        // What can't be looked at is left for the program itself to complain about.
        let Ok(it) = fs::metadata(directory) else {
            return true;
        };
        let bit = match (it.uid() == self.uid, it.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        self.uid == 0 || it.mode() & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn passwd_is_read_and_its_oddities_skipped() {
        let users = parse("root:x:0:0:root:/root:/bin/sh\n+nis\n\npg:x:26:27::/:/x\n");
        assert_eq!(users.len(), 2);
        assert_eq!(
            users[1],
            SystemUser {
                name: "pg".into(),
                uid: 26,
                gid: 27
            }
        );
    }

    #[test]
    fn a_closed_directory_on_the_way_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let stranger = SystemUser {
            name: "stranger".into(),
            uid: 4_000_000,
            gid: 4_000_000,
        };
        fs::set_permissions(outer.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(stranger.barred_at(&inner).as_deref(), Some(outer.path()));
        fs::set_permissions(outer.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(stranger.barred_at(&inner), None);
    }
}
