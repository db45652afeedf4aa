//! Reads `[build.NAME]`: installed versions of engines, commits to build, and running servers.

use words::{Engine, EngineHome, Secret, redact};

use super::commits::{CommitBuild, EXTENDS, Extension, GIT, RecipeKeys, repository};
use super::host_metrics::ExporterKeys;
use super::options::factors;
use crate::reading::context::{Context, Section, ValueKind, table_of};
use crate::reading::value_kinds::{Choice, Line, check_name};
use crate::spec::{Build, BuildSource};
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node, Table, Value};
use crate::text::wording::{code, key_part, quoted};

const URL_HELP: &str =
    "a URL looks like `postgresql://USER@HOST:5432/DATABASE` or `mysql://USER@HOST:3306/DATABASE`";
const SOURCES_HELP: &str = "one of `sqlite = \"bundled\"` (or `\"BUILD\"`), `postgres = \"BUILD\"`, `mysql = \"BUILD\"` (MariaDB too), \
     `rocksdb = \"BUILD\"` (Speedb too), `library = \"PATH\"` (an engine of your own), `null = \"bundled\"`, `git = \"REPOSITORY\"`, `url = \"postgresql://...\"`, `url = \"mysql://...\"`";

/// The source, in plans, of an engine that is part of Assay.
pub const BUNDLED: &str = "bundled";

/// A build, with its place in the plan.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredBuild {
    pub(crate) build: Build,
    pub(crate) place: Place,
}

/// Reads `[build]`. Reports and leaves out a build that it cannot read.
pub(crate) fn read(cx: &mut Context<'_>, entry: Option<Entry>) -> Vec<DeclaredBuild> {
    let mut place = Place::Nowhere;
    let mut table = Table::default();
    if let Some(entry) = entry {
        place = entry.key_place;
        let Some(found) = table_of(cx, "build", entry.node) else {
            return Vec::new();
        };
        table = found;
    }

    if table.entries.is_empty() {
        cx.error("plan::missing-key", place, "the plan has no build")
            .label("this table is empty")
            .help(format!("add a table `[build.NAME]` with {SOURCES_HELP}"));
    }

    let mut written = Vec::new();
    let mut unreadable = Vec::new();
    for entry in table.entries {
        let (name, place) = (entry.key.clone(), entry.key_place);
        match build(cx, entry) {
            Some(build) => written.push((build, place)),
            None => unreadable.push(name),
        }
    }
    let commits: Vec<CommitBuild> =
        written.iter().filter_map(|(written, _)| written.commit()).collect();

    let mut builds = Vec::new();
    for (written, place) in written {
        let mut build = written.build;
        if let Some(extension) = written.extension {
            if unreadable.contains(&extension.base.0) {
                // What is wrong with that build is reported.
                continue;
            }

            let path = format!("build.{}", key_part(&build.name));
            let Some((engine, source)) = extension.source(cx, &path, &commits) else { continue };
            (build.engine, build.source) = (engine, BuildSource::Commit(source));
        }
        builds.push(DeclaredBuild { build, place });
    }
    builds
}

/// A build as the plan writes it.
struct WrittenBuild {
    /// The build; with an extension, its engine and its source are still unknown.
    build: Build,
    extension: Option<Extension>,
}

impl WrittenBuild {
    /// Returns the name, the engine and the source of a build of a commit that extends no other.
    fn commit(&self) -> Option<CommitBuild> {
        let BuildSource::Commit(source) = &self.build.source else {
            return None;
        };
        let Build { name, engine, .. } = &self.build;
        Some(CommitBuild { name: name.clone(), engine: *engine, source: source.clone() })
    }
}

fn build(cx: &mut Context<'_>, entry: Entry) -> Option<WrittenBuild> {
    let name = entry.key;
    let path = format!("build.{}", key_part(&name));
    let is_named = check_name(cx, "invalid name of a build", &name, entry.key_place);
    let mut section = Section::of(cx, &path, entry.node)?;
    let factors = factors(cx, &mut section);

    let replicas = section.take("replica-url");
    let exporter = ExporterKeys::take(&mut section);

    // Listings and errors about the build begin with its source.
    let listed_at = cx.resolved.len();
    let recipe = RecipeKeys::read(cx, &mut section);

    let engines = Engine::NAMES.iter().map(|(name, _)| *name);
    let keys: Vec<&str> = engines.chain(["url", GIT, EXTENDS]).collect();
    let exclusive = ["a build has one source", "remove one of them, or write two builds"];
    let place = section.place;
    let entry = section.take_one(cx, &keys, exclusive, |cx| report_no_source(cx, place, &path))?;

    let key = section.name_of(&entry.key);
    let place = entry.node.place;
    let mut extension = None;
    let found = match entry.key.as_str() {
        EXTENDS => {
            let read = Extension::read(cx, &key, &entry, recipe)?;
            let shown = quoted(&read.base.0);
            extension = Some(read);
            // Known when all builds are read.
            FoundSource { engine: Engine::Null, source: BuildSource::Bundled, shown }
        }
        GIT => {
            let repository = repository(cx, &key, &entry.node)?;
            let shown = quoted(&repository);
            let (engine, source) = recipe.source(cx, &path, repository, entry.key_place)?;
            FoundSource { engine, source: BuildSource::Commit(source), shown }
        }
        _ => {
            recipe.refuse(cx, &path);
            source(cx, &key, &entry)?
        }
    };
    cx.resolve_at(listed_at, key, found.shown, place);

    let is_running = matches!(found.source, BuildSource::Url(_));
    let mut replica_urls = Vec::new();
    if let Some(replicas) = replicas {
        let replicas_key = section.name_of(&replicas.key);
        if !is_running {
            refuse_replica_urls(cx, &replicas_key, replicas.key_place);
        }
        replica_urls = read_replica_urls(cx, found.engine, &replicas_key, replicas.node);
    }

    let host_metrics = exporter.read(cx, &path, is_running);

    let build = Build {
        name,
        engine: found.engine,
        source: found.source,
        replica_urls,
        host_metrics,
        factors,
    };
    is_named.then_some(WrittenBuild { build, extension })
}

fn report_no_source(cx: &mut Context<'_>, place: Place, path: &str) {
    let message = format!("{} has no engine and no URL", code(path));
    cx.error("plan::missing-key", place, message)
        .label("expected an engine or a URL")
        .help(format!("add {SOURCES_HELP}"));
}

/// The source of a build, and what follows from it.
struct FoundSource {
    engine: Engine,
    source: BuildSource,
    /// The source as listings show it.
    shown: String,
}

/// Reads the source of a build: `entry` has an engine's name or `url` as its key, whose dotted name
/// is `key`.
fn source(cx: &mut Context<'_>, key: &str, entry: &Entry) -> Option<FoundSource> {
    let Some(engine) = Engine::named(&entry.key) else {
        let server = server_url(cx, key, &entry.node)?;
        let source = BuildSource::Url(server.url);
        return Some(FoundSource { engine: server.engine, source, shown: server.shown });
    };

    let facts = engine.facts();
    if !facts.has_builds() {
        let bundled = Choice(&[(BUNDLED, ())]);
        bundled.read(cx, key, &entry.node)?;
        let shown = bundled.show(&());
        return Some(FoundSource { engine, source: BuildSource::Bundled, shown });
    }

    let installed = installed(cx, key, &entry.node)?;
    let shown = quoted(&installed);
    let source = if facts.home == EngineHome::Bundled && installed == BUNDLED {
        BuildSource::Bundled
    } else {
        BuildSource::Installed(installed)
    };
    Some(FoundSource { engine, source, shown })
}

/// Reads the version or the directory of an installed build.
fn installed(cx: &mut Context<'_>, key: &str, node: &Node) -> Option<String> {
    // A version looks like a number, so quotes are easily forgotten.
    if let (None, Some(literal)) = (node.text(), node.literal()) {
        let help = format!("write it in quotes: `\"{literal}\"`");
        cx.wrong_type(key, node, "a string").help(help);
        return None;
    }

    let text = Line.read(cx, key, node)?;
    if text.contains("://") {
        let message = format!("{} is a URL, not a build: {}", code(key), code(&text));
        cx.error("plan::bad-url", node.place, message)
            .label("expected a version or a directory")
            .help("for a server that is already running, write `url = \"...\"` instead");
        return None;
    }
    Some(text)
}

/// Reports URLs of replicas of a build whose server does not run already.
fn refuse_replica_urls(cx: &mut Context<'_>, key: &str, place: Place) {
    let message = format!("{} needs `url`", code(key));
    cx.error("plan::conflict", place, message)
        .label("assay starts this build's server and its replicas itself")
        .help("for such a build, set `replicas` in its config");
}

/// Reads the URLs of replicas of an engine: one, or a list.
fn read_replica_urls(cx: &mut Context<'_>, engine: Engine, key: &str, node: Node) -> Vec<Secret> {
    let place = node.place;
    let nodes = match node.value {
        Value::List(nodes) => nodes,
        _ => vec![node],
    };

    let mut urls = Vec::new();
    let mut places: Vec<Place> = Vec::new();
    let mut all_shown = Vec::new();
    for node in &nodes {
        let Some(server) = server_url(cx, key, node) else {
            continue;
        };

        let shown = server.shown;
        if server.engine != engine {
            let message = format!("{} names a server of another engine: {shown}", code(key));
            cx.error("plan::conflict", node.place, message)
                .label(format!("the primary is a server of `{}`", engine.name()));
        }
        if let Some(index) = urls.iter().position(|other| *other == server.url) {
            let message = format!("{} has {shown} twice", code(key));
            cx.error("plan::duplicate-value", node.place, message)
                .label("listed again")
                .also(places[index], "first listed here")
                .help("remove one of them; a replica that is listed twice would count as two");
        }

        places.push(node.place);
        urls.push(server.url);
        all_shown.push(shown);
    }

    cx.resolve(key, format!("[{}]", all_shown.join(", ")), place);
    urls
}

struct ServerUrl {
    engine: Engine,
    url: Secret,
    /// The URL as listings show it, without its password.
    shown: String,
}

fn server_url(cx: &mut Context<'_>, key: &str, node: &Node) -> Option<ServerUrl> {
    if node.text().is_none() {
        cx.wrong_type(key, node, "a URL").help(URL_HELP);
        return None;
    }

    let url = Line.read(cx, key, node)?;
    let Some(engine) = Engine::all().find(|engine| {
        let schemes = engine.facts().url_schemes;
        schemes.iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme))
    }) else {
        // The value may hold a password in a place where nothing looks for one.
        let message = format!("{} is not the URL of a server", code(key));
        cx.error("plan::bad-url", node.place, message)
            .label("expected `postgresql://...` or `mysql://...`")
            .help(URL_HELP);
        return None;
    };

    let shown = quoted(&redact(&url));
    Some(ServerUrl { engine, url: Secret::new(url), shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_about_sources_names_every_engine() {
        for (engine, _) in Engine::NAMES {
            assert!(SOURCES_HELP.contains(&format!("`{engine} = ")), "no source of `{engine}`");
        }
    }
}
