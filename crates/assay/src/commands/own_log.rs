//! Logs of commands that measure many runs, one after the other, and go on after an interruption:
//! `bisect.json` and `tune.json`.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context as _;
use runner::failure::UsageError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest file that is read.
const BYTES_MAX: u64 = 16 << 20;

const OTHERS_WRITE: u32 = 0o002;

/// Reads the log of a search that this user began: its plan and builds are run.
pub fn read<T: DeserializeOwned>(directory: &Path, file_name: &str) -> anyhow::Result<T> {
    let path = directory.join(file_name);
    let file = record::open_regular(&path).map_err(|error| {
        let message = format!("cannot resume `{}`: {error}", path.display());
        UsageError::new(message, Some("give the directory of a search".into()))
    })?;

    let metadata = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    let refusal = if metadata.uid() != own {
        Some(format!("`{}` belongs to another user", path.display()))
    } else if metadata.mode() & OTHERS_WRITE != 0 {
        Some(format!("other users can write to `{}`", path.display()))
    } else {
        None
    };

    if let Some(message) = refusal {
        let help = "a search runs what its log names: begin your own";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    let mut text = String::new();
    // A log of the user can be damaged, and then of any size.
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    serde_json::from_str(&text).with_context(|| format!("`{}` is damaged", path.display()))
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
    fn a_log_that_others_could_have_written_is_not_resumed() {
        let directory = tempfile::tempdir().unwrap();
        let read_with_mode = |mode: u32| {
            write(directory.path(), "tune.json", &[7]).unwrap();
            let path = directory.path().join("tune.json");
            fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            read::<Vec<u32>>(directory.path(), "tune.json")
        };

        assert_eq!(read_with_mode(0o644).unwrap(), [7]);
        let refused = read_with_mode(0o646).unwrap_err().to_string();
        assert!(refused.contains("other users can write to"), "{refused}");
    }
}
