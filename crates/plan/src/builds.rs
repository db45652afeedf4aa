//! `[build.NAME]`: installed versions of engines, and servers that run already.

use words::{Secret, redact};

use crate::configs::factors;
use crate::diagnostic::Place;
use crate::reader::{Context, Section, ValueKind, table_of};
use crate::spec::{Build, BuildSource, Engine};
use crate::tree::Entry;
use crate::value_kinds::{Choice, Line, check_name};
use crate::wording::{code, key_part, quoted};

const SCHEMES: [(&str, Engine); 4] = [
    ("postgresql://", Engine::Postgres),
    ("postgres://", Engine::Postgres),
    ("mysql://", Engine::Mysql),
    ("mariadb://", Engine::Mysql),
];
const SOURCES_HELP: &str = "give one of `sqlite = \"bundled\"`, `postgres = \"BUILD\"`, `mysql = \"BUILD\"` (MariaDB too), \
     `rocksdb = \"BUILD\"` (Speedb too), `null = \"bundled\"`, `url = \"postgresql://...\"`, `url = \"mysql://...\"`";

/// Reads `[build]`. A build that can't be read is reported and left out.
pub(crate) fn read(cx: &mut Context<'_>, entry: Option<Entry>) -> Vec<(Build, Place)> {
    let place = entry.as_ref().map_or(Place::Nowhere, |it| it.key_place);
    let table = entry.map_or(Some(Default::default()), |it| {
        table_of(cx, "build", it.node)
    });
    let entries = table.map(|table| table.entries);
    if entries.as_ref().is_some_and(Vec::is_empty) {
        cx.error("plan::missing-key", place, "the plan has no build")
            .label("nothing in it")
            .help(format!("add a table `[build.NAME]`; in it {SOURCES_HELP}"));
    }
    let mut builds = Vec::new();
    for entry in entries.unwrap_or_default() {
        let place = entry.key_place;
        builds.extend(build(cx, entry).map(|build| (build, place)));
    }
    builds
}

fn build(cx: &mut Context<'_>, entry: Entry) -> Option<Build> {
    let name = entry.key;
    let path = format!("build.{}", key_part(&name));
    let message = "a build has a name that cannot be used";
    let is_named = check_name(cx, message, &name, entry.key_place);
    let mut section = Section::of(cx, &path, entry.node)?;
    let place = section.place;
    let missing = |cx: &mut Context<'_>| {
        let message = format!("{} does not say what it is", code(&path));
        cx.error("plan::missing-key", place, message)
            .label("nothing in it")
            .help(SOURCES_HELP);
    };
    let exclusive = [
        "a build is one thing",
        "make two builds of it, or take one out",
    ];
    let factors = factors(cx, &mut section);
    let engines = Engine::NAMES.iter().map(|(name, _)| *name);
    let keys: Vec<&str> = engines.chain(["url"]).collect();
    let way = section.take_one(cx, &keys, exclusive, missing)?;
    let key = section.name_of(&way.key);
    let named = Engine::NAMES.iter().find(|(name, _)| *name == way.key);
    let (engine, source, shown) = match named.map(|(_, engine)| *engine) {
        Some(engine @ (Engine::Sqlite | Engine::Null)) => {
            let bundled = Choice(&[("bundled", ())]);
            bundled.read(cx, &key, &way.node)?;
            (engine, BuildSource::Bundled, bundled.show(&()))
        }
        Some(engine) => {
            let place = Line.read(cx, &key, &way.node)?;
            let shown = quoted(&place);
            (engine, BuildSource::Installed(place), shown)
        }
        None => {
            let url = Line.read(cx, &key, &way.node)?;
            let mut schemes = SCHEMES.iter();
            let is_of = |scheme: &str| url.len() > scheme.len() && url.starts_with(scheme);
            let Some((_, engine)) = schemes.find(|(scheme, _)| is_of(scheme)) else {
                let message = format!("{} is not a URL of a server: {}", code(&key), code(&url));
                cx.error("plan::bad-url", way.node.place, message)
                        .label("expected `postgresql://...` or `mysql://...`")
                        .help("a URL looks like `postgresql://USER@HOST:5432/DATABASE`, `mysql://USER@HOST:3306/DATABASE`");
                return None;
            };
            let shown = quoted(&redact(&url));
            (*engine, BuildSource::Url(Secret::new(url)), shown)
        }
    };
    cx.resolve(key, shown, way.node.place);
    is_named.then_some(Build {
        name,
        engine,
        source,
        factors,
    })
}
