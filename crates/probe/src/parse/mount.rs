//! `/proc/self/mountinfo`

use std::path::{Path, PathBuf};

use crate::Malformed;

/// One mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Major number of what `st_dev` says there; 0 for file systems without a block device of their own.
    pub major: u32,
    /// Minor number of the same.
    pub minor: u32,
    /// The directory of the file system that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of the mount.
    pub options: String,
    /// `ext4`, `xfs`, `tmpfs`
    pub fs_type: String,
    /// `/dev/sda1`, or a word that means something to the file system.
    pub source: String,
    /// Options of the file system.
    pub fs_options: String,
}

/// Parses `/proc/self/mountinfo`.
///
/// # Errors
/// When a line lacks its separator or a field, or a device number is not one.
pub fn parse_mountinfo(text: &str) -> Result<Vec<Mount>, Malformed> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            parse_line(line).ok_or_else(|| Malformed::new("/proc/self/mountinfo", line, "a mount"))
        })
        .collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(2);
    let (major, minor) = fields.next()?.split_once(':')?;
    let mut mount = Mount {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        root: unescape(fields.next()?).into(),
        point: unescape(fields.next()?).into(),
        options: fields.next()?.to_string(),
        ..Mount::default()
    };
    let mut fields = file_system.split(' ');
    mount.fs_type = fields.next()?.to_string();
    mount.source = unescape(fields.next()?);
    mount.fs_options = fields.next().unwrap_or("").to_string();
    Some(mount)
}

/// Spaces, tabs, line ends and backslashes are written as `\040`: a backslash and three octal digits.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_string();
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes
            .get(at + 1..at + 4)
            .filter(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
        match octal {
            Some(digits) if bytes[at] == b'\\' => {
                let value = digits
                    .iter()
                    .fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                plain.push(value as u8);
                at += 4;
            }
            _ => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The mount that `path` lies on; `path` is absolute and free of symbolic links. Of two at the same place the later
/// one hides the earlier.
pub fn mount_of<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}
