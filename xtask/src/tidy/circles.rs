//! Finds circles: of files across folders, and of the rooms of a crate.
//!
//! Whoever changes one file of a circle must understand all of them. Inside a folder that is fine,
//! since the folder is the thing to understand. Across folders the circle says that a wall stands
//! in the wrong place.
//!
//! A finding names the files, and then the uses that lead from one folder into another: to break the
//! circle, one direction of them must go. [`rooms`] looks at a crate as a whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use super::rooms;
use super::source_tree::{SourceTree, Uses, components, shown};

/// The uses between folders in circles that are known, by crate. Fewer are refused as well, so that
/// the numbers can only shrink, to none.
const KNOWN: &[(&str, usize)] = &[];

/// Returns what is wrong with the circles in all crates below `root`, one line for each.
pub fn find(root: &Path) -> Result<Vec<String>> {
    let mut crates = vec![root.join("xtask")];
    for entry in fs::read_dir(root.join("crates"))? {
        crates.push(entry?.path());
    }
    crates.sort();

    let mut findings = Vec::new();
    for folder in crates {
        let source = folder.join("src");
        let entry = ["lib.rs", "main.rs"].map(|name| source.join(name));
        let Some(entry) = entry.into_iter().find(|path| path.exists()) else { continue };

        let uses = SourceTree::read(&entry)?.uses();
        findings.extend(find_in_crate(root, &folder, &uses));
        findings.extend(rooms::find_in_crate(root, &folder, &uses));
    }
    Ok(findings)
}

/// Returns what is wrong with the circles of files in the crate in `folder`.
fn find_in_crate(root: &Path, folder: &Path, uses: &Uses) -> Vec<String> {
    let circles = across_folders(uses);
    let count = circles.iter().map(|circle| circle.crossings.len()).sum::<usize>();
    let name = folder.file_name().unwrap_or_default();
    let known = KNOWN.iter().find(|(known, _)| name == *known).map_or(0, |(_, count)| *count);

    let mut findings = Vec::new();
    if count > known {
        findings.extend(circles.iter().map(|circle| circle.describe(root)));
    }
    if count != known {
        findings.push(format!(
            "{}: {count} uses between folders in circles, and {known} are known",
            shown(root, folder)
        ));
    }
    findings
}

/// Returns the circles in which a file uses another that has no folder in common with it.
fn across_folders(uses: &Uses) -> Vec<Circle> {
    let mut circles = Vec::new();
    for files in components(uses) {
        let mut crossings = Vec::new();
        for file in &files {
            let used = uses.get(file).into_iter().flatten();
            let used = used.filter(|used| files.contains(used));
            let outside = used.filter(|used| folders_of(used).is_disjoint(&folders_of(file)));
            crossings.extend(outside.map(|used| (file.clone(), used.clone())));
        }
        if !crossings.is_empty() {
            circles.push(Circle { files, crossings });
        }
    }
    circles
}

/// Files that use each other, not all in one folder.
struct Circle {
    files: Vec<PathBuf>,
    /// The uses among them that lead from one folder into another.
    crossings: Vec<(PathBuf, PathBuf)>,
}

impl Circle {
    fn describe(&self, root: &Path) -> String {
        let files: Vec<String> = self.files.iter().map(|file| shown(root, file)).collect();
        let mut text = format!("these files use each other: {}", files.join(", "));
        for (file, used) in &self.crossings {
            text += &format!("\n    {} uses {}", shown(root, file), shown(root, used));
        }
        text
    }
}

/// Returns the folders that a file belongs to. The file of a module with a folder of its own, such
/// as `a/b.rs` or `a/b/mod.rs`, is the door between two: it belongs to `a` and to `a/b`.
fn folders_of(file: &Path) -> BTreeSet<PathBuf> {
    let parent = file.parent().unwrap_or(Path::new("")).to_owned();
    let own = file.with_extension("");

    let mut folders = BTreeSet::new();
    if file.file_name().is_some_and(|name| name == "mod.rs") {
        folders.extend(parent.parent().map(Path::to_owned));
    } else if own.is_dir() {
        folders.insert(own);
    }
    folders.insert(parent);
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the circles of a project whose crate `a` has these files.
    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join("crates/a/src").join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let tree = SourceTree::read(&root.path().join("crates/a/src/lib.rs")).unwrap();
        across_folders(&tree.uses()).iter().map(|circle| circle.describe(root.path())).collect()
    }

    #[test]
    fn files_in_two_folders_that_use_each_other_are_found() {
        let found = circles(&[
            ("lib.rs", "mod one; mod two;"),
            ("one/mod.rs", "pub mod low; pub struct One;"),
            ("one/low.rs", "use crate::two::Two; pub fn g() {}"),
            ("two.rs", "pub struct Two; fn f() { crate::one::low::g() }"),
        ]);
        let expected = "\
these files use each other: crates/a/src/one/low.rs, crates/a/src/two.rs
    crates/a/src/one/low.rs uses crates/a/src/two.rs
    crates/a/src/two.rs uses crates/a/src/one/low.rs";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_circle_inside_a_folder_is_allowed() {
        let found = circles(&[
            ("lib.rs", "mod one;"),
            ("one.rs", "mod low; use low::g; pub struct One;"),
            ("one/low.rs", "use super::One; pub fn g() {}"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_path_through_a_reexport_leads_to_the_file_behind_it() {
        // Through the hub, `low` uses `two`, and nothing uses `low`.
        let found = circles(&[
            ("lib.rs", "mod one; mod two; pub use two::*; pub use one::low::g;"),
            ("one/mod.rs", "pub mod low;"),
            ("one/low.rs", "use crate::Two; pub fn g() {}"),
            ("two.rs", "pub struct Two;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
        let found = circles(&[
            ("lib.rs", "mod one; mod two; pub use two::*; pub use one::low::g as renamed;"),
            ("one/mod.rs", "pub mod low;"),
            ("one/low.rs", "use crate::Two; pub fn g() {}"),
            ("two.rs", "use crate::{renamed}; pub struct Two;"),
        ]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn what_only_tests_use_is_not_counted() {
        let found = circles(&[
            ("lib.rs", "mod one; mod two;"),
            ("one/mod.rs", "mod low;"),
            ("one/low.rs", "use crate::two::Two; pub fn g() {}"),
            ("two.rs", "pub struct Two; #[cfg(test)] mod tests { use crate::one::low::g; }"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
