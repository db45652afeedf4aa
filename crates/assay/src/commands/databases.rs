//! `assay databases`: lists, shows, verifies and removes databases that are kept for later cells.

use report::{age_text, safe_columns};
use runner::databases::{Databases, Entry};

use crate::cli::DatabasesArgs;
use crate::exit::Exit;
use crate::output::print;

/// Lists or verifies databases, shows one, or removes one.
pub fn databases(args: &DatabasesArgs) -> anyhow::Result<Exit> {
    let databases = match &args.reuse {
        Some(folder) => Databases::at(folder),
        None => Databases::of_user()?,
    };

    if let Some(name) = &args.remove {
        let freed = databases.remove(name)?;
        eprintln!("removed `{name}`: {} MB", freed.div_ceil(1_000_000));
        return Ok(Exit::Ok);
    }

    if let Some(name) = &args.name {
        print(&description(&databases.open(name)?))?;
        return Ok(Exit::Ok);
    }

    // A database that cannot be read still has a line, with the problem as its state.
    let mut exit = Exit::Ok;
    let head = ["name", "version", "workload", "config", "MB", "age", "runs", "state"];
    let mut lines = vec![head.map(str::to_owned)];
    for name in databases.names()? {
        let opened = databases.open(&name).and_then(|entry| {
            if args.verify {
                entry.verify()?;
            }
            Ok(entry)
        });
        lines.push(match opened {
            Ok(entry) => line(name, &entry, if args.verify { "verified" } else { "ok" }),
            Err(error) => {
                exit = Exit::Failed;
                let mut unknown = ["?"; 8].map(str::to_owned);
                unknown[0] = name;
                unknown[7] = format!("{error:#}");
                unknown
            }
        });
    }

    if lines.len() == 1 {
        eprintln!(
            "no databases in `{}`; a plan with `reuse = true` keeps them",
            databases.root().display()
        );
        return Ok(exit);
    }

    print(&safe_columns(&lines))?;
    Ok(exit)
}

/// Returns the line of a database in the list.
fn line(name: String, entry: &Entry, state: &str) -> [String; 8] {
    let manifest = &entry.manifest;
    let age = age_text(manifest.age());
    [
        name,
        manifest.part("version").unwrap_or("?").to_owned(),
        manifest.workload_text(),
        manifest.config_text(),
        entry.disk_bytes().div_ceil(1_000_000).to_string(),
        age,
        entry.runs().len().to_string(),
        state.to_owned(),
    ]
}

/// Returns all that made a database, and what used it.
fn description(entry: &Entry) -> String {
    let manifest = &entry.manifest;
    let mut lines = vec![
        ["name".to_owned(), entry.name()],
        ["fingerprint".to_owned(), manifest.fingerprint.clone()],
        ["age".to_owned(), age_text(manifest.age())],
        ["files".to_owned(), manifest.files.len().to_string()],
        ["bytes".to_owned(), manifest.bytes().to_string()],
        ["steps".to_owned(), manifest.steps.to_string()],
        ["made by run".to_owned(), manifest.made_by.clone()],
    ];
    for run in entry.runs() {
        lines.push(["used by run".to_owned(), run]);
    }
    for part in &manifest.key {
        // A config file has several lines, and a table's cell one.
        lines.push([format!("key: {}", part.name), part.value.replace('\n', " ")]);
    }

    safe_columns(&lines)
}
