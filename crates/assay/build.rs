//! Asks git which sources assay is built from: records name the assay that made them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> std::io::Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources(&workspace);

    let profile = std::env::var("PROFILE").unwrap_or_default();
    let mut directives =
        vec![format!("rustc-env=ASSAY_PROFILE={profile}"), "rerun-if-changed=build.rs".into()];

    // An edited source differs from its commit even if git's index does not show it.
    for source in &sources {
        directives.push(format!("rerun-if-changed={}", source.display()));
    }

    if let Some(hash) = own_commit(&workspace) {
        directives.push(format!("rustc-env=ASSAY_GIT_HASH={hash}"));

        // 0 means equal, 1 different; anything else is an error.
        let compared =
            git(&workspace).args(["diff", "--quiet", "HEAD", "--"]).args(&sources).status();
        if let Some(code @ (0 | 1)) = compared.ok().and_then(|status| status.code()) {
            directives.push(format!("rustc-env=ASSAY_GIT_DIRTY={}", code == 1));
        }

        // A commit moves the branch and leaves `HEAD` as it is.
        let branch = output(&workspace, &["symbolic-ref", "--quiet", "HEAD"]);
        let names = ["HEAD".to_owned(), "logs/HEAD".to_owned()];
        for name in names.into_iter().chain(branch) {
            let path = output(&workspace, &["rev-parse", "--git-path", &name]);
            let path = path.map(|path| workspace.join(path));
            if let Some(path) = path.filter(|path| path.exists()) {
                directives.push(format!("rerun-if-changed={}", path.display()));
            }
        }
    }

    let mut output = std::io::stdout();
    for directive in directives {
        writeln!(output, "cargo:{directive}")?;
    }
    Ok(())
}

/// Returns the files that the program is built from, without tests and documents.
fn sources(workspace: &Path) -> Vec<PathBuf> {
    let mut sources = vec![workspace.join("Cargo.toml"), workspace.join("Cargo.lock")];
    let crates = workspace.join("crates").read_dir().into_iter().flatten();
    for directory in crates.flatten() {
        sources.extend(["Cargo.toml", "src"].map(|name| directory.path().join(name)));
    }
    sources.retain(|source| source.exists());
    sources
}

/// Returns the commit that is checked out, unless the checkout is of a repository that merely
/// contains this workspace.
fn own_commit(workspace: &Path) -> Option<String> {
    let top = output(workspace, &["rev-parse", "--show-toplevel"])?;
    let is_own = Path::new(&top).canonicalize().ok()? == workspace.canonicalize().ok()?;
    if is_own { output(workspace, &["rev-parse", "--short=12", "HEAD"]) } else { None }
}

fn output(workspace: &Path, args: &[&str]) -> Option<String> {
    let output = git(workspace).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// Returns git for this directory, not for the repository of a hook that started the build.
fn git(workspace: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(workspace);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    git
}
