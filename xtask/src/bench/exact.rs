//! Tests exact cells on real engines: cells of equal targets must be equal, and a function with 1%
//! more instructions must be found, named and sized.
//!
//! SQLite is part of Assay's program, so no library can plant a change in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::Value;

use super::Setup;
use super::planted_libraries::{Libraries, PlantedEngine};
use super::run::{Run, fetch, mariadb};
use crate::workspace::output;

/// The largest relative difference of two cells in a read step.
const READ_DIFFERENCE_MAX: f64 = 0.003;
/// The largest error of the size of a planted change, as a share of an operation's work.
const SIZE_ERROR_MAX: f64 = 0.002;
/// The planted instructions as a share of an operation's.
const PLANTED_SHARE: f64 = 0.01;
/// The exact cells of each target with a planted change. Two of PostgreSQL are 0.2% apart, which
/// hides a change of 1%.
const PLANTED_CELLS: usize = 3;
/// The function with more instructions.
const PLANTED_FUNCTION: &str = "planted_work";
/// The version of RocksDB whose cells are compared.
const ROCKSDB: &str = "rocksdb@10.2.1";

/// The cells that are run: equal ones of an engine, or a planted change.
enum Case {
    Equal(EqualEngine),
    Planted(PlantedEngine),
}

#[derive(Clone, Copy)]
enum EqualEngine {
    Sqlite,
    Postgres,
    Mysql,
    RocksDb,
}

const CASES: [(&str, Case); 6] = [
    ("SQLite, equal", Case::Equal(EqualEngine::Sqlite)),
    ("PostgreSQL, equal", Case::Equal(EqualEngine::Postgres)),
    ("MariaDB, equal", Case::Equal(EqualEngine::Mysql)),
    ("RocksDB, equal", Case::Equal(EqualEngine::RocksDb)),
    ("PostgreSQL, 1% planted", Case::Planted(PlantedEngine::Postgres)),
    ("RocksDB, 1% planted", Case::Planted(PlantedEngine::RocksDb)),
];

/// Runs each case as often as the setup says. Returns false if a figure is not within its bound.
pub fn run(setup: &Setup) -> Result<bool> {
    let mut passed = true;
    for (title, case) in CASES.iter().filter(|(title, _)| title.contains(&setup.only)) {
        passed &= match case {
            Case::Equal(engine) => equal(setup, title, *engine)?,
            Case::Planted(engine) => planted(setup, title, *engine)?,
        };
    }
    Ok(passed)
}

/// Compares pairs of cells of one target. Returns whether those of read steps are equal enough.
fn equal(setup: &Setup, title: &str, engine: EqualEngine) -> Result<bool> {
    let steps = if engine.is_rocksdb() {
        r#""fillseq", "readrandom", "overwrite""#
    } else {
        r#""load", "index", "point-query", "update-index", "insert""#
    };
    let plan = workload(engine.is_rocksdb(), 2, steps) + &engine.tables(setup)?;
    let mut largest: BTreeMap<Part, f64> = BTreeMap::new();
    for _ in 0..setup.many_round_count {
        let run = Run::of(setup, &plan)?;
        for (part, cells) in work_per_operation(&run)? {
            let [first, second] = cells[..] else {
                anyhow::bail!("{} has {} exact cells, not two", part.step, cells.len());
            };
            let difference = (first - second).abs() / first.min(second);
            let largest = largest.entry(part).or_default();
            *largest = largest.max(difference);
        }
    }

    println!("{title}, {} pairs:", setup.many_round_count);
    println!("  {:<14} {:<8} {:>20}", "step", "part", "largest difference");
    let mut passed = true;
    for (Part { step, connection }, difference) in largest {
        let is_read = ["point-query", "readrandom"].contains(&step.as_str());
        passed &= !is_read || difference <= READ_DIFFERENCE_MAX;
        println!("  {step:<14} {connection:<8} {:>18.3}%", 100.0 * difference);
    }
    Ok(passed)
}

impl EqualEngine {
    fn is_rocksdb(self) -> bool {
        matches!(self, Self::RocksDb)
    }

    /// Returns the tables of the target.
    fn tables(self, setup: &Setup) -> Result<String> {
        Ok(match self {
            Self::Sqlite => "[build.lite]\nsqlite = \"bundled\"\n\
                 [config.sqlite.base]\nset = { journal_mode = \"wal\", synchronous = \"normal\" }\n"
                .to_owned(),
            Self::Postgres => "[build.pg]\npostgres = \"distribution\"\n\
                 [config.postgres.base]\nset = { shared_buffers = \"256MB\", fsync = false }\n"
                .to_owned(),
            Self::Mysql => format!(
                "[build.my]\nmysql = '{}'\n[config.mysql.base]\nset = {{ innodb_buffer_pool_size = \
                 \"256M\", innodb_flush_log_at_trx_commit = 0 }}\n",
                mariadb(setup)?
            ),
            Self::RocksDb => format!("[build.rocks]\nrocksdb = '{}'\n", fetch(setup, ROCKSDB)?),
        })
    }
}

/// Plants a change again and again. Returns whether it is always found, named and sized.
fn planted(setup: &Setup, title: &str, engine: PlantedEngine) -> Result<bool> {
    let libraries = Libraries::new(setup, engine)?;
    let plain = libraries.compile_instructions("plain", 0)?;
    // The library changes each statement, so no other step is measured.
    let (head, step) = match engine {
        PlantedEngine::Postgres | PlantedEngine::MariaDb => {
            (workload(false, PLANTED_CELLS, r#""load", "point-query""#), "point-query")
        }
        PlantedEngine::RocksDb => {
            (workload(true, PLANTED_CELLS, r#""fillseq", "readrandom""#), "readrandom")
        }
    };
    let plan = |changed: &Path| {
        format!("base = \"plain.plain\"\n{head}{}", libraries.target_tables(&plain, changed))
    };

    let equal = libraries.compile_instructions("equal", 0)?;
    let run = Run::of(setup, &plan(&equal))?;
    let works = work_per_operation(&run)?;
    let work = works.iter().find(|(part, _)| part.step == step);
    let (_, cells) = work.with_context(|| format!("the step `{step}` has no work"))?;
    let base = cells.iter().sum::<f64>() / cells.len() as f64;
    // A loop has two instructions.
    let instructions = (base * PLANTED_SHARE / 2.0).round() as u64 * 2;
    let changed = libraries.compile_instructions("changed", instructions)?;
    println!("{title}: {instructions} instructions more than {base:.0} in `{step}`:");

    let mut found = Found::default();
    for _ in 0..setup.many_round_count {
        let run = Run::of(setup, &plan(&changed))?;
        found.add(&run.json("compare")?, step, instructions as f64)?;
    }
    Ok(found.print(setup.many_round_count))
}

/// The number of times that a planted change was found.
#[derive(Default)]
struct Found {
    /// More work is shown.
    shown: usize,
    /// The function is named.
    named: usize,
    /// Another function is named.
    misnamed: usize,
    /// The largest error of the size, as a share of an operation's work.
    size_error_max: f64,
}

impl Found {
    /// Adds what `assay compare` says of a run.
    fn add(&mut self, compared: &Value, step: &str, instructions: f64) -> Result<()> {
        let rows = compared["work"].as_array().context("`assay compare` lists no work")?;
        let is_planted = |row: &&Value| row["step"] == step && row["connection"].is_string();

        let row = rows.iter().find(is_planted).context("the changed step has no work")?;
        self.shown += usize::from(row["verdict"] == "more");
        let functions = row["functions"]["functions"].as_array();
        let names = functions.into_iter().flatten().map(|function| &function["name"]);
        let (right, wrong): (Vec<_>, Vec<_>) = names.partition(|name| **name == PLANTED_FUNCTION);
        self.named += usize::from(!right.is_empty());
        self.misnamed += usize::from(!wrong.is_empty());

        let ratio = row["ratio"].as_f64().context("the changed step has no ratio")?;
        let values = row["base_values"].as_array().context("the base has no exact cells")?;
        let sum: f64 = values.iter().filter_map(|sample| sample["value"].as_f64()).sum();
        let truth = instructions / (sum / values.len() as f64);
        self.size_error_max = self.size_error_max.max((ratio - 1.0 - truth).abs());
        println!(
            "  {}: {:+.3}% of {:+.3}%; named {right:?}, wrongly {wrong:?}",
            row["verdict"],
            100.0 * (ratio - 1.0),
            100.0 * truth
        );
        Ok(())
    }

    /// Prints the sum. Returns whether all runs found the change.
    fn print(&self, round_count: usize) -> bool {
        let Self { shown, named, misnamed, size_error_max } = *self;
        println!(
            "  {shown} of {round_count} show it, {named} name it, {misnamed} name another; \
             largest error of the size: {:.3} points",
            100.0 * size_error_max
        );
        shown == round_count
            && named == round_count
            && misnamed == 0
            && size_error_max <= SIZE_ERROR_MAX
    }
}

/// Returns the beginning of a plan with this number of exact cells of each target, and these steps.
fn workload(is_rocksdb: bool, cell_count: usize, steps: &str) -> String {
    let table = if is_rocksdb {
        "[workload.kv]\nkeys = \"5k\"\nkey-size = 20\nvalue-size = 400\n\
         read-time = \"200ms\"\nread-write-time = \"200ms\""
    } else {
        "[workload.sysbench]\nchecks = \"off\"\nrows = \"10k\"\nwarmup = \"0s\"\n\
         read-time = \"200ms\"\nwrite-time = \"200ms\""
    };
    format!("name = \"exact\"\n[exact]\nrepeats = {cell_count}\n{table}\nsteps = [{steps}]\n")
}

/// A connection of a step.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    step: String,
    connection: String,
}

/// Returns the instructions of the serving threads per operation, in each exact cell. Loads that
/// end before their warm-up are left out.
fn work_per_operation(run: &Run) -> Result<BTreeMap<Part, Vec<f64>>> {
    let mut find = Command::new("find");
    find.args([run.directory(), "-path", "*/x*/steps/*/step.json"]);
    let mut all: BTreeMap<Part, Vec<f64>> = BTreeMap::new();
    for path in output(&mut find)?.lines() {
        let step: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
        let work = &step["work"];
        // A load of few rows ends before its warm-up.
        if step["name"] == "load" && !work["missing"].is_null() {
            continue;
        }
        ensure!(work["missing"].is_null(), "{path}: {}", work["missing"]);
        for part in work["parts"].as_array().into_iter().flatten() {
            let kinds = part["operations"].as_array().into_iter().flatten();
            let counts = kinds.filter_map(|kind| work["operations"][kind.as_str()?].as_f64());
            let operations: f64 = counts.sum();
            if part["role"] != "serving" || operations == 0.0 {
                continue;
            }
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = Part { step: text(&step["name"]), connection: text(&part["name"]) };
            let instructions = part["instructions"].as_f64().context("a part has no count")?;
            all.entry(key).or_default().push(instructions / operations);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_planted_change_must_be_shown_named_and_sized() {
        let row = |verdict: &str, ratio: f64, name: &str| {
            json!({"work": [
                {"step": "point-query", "connection": null, "verdict": "more"},
                {"step": "insert", "connection": "event", "verdict": "no_change_shown"},
                {"step": "point-query", "connection": "event", "verdict": verdict, "ratio": ratio,
                 "base_values": [{"value": 999.0}, {"value": 1001.0}],
                 "functions": {"functions": [{"name": name}]}},
            ]})
        };
        for (verdict, ratio, name, passes) in [
            ("more", 1.011, PLANTED_FUNCTION, true),
            ("more", 1.0125, PLANTED_FUNCTION, false),
            ("more", 1.01, "malloc", false),
            ("no_change_shown", 1.01, PLANTED_FUNCTION, false),
        ] {
            let mut found = Found::default();
            found.add(&row(verdict, ratio, name), "point-query", 10.0).unwrap();
            assert_eq!(found.print(1), passes, "{verdict} {ratio} {name}");
        }
    }
}
