//! Finds the rooms of a crate that use each other in circles.
//!
//! A room is a module at the top of a crate, a folder or a file. Rooms without circles are floors:
//! whoever reads a crate from the bottom up needs nothing that comes later. That asks for more than
//! files without circles, since two rooms may use each other by different files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source_tree::{Uses, components, shown};

/// Two rooms, of which the first uses the second.
type Arrow = (String, String);

/// Two files, of which the first uses the second.
type Use = (PathBuf, PathBuf);

/// Returns the circles of rooms in the crate in `folder`, one text for each.
pub fn find_in_crate(root: &Path, folder: &Path, uses: &Uses) -> Vec<String> {
    let rooms = Rooms::of(&folder.join("src"), uses);
    let place = shown(root, folder);
    rooms.circles().iter().map(|circle| rooms.describe(root, &place, circle)).collect()
}

/// The rooms of a crate.
struct Rooms {
    /// The uses of each arrow between rooms.
    arrows: BTreeMap<Arrow, Vec<Use>>,
}

impl Rooms {
    /// Returns the rooms below the crate's folder `source`.
    fn of(source: &Path, uses: &Uses) -> Self {
        let mut arrows: BTreeMap<Arrow, Vec<Use>> = BTreeMap::new();
        for (file, all_used) in uses {
            for used in all_used {
                let (Some(from), Some(to)) = (room_of(source, file), room_of(source, used)) else {
                    continue;
                };
                if from != to {
                    arrows.entry((from, to)).or_default().push((file.clone(), used.clone()));
                }
            }
        }

        Self { arrows }
    }

    /// Returns the groups of rooms that use each other, directly or through others.
    fn circles(&self) -> Vec<Vec<String>> {
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in self.arrows.keys() {
            used.entry(from.clone()).or_default().insert(to.clone());
        }
        components(&used)
    }

    /// Returns a circle with its arrows, and one use of each as an example.
    fn describe(&self, root: &Path, place: &str, circle: &[String]) -> String {
        let mut text = format!("{place}: these rooms use each other: {}", circle.join(", "));
        for ((from, to), uses) in &self.arrows {
            if !circle.contains(from) || !circle.contains(to) {
                continue;
            }
            text += &format!("\n    {from} uses {to}");
            if let Some((file, used)) = uses.first() {
                text += &format!(": {} uses {}", shown(root, file), shown(root, used));
            }
            if uses.len() > 1 {
                text += &format!(", and {} more", uses.len() - 1);
            }
        }
        text
    }
}

/// Returns the room of a file; `None` for the crate's own file, which is in none.
fn room_of(source: &Path, file: &Path) -> Option<String> {
    let inside = file.strip_prefix(source).ok()?;
    let first = Path::new(inside.components().next()?.as_os_str());
    let name = first.with_extension("").display().to_string();
    if ["lib", "main"].contains(&name.as_str()) { None } else { Some(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings for a crate whose files use each other so.
    fn findings(uses: &[(&str, &str)]) -> Vec<String> {
        let folder = Path::new("/p/crates/a");
        let mut all = Uses::new();
        for (file, used) in uses {
            let [file, used] = [file, used].map(|path| folder.join("src").join(path));
            all.entry(file).or_default().insert(used);
        }
        find_in_crate(Path::new("/p"), folder, &all)
    }

    #[test]
    fn rooms_that_use_each_other_by_different_files_are_found() {
        let uses = [
            ("one/low.rs", "two/high.rs"),
            ("two/low.rs", "one/high.rs"),
            ("three.rs", "one/high.rs"),
        ];
        let expected = "\
crates/a: these rooms use each other: one, two
    one uses two: crates/a/src/one/low.rs uses crates/a/src/two/high.rs
    two uses one: crates/a/src/two/low.rs uses crates/a/src/one/high.rs";
        assert_eq!(findings(&uses), [expected]);
    }

    #[test]
    fn a_file_and_its_folder_are_one_room_and_the_crate_itself_is_none() {
        let uses = [
            ("one.rs", "one/low.rs"),
            ("one/low.rs", "one.rs"),
            ("one.rs", "lib.rs"),
            ("lib.rs", "one.rs"),
        ];
        let found = findings(&uses);
        assert!(found.is_empty(), "{found:?}");
    }
}
