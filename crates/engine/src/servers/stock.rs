//! New databases of servers that are kept and copied. To create one takes a second of CPU time, and
//! to copy it a tenth.
//!
//! Only the suite asks for that, with a variable. Otherwise no database is a copy of what another
//! process left.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fs_err as fs;
use words::Limits;

use crate::error::SetupError;
use crate::local::server::ServerPlace;
use crate::local::start_options::StartOptions;
use crate::safety::copying::{CopyOptions, Owner, copy_database};

/// Names the folder of kept databases.
const FOLDER: &str = "ASSAY_TEST_NEW_DATABASES";

/// All that decides on the files of a new database.
#[derive(Hash)]
pub(super) struct Recipe<'a> {
    /// The program that creates them.
    pub program: &'a Path,
    /// The arguments of the program, without places.
    pub args: &'a [OsString],
    /// The configuration, without places.
    pub config: String,
}

/// Creates the data of a new server in `place`, or copies what was created by the same recipe.
///
/// # Errors
/// Those of `create`, and of a copy.
pub(super) fn create_or_copy(
    options: &StartOptions<'_>,
    place: &ServerPlace,
    recipe: &Recipe<'_>,
    create: impl FnOnce() -> Result<(), SetupError>,
) -> Result<(), SetupError> {
    // What a limit or a variable does to the program is what a test of it looks at.
    let is_usual = options.env.is_empty() && *options.limits == Limits::default();
    let folder = std::env::var_os(FOLDER).map(PathBuf::from).filter(|_| is_usual);
    let Some(folder) = folder.filter(|folder| are_on_one_disk(folder, place.data_dir.path()))
    else {
        return create();
    };

    let uid = place.user.as_ref().map(|user| user.uid);
    let kept = folder.join(name(recipe, uid)?);
    if kept.exists() {
        if !place.data().exists() {
            place.create_directory(&place.data())?;
        }
        return copy(place, &kept, &place.data());
    }

    create()?;
    keep(place, &folder, &kept)
}

/// Returns whether two folders are on one file system. A copy to another one takes longer than to
/// create the files.
fn are_on_one_disk(one: &Path, other: &Path) -> bool {
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    device(one).is_some() && device(one) == device(other)
}

/// Returns the name of the database that a user creates by a recipe. A program that was replaced
/// makes another one.
fn name(recipe: &Recipe<'_>, uid: Option<u32>) -> Result<String, SetupError> {
    let program = fs::metadata(recipe.program)?;
    let mut hasher = DefaultHasher::new();
    (recipe, uid).hash(&mut hasher);
    (program.len(), program.mtime_nsec(), program.mtime()).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Keeps a copy of the data in `place`, unless another process has done so meanwhile.
fn keep(place: &ServerPlace, folder: &Path, kept: &Path) -> Result<(), SetupError> {
    let unfinished = tempfile::tempdir_in(folder)?;
    let data = unfinished.path().join("data");
    fs::create_dir(&data)?;
    copy(place, &place.data(), &data)?;
    // A directory that is there is not empty, and so stays.
    let _ = fs::rename(&data, kept);
    Ok(())
}

/// Copies files of the server's user.
fn copy(place: &ServerPlace, from: &Path, to: &Path) -> Result<(), SetupError> {
    let owner = place.user.as_ref().map(|user| Owner { uid: user.uid, gid: user.gid });
    let own_uid = rustix::process::geteuid().as_raw();
    let copy_options = CopyOptions {
        owner_before: owner.map_or(own_uid, |owner| owner.uid),
        owner_after: owner,
        // A copy in memory ends soon, and the start is stopped after it.
        stop: &AtomicBool::new(false),
    };
    copy_database(from, to, &copy_options)?;
    // PostgreSQL refuses a directory that others can enter.
    fs::set_permissions(to, std::fs::Permissions::from_mode(0o700))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_of_other_arguments_options_or_programs_are_others() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("initdb");
        fs::write(&program, "old").unwrap();
        let name_of = |argument: &str, config: &str| {
            let args = [OsString::from(argument)];
            let config = config.to_owned();
            name(&Recipe { program: &program, args: &args, config }, None).unwrap()
        };
        let names = [name_of("a", ""), name_of("b", ""), name_of("a", "b")];
        assert_eq!(names[0], name_of("a", ""));
        assert!(names[0] != names[1] && names[0] != names[2] && names[1] != names[2]);

        fs::write(&program, "newer").unwrap();
        assert_ne!(names[0], name_of("a", ""));
    }
}
