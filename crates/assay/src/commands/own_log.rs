//! Logs of commands that measure many runs, one after the other, and go on after an interruption:
//! `bisect.json` and `tune.json`.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use plan::Plan;
use runner::failure::UsageError;
use runner::prepare::trust;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest file that is read.
const BYTES_MAX: u64 = 16 << 20;

/// Reads the log of a search, whose plan and builds are run. Refuses a directory that others could
/// have changed, unless the operator trusts it.
pub fn read<T: DeserializeOwned>(
    directory: &Path,
    file_name: &str,
    is_trusted: bool,
) -> anyhow::Result<T> {
    let path = directory.join(file_name);
    let file = record::open_regular(&path).map_err(|error| {
        let message = format!("cannot resume `{}`: {error}", path.display());
        UsageError::new(message, Some("give the directory of a search".into()))
    })?;

    if !is_trusted {
        trust::refuse_foreign_record(&fs_err::canonicalize(directory)?)?;
    }

    let mut text = String::new();
    // A log of the user can be damaged, and then of any size.
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    serde_json::from_str(&text).with_context(|| format!("`{}` is damaged", path.display()))
}

/// Returns the option, with a blank before it, without which a search by this plan is not resumed.
pub fn trust_option(plan: &Plan) -> &'static str {
    if trust::command_key(plan).is_some() { " --trust" } else { "" }
}

/// Replaces the log in its directory.
pub fn write(directory: &Path, file_name: &str, log: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(log)?;
    text.push(b'\n');
    record::replace_file(directory, file_name, &text)?;
    Ok(())
}

/// Returns whether a log may name this folder of a run.
pub fn is_folder_name(name: &str) -> bool {
    !name.contains('/') && name != "." && name != ".."
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_log_that_others_could_have_written_is_resumed_only_if_it_is_trusted() {
        let around = tempfile::tempdir().unwrap();
        let directory = around.path().join("search");
        let log = directory.join("tune.json");
        fs_err::create_dir(&directory).unwrap();
        write(&directory, "tune.json", &[7]).unwrap();
        assert_eq!(read::<Vec<u32>>(&directory, "tune.json", false).unwrap(), [7]);

        // The file, its folder, and the folder around that.
        for (path, mode, usual) in [
            (&log, 0o646, 0o644),
            (&directory, 0o757, 0o755),
            (&around.path().into(), 0o757, 0o755),
        ] {
            let set_mode =
                |mode| fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();

            set_mode(mode);
            let refused = read::<Vec<u32>>(&directory, "tune.json", false).unwrap_err().to_string();
            assert!(refused.contains("other users can write to"), "{refused}");
            assert_eq!(read::<Vec<u32>>(&directory, "tune.json", true).unwrap(), [7]);
            set_mode(usual);
        }
    }

    #[test]
    fn a_log_of_a_foreign_group_is_refused() {
        // Only root can give a file to another group.
        if !rustix::process::geteuid().is_root() {
            return;
        }

        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "tune.json", &[7]).unwrap();
        let log = directory.path().join("tune.json");
        fs_err::os::unix::fs::chown(&log, None, Some(7002)).unwrap();
        fs_err::set_permissions(&log, Permissions::from_mode(0o664)).unwrap();

        let refused = read::<Vec<u32>>(directory.path(), "tune.json", false).unwrap_err();
        assert!(refused.to_string().contains("other users can write to"), "{refused}");
    }
}
