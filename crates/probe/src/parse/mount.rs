//! The parser for `/proc/self/mountinfo`.

use std::path::{Path, PathBuf};

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The directory within the file system that is mounted.
    pub(crate) root: PathBuf,
    /// The mount point.
    pub(crate) point: PathBuf,
    /// The options of the mount.
    pub(crate) options: String,
    /// The type of the file system, such as `ext4`, `xfs` or `tmpfs`.
    pub(crate) fs_type: String,
    /// The device, such as `/dev/sda1`, or another text that the file system interprets.
    pub(crate) source: String,
    /// The options of the file system.
    pub(crate) fs_options: String,
}

/// Parses `/proc/self/mountinfo`. Leaves out lines that are not understood.
pub(crate) fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let mut fs_fields = file_system.split(' ');
    Some(Mount {
        root: unescape(fields.next()?).into(),
        point: unescape(fields.next()?).into(),
        options: fields.next()?.to_string(),
        fs_type: fs_fields.next()?.to_string(),
        source: unescape(fs_fields.next()?),
        fs_options: fs_fields.next().unwrap_or("").to_string(),
    })
}

/// Replaces escaped spaces, tabs, line ends and backslashes, such as `\040`: a backslash and three
/// octal digits.
fn unescape(text: &str) -> String {
    let mut segments = text.split('\\');
    let mut plain: Vec<u8> = segments.next().unwrap_or("").into();
    for segment in segments {
        let octal = segment.get(..3);
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                plain.extend(&segment.as_bytes()[3..]);
            }
            None => {
                plain.push(b'\\');
                plain.extend(segment.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Returns the mount that contains `path`, which is absolute and without symbolic links. Of two
/// mounts at the same point, the later one hides the earlier one.
pub(crate) fn mount_of<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}
