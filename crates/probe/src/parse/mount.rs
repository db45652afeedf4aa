//! `/proc/self/mountinfo`

use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The directory of the file system that is mounted.
    pub(crate) root: PathBuf,
    /// Where it is mounted.
    pub(crate) point: PathBuf,
    /// Options of the mount.
    pub(crate) options: String,
    /// `ext4`, `xfs`, `tmpfs`
    pub(crate) fs_type: String,
    /// `/dev/sda1`, or a word that means something to the file system.
    pub(crate) source: String,
    /// Options of the file system.
    pub(crate) fs_options: String,
}

/// Parses `/proc/self/mountinfo`. Leaves out lines that are not understood.
pub(crate) fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let mut of_file_system = file_system.split(' ');
    Some(Mount {
        root: unescape(fields.next()?).into(),
        point: unescape(fields.next()?).into(),
        options: fields.next()?.to_string(),
        fs_type: of_file_system.next()?.to_string(),
        source: unescape(of_file_system.next()?),
        fs_options: of_file_system.next().unwrap_or("").to_string(),
    })
}

/// Replaces what stands for spaces, tabs, line ends and backslashes: `\040`, a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain: Vec<u8> = parts.next().unwrap_or("").into();
    for part in parts {
        let octal = part.get(..3);
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                plain.extend(&part.as_bytes()[3..]);
            }
            None => {
                plain.push(b'\\');
                plain.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The mount that `path` lies on; `path` is absolute and free of symbolic links. Of two at the same place the later
/// one hides the earlier.
pub(crate) fn mount_of<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}
