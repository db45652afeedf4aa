//! What can be told from the text of the project's files alone.

use anyhow::Result;

use super::rust_text::{code_only, is_of_word, line_at, word_offsets};
use super::{Finding, Verdict};
use crate::workspace::{Source, Workspace};

/// Names that say nothing of a file's purpose.
const EMPTY_NAMES: &[&str] = &[
    "common",
    "helper",
    "helpers",
    "misc",
    "util",
    "utilities",
    "utility",
    "utils",
];

/// Files that may hold `unsafe`, each with a comment `SAFETY:` at every place.
const UNSAFE_FILES: &[&str] = &[
    "crates/engine/examples/rocksdb_binding.rs",
    "crates/engine/src/rocksdb/ffi/api.rs",
    "crates/engine/src/rocksdb/ffi/client.rs",
    "crates/engine/src/rocksdb/ffi/database.rs",
    "crates/load/src/clock.rs",
];

/// Marks of what was put off. Joined here, so that this file has none.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Folders of the machines on which the project is made: they mean nothing to others. Joined for the same reason.
/// Root's home itself is every system's; what lies in it is not.
const MACHINE_PATHS: &[&str] = &[concat!("/", "work"), concat!("/", "root/")];

/// What `std::fs` defines that does nothing, and that `fs_err` therefore does not have.
const PLAIN_TYPES: &[&str] = &["FileTimes", "FileType", "Metadata", "Permissions"];

/// No part of a path is an empty name.
pub fn names(workspace: &Workspace) -> Result<Verdict> {
    each(workspace, |source| {
        let empty = source.path.split('/').find_map(|part| {
            let stem = part.split('.').next().unwrap_or(part);
            EMPTY_NAMES
                .contains(&stem.to_ascii_lowercase().as_str())
                .then_some(stem)
        });
        let what =
            |name| format!("named `{name}` - a file has one reason to exist: name it after that");
        empty.map(|name| (None, what(name))).into_iter().collect()
    })
}

/// Nothing was put off.
pub fn marks(workspace: &Workspace) -> Result<Verdict> {
    each(workspace, |source| {
        let mut found = Vec::new();
        for mark in MARKS {
            for at in word_offsets(&source.text, mark) {
                found.push((
                    Some(at),
                    format!("`{mark}` - do it, or say plainly what is not done and why"),
                ));
            }
        }
        if is_rust(source) {
            let code = code_only(&source.text);
            for name in ["todo", "unimplemented"] {
                for at in
                    word_offsets(&code, name).filter(|at| code[at + name.len()..].starts_with('!'))
                {
                    // Blanking changes the length of the text but not its lines.
                    let at = offset_of_line(&source.text, line_at(&code, at));
                    found.push((Some(at), format!("`{name}!` - do it, or return an error")));
                }
            }
        }
        found
    })
}

/// No path of one machine.
pub fn machine_paths(workspace: &Workspace) -> Result<Verdict> {
    each(workspace, |source| {
        let mut found = Vec::new();
        for path in MACHINE_PATHS {
            for (at, _) in source.text.match_indices(path) {
                let before = source.text[..at].chars().next_back();
                let after = source.text[at + path.len()..].chars().next();
                // The middle of a longer path, or a longer name, is something else.
                let inner = before.is_some_and(|char| is_of_word(char) || "./-}>)*".contains(char));
                let whole = path.ends_with('/');
                let longer = !whole && after.is_some_and(|char| is_of_word(char) || char == '-');
                if !inner && !longer {
                    found.push((
                        Some(at),
                        format!("`{path}` is a folder of one machine - use a relative path"),
                    ));
                }
            }
        }
        found
    })
}

/// `unsafe` stands where it is listed, and what is listed has it.
pub fn unsafe_code(workspace: &Workspace) -> Result<Verdict> {
    let sources = workspace.sources()?;
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| is_rust(source)) {
        let code = code_only(&source.text);
        let mut lines = word_offsets(&code, "unsafe")
            .map(|at| line_at(&code, at))
            .peekable();
        if UNSAFE_FILES.contains(&source.path.as_str()) {
            if lines.peek().is_none() {
                findings.push(unlisted(&source.path));
            }
            continue;
        }
        for line in lines {
            let what =
                "`unsafe` outside of the files listed in xtask/src/tidy/text.rs - do without it"
                    .to_owned();
            findings.push(Finding {
                path: source.path.clone(),
                line: Some(line),
                what,
            });
        }
    }
    let gone = UNSAFE_FILES
        .iter()
        .filter(|listed| !sources.iter().any(|source| source.path == **listed));
    findings.extend(gone.map(|listed| unlisted(listed)));
    Ok(Verdict::Checked(findings))
}

fn unlisted(path: &str) -> Finding {
    let what =
        "listed in xtask/src/tidy/text.rs but without `unsafe` - take it off the list".to_owned();
    Finding {
        path: path.to_owned(),
        line: None,
        what,
    }
}

/// Files are opened through `fs_err`, whose errors name the path.
pub fn std_fs(workspace: &Workspace) -> Result<Verdict> {
    each(workspace, |source| {
        if !is_rust(source) {
            return Vec::new();
        }
        let code = code_only(&source.text);
        let lines = std_fs_offsets(&code)
            .into_iter()
            .map(|at| line_at(&code, at));
        let what = "`std::fs` - use `fs_err`: its errors name the path";
        lines
            .map(|line| (Some(offset_of_line(&source.text, line)), what.to_owned()))
            .collect()
    })
}

/// Where `std::fs` is named, alone or in a group of imports, but for its plain types and the type of an open file.
fn std_fs_offsets(code: &str) -> Vec<usize> {
    let name_behind = |rest: &str| {
        let name = rest.strip_prefix("::").unwrap_or_default();
        let end = name.find(|char| !is_of_word(char)).unwrap_or(name.len());
        (name[..end].to_owned(), name[end..].starts_with("::"))
    };
    let is_plain = |rest: &str| PLAIN_TYPES.contains(&name_behind(rest).0.as_str());
    // An open file may be handed to a library that wants this very type. Imported, it would open files too.
    let is_file_type = |at: usize, rest: &str| {
        let (name, goes_on) = name_behind(rest);
        let begin = code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
        let imported = word_offsets(&code[begin..at], "use").next().is_some();
        name == "File" && !goes_on && !imported
    };
    let mut offsets = Vec::new();
    for at in word_offsets(code, "std") {
        let Some(rest) = code[at..].strip_prefix("std::") else {
            continue;
        };
        let from = at + "std::".len();
        if !rest.starts_with('{') {
            if word_offsets(rest, "fs").next() == Some(0) {
                let behind = &rest["fs".len()..];
                if !is_plain(behind) && !is_file_type(at, behind) {
                    offsets.push(at);
                }
            }
            continue;
        }
        let (mut depth, mut begins) = (0_usize, false);
        for (index, char) in rest.char_indices() {
            match char {
                '{' => depth += 1,
                '}' if depth == 1 => break,
                '}' => depth -= 1,
                _ => {}
            }
            // The first name behind a brace or comma of the outer group.
            if begins
                && word_offsets(&rest[index..], "fs").next() == Some(0)
                && !is_plain(&rest[index + "fs".len()..])
            {
                offsets.push(from + index);
            }
            begins = depth == 1 && (matches!(char, '{' | ',') || (begins && char.is_whitespace()));
        }
    }
    offsets
}

fn is_rust(source: &Source) -> bool {
    source.path.ends_with(".rs")
}

/// The byte offset at which a line, counted from 1, begins.
fn offset_of_line(text: &str, line: usize) -> usize {
    text.split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum()
}

/// Looks at every file of the project; what is found is a byte offset, or the file as a whole, and a message.
fn each(
    workspace: &Workspace,
    look: impl Fn(&Source) -> Vec<(Option<usize>, String)>,
) -> Result<Verdict> {
    let mut findings = Vec::new();
    for source in workspace.sources()? {
        for (offset, what) in look(&source) {
            let line = offset.map(|offset| line_at(&source.text, offset));
            findings.push(Finding {
                path: source.path.clone(),
                line,
                what,
            });
        }
    }
    Ok(Verdict::Checked(findings))
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    /// Checks a project of these files; what is found, one finding per line, without what it says.
    fn check(run: fn(&Workspace) -> Result<Verdict>, files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let Verdict::Checked(mut findings) = run(&Workspace::at(folder.path())).unwrap() else {
            panic!("no findings")
        };
        findings.sort();
        let place = |finding: &Finding| {
            finding.line.map_or(finding.path.clone(), |line| {
                format!("{}:{line}", finding.path)
            })
        };
        findings.iter().map(place).collect()
    }

    #[test]
    fn a_file_or_folder_with_an_empty_name_is_found() {
        let files = [
            ("src/util.rs", ""),
            ("tests/common/mod.rs", ""),
            ("src/utility_cost.rs", ""),
            ("a/Helpers.md", ""),
        ];
        assert_eq!(
            check(names, &files),
            ["a/Helpers.md", "src/util.rs", "tests/common/mod.rs"]
        );
    }

    #[test]
    fn a_mark_is_found_in_any_file_and_a_stub_in_code() {
        let mark = MARKS[0];
        let files = [
            ("README.md", format!("one\n{mark}: two\nno{mark}\n")),
            ("a.rs", "fn é() {\n    todo!()\n}\n// todo! unimplemented!()\nfn b() { unimplemented!() }\n".to_owned()),
        ];
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        assert_eq!(check(marks, &files), ["README.md:2", "a.rs:2", "a.rs:5"]);
    }

    #[test]
    fn a_path_of_one_machine_is_found_and_a_longer_one_is_not() {
        let [work, root] = [MACHINE_PATHS[0], MACHINE_PATHS[1]];
        let text = format!(
            "cd {work}\nopen `{root}x`\ncrates{work}\n{work}load\n../..{root}\n${{HOME}}{root}\n\
             https://example.org{root}a\nroot:{home}:/bin/sh\n",
            home = root.trim_end_matches('/'),
        );
        assert_eq!(
            check(machine_paths, &[("a.md", &text)]),
            ["a.md:1", "a.md:2"]
        );
    }

    #[test]
    fn unsafe_is_found_in_code_alone_and_a_listed_file_must_have_it() {
        let code = "fn now() { unsafe { h() } }\n";
        let mut files: Vec<(&str, &str)> = UNSAFE_FILES.iter().map(|path| (*path, code)).collect();
        files.push((
            "a.rs",
            "// unsafe\n#![deny(unsafe_code)]\nfn f() { unsafe { g() } }\n",
        ));
        files.push(("b.md", "unsafe\n"));
        assert_eq!(check(unsafe_code, &files), ["a.rs:3"]);
        files[0].1 = "// unsafe\n";
        assert_eq!(check(unsafe_code, &files), ["a.rs:3", UNSAFE_FILES[0]]);
        assert_eq!(check(unsafe_code, &[("a.rs", "")]), UNSAFE_FILES);
    }

    #[test]
    fn std_fs_is_found_alone_and_in_groups() {
        let text = "use std::fs;\n\
                    use std::{io, fs::File};\n\
                    use std::{\n    io,\n    fs,\n};\n\
                    use std::os::unix::fs::PermissionsExt;\n\
                    use std::{os::unix::fs::FileExt, io::{self, fs}};\n\
                    fn f(p: std::fs::Permissions) -> R<std::fs::File> { std::fs::File::open(\"std::fs\") }\n\
                    use mystd::fs; use std::fsx; use fs_err as fs;\n\
                    use std::{fs::Metadata};\n\
                    pub use std::fs::File;\n";
        assert_eq!(
            check(std_fs, &[("a.rs", text)]),
            ["a.rs:1", "a.rs:2", "a.rs:5", "a.rs:9", "a.rs:12"]
        );
    }
}
