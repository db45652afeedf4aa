//! Finds circles of files across folders: files that use each other, directly or through others,
//! but are not in one folder.
//!
//! Whoever changes one file of a circle must understand all of them. Inside a folder that is fine,
//! since the folder is the thing to understand. Across folders the circle says that a wall stands
//! in the wrong place.
//!
//! A finding names the files, and then the uses that lead from one folder into another: to break the
//! circle, one direction of them must go.
//!
//! A path is followed through re-exports to the file that defines the item, so a `lib.rs` that only
//! re-exports is no member of a circle. Tests and the arguments of macros are not read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// Re-exports of re-exports are followed this deep, which also ends those that lead in a circle.
const REEXPORT_DEPTH: usize = 8;

/// A path of modules and, last, maybe an item: `["crate", "run", "step"]` without the `crate`.
type ModulePath = Vec<String>;

/// The uses between folders in circles that are known, by crate. Fewer are refused as well, so that
/// the numbers can only shrink, to none.
const KNOWN: &[(&str, usize)] = &[];

/// Returns the circles across folders in all crates below `root`, one line for each.
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

        let circles = SourceTree::read(&entry)?.circles_across_folders();
        let count = circles.iter().map(|circle| circle.crossings.len()).sum::<usize>();
        let name = folder.file_name().unwrap_or_default();
        let known = KNOWN.iter().find(|(known, _)| name == *known).map_or(0, |(_, count)| *count);
        if count > known {
            findings.extend(circles.iter().map(|circle| circle.describe(root)));
        }
        if count != known {
            findings.push(format!(
                "{}: {count} uses between folders in circles, and {known} are known",
                shown(root, &folder)
            ));
        }
    }
    Ok(findings)
}

fn shown(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

/// The modules of a crate.
#[derive(Default)]
struct SourceTree {
    modules: BTreeMap<ModulePath, Module>,
}

/// A module, in a file of its own or inside another's.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// The names of its own items.
    items: BTreeSet<String>,
    /// Names that `use` brings into scope, with the paths that they stand for.
    imports: BTreeMap<String, ModulePath>,
    /// Paths whose items `use …::*` brings into scope.
    globs: Vec<ModulePath>,
    /// Paths that the module's code uses, as written.
    used: BTreeSet<ModulePath>,
}

impl SourceTree {
    /// Reads the modules below a crate's `lib.rs` or `main.rs`.
    fn read(entry: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_file(entry, Vec::new())?;
        Ok(tree)
    }

    fn read_file(&mut self, file: &Path, path: ModulePath) -> Result<()> {
        let text = fs::read_to_string(file)?;
        let syntax =
            syn::parse_file(&text).with_context(|| format!("cannot parse `{}`", file.display()))?;
        self.read_module(file, path, &syntax.items)
    }

    fn read_module(&mut self, file: &Path, path: ModulePath, items: &[Item]) -> Result<()> {
        let mut reader = ModuleReader {
            module: Module { file: file.to_owned(), ..Module::default() },
            children: Vec::new(),
        };
        for item in items {
            reader.module.items.extend(name_of(item));
            reader.visit_item(item);
        }
        let ModuleReader { module, children } = reader;
        self.modules.insert(path.clone(), module);

        for child in children {
            let name = child.ident.to_string();
            let child_path = [path.as_slice(), std::slice::from_ref(&name)].concat();
            match &child.content {
                Some((_, items)) => self.read_module(file, child_path, items)?,
                None => self.read_file(&file_of_module(file, &path, &name), child_path)?,
            }
        }
        Ok(())
    }

    /// Returns the circles in which a file uses another that has no folder in common with it.
    fn circles_across_folders(&self) -> Vec<Circle> {
        let uses = self.uses();
        let mut circles = Vec::new();
        for files in components(&uses) {
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

    /// Returns the files that each file uses.
    fn uses(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut uses: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let used = uses.entry(module.file.clone()).or_default();
            for written in &module.used {
                let target = self.resolve(path, written, REEXPORT_DEPTH);
                used.extend(target.filter(|file| *file != module.file));
            }
        }
        uses
    }

    /// Returns the file that defines what `written` means in the module at `from`. `None` if it is
    /// not in this crate.
    fn resolve(&self, from: &[String], written: &[String], depth: usize) -> Option<PathBuf> {
        let depth = depth.checked_sub(1)?;
        let mut place = from.to_vec();
        let mut is_start = true;
        for (index, name) in written.iter().enumerate() {
            let rest = &written[index + 1..];
            match name.as_str() {
                "crate" if is_start => place.clear(),
                "self" if is_start => {}
                "super" => drop(place.pop()?),
                name => {
                    let module = self.modules.get(&place)?;
                    let child = [place.as_slice(), &[name.to_owned()]].concat();

                    if self.modules.contains_key(&child) {
                        place = child;
                    } else if module.items.contains(name) {
                        return Some(module.file.clone());
                    } else if let Some(target) = module.imports.get(name) {
                        // An import of a name from itself, as in `use rand::rand`, leads nowhere.
                        if target.as_slice() == [name] {
                            return None;
                        }
                        return self.resolve(&place, &[target, rest].concat(), depth);
                    } else {
                        return module.globs.iter().find_map(|glob| {
                            let inside = [glob.as_slice(), &[name.to_owned()], rest].concat();
                            self.resolve(&place, &inside, depth)
                        });
                    }
                }
            }
            is_start = false;
        }
        self.modules.get(&place).map(|module| module.file.clone())
    }
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

/// Collects what a module defines, imports and uses.
struct ModuleReader {
    module: Module,
    children: Vec<ItemMod>,
}

impl<'ast> Visit<'ast> for ModuleReader {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.children.push(module.clone());
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        let mut imported = Vec::new();
        flatten(&import.tree, &mut Vec::new(), &mut imported);
        for Imported { name, path } in imported {
            // A re-export alone is no use: whoever names the item uses the file behind it.
            if matches!(import.vis, Visibility::Inherited) {
                self.module.used.insert(path.clone());
            }
            match name {
                Some(name) => drop(self.module.imports.insert(name, path)),
                None => self.module.globs.push(path),
            }
        }
    }

    /// Reads nothing: `pub(in crate::a)` says who may use the item, and uses nothing of `a`.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A single name is an import, which counts by itself, or local.
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string());
            self.module.used.insert(names.collect());
        }
        visit::visit_path(self, path);
    }
}

/// One name that a `use` declares.
struct Imported {
    /// The name in this module; `None` for a glob.
    name: Option<String>,
    path: ModulePath,
}

/// Collects the names that a tree of `use` declares below `prefix`.
fn flatten(tree: &UseTree, prefix: &mut ModulePath, imported: &mut Vec<Imported>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, imported);
            prefix.pop();
        }
        UseTree::Group(group) => {
            for branch in &group.items {
                flatten(branch, prefix, imported);
            }
        }
        UseTree::Glob(_) => imported.push(Imported { name: None, path: prefix.clone() }),
        UseTree::Name(leaf) => imported.push(import(prefix, &leaf.ident, &leaf.ident)),
        UseTree::Rename(leaf) => imported.push(import(prefix, &leaf.ident, &leaf.rename)),
    }
}

fn import(prefix: &[String], item: &syn::Ident, name: &syn::Ident) -> Imported {
    // `use a::{self}` imports `a`.
    if item == "self" {
        return Imported { name: prefix.last().cloned(), path: prefix.to_vec() };
    }
    let path = [prefix, &[item.to_string()]].concat();
    Imported { name: Some(name.to_string()), path }
}

/// Returns the name that an item gives to its module. Modules and imports are kept elsewhere.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Returns the file of the module `name`, which `parent` declares. `parent_path` is the parent's
/// path of modules.
fn file_of_module(parent: &Path, parent_path: &[String], name: &str) -> PathBuf {
    let stem = parent.file_stem().unwrap_or_default();
    let folder = parent.parent().unwrap_or(Path::new(""));
    let is_folder_itself = parent_path.is_empty() || stem == "mod";
    let folder = if is_folder_itself { folder.to_owned() } else { folder.join(stem) };

    let flat = folder.join(format!("{name}.rs"));
    if flat.exists() { flat } else { folder.join(name).join("mod.rs") }
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

/// Returns the groups of nodes that reach each other, each sorted. Nodes outside of any circle are
/// left out.
fn components(edges: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<Vec<PathBuf>> {
    let reachable: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
        edges.keys().map(|node| (node, reachable_from(node, edges))).collect();

    let mut components = BTreeSet::new();
    for (node, reached) in &reachable {
        let circle: Vec<PathBuf> = reached
            .iter()
            .filter(|other| reachable.get(**other).is_some_and(|back| back.contains(node)))
            .map(|&other| other.clone())
            .collect();
        if circle.len() > 1 {
            components.insert(circle);
        }
    }
    components.into_iter().collect()
}

fn reachable_from<'a>(
    start: &PathBuf,
    edges: &'a BTreeMap<PathBuf, BTreeSet<PathBuf>>,
) -> BTreeSet<&'a PathBuf> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&PathBuf> = edges.get(start).into_iter().flatten().collect();
    while let Some(node) = open.pop() {
        if reached.insert(node) {
            open.extend(edges.get(node).into_iter().flatten());
        }
    }
    reached
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
        let circles = tree.circles_across_folders();
        circles.iter().map(|circle| circle.describe(root.path())).collect()
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
