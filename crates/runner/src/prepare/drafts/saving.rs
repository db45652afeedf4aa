//! Saves drafted plans.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::ground::failure::UsageError;

/// Writes a plan into a directory without overwriting other plans, and returns its path.
///
/// # Errors
/// The plan cannot be written.
pub fn save(
    directory: &Path,
    stem: &str,
    text_at: impl Fn(&str) -> String,
) -> anyhow::Result<PathBuf> {
    fs_err::create_dir_all(directory).map_err(cannot_write)?;

    let mut number = 1;
    loop {
        let path = match number {
            1 => directory.join(format!("{stem}.toml")),
            _ => directory.join(format!("{stem}-{number}.toml")),
        };
        let text = text_at(&path.display().to_string());

        // The directory may be shared, so nothing that is already there is written to.
        match fs_err::File::create_new(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).map_err(cannot_write)?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A plan that says the same is used again, so that repeated commands leave one.
                if has_text(&path, &text).unwrap_or(false) {
                    return Ok(path);
                }
                number += 1;
            }
            Err(error) => return Err(cannot_write(error).into()),
        }
    }
}

fn cannot_write(error: std::io::Error) -> UsageError {
    let help = "choose another directory with `--results DIR`";
    UsageError::new(format!("cannot write the plan: {error}"), Some(help.into()))
}

/// Returns whether the file at `path` has exactly this text. Reads no more than that.
fn has_text(path: &Path, text: &str) -> std::io::Result<bool> {
    let mut start = Vec::new();
    record::open_regular(path)?.take(text.len() as u64 + 1).read_to_end(&mut start)?;
    Ok(start == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_not_saved_through_a_link() {
        let results = tempfile::tempdir().unwrap();
        let target = results.path().join("target");
        std::os::unix::fs::symlink(&target, results.path().join("a.toml")).unwrap();
        let text = |_: &str| "seed = 1".to_owned();
        let path = save(results.path(), "a", text).unwrap();
        assert_eq!(path, results.path().join("a-2.toml"));
        assert!(!target.exists());
        // The same plan is not saved again.
        assert_eq!(save(results.path(), "a", text).unwrap(), path);
    }

    #[test]
    fn a_plan_that_was_edited_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let results = directory.path().join("results");
        let saved = |text: &str| save(&results, "versus-a", |_| text.to_owned()).unwrap();
        assert_eq!(saved("one"), results.join("versus-a.toml"));
        assert_eq!(saved("one"), results.join("versus-a.toml"));
        assert_eq!(saved("two"), results.join("versus-a-2.toml"));
        assert_eq!(fs_err::read_to_string(saved("one")).unwrap(), "one");
    }
}
