//! All that makes the database of a cell.

use plan::{Config, Reuse};
use record::{Build, Run};

use crate::databases::{Key, KeyPart};
use crate::session::RunSession;

/// Returns the key of the database that the first `steps` steps of a cell make. `run` is the record
/// of the run, which says what its builds are.
pub fn key_of(
    session: &RunSession<'_>,
    run: &Run,
    planned: plan::Cell,
    steps: usize,
) -> anyhow::Result<Key> {
    let plan = session.plan();
    let target = &plan.targets[planned.target];

    // Another target may load the database.
    let loader = &plan.targets[target.load_with.unwrap_or(planned.target)];
    let (loader_build, loader_config) = (&plan.builds[loader.build], &plan.configs[loader.config]);
    let build = run.builds.iter().find(|build| build.name == loader_build.name);

    let mut parts = Vec::new();
    let mut add = |name: &str, value: String| {
        parts.push(KeyPart { name: name.to_owned(), value });
    };

    add("engine", loader_build.engine.name().to_owned());
    add("version", build.map(|build| build.version.clone()).unwrap_or_default());
    add("build", build.map(files_of).unwrap_or_default());
    add("architecture", std::env::consts::ARCH.to_owned());

    // What the workload writes, and how the config shapes its files.
    add("content", workload::CONTENT_VERSION.to_string());
    add("seed", plan.seed.to_string());
    let planned_workload = &plan.variants[planned.variant].workload;
    for (name, value) in planned_workload.shaping_facts(steps, planned.clients) {
        add(name, value);
    }
    for (name, value) in options_of(session, loader_config)? {
        add(&name, value);
    }

    if plan.reuse == Reuse::Repeat {
        add("repeat", format!("{}{}", planned.kind.letter(), planned.repeat));
    }

    Ok(Key::new(parts))
}

/// Returns the hashes of a build's files.
fn files_of(build: &Build) -> String {
    let hashes: Vec<&str> = build.files.iter().map(|file| file.sha256.as_str()).collect();
    hashes.join(" ")
}

/// Returns the options of a config that may shape files. Its limits and the options that [leave no
/// trace](words::EngineFacts::leaves_no_trace) don't. Of the text of a file, nobody knows.
fn options_of(session: &RunSession<'_>, config: &Config) -> anyhow::Result<Vec<(String, String)>> {
    let mut options = Vec::new();
    for text in session.file.config_texts(config)? {
        options.push(("config file".to_owned(), text));
    }

    for (name, value) in config.shaping() {
        options.push((format!("config.{name}"), value));
    }

    options.push(("unknown options".to_owned(), config.skips_unknown_options.to_string()));

    let is_by_tcp = session.plan().listen.is_some();
    options.push(("listens".to_owned(), is_by_tcp.to_string()));

    Ok(options)
}
