//! `assay databases`: lists, shows, verifies and removes databases that are kept for later cells.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use report::{columns, terminal_text};
use runner::databases::{Databases, Entry, Manifest};

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

    // A database that can't be read still has a line, with the problem as its state.
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

    print(&terminal_lines(&columns(&lines)))?;
    Ok(exit)
}

/// Returns the line of a database in the list.
fn line(name: String, entry: &Entry, state: &str) -> [String; 8] {
    let manifest = &entry.manifest;
    let age = age_text(manifest.made_unix_ns);
    [
        name,
        manifest.part("version").unwrap_or("?").to_owned(),
        workload_text(manifest),
        config_text(manifest),
        entry.disk_bytes().div_ceil(1_000_000).to_string(),
        age,
        entry.runs().len().to_string(),
        state.to_owned(),
    ]
}

/// Returns the load of a database in words: `insert, 20000 rows, 1 clients, seed 1`.
fn workload_text(manifest: &Manifest) -> String {
    let mut text = manifest.part("workload").unwrap_or("?").to_owned();
    for name in ["keys", "rows", "clients"] {
        if let Some(value) = manifest.part(name) {
            text += &format!(", {value} {name}");
        }
    }

    text + &format!(", seed {}", manifest.part("seed").unwrap_or("?"))
}

/// Returns the options of the config in words; `-` without any.
fn config_text(manifest: &Manifest) -> String {
    let mut options = Vec::new();
    for part in &manifest.key {
        if let Some(option) = part.name.strip_prefix("config.") {
            options.push(format!("{option}={}", part.value));
        }
    }

    if options.is_empty() { "-".to_owned() } else { options.join(" ") }
}

/// Returns all that made a database, and what used it.
fn description(entry: &Entry) -> String {
    let manifest = &entry.manifest;
    let mut lines = vec![
        ["name".to_owned(), entry.name()],
        ["fingerprint".to_owned(), manifest.fingerprint.clone()],
        ["age".to_owned(), age_text(manifest.made_unix_ns)],
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

    terminal_lines(&columns(&lines))
}

/// Returns text with what a terminal would obey made harmless, line by line.
fn terminal_lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", terminal_text(line))).collect()
}

/// Returns the time since a database was made: `3 h`.
fn age_text(made_unix_ns: u64) -> String {
    let made = UNIX_EPOCH + Duration::from_nanos(made_unix_ns);
    let seconds = SystemTime::now().duration_since(made).unwrap_or_default().as_secs();

    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let ago = |seconds: u64| age_text(now - seconds * 1_000_000_000);
        let ages = [ago(600), ago(3 * 3600), ago(3 * 86_400)];
        assert_eq!(ages, ["10 min", "3 h", "3 days"]);
    }
}
