//! Reads builds of commits: `[build.NAME]` with `git`, or with `extends`, which takes what it does
//! not say from another build of a commit.

use std::sync::LazyLock;

use words::{Engine, EngineHome};

use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::value_kinds::{Choice, Line, Script};
use crate::spec::CommitSource;
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node};
use crate::text::wording::{choices, code};

/// The key of a build that names a repository.
pub(crate) const GIT: &str = "git";

/// The key of a build that names another build of a commit.
pub(crate) const EXTENDS: &str = "extends";

/// The keys of builds of commits only, each with an example for help.
const KEYS: [(&str, &str); 5] = [
    ("engine", "engine = \"rocksdb\""),
    ("ref", "ref = \"v9.9.3\""),
    ("make", "make = \"make -j2 shared_lib\""),
    ("gives", "gives = \"librocksdb.so\""),
    ("patch", "patch = \"fix.diff\""),
];

/// The engines whose builds are installed, and so can be made, by name. Those that Assay has
/// without a build come last.
static ENGINES: LazyLock<Vec<(&str, Engine)>> = LazyLock::new(|| {
    let mut engines = Engine::NAMES.to_vec();
    engines.retain(|(_, engine)| engine.facts().has_builds());
    engines.sort_by_key(|(_, engine)| engine.facts().home == EngineHome::Bundled);
    engines
});

/// Returns true for a key of builds of commits that is no source by itself.
pub(crate) fn is_recipe_key(key: &str) -> bool {
    KEYS.iter().any(|(known, _)| *known == key)
}

/// The keys of a build of a commit, as the plan writes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecipeKeys {
    engine: Option<Engine>,
    reference: Option<String>,
    make: Option<String>,
    gives: Option<String>,
    patch: Option<String>,
    /// The keys that the build has, with their places, even if their values are wrong.
    given: Vec<(&'static str, Place)>,
}

/// A build of a commit that has its own repository.
pub(crate) struct CommitBuild {
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) source: CommitSource,
}

/// A build that extends a build of a commit.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    /// The name of the other build, and its place.
    pub(crate) base: (String, Place),
    keys: RecipeKeys,
}

impl RecipeKeys {
    pub(crate) fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let places = KEYS.map(|(key, _)| (key, section.place_of(key)));

        Self {
            engine: cx.given(section, "engine", &Choice(ENGINES.as_slice())),
            reference: cx.given(section, "ref", &Line),
            make: cx.given(section, "make", &Script),
            gives: cx.given(section, "gives", &Line),
            patch: cx.given(section, "patch", &Line),
            given: places.into_iter().filter(|(_, place)| *place != Place::Nowhere).collect(),
        }
    }

    /// Reports these keys in a build that is not of a commit.
    pub(crate) fn refuse(&self, cx: &mut Context<'_>, path: &str) {
        for (key, place) in &self.given {
            let message = format!("{} needs `git`", code(&format!("{path}.{key}")));
            cx.error("plan::conflict", *place, message)
                .label("only a build of a commit has this key")
                .help("name a repository instead of a build: `git = \"/src/rocksdb\"`");
        }
    }

    /// Returns the source of a build that has its own repository. Reports the keys that are
    /// missing. `place` is that of the key `git`.
    pub(crate) fn source(
        self,
        cx: &mut Context<'_>,
        path: &str,
        repository: String,
        place: Place,
    ) -> Option<(Engine, CommitSource)> {
        for (key, example) in KEYS.iter().filter(|(key, _)| *key != "patch") {
            if !self.given.iter().any(|(given, _)| given == key) {
                let message = format!("{} has no `{key}`", code(path));
                cx.error("plan::missing-key", place, message)
                    .label("a build of a commit needs it")
                    .help(format!("add `{example}`"));
            }
        }

        let source = CommitSource {
            repository,
            reference: self.reference?,
            make: self.make?,
            gives: self.gives?,
            patch: self.patch,
        };

        Some((self.engine?, source))
    }
}

impl Extension {
    /// Reads the extension whose key `extends` is `entry`.
    pub(crate) fn read(
        cx: &mut Context<'_>,
        key: &str,
        entry: &Entry,
        keys: RecipeKeys,
    ) -> Option<Self> {
        let place = entry.node.place;
        let base = Line.read(cx, key, &entry.node)?;

        if let Some((_, place)) = keys.given.iter().find(|(key, _)| *key == "engine") {
            let message = format!("{} and `engine` cannot be combined", code(key));
            cx.error("plan::conflict", *place, message)
                .label("the engine is that of the other build")
                .help("remove `engine`, or name a repository with `git` instead of `extends`");
        }

        Some(Self { base: (base, place), keys })
    }

    /// Returns the source of the build. `commits` are the builds that have their own repository.
    /// Reports a name that none of them has.
    pub(crate) fn source(
        &self,
        cx: &mut Context<'_>,
        path: &str,
        commits: &[CommitBuild],
    ) -> Option<(Engine, CommitSource)> {
        let (name, place) = &self.base;
        let Some(base) = commits.iter().find(|commit| commit.name == *name) else {
            let names: Vec<&str> = commits.iter().map(|commit| commit.name.as_str()).collect();
            let message = format!("{} extends no build of a commit: {}", code(path), code(name));
            let error = cx.error("plan::unknown-build", *place, message);
            error.label("expected a build with `git`");
            if !names.is_empty() {
                error.help(choices(name, "builds with `git`", &names));
            }
            return None;
        };

        let own = self.keys.clone();
        let inherited = base.source.clone();
        let source = CommitSource {
            repository: inherited.repository,
            reference: own.reference.unwrap_or(inherited.reference),
            make: own.make.unwrap_or(inherited.make),
            gives: own.gives.unwrap_or(inherited.gives),
            patch: own.patch.or(inherited.patch),
        };
        Some((base.engine, source))
    }
}

/// Reads the path of a repository.
pub(crate) fn repository(cx: &mut Context<'_>, key: &str, node: &Node) -> Option<String> {
    let path = Line.read(cx, key, node)?;
    if path.contains("://") {
        let message = format!("{} is a URL, not a clone: {}", code(key), code(&path));
        cx.error("plan::bad-url", node.place, message)
            .label("expected the path of a clone on this machine")
            .help("clone it first: `git clone URL`, then write the clone's path");
        return None;
    }
    Some(path)
}
