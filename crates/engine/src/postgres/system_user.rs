//! The system user that a server runs as: PostgreSQL refuses to run as root.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SystemUser {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
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

/// The user of that name.
pub(super) fn named(name: &str) -> Option<SystemUser> {
    users().into_iter().find(|user| user.name == name)
}

/// The name of this process's user.
pub(super) fn own_name() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw();
    users()
        .into_iter()
        .find(|user| user.uid == uid)
        .map(|user| user.name)
}

/// Who runs a server whose files go into `parent`, when nobody was asked for: `postgres` if there is one, else the
/// directory's owner, else `nobody`.
pub(super) fn chosen(parent: &Path) -> Option<SystemUser> {
    let users = users();
    let by_name = |name: &str| users.iter().find(|user| user.name == name).cloned();
    let owner = || {
        let uid = parent
            .ancestors()
            .find_map(|path| fs::metadata(path).ok())?
            .uid();
        users
            .iter()
            .find(|user| uid != 0 && user.uid == uid)
            .cloned()
    };
    by_name("postgres")
        .or_else(owner)
        .or_else(|| by_name("nobody"))
}

impl SystemUser {
    /// The first directory on the way to `path`, it included, that the user can't enter. Only owner, group and mode
    /// are looked at.
    pub(super) fn barred_at(&self, path: &Path) -> Option<PathBuf> {
        let mut on_the_way: Vec<&Path> = path
            .ancestors()
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        on_the_way.reverse();
        on_the_way
            .into_iter()
            .find(|directory| !self.may_enter(directory))
            .map(Path::to_path_buf)
    }

    fn may_enter(&self, directory: &Path) -> bool {
        // What can't be looked at is left for the program itself to complain about.
        let Ok(metadata) = fs::metadata(directory) else {
            return true;
        };
        let bit = match metadata {
            _ if self.uid == 0 => return true,
            ref it if it.uid() == self.uid => 0o100,
            ref it if it.gid() == self.gid => 0o010,
            _ => 0o001,
        };
        metadata.mode() & bit != 0
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
