//! The modules of a crate, and which of its files use each other.
//!
//! A path is followed through re-exports to the file that defines the item, so a `lib.rs` that only
//! re-exports uses nothing. Tests and the arguments of macros are not read.

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

/// The files that each file of a crate uses.
pub type Uses = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The modules of a crate.
#[derive(Default)]
pub struct SourceTree {
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
    pub fn read(entry: &Path) -> Result<Self> {
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

    /// Returns the files that each file uses.
    pub fn uses(&self) -> Uses {
        let mut uses = Uses::new();
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

/// Returns a path as findings show it: from the folder of the project on.
pub fn shown(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

/// Returns the groups of nodes that reach each other, each sorted. Nodes outside of any circle are
/// left out.
pub fn components<Node: Clone + Ord>(edges: &BTreeMap<Node, BTreeSet<Node>>) -> Vec<Vec<Node>> {
    let reachable: BTreeMap<&Node, BTreeSet<&Node>> =
        edges.keys().map(|node| (node, reachable_from(node, edges))).collect();

    let mut components = BTreeSet::new();
    for (node, reached) in &reachable {
        let circle: Vec<Node> = reached
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

fn reachable_from<'a, Node: Ord>(
    start: &Node,
    edges: &'a BTreeMap<Node, BTreeSet<Node>>,
) -> BTreeSet<&'a Node> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Node> = edges.get(start).into_iter().flatten().collect();
    while let Some(node) = open.pop() {
        if reached.insert(node) {
            open.extend(edges.get(node).into_iter().flatten());
        }
    }
    reached
}
