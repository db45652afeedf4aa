//! Reads `[build.NAME]`: installed versions of engines, and running servers.

use words::{Engine, EngineHome, Secret, redact};

use crate::configs::factors;
use crate::diagnostic::Place;
use crate::reader::{Context, Section, ValueKind, table_of};
use crate::spec::{Build, BuildSource};
use crate::tree::{Entry, Node, Value};
use crate::value_kinds::{Choice, Line, check_name};
use crate::wording::{code, key_part, quoted};

const URL_HELP: &str =
    "a URL looks like `postgresql://USER@HOST:5432/DATABASE` or `mysql://USER@HOST:3306/DATABASE`";
const SOURCES_HELP: &str = "one of `sqlite = \"bundled\"`, `postgres = \"BUILD\"`, `mysql = \"BUILD\"` (MariaDB too), \
     `rocksdb = \"BUILD\"` (Speedb too), `null = \"bundled\"`, `url = \"postgresql://...\"`, `url = \"mysql://...\"`";

/// Reads `[build]`. Reports and leaves out a build that it can't read.
pub(crate) fn read(cx: &mut Context<'_>, entry: Option<Entry>) -> Vec<(Build, Place)> {
    let place = entry.as_ref().map_or(Place::Nowhere, |it| it.key_place);
    let table = entry.map_or(Some(Default::default()), |it| table_of(cx, "build", it.node));
    let entries = table.map(|table| table.entries);
    if entries.as_ref().is_some_and(Vec::is_empty) {
        cx.error("plan::missing-key", place, "the plan has no build")
            .label("this table is empty")
            .help(format!("add a table `[build.NAME]` with {SOURCES_HELP}"));
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
    let message = "invalid name of a build";
    let is_named = check_name(cx, message, &name, entry.key_place);
    let mut section = Section::of(cx, &path, entry.node)?;
    let place = section.place;
    let missing = |cx: &mut Context<'_>| {
        let message = format!("{} has no engine and no URL", code(&path));
        cx.error("plan::missing-key", place, message)
            .label("expected an engine or a URL")
            .help(format!("add {SOURCES_HELP}"));
    };
    let exclusive = ["a build has one source", "remove one of them, or write two builds"];
    let factors = factors(cx, &mut section);
    let replicas = section.take("replica-url");
    let engines = Engine::NAMES.iter().map(|(name, _)| *name);
    let keys: Vec<&str> = engines.chain(["url"]).collect();
    let source = section.take_one(cx, &keys, exclusive, missing)?;
    let key = section.name_of(&source.key);
    let entry = Engine::NAMES.iter().find(|(name, _)| *name == source.key);
    let node = source.node;
    let (engine, source, shown) = match entry.map(|(_, engine)| *engine) {
        Some(engine) if engine.facts().home == EngineHome::Bundled => {
            let bundled = Choice(&[("bundled", ())]);
            bundled.read(cx, &key, &node)?;
            (engine, BuildSource::Bundled, bundled.show(&()))
        }
        Some(engine) => {
            if let (None, Some(literal)) = (node.text(), node.literal()) {
                let help = format!("write it in quotes: `\"{literal}\"`");
                cx.wrong_type(&key, &node, "a string").help(help);
                return None;
            }
            let installed = Line.read(cx, &key, &node)?;
            if installed.contains("://") {
                let message = format!("{} is a URL, not a build: {}", code(&key), code(&installed));
                cx.error("plan::bad-url", node.place, message)
                    .label("expected a version or a directory")
                    .help("for a server that is already running, write `url = \"...\"` instead");
                return None;
            }
            let shown = quoted(&installed);
            (engine, BuildSource::Installed(installed), shown)
        }
        None => {
            let (engine, url, shown) = server_url(cx, &key, &node)?;
            (engine, BuildSource::Url(url), shown)
        }
    };
    let is_url = matches!(source, BuildSource::Url(_));
    cx.resolve(key, shown, node.place);
    let replicas = replicas.map(|entry| {
        let key = section.name_of(&entry.key);
        if !is_url {
            let message = format!("{} needs `url`", code(&key));
            cx.error("plan::conflict", entry.key_place, message)
                .label("assay starts this build's server and its replicas itself")
                .help("for such a build, set `replicas` in its config");
        }
        replica_urls(cx, engine, &key, entry.node)
    });
    is_named.then_some(Build {
        name,
        engine,
        source,
        replica_urls: replicas.unwrap_or_default(),
        factors,
    })
}

/// Reads the URLs of replicas of an engine: one, or a list.
fn replica_urls(cx: &mut Context<'_>, engine: Engine, key: &str, node: Node) -> Vec<Secret> {
    let place = node.place;
    let nodes = match node.value {
        Value::List(nodes) => nodes,
        _ => vec![node],
    };
    let (mut urls, mut all_shown) = (Vec::new(), Vec::new());
    let mut places: Vec<Place> = Vec::new();
    for node in &nodes {
        let Some((of, url, shown)) = server_url(cx, key, node) else {
            continue;
        };
        if of != engine {
            let message = format!("{} names a server of another engine: {shown}", code(key));
            cx.error("plan::conflict", node.place, message)
                .label(format!("the primary is a server of `{}`", engine.name()));
        }
        if let Some(index) = urls.iter().position(|other| *other == url) {
            let message = format!("{} has {shown} twice", code(key));
            cx.error("plan::duplicate-value", node.place, message)
                .label("listed again")
                .also(places[index], "first listed here")
                .help("remove one of them; a replica that is listed twice would count as two");
        }
        places.push(node.place);
        urls.push(url);
        all_shown.push(shown);
    }
    cx.resolve(key, format!("[{}]", all_shown.join(", ")), place);
    urls
}

/// Reads the URL of a server. Returns the URL with its engine, and as listings show it.
fn server_url(cx: &mut Context<'_>, key: &str, node: &Node) -> Option<(Engine, Secret, String)> {
    if node.text().is_none() {
        cx.wrong_type(key, node, "a URL").help(URL_HELP);
        return None;
    }
    let url = Line.read(cx, key, node)?;
    let Some(engine) = Engine::all().find(|engine| {
        let schemes = engine.facts().url_schemes;
        schemes.iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme))
    }) else {
        let message = format!("{} is not the URL of a server: {}", code(key), code(&url));
        cx.error("plan::bad-url", node.place, message)
            .label("expected `postgresql://...` or `mysql://...`")
            .help(URL_HELP);
        return None;
    };
    let shown = quoted(&redact(&url));
    Some((engine, Secret::new(url), shown))
}
