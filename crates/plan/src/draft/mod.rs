//! Writes plans, ready to run and to edit.

mod set_values;

use std::fmt::Write as _;
use std::time::Duration;

use words::EngineInterface;

use crate::{Engine, Reuse, Simulate, UNTIL_DECIDED, key_part, quoted};

pub use set_values::with_sets;

/// A workload of which a plan can be drafted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftWorkload {
    /// The Insert Benchmark.
    Insert,
    /// The microbenchmarks of sysbench.
    Sysbench,
    /// The key-value sequence.
    Kv,
    /// The transaction of pgbench.
    Tpcb,
    /// Order entry.
    Orders,
    /// The core workloads of YCSB.
    Ycsb,
}

/// Exact cells of a plan to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftExact {
    /// The simulation beside the counting of instructions; `None`: the draft names none.
    pub simulate: Option<Simulate>,
}

/// The workload section of a new plan.
#[derive(Debug)]
pub struct Template {
    /// The workload's name, capitalized for the beginning of a sentence.
    pub title: &'static str,
    /// The section's text, with blanks in braces.
    text: &'static str,
    /// The value of each blank: usually, and in a quick run.
    blanks: &'static [(&'static str, [&'static str; 2])],
    /// Returns true if an engine runs the workload.
    pub runs_on: fn(Engine) -> bool,
    /// The engines that run it, in words.
    pub engines: &'static str,
}

/// The workloads, in the order of [`DraftWorkload`]. Steps last a second or two: starts of a server
/// differ by more than turns do, so many repeats of short steps show more than few of long ones
/// (`docs/turns.md`).
const TEMPLATES: [Template; 6] = [
    Template {
        title: "The Insert Benchmark",
        text: include_str!("insert.toml"),
        blanks: &[("rows", ["200k", "20k"]), ("time", ["1500ms", "600ms"])],
        runs_on: |_| true,
        engines: "all engines",
    },
    Template {
        title: "The sysbench microbenchmarks",
        text: include_str!("sysbench.toml"),
        blanks: &[("rows", ["200k", "20k"]), ("time", ["1s", "600ms"])],
        runs_on: |engine| engine.facts().interface == EngineInterface::Sql,
        engines: "servers and SQLite",
    },
    Template {
        title: "The key-value sequence",
        text: include_str!("kv.toml"),
        blanks: &[
            ("rows", ["500k", "100k"]),
            ("time", ["1s", "600ms"]),
            ("write-time", ["2s", "600ms"]),
        ],
        runs_on: |engine| engine.facts().interface == EngineInterface::Keys,
        engines: "RocksDB, Speedb, and libraries",
    },
    Template {
        title: "The transaction of pgbench",
        text: include_str!("tpcb.toml"),
        blanks: &[("scale", ["5", "1"]), ("time", ["1s", "600ms"])],
        runs_on: |engine| engine.facts().interface == EngineInterface::Sql,
        engines: "servers and SQLite",
    },
    Template {
        title: "Order entry",
        text: include_str!("orders.toml"),
        blanks: &[("time", ["3s", "1s"])],
        runs_on: |engine| engine.facts().interface == EngineInterface::Sql,
        engines: "servers and SQLite",
    },
    Template {
        title: "YCSB",
        text: include_str!("ycsb.toml"),
        blanks: &[("scale", ["100", "20"]), ("time", ["1s", "600ms"])],
        runs_on: |engine| engine.facts().interface == EngineInterface::Sql,
        engines: "servers and SQLite",
    },
];

/// The name of each engine's first config.
pub const BASE: &str = "base";

/// Returns the options of an engine's first config, and another config that is worth comparing with
/// it.
fn options_of(engine: Engine) -> (&'static str, Option<[&'static str; 3]>) {
    match engine {
        Engine::Postgres => {
            (include_str!("postgres.toml"), Some(["sync", "synchronous_commit", "on"]))
        }
        Engine::Mysql => {
            (include_str!("mysql.toml"), Some(["sync", "innodb_flush_log_at_trx_commit", "1"]))
        }
        Engine::Sqlite => (include_str!("sqlite.toml"), Some(["full", "synchronous", "full"])),
        Engine::RocksDb => {
            (include_str!("rocksdb.toml"), Some(["lz4", "compression", "kLZ4Compression"]))
        }
        Engine::Library | Engine::Null => ("", None),
    }
}

/// A build in a plan.
#[derive(Clone, Debug)]
pub struct DraftBuild {
    /// The name in the plan.
    pub name: String,
    /// The engine.
    pub engine: Engine,
    /// The version, directory or URL that the plan gives: `postgres@17.2`.
    pub source: String,
}

impl DraftBuild {
    /// Returns whether the source is the URL of a server that Assay does not start.
    pub fn is_foreign(&self) -> bool {
        self.source.contains("://")
    }
}

/// A config that extends the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftConfig {
    /// The name.
    pub name: String,
    /// The options.
    pub options: Vec<(String, String)>,
}

impl DraftConfig {
    /// Returns the second config in an engine's first plan.
    pub fn second_of(engine: Engine) -> Option<Self> {
        let [name, option, value] = options_of(engine).1?;
        Some(Self { name: name.to_owned(), options: vec![(option.to_owned(), value.to_owned())] })
    }
}

/// The repeats of a plan to write.
#[derive(Clone, Copy, Debug)]
pub enum DraftRepeats {
    /// This many.
    Count(u32),
    /// Until all comparisons are decided, for at most this time.
    UntilDecided {
        /// The most time.
        time: Duration,
    },
}

impl DraftRepeats {
    /// Returns the lines of a plan.
    fn lines(self) -> String {
        match self {
            Self::Count(count) => format!("repeats = {count}  # of each target, in turn\n"),
            Self::UntilDecided { time } => format!(
                "repeats = {}  # of each target, in turn\n\
                 time = {}  # at most\n",
                quoted(UNTIL_DECIDED),
                quoted(&duration_text(time))
            ),
        }
    }
}

/// Returns a time as plans have it: in minutes if these are whole ones, or else in seconds.
pub fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds % 60.0 == 0.0 { format!("{}m", seconds / 60.0) } else { format!("{seconds}s") }
}

/// Returns lines as a comment of a plan.
pub fn commented(lines: &str) -> String {
    let mut comment = String::new();
    for line in lines.lines() {
        let _ = writeln!(comment, "{}", format!("# {line}").trim_end());
    }
    comment
}

/// The contents of a plan to write.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The comment at its beginning.
    pub head: String,
    /// The workload.
    pub template: &'static Template,
    /// The steps are short, and show only large changes.
    pub is_quick: bool,
    /// The builds, at least one.
    pub builds: &'a [DraftBuild],
    /// The numbers of clients.
    pub clients: &'a [u32],
    /// The configs that extend the first one of each engine.
    pub configs: &'a [DraftConfig],
    /// The first config is measured as well.
    pub has_base: bool,
    /// The only target is compared with itself.
    pub is_against_itself: bool,
    /// The cells that share one load.
    pub reuse: Reuse,
    /// Each target has exact cells.
    pub exact: Option<DraftExact>,
}

impl Template {
    /// Returns the template of a workload, or of the engine's default workload.
    pub fn of(workload: Option<DraftWorkload>, engine: Engine) -> &'static Self {
        let default = match engine.facts().interface {
            EngineInterface::Keys => DraftWorkload::Kv,
            EngineInterface::Sql => DraftWorkload::Insert,
        };
        &TEMPLATES[workload.unwrap_or(default) as usize]
    }
}

impl Draft<'_> {
    /// Returns the names of the configs of each build.
    pub fn config_names(&self) -> Vec<&str> {
        let base = self.has_base.then_some(BASE);
        let others = self.configs.iter().map(|config| config.name.as_str());
        base.into_iter().chain(others).collect()
    }

    /// Returns the plan's text.
    pub fn text(&self, repeats: DraftRepeats) -> String {
        let mut text = commented(&self.head);
        let configs = self.config_names();
        let first = format!("{}.{}", self.builds[0].name, configs[0]);
        let role = if self.is_against_itself { "against-itself" } else { "base" };
        let _ = writeln!(
            text,
            "\nclients = {:?}  # each number in the list is measured\n\
             turns = \"auto\"  # the targets take turns within each step; \"off\": one after the other\n\
             placement = \"shuffled\"  # each pair of turns has other processors; \"kernel\": where they happen to be\n\
             {}{role} = {}",
            self.clients,
            repeats.lines(),
            quoted(&first)
        );
        text.push('\n');
        text += match self.reuse {
            Reuse::Off | Reuse::Always => "",
            Reuse::Repeat => {
                "reuse = \"repeat\"  # one target of a repeat loads; false: each target does\n"
            }
            Reuse::Run => {
                "reuse = \"run\"  # only the first repeat loads; false: every repeat does\n"
            }
        };
        text.push('\n');

        self.add_exact(&mut text);
        text += &self.workload_section();
        self.add_builds(&mut text);
        self.add_configs(&mut text);

        if !self.has_base {
            let configs: Vec<String> = configs.iter().map(|name| quoted(name)).collect();
            let _ = write!(text, "\n[[target]]\nconfigs = [{}]\n", configs.join(", "));
        }

        text
    }

    /// Returns the section of the workload with its blanks filled.
    fn workload_section(&self) -> String {
        let mut section = self.template.text.to_owned();
        for (blank, [usual, quick]) in self.template.blanks {
            let value = if self.is_quick { quick } else { usual };
            section = section.replace(&format!("{{{blank}}}"), value);
        }

        section
    }

    fn add_exact(&self, text: &mut String) {
        let Some(exact) = self.exact else {
            return;
        };

        text.push_str("[exact]  # also counts instructions per operation, under valgrind\n");
        if let Some(simulate) = exact.simulate {
            let _ = writeln!(text, "simulate = {}", quoted(simulate.name()));
        }
        text.push('\n');
    }

    fn add_builds(&self, text: &mut String) {
        for build in self.builds {
            let DraftBuild { name, engine, source } = build;
            let facts = engine.facts();
            let has_versions = facts.has_builds() && !build.is_foreign();
            let hint = match self.builds {
                [_] if has_versions => {
                    "# To compare versions, add a table like this one for each; docs/builds.md shows how to download them.\n"
                }
                _ => "",
            };

            let key = if build.is_foreign() { "url" } else { engine.name() };
            let _ = write!(text, "\n{hint}[build.{name}]\n{key} = {}\n", quoted(source));
        }
    }

    fn add_configs(&self, text: &mut String) {
        let mut engines: Vec<Engine> = Vec::new();
        for build in self.builds {
            if !engines.contains(&build.engine) {
                engines.push(build.engine);
            }
        }

        for engine in engines {
            let path = format!("config.{}", engine.name());
            if self.builds.iter().any(DraftBuild::is_foreign) {
                let note = "Assay does not change the settings of a server that it did not start.";
                let _ = write!(text, "\n# {note}\n[{path}.{BASE}]\n");
                continue;
            }

            // The first config has the options that matter most, for users to edit.
            let _ = write!(text, "\n[{path}.{BASE}.set]\n{}", options_of(engine).0);
            for DraftConfig { name, options } in self.configs {
                let _ = write!(text, "\n[{path}.{name}]\nextends = \"{BASE}\"\n");
                for (option, value) in options {
                    let (option, value) = (key_part(option), quoted(value));
                    let _ = writeln!(text, "set.{option} = {value}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use words::EngineHome;

    use super::*;

    #[test]
    fn every_draft_is_a_plan() {
        for (_, engine) in Engine::NAMES {
            let is_bundled = engine.facts().home == EngineHome::Bundled;
            let source = if is_bundled { "bundled" } else { "1.2" };
            let builds =
                [DraftBuild { name: "one".to_owned(), engine: *engine, source: source.to_owned() }];
            let configs = Vec::from_iter(DraftConfig::second_of(*engine));
            for template in TEMPLATES.iter().filter(|template| (template.runs_on)(*engine)) {
                for (is_quick, has_base) in [(false, true), (true, configs.is_empty())] {
                    let draft = Draft {
                        head: "A plan.\n\nWith a head.".to_owned(),
                        template,
                        is_quick,
                        builds: &builds,
                        clients: &[1],
                        configs: &configs,
                        has_base,
                        is_against_itself: is_quick,
                        reuse: if is_quick { Reuse::Run } else { Reuse::Repeat },
                        exact: None,
                    };
                    let text = draft.text(DraftRepeats::Count(7));
                    let (plan, warnings) = crate::parse("draft.toml", &text, &[])
                        .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
                    assert!(warnings.is_empty(), "{warnings:?}\n{text}");
                    assert!(!text.contains(['{', '}']) || *engine == Engine::RocksDb, "{text}");
                    let targets = if is_quick { 2 } else { 1 + configs.len() };
                    assert_eq!((plan.targets.len(), plan.repeats), (targets, 7), "{text}");
                }
            }
        }
    }
}
