//! `[build.NAME]`: installed versions of engines, and servers that run already.

use words::{Secret, redact};

use crate::diagnostic::{Diagnostic, Place};
use crate::kinds::{Choice, Line, bad_name};
use crate::reader::{Context, Field, Kind, Section, table_of};
use crate::spec::{Build, BuildSource, Engine};
use crate::tree::Entry;
use crate::wording::{code, quoted};

/// The engines by name, in the order in which they are listed.
pub(crate) const ENGINES: [(&str, Engine); 5] = [
    ("sqlite", Engine::Sqlite),
    ("postgres", Engine::Postgres),
    ("mysql", Engine::Mysql),
    ("rocksdb", Engine::RocksDb),
    ("null", Engine::Null),
];

const KEYS: [&str; 6] = ["sqlite", "postgres", "mysql", "rocksdb", "null", "url"];
const SCHEMES: [(&str, Engine); 4] = [
    ("postgresql://", Engine::Postgres),
    ("postgres://", Engine::Postgres),
    ("mysql://", Engine::Mysql),
    ("mariadb://", Engine::Mysql),
];
const WAYS: &str = "give one of `sqlite = \"bundled\"`, `postgres = \"BUILD\"`, `mysql = \"BUILD\"` (MariaDB too), \
     `rocksdb = \"BUILD\"` (Speedb too), `null = \"bundled\"`, `url = \"postgresql://...\"`, `url = \"mysql://...\"`";

impl Engine {
    /// Returns its name in plans and records.
    pub fn name(self) -> &'static str {
        ENGINES
            .iter()
            .find(|(_, other)| *other == self)
            .map_or("", |(name, _)| name)
    }
}

/// Reads `[build]`. A build that can't be read is left out, and then the list is not trusted.
pub(crate) fn read(cx: &mut Context<'_>, entry: Option<Entry>) -> Field<Vec<(Build, Place)>> {
    let mut builds = Field {
        value: Vec::new(),
        place: Place::Nowhere,
        trusted: true,
    };
    let Some(entry) = entry else {
        cx.report(
            Diagnostic::error("plan::missing-key", Place::Nowhere, "the plan has no build")
                .help(format!("add a table `[build.NAME]`; in it {WAYS}")),
        );
        builds.trusted = false;
        return builds;
    };
    builds.place = entry.key_place;
    let Some(table) = table_of(cx, "build", entry.node) else {
        builds.trusted = false;
        return builds;
    };
    if table.entries.is_empty() {
        cx.report(
            Diagnostic::error(
                "plan::missing-key",
                entry.key_place,
                "the plan has no build",
            )
            .label("nothing in it")
            .help(format!("add a table `[build.NAME]`; in it {WAYS}")),
        );
        builds.trusted = false;
    }
    for entry in table.entries {
        let place = entry.key_place;
        match build(cx, entry) {
            Some(build) => builds.value.push((build, place)),
            None => builds.trusted = false,
        }
    }
    builds
}

fn build(cx: &mut Context<'_>, entry: Entry) -> Option<Build> {
    let name = entry.key;
    let path = format!("build.{}", crate::wording::key_part(&name));
    let name_is_bad = bad_name(
        "a build has a name that cannot be used",
        &name,
        entry.key_place,
    );
    let is_named = name_is_bad.is_none();
    cx.diagnostics.extend(name_is_bad);
    let errors = cx.diagnostics.len();
    let mut section = Section::of(cx, &path, entry.node, &KEYS)?;
    let has_unknown = cx.diagnostics.len() > errors;
    let mut given: Vec<Entry> = KEYS.iter().filter_map(|key| section.take(key)).collect();
    if given.len() > 1 {
        given.sort_by_key(|entry| entry.key_place);
        let (first, rest) = given.split_first()?;
        for entry in rest {
            let message = format!(
                "{} and {} in {} exclude each other",
                code(&first.key),
                code(&entry.key),
                code(&path)
            );
            cx.report(
                Diagnostic::error("plan::conflict", entry.key_place, message)
                    .label("a build is one thing")
                    .also(first.key_place, "the other")
                    .help("make two builds of it, or take one out"),
            );
        }
        return None;
    }
    let Some(way) = given.pop() else {
        // With an unknown key it is clear already what is wrong.
        if !has_unknown {
            cx.report(
                Diagnostic::error(
                    "plan::missing-key",
                    section.place,
                    format!("{} does not say what it is", code(&path)),
                )
                .label("nothing in it")
                .help(WAYS),
            );
        }
        return None;
    };
    let key = section.name_of(&way.key);
    let bundled = Choice(&[("bundled", ())]);
    let (engine, source, shown) = match way.key.as_str() {
        "sqlite" => {
            cx.read(&key, &way.node, &bundled)?;
            (Engine::Sqlite, BuildSource::Bundled, bundled.show(&()))
        }
        "null" => {
            cx.read(&key, &way.node, &bundled)?;
            (Engine::Null, BuildSource::Bundled, bundled.show(&()))
        }
        "postgres" | "mysql" | "rocksdb" => {
            let engine = match way.key.as_str() {
                "mysql" => Engine::Mysql,
                "rocksdb" => Engine::RocksDb,
                _ => Engine::Postgres,
            };
            let place = cx.read(&key, &way.node, &Line)?;
            let shown = quoted(&place);
            (engine, BuildSource::Installed(place), shown)
        }
        _ => {
            let url = cx.read(&key, &way.node, &Line)?;
            let scheme = SCHEMES
                .iter()
                .find(|(scheme, _)| url.len() > scheme.len() && url.starts_with(scheme));
            let Some((_, engine)) = scheme else {
                cx.report(
                    Diagnostic::error(
                        "plan::bad-url",
                        way.node.place,
                        format!("{} is no URL of a server: {}", code(&key), code(&url)),
                    )
                    .label("expected `postgresql://...` or `mysql://...`")
                    .help("a URL looks like `postgresql://USER@HOST:5432/DATABASE`, `mysql://USER@HOST:3306/DATABASE`"),
                );
                return None;
            };
            let secret = Secret::new(url);
            let shown = quoted(&redact(secret.expose()));
            (*engine, BuildSource::Url(secret), shown)
        }
    };
    cx.resolve(key, shown, way.node.place);
    is_named.then_some(Build {
        name,
        engine,
        source,
    })
}
