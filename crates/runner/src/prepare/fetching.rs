//! Downloads the builds that are missing.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use builds::{Build, Spec, Store};

/// Downloads builds, and calls `take` with each build or error. `say` gets lines of progress, and a
/// warning if other users cannot enter the store.
///
/// # Errors
/// The store cannot be used, or `take` fails.
pub fn fetch_each(
    specs: &[Spec],
    name: Option<&str>,
    say: &dyn Fn(&str),
    mut take: impl FnMut(anyhow::Result<Build>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let store = Store::of_user()?;
    let lock = store.lock(say)?;
    if let Some(warning) = warning_of_private_store(store.root()) {
        say(&warning);
    }

    for log in ["apt.log", "mvn.log"] {
        // The logs of an earlier fetch would mislead; a log that cannot be removed is harmless.
        let _ = fs_err::remove_file(store.downloads().join(log));
    }

    for spec in specs {
        let say_of_spec = |line: &str| say(&format!("{spec}: {line}"));
        take(builds::fetch(&store, &lock, spec, name, &say_of_spec))?;
    }
    Ok(())
}

/// Returns a warning if other users cannot enter the store. Servers that refuse to run as root run as
/// another user, who needs access.
fn warning_of_private_store(root: &Path) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }

    let is_private = |path: &&Path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| metadata.mode() & 0o001 == 0)
    };
    let private = root.ancestors().filter(is_private).last()?.display();
    Some(format!(
        "warning: other users cannot enter `{private}`, but root runs servers as another user\n\
         help: run `chmod a+x {private}`, or set ASSAY_BUILDS to a directory that everybody can enter"
    ))
}
