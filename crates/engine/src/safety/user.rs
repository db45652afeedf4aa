//! The system user that runs a server, because servers refuse to run as root.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::SetupError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SystemUser {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Returns the users in /etc/passwd, without those of a directory service.
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

/// Returns the name of this process's user.
pub(crate) fn own_name() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw();
    let own = users().into_iter().find(|user| user.uid == uid);
    own.map(|user| user.name)
}

/// Returns the default user for a server with files in `parent`: `preferred` if it exists, else the
/// directory's owner, else `nobody`.
fn default_user(preferred: &str, parent: &Path) -> Option<SystemUser> {
    let users = users();
    let by_name = |name: &str| users.iter().find(|user| user.name == name).cloned();
    let owner = || {
        let uid = parent.ancestors().find_map(|path| fs::metadata(path).ok())?.uid();
        users.iter().find(|user| uid != 0 && user.uid == uid).cloned()
    };
    by_name(preferred).or_else(owner).or_else(|| by_name("nobody"))
}

/// Returns the user that runs `server`; `None`, which means assay's own user, unless assay is root.
/// `requested` is the plan's user, and `preferred` the one that the server's packages create.
///
/// # Errors
/// [`SetupError::Config`] when assay is root, and the requested user or any default does not exist.
pub(crate) fn server_user(
    server: &str,
    requested: Option<&str>,
    preferred: &str,
    parent: &Path,
) -> Result<Option<SystemUser>, SetupError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }

    // A server that refuses to run as root needs another user, and that user must exist.
    let no_user = |what: String| {
        let help = format!(
            "{server} refuses to run as root: set `server-user` to another user of this system"
        );
        SetupError::config(what, help)
    };

    match requested {
        None => default_user(preferred, parent).map(Some).ok_or_else(|| {
            no_user(format!(
                "assay is root, and `/etc/passwd` has neither `{preferred}` nor `nobody`"
            ))
        }),
        Some(name) => match users().into_iter().find(|user| user.name == name) {
            Some(user) if user.uid == 0 => Err(no_user(format!("server user `{name}` is root"))),
            Some(user) => Ok(Some(user)),
            None => Err(no_user(format!("server user `{name}` is not in `/etc/passwd`"))),
        },
    }
}

/// Returns the user that runs `program` of a build only to ask it something; `None`, which means
/// assay's own user, unless assay is root. This is the first of these that can enter the program's
/// folder: `preferred`, `nobody` and the owner of the program.
///
/// # Errors
/// [`SetupError::Build`] when none of them can.
pub(crate) fn asking_user(
    preferred: &str,
    program: &Path,
) -> Result<Option<SystemUser>, SetupError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }

    let users = users();
    let owner = fs::metadata(program).map_or(0, |metadata| metadata.uid());
    let by_name = |name: &str| users.iter().find(|user| user.name == name && user.uid != 0);
    let by_owner = users.iter().find(|user| user.uid == owner && user.uid != 0);
    let candidates = [by_name(preferred), by_name("nobody"), by_owner];

    let folder = program.parent().unwrap_or(Path::new("/"));
    let mut refusal = None;
    for user in candidates.into_iter().flatten() {
        let Some(closed) = user.closed_directory(folder) else {
            return Ok(Some(user.clone()));
        };
        refusal.get_or_insert_with(|| user.can_not_enter(&closed, &program.display().to_string()));
    }

    Err(refusal.unwrap_or_else(|| SetupError::Build {
        build: program.display().to_string(),
        what: "assay is root, and `/etc/passwd` has no other user that can run the program".into(),
        help: format!("add a user `{preferred}` to this system, or run assay as another user"),
    }))
}

impl SystemUser {
    /// Returns the error that the user cannot enter a directory of a build.
    fn can_not_enter(&self, closed: &Path, build: &str) -> SetupError {
        SetupError::Build {
            build: build.to_string(),
            what: self.closed_text(closed),
            help: format!("run `chmod a+x {}`, or move the build elsewhere", closed.display()),
        }
    }

    fn closed_text(&self, closed: &Path) -> String {
        let (name, closed) = (&self.name, closed.display());
        format!("user `{name}`, who runs the server, cannot enter `{closed}`")
    }

    /// Checks that the user can access the programs of `build` in `bin_dir`, and `data_dir`, which
    /// it will own.
    ///
    /// # Errors
    /// An error with the directory that the user cannot enter.
    pub(crate) fn check_access(
        &self,
        bin_dir: &Path,
        build: &str,
        data_dir: &Path,
    ) -> Result<(), SetupError> {
        if let Some(closed) = self.closed_directory(bin_dir) {
            return Err(self.can_not_enter(&closed, build));
        }

        // The user will own the data directory itself.
        if let Some(closed) = data_dir.parent().and_then(|parent| self.closed_directory(parent)) {
            return Err(SetupError::Directory {
                path: data_dir.to_path_buf(),
                what: self.closed_text(&closed),
                help: format!(
                    "run `chmod a+x {}`, or choose another data directory",
                    closed.display()
                ),
            });
        }
        Ok(())
    }

    /// Makes the user the owner of `path`, or of the link that is in its place.
    pub(crate) fn own(&self, path: &Path) -> Result<(), SetupError> {
        fs::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))?;
        Ok(())
    }

    /// Returns the first directory on the way to `path`, or `path` itself, that the user cannot
    /// enter. Checks only owner, group and mode.
    fn closed_directory(&self, path: &Path) -> Option<PathBuf> {
        let outwards: Vec<&Path> = path.ancestors().collect();
        let mut inwards = outwards.into_iter().rev();
        let closed = inwards.find(|path| !path.as_os_str().is_empty() && !self.may_enter(path))?;
        Some(closed.to_path_buf())
    }

    fn may_enter(&self, directory: &Path) -> bool {
        // If this fails, the program itself will report the problem.
        let Ok(metadata) = fs::metadata(directory) else {
            return true;
        };

        let bit = match (metadata.uid() == self.uid, metadata.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };

        self.uid == 0 || metadata.mode() & bit != 0
    }
}

/// Creates a temporary directory that other users can enter, in which root can run programs as
/// another user.
#[cfg(test)]
pub(crate) fn public_directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    directory
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn invalid_lines_of_passwd_are_skipped() {
        let users = parse("root:x:0:0:root:/root:/bin/sh\n+nis\n\npg:x:26:27::/:/x\n");
        assert_eq!(users.len(), 2);
        assert_eq!(users[1], SystemUser { name: "pg".into(), uid: 26, gid: 27 });
    }

    #[test]
    fn a_directory_that_the_user_can_not_enter_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let stranger = SystemUser { name: "stranger".into(), uid: 4_000_000, gid: 4_000_000 };
        fs::set_permissions(outer.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(stranger.closed_directory(&inner).as_deref(), Some(outer.path()));
        fs::set_permissions(outer.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(stranger.closed_directory(&inner), None);
    }
}
