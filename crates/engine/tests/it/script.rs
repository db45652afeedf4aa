//! Programs that tests write and run.

use std::path::Path;
use std::process::Command;

/// Writes a script of the shell, which can be run at once.
///
/// Another process writes it. A file that this one has open for writing is open also in every child
/// that another thread starts at that moment, until that child has become its own program: a script
/// that is run before is "Text file busy".
pub(crate) fn write_script(path: &Path, text: &str) {
    let status = Command::new("/bin/sh")
        .args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#])
        .arg(path)
        .arg(text)
        .status()
        .unwrap();
    assert!(status.success(), "cannot write {}", path.display());
}
