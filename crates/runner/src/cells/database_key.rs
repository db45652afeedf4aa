//! All that makes the database of a cell.

use plan::Config;
use record::{Assay, Build};

use crate::databases::{Key, KeyPart};
use crate::targets::site::CellSite;

/// Returns the key of the database that the first steps of a cell load.
pub fn key_of(cell: &CellSite<'_>) -> anyhow::Result<Key> {
    // The run's record says which builds and which assay measure this cell.
    let run = cell.run.read_run()?;

    // Another target may load the database.
    let (loader_build, loader_config) = cell.loading_parts();

    let build = run.builds.iter().find(|build| build.name == loader_build.name);
    let invocation = run.invocations.get((cell.record.invocation as usize).wrapping_sub(1));
    let assay = invocation.map_or(&run.assay, |invocation| &invocation.assay);

    let mut parts = Vec::new();
    let mut add = |name: &str, value: String| {
        parts.push(KeyPart { name: name.to_owned(), value });
    };

    add("assay", identity_of(assay));
    add("engine", loader_build.engine.name().to_owned());
    add("version", build.map(|build| build.version.clone()).unwrap_or_default());
    add("build", build.map(files_of).unwrap_or_default());
    add("architecture", std::env::consts::ARCH.to_owned());

    // What the workload loads, and how the config shapes its files.
    add("seed", cell.session.plan().seed.to_string());
    for (name, value) in cell.workload().load_facts(cell.planned.clients) {
        add(name, value);
    }
    for (name, value) in options_of(cell, loader_config)? {
        add(&name, value);
    }

    Ok(Key::new(parts))
}

/// Returns the version of assay, which decides which rows a workload writes. A modified one is
/// told apart by its program.
fn identity_of(assay: &Assay) -> String {
    if assay.git_dirty == Some(false) {
        return assay.to_string();
    }
    // A version that is not committed may change from build to build.
    let program = std::env::current_exe().and_then(fs_err::metadata);
    let modified = program.and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{assay}, program of {}", since.unwrap_or_default().as_nanos())
}

/// Returns the hashes of a build's files.
fn files_of(build: &Build) -> String {
    let hashes: Vec<&str> = build.files.iter().map(|file| file.sha256.as_str()).collect();
    hashes.join(" ")
}

/// Returns the options of a config, its limits excluded. Most do not shape files, but none is known
/// not to in every version.
fn options_of(cell: &CellSite<'_>, config: &Config) -> anyhow::Result<Vec<(String, String)>> {
    let mut options = Vec::new();
    for text in cell.session.file.config_texts(config)? {
        options.push(("config file".to_owned(), text));
    }

    for (name, value) in config.declared() {
        options.push((format!("config.{name}"), value));
    }

    options.push(("unknown options".to_owned(), config.skips_unknown_options.to_string()));

    let is_by_tcp = cell.session.plan().listen.is_some();
    options.push(("listens".to_owned(), is_by_tcp.to_string()));

    Ok(options)
}
