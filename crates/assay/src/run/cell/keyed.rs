//! A cell of RocksDB: the steps of its workload, on a database that is opened anew after the load where the config has
//! options for that alone, as each test of `db_bench` opens it.

use std::ops::Range;
use std::sync::Arc;

use anyhow::Context;
use engine::Engine;
use engine::rocksdb::{self, RocksDb};
use plan::{LOAD_OPTION, Workload};
use record::{Setting, Status};
use workload::insert::Insert;
use workload::kv::Kv;

use super::Running;
use crate::run::subject::OpenRocks;
use crate::run::subject::insert::InsertRunner;
use crate::run::subject::kv::KvRunner;
use crate::run::target::{self, Rocks};

/// What the library said while it loaded, where it was opened anew after that.
const LOG_OF_LOAD: &str = "load.log";

/// What differs whenever a database is made and then opened.
const OF_A_NEW_DATABASE: [&str; 2] = ["create_if_missing", "error_if_exists"];

/// A workload with what it knows it did.
enum Keyed {
    Sequence(Box<Kv>),
    Insert(Box<Insert>),
}

impl Running<'_> {
    /// Runs the cell on a database that is up, and takes it down.
    pub(super) fn rocksdb(&mut self, rocks: Rocks, cell: plan::Cell) -> anyhow::Result<Status> {
        let Rocks {
            database,
            data_dir,
            after_load,
        } = rocks;
        let result = self.each_opening(database, after_load, &data_dir, cell);
        self.leave(Some(data_dir), result)
    }

    fn each_opening(
        &mut self,
        database: RocksDb,
        after_load: Option<rocksdb::Config>,
        data_dir: &engine::DataDir,
        cell: plan::Cell,
    ) -> anyhow::Result<Status> {
        let plan = self.conductor.plan();
        let mut keyed = match &plan.variants[cell.variant].workload {
            Workload::Kv(kv) => Keyed::Sequence(Box::new(Kv::new(kv, cell.clients, plan.seed))),
            Workload::Insert(insert) => {
                Keyed::Insert(Box::new(Insert::new(insert, cell.clients, plan.seed)))
            }
            Workload::Sysbench(_) => {
                anyhow::bail!("the sysbench microbenchmarks do not run on an engine without SQL")
            }
        };
        self.note_left_out(&database);
        let count = self.record.steps.len();
        let Some(config) = after_load else {
            return self.measure(database, |this, database| {
                this.keyed(database, &mut keyed, (0..count, false), cell)
            });
        };
        let library = Arc::clone(database.library());
        let status = self.measure(database, |this, database| {
            this.keyed(database, &mut keyed, (0..1, true), cell)
        })?;
        if status != Status::Complete {
            return Ok(status);
        }
        let log = self.directory.log_path();
        if log.exists() {
            fs_err::rename(log, self.directory.path().join(LOG_OF_LOAD))?;
        }
        let database = match RocksDb::open(&library, data_dir.path(), &config) {
            Ok(database) => database,
            Err(error) => {
                target::keep_log(self.directory, &rocksdb::log_path(data_dir.path()))?;
                return Err(error).context("the database can't be opened anew after the load");
            }
        };
        self.note_left_out(&database);
        let of_load = std::mem::take(&mut self.record.settings);
        self.measure(database, |this, database| {
            this.tell_of_load(of_load, cell)?;
            this.directory.write(this.record)?;
            this.keyed(database, &mut keyed, (1..count, false), cell)
        })
    }

    /// Some steps of either workload, on a database that is open for the load alone or not.
    fn keyed(
        &mut self,
        database: &RocksDb,
        keyed: &mut Keyed,
        (steps, is_loading): (Range<usize>, bool),
        cell: plan::Cell,
    ) -> anyhow::Result<Status> {
        let rocks = OpenRocks {
            database,
            is_loading,
        };
        match keyed {
            Keyed::Sequence(workload) => {
                let mut runner = KvRunner::new(database, workload);
                self.each_step(&rocks, &mut runner, steps, cell)
            }
            Keyed::Insert(workload) => {
                let mut runner = InsertRunner {
                    database: &workload::insert::keyed::Keyed(|| database.connect()),
                    workload,
                };
                self.each_step(&rocks, &mut runner, steps, cell)
            }
        }
    }

    /// Adds to the settings those of the load that were others, and those that the config has for it.
    fn tell_of_load(&mut self, of_load: Vec<Setting>, cell: plan::Cell) -> anyhow::Result<()> {
        let plan = self.conductor.plan();
        let declared = plan.configs[plan.targets[cell.target].config].declared();
        let later = &self.record.settings;
        let is_told = |setting: &Setting| {
            let name = bare(&setting.name);
            let own = format!("{LOAD_OPTION}{name}");
            let is_declared = || {
                declared.iter().any(|(option, _)| {
                    let part = own.strip_prefix(option.as_str());
                    part.is_some_and(|part| part.is_empty() || part.starts_with('.'))
                })
            };
            let is_same = |it: &Setting| (&it.name, &it.value) == (&setting.name, &setting.value);
            !OF_A_NEW_DATABASE.contains(&name) && (is_declared() || !later.iter().any(is_same))
        };
        let told: Vec<Setting> = of_load
            .into_iter()
            .filter(is_told)
            .map(|setting| Setting {
                name: name_in_load(&setting.name),
                ..setting
            })
            .collect();
        self.record.settings.extend(told);
        self.record.settings.sort_by(|a, b| a.name.cmp(&b.name));
        self.describe_settings()
    }

    /// Says which options of the config this version of RocksDB does not have.
    fn note_left_out(&mut self, database: &RocksDb) {
        let left_out = database.not_applicable();
        if !left_out.is_empty() {
            let text = format!(
                "not applicable to {}: `{}`",
                database.version(),
                left_out.join("`, `")
            );
            self.note("rocksdb::options", &[text]);
        }
    }
}

/// Its name without its section.
fn bare(name: &str) -> &str {
    name.split_once("] ").map_or(name, |(_, bare)| bare)
}

/// What a setting of the load is called beside that of the other steps: `[CFOptions] load.compression`.
fn name_in_load(name: &str) -> String {
    match name.split_once("] ") {
        Some((section, name)) => format!("{section}] {LOAD_OPTION}{name}"),
        None => format!("{LOAD_OPTION}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::name_in_load;

    #[test]
    fn a_setting_of_the_load_has_a_name_of_its_own() {
        assert_eq!(
            name_in_load("[CFOptions] compression"),
            "[CFOptions] load.compression"
        );
        assert_eq!(name_in_load("perf_level"), "load.perf_level");
    }
}
