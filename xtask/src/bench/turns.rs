//! Measures the noise of two equal targets by how they take turns: the error of the ratio between
//! them at equal time, with the connections on processors that the kernel, the plan or chance
//! chooses, and what the turns cost.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Setup;
use super::run::Run;
use crate::builds::{ASSAY_TEST_MYSQL, ASSAY_TEST_ROCKSDB};

/// The repeats of a run: each gives one ratio.
const REPEATS: usize = 4;

/// The steps that are compared: queries of points, and inserts with deletes.
const STEPS: [&str; 2] = ["qp100", "l.i1"];

const TURNS: [&str; 3] = ["off", "100ms", "20ms"];
const PLACEMENTS: [&str; 3] = ["kernel", "pinned", "shuffled"];
const CLIENTS: [u32; 2] = [1, 4];

/// An engine by its name, and its tables in a plan.
struct EngineTables {
    name: &'static str,
    tables: String,
}

/// The ratios and throughputs of a step over the repeats of all rounds.
#[derive(Clone, Default)]
struct Errors {
    /// Logarithms of the ratio of two equal targets.
    ratios: Vec<f64>,
    /// Logarithms of throughputs.
    throughputs: Vec<f64>,
}

/// Prints a table for each engine and number of clients. It has no bound: it describes the machine.
pub fn run(setup: &Setup) -> Result<bool> {
    for engine in engines() {
        for clients in CLIENTS {
            println!(
                "\n{}, {clients} client{}: error of the ratio of equal targets, in percent (and \
                 throughput relative to `off`)",
                engine.name,
                if clients == 1 { "" } else { "s" }
            );
            print!("{:<10}", "placement");
            for (step, turns) in STEPS.iter().flat_map(|step| TURNS.map(|turns| (step, turns))) {
                print!("{:>18}", format!("{step} {turns}"));
            }
            println!();
            for placement in PLACEMENTS {
                print_row(setup, &engine, clients, placement)?;
            }
        }
    }
    Ok(true)
}

/// Returns the engines that are here.
fn engines() -> Vec<EngineTables> {
    let mut engines = vec![
        EngineTables {
            name: "PostgreSQL",
            tables: "[build.b]\npostgres = \"distribution\"\n[config.postgres.base]\n".into(),
        },
        EngineTables {
            name: "SQLite",
            tables: "[build.b]\nsqlite = \"bundled\"\n[config.sqlite.base.set]\njournal_mode = \"wal\"\n".into(),
        },
    ];
    if let Ok(server) = std::env::var(ASSAY_TEST_MYSQL) {
        engines.push(EngineTables {
            name: "MariaDB",
            tables: format!("[build.b]\nmysql = '{server}'\n[config.mysql.base]\n"),
        });
    }
    if let Ok(libraries) = std::env::var(ASSAY_TEST_ROCKSDB)
        && let Some(library) = libraries.split(':').next_back()
    {
        engines.push(EngineTables {
            name: "RocksDB",
            tables: format!("[build.b]\nrocksdb = '{library}'\n[config.rocksdb.base]\n"),
        });
    }
    engines
}

/// Measures and prints the row of a placement.
fn print_row(setup: &Setup, engine: &EngineTables, clients: u32, placement: &str) -> Result<()> {
    let mut by_turns = vec![[Errors::default(), Errors::default()]; TURNS.len()];
    // The lengths in turn: a neighbor that comes and goes meets all of them.
    for _ in 0..setup.round_count {
        for (turns, errors) in TURNS.iter().zip(&mut by_turns) {
            let plan = plan(setup, engine, clients, placement, turns);
            let shown = Run::on_ranks(setup, 0, &plan, &[0])?.json("show")?;
            for (step, errors) in STEPS.iter().zip(errors) {
                errors.add(&shown, step)?;
            }
        }
    }

    print!("{placement:<10}");
    for step in 0..STEPS.len() {
        let alone = mean(&by_turns[0][step].throughputs);
        for errors in &by_turns {
            let errors = &errors[step];
            let relative = (mean(&errors.throughputs) - alone).exp();
            print!("{:>18}", format!("{:.1} ({relative:.2})", 100.0 * errors.root_mean_square()));
        }
    }
    println!();
    Ok(())
}

fn plan(
    setup: &Setup,
    engine: &EngineTables,
    clients: u32,
    placement: &str,
    turns: &str,
) -> String {
    let seconds = setup.seconds;
    // As many rows as take about the time of the queries.
    let rows = 2000 * seconds;
    format!(
        r#"
name = "turns"
clients = [{clients}]
repeats = {REPEATS}
turns = "{turns}"
placement = "{placement}"
reuse = "run"
against-itself = "b.base"
[workload.insert]
initial-rows = "100k"
write-rows = {rows}
read-write-time = "{seconds}s"
transactions = "small"
steps = ["l.i0", "l.x", "settle", "qp100", "l.i1"]
checks = "off"
{}"#,
        engine.tables
    )
}

impl Errors {
    /// Adds the repeats of a run.
    fn add(&mut self, shown: &Value, step: &str) -> Result<()> {
        let rows = shown["rows"].as_array().context("`assay show` lists no steps")?;
        let metric = if step.starts_with('q') { "qps" } else { "ips" };
        for repeat in 1..=REPEATS {
            let of_repeat =
                rows.iter().filter(|row| row["step"] == step && row["repeat"] == repeat);
            let values: Vec<f64> =
                of_repeat.filter_map(|row| row["metrics"][metric].as_f64()).map(f64::ln).collect();
            let [one, other] = values.as_slice() else {
                anyhow::bail!("`{step}` has {} results in repeat {repeat}", values.len());
            };
            self.ratios.push(one - other);
            self.throughputs.extend(&values);
        }
        Ok(())
    }

    fn root_mean_square(&self) -> f64 {
        let squares: f64 = self.ratios.iter().map(|ratio| ratio * ratio).sum();
        (squares / self.ratios.len() as f64).sqrt()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
