//! Whom `--resume` trusts, of a run, a search or a tuning: it runs the programs that a record names,
//! and writes into its folders. So nobody but the user of this process, and root, may have been able
//! to change either.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err::symlink_metadata;
use plan::{BuildSource, Plan};

use super::installed::Installed;
use crate::ground::failure::UsageError;

const HELP: &str =
    "resuming runs the programs that a record names: if you trust its author, add `--trust`";

const COMMANDS_HELP: &str = "read the plan in the record, and add `--trust` if all of it is yours";

const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Refuses a record whose folders or JSON files another user owns or can write to: that of a run, or
/// of a command that measures several runs. `root` is its folder, without symbolic links.
///
/// # Errors
/// The first such folder or file.
pub fn refuse_foreign_record(root: &Path) -> anyhow::Result<()> {
    let is_json = |path: &Path| path.extension().is_some_and(|ending| ending == "json");

    let mut checked = refuse_foreign_parents(root);
    if checked.is_ok() {
        // Only what is read decides what is run.
        checked = refuse_foreign_tree(root, is_json);
    }

    match checked {
        Ok(()) => Ok(()),
        Err(what) => {
            let message = format!("won't resume `{}`: {what}", root.display());
            Err(UsageError::new(message, Some(HELP.into())).into())
        }
    }
}

/// Refuses a recorded plan that names commands, or builds that another user could have changed.
///
/// # Errors
/// The first key or build that is refused.
pub fn refuse_recorded_plan(plan: &Plan) -> anyhow::Result<()> {
    if let Some(key) = command_key(plan) {
        let message =
            format!("won't resume: the recorded plan has `{key}`, which could do anything");
        return Err(UsageError::new(message, Some(COMMANDS_HELP.into())).into());
    }

    refuse_foreign_builds(plan)
}

/// Refuses installed builds of a recorded plan that another user owns or can write to. Builds that
/// are named by their version come from the system or from the store, not from the record.
fn refuse_foreign_builds(plan: &Plan) -> anyhow::Result<()> {
    for build in &plan.builds {
        if !matches!(build.source, BuildSource::Installed(_)) {
            continue;
        }

        // A build that cannot be found is told with its place in the plan later.
        let Ok(installed) = Installed::of(build) else { continue };

        // A directory's library may be a link out of it.
        let mut used = vec![PathBuf::from(&installed.place)];
        used.extend(installed.library(build.engine));

        for path in used {
            if let Err(what) = refuse_foreign_file(&path) {
                let message = format!("won't run the build `{}`: {what}", build.name);
                return Err(UsageError::new(message, Some(HELP.into())).into());
            }
        }
    }

    Ok(())
}

/// Checks the file or folder that a path leads to, and the folders around it. What does not exist is
/// not refused.
fn refuse_foreign_file(path: &Path) -> Result<(), String> {
    let Ok(resolved) = fs_err::canonicalize(path) else {
        return Ok(());
    };

    refuse_foreign_parents(&resolved)?;
    refuse_foreign_tree(&resolved, |_| true)
}

/// Returns a key of a recorded plan by which its text names commands, statements or libraries;
/// `None` if it has none. Unlike a build, they come with the record, and one that was unpacked from
/// an archive belongs to this user.
pub fn command_key(plan: &Plan) -> Option<&'static str> {
    let commands = &plan.step_commands;
    let configs = || plan.targets.iter().map(|target| &plan.configs[target.config]);
    let mut sources = plan.targets.iter().map(|target| &plan.builds[target.build].source);
    let has_recipe = sources.any(|source| matches!(source, BuildSource::Commit(_)));
    let keys = [
        ("before-step", commands.before.is_some()),
        ("after-step", commands.after.is_some()),
        ("setup-sql", configs().any(|config| !config.creation.setup_sql.is_empty())),
        ("env", configs().any(|config| !config.env.is_empty())),
        // A recipe is a list of commands.
        ("make", has_recipe),
    ];

    let found = keys.iter().find(|(_, is_named)| *is_named)?;
    Some(found.0)
}

/// Checks the folders around a path: who can write to one of them can exchange what is in it,
/// unless only the owners of files can rename them there, as in `/tmp`.
fn refuse_foreign_parents(path: &Path) -> Result<(), String> {
    for parent in path.ancestors().skip(1) {
        let metadata = symlink_metadata(parent).map_err(|error| error.to_string())?;
        if metadata.mode() & STICKY == 0 {
            refuse_foreign(parent)?;
        }
    }

    Ok(())
}

/// Checks a file, or a folder with all folders in it and the files that count.
fn refuse_foreign_tree(path: &Path, counts: fn(&Path) -> bool) -> Result<(), String> {
    refuse_foreign(path)?;
    if !path.is_dir() {
        return Ok(());
    }

    let unreadable = |error: std::io::Error| error.to_string();
    for entry in fs_err::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        if entry.file_type().map_err(unreadable)?.is_dir() {
            refuse_foreign_tree(&path, counts)?;
        } else if counts(&path) {
            refuse_foreign(&path)?;
        }
    }

    Ok(())
}

/// Fails if another user may have changed a file or folder, and says why. The group of this process
/// counts as its user: many systems give each user a group.
fn refuse_foreign(path: &Path) -> Result<(), String> {
    let metadata = symlink_metadata(path).map_err(|error| error.to_string())?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(format!("`{}` belongs to another user, {owner}", path.display()));
    }

    // The mode of a link says nothing.
    if metadata.is_symlink() {
        return Ok(());
    }

    let mode = metadata.mode();
    let is_group_foreign = metadata.gid() != group && metadata.gid() != 0;
    if mode & OTHERS_WRITE != 0 || (mode & GROUP_WRITE != 0 && is_group_foreign) {
        return Err(format!("other users can write to `{}`", path.display()));
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn refusal(path: &Path, mode: u32) -> String {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        refuse_foreign_tree(path, |_| true).err().unwrap_or_default()
    }

    #[test]
    fn what_others_can_write_to_is_refused_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("bin");
        fs_err::create_dir(&inner).unwrap();
        let file = inner.join("postgres");
        fs_err::write(&file, "").unwrap();
        assert_eq!(refusal(folder.path(), 0o755), "");
        for path in [&inner, &file] {
            assert!(refusal(path, 0o757).contains("other users can write to"));
            assert!(refuse_foreign_tree(folder.path(), |_| true).is_err());
            assert_eq!(refusal(path, 0o755), "");
        }
    }

    #[test]
    fn a_library_that_others_can_exchange_is_refused_behind_a_link_too() {
        let (build, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let library = shared.path().join("librocksdb.so");
        // Any file that begins like a program serves.
        let mut header = Vec::new();
        let program = fs_err::File::open("/proc/self/exe").unwrap();
        program.take(4096).read_to_end(&mut header).unwrap();
        fs_err::write(&library, header).unwrap();
        fs_err::os::unix::fs::symlink(&library, build.path().join("librocksdb.so")).unwrap();
        let text = format!("[workload.kv]\n[build.own]\nrocksdb = '{}'\n", build.path().display());
        let Ok((plan, _)) = plan::parse("plan.toml", &text, &[]) else {
            panic!("the plan has errors");
        };

        for (mode, is_refused) in [(0o755, false), (0o757, true)] {
            fs_err::set_permissions(&library, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(refuse_recorded_plan(&plan).is_err(), is_refused, "{mode:o}");
        }
    }

    #[test]
    fn a_folder_that_others_can_exchange_is_refused_unless_it_is_sticky() {
        let outer = tempfile::tempdir().unwrap();
        let run = outer.path().join("run");
        fs_err::create_dir(&run).unwrap();
        for (mode, is_refused) in [(0o755, false), (0o757, true), (0o1777, false)] {
            fs_err::set_permissions(outer.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(refuse_foreign_parents(&run).is_err(), is_refused, "{mode:o}");
        }
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(refuse_foreign(folder.path()), Ok(()));
        // Only root can give a file away.
        if rustix::process::geteuid().is_root() {
            fs_err::os::unix::fs::chown(folder.path(), Some(7002), None).unwrap();
            let refused = refuse_foreign(folder.path()).unwrap_err();
            assert!(refused.ends_with("belongs to another user, 7002"), "{refused}");
        }
    }
}
