//! Finds source files that no module declares. The compiler does not read them, so they grow old
//! unseen: a module that was split may leave its first file behind.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use syn::{Attribute, Expr, Item, Lit, Meta};

use super::source_tree::shown;

/// The folders of a crate in which each file, and each folder with a `main.rs`, is a program.
const PROGRAMS: [&str; 4] = ["src/bin", "tests", "examples", "benches"];

/// Returns the source files below `root` that no module declares, one line for each.
pub fn find(root: &Path) -> Result<Vec<String>> {
    let mut crates = vec![root.join("xtask")];
    for entry in fs::read_dir(root.join("crates"))? {
        crates.push(entry?.path());
    }

    let mut sources = Vec::new();
    let mut declared = Declared::default();
    for folder in crates {
        let own = sources_below(&folder)?;
        // A file may belong to another crate, which names its path.
        for file in own.iter().filter(|file| is_root(&folder, file)) {
            declared.add_root(file)?;
        }
        sources.extend(own);
    }

    sources.retain(|file| !declared.files.contains(file));
    sources.sort();
    Ok(sources
        .iter()
        .map(|file| format!("{}: no module declares this file", shown(root, file)))
        .collect())
}

/// Returns the source files in a folder and in those inside it.
fn sources_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(path);
            }
        }
    }
    Ok(sources)
}

/// Returns whether cargo compiles a file of the crate in `folder` without a module that declares it.
fn is_root(folder: &Path, file: &Path) -> bool {
    let inside = file.strip_prefix(folder).unwrap_or(file);
    if ["build.rs", "src/lib.rs", "src/main.rs"].iter().any(|root| inside == *root) {
        return true;
    }

    let below = PROGRAMS.iter().find_map(|programs| inside.strip_prefix(programs).ok());
    let Some(below) = below else {
        return false;
    };
    match below.components().count() {
        1 => true,
        2 => below.ends_with("main.rs"),
        _ => false,
    }
}

/// The files that the compiler reads.
#[derive(Default)]
struct Declared {
    files: BTreeSet<PathBuf>,
}

impl Declared {
    /// Adds a file that needs no declaration, and what it declares.
    fn add_root(&mut self, file: &Path) -> Result<()> {
        let folder = file.parent().unwrap_or(Path::new(""));
        self.add_file(file, folder)
    }

    /// Adds a file and what it declares. The files of its modules are in `inner`.
    fn add_file(&mut self, file: &Path, inner: &Path) -> Result<()> {
        if !self.files.insert(file.to_owned()) {
            return Ok(());
        }

        let text = fs::read_to_string(file)?;
        let syntax =
            syn::parse_file(&text).with_context(|| format!("cannot parse `{}`", file.display()))?;
        self.add_items(&syntax.items, file, inner)
    }

    fn add_items(&mut self, items: &[Item], file: &Path, inner: &Path) -> Result<()> {
        for item in items {
            let Item::Mod(module) = item else { continue };
            let name = module.ident.to_string();

            if let Some((_, items)) = &module.content {
                self.add_items(items, file, &inner.join(name))?;
            } else if let Some(path) = path_of(&module.attrs) {
                let around = file.parent().unwrap_or(Path::new(""));
                self.add_root(&plain(&around.join(path)))?;
            } else {
                self.add_module(inner, &name)?;
            }
        }
        Ok(())
    }

    /// Adds the file of a module that is declared without a path.
    fn add_module(&mut self, around: &Path, name: &str) -> Result<()> {
        let inner = around.join(name);
        let flat = around.join(format!("{name}.rs"));
        let in_folder = inner.join("mod.rs");

        // Neither is there if only another system has the module.
        if flat.exists() {
            self.add_file(&flat, &inner)
        } else if in_folder.exists() {
            self.add_file(&in_folder, &inner)
        } else {
            Ok(())
        }
    }
}

/// Returns the value of the attribute `path`.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(named) = &attribute.meta else {
            return None;
        };
        match &named.value {
            Expr::Lit(literal) if named.path.is_ident("path") => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}

/// Returns a path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_declares_is_found() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("xtask/src")).unwrap();
        for (file, text) in [
            ("build.rs", ""),
            ("src/lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"),
            ("src/a.rs", "mod inner { mod deep; }"),
            ("src/a/inner/deep.rs", ""),
            ("src/b/mod.rs", "#[path = \"../../tests/it/shared.rs\"] mod shared;"),
            ("src/b/left.rs", ""),
            ("src/tests.rs", ""),
            ("examples/one.rs", ""),
            ("tests/it/main.rs", "mod case;"),
            ("tests/it/case.rs", ""),
            ("tests/it/shared.rs", ""),
            ("tests/it/lost.rs", "mod case;"),
        ] {
            let path = root.path().join("crates/c").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        let expected = ["src/b/left.rs", "tests/it/lost.rs"]
            .map(|file| format!("crates/c/{file}: no module declares this file"));
        assert_eq!(find(root.path()).unwrap(), expected);
    }
}
