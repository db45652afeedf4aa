//! The columns of devices and of the host where targets take turns.

use serde_json::Value;

use crate::place::{Place, SQLITE, workload};
use crate::show_json::Shown;

/// The figures that published pages have for each operation, and their rates.
const COLUMNS: [&str; 8] = ["cspq", "cs/o", "cpupq", "csps", "cpups", "wpi", "wkbpi", "wps"];

/// The same of reads. In these tests, nothing is read from a disk.
const READS: [&str; 3] = ["rps", "rpq", "rkbpq"];

/// Two other configs that work as the base does.
const CONFIGS: &str =
    "\n[config.ENGINE.b]\nextends = \"base\"\n[config.ENGINE.c]\nextends = \"base\"\n";

/// SQLite, PostgreSQL and MySQL as three equal targets that wait for their disk.
pub(crate) fn sqlite() -> String {
    let base = "[build.lite]\nsqlite = \"bundled\"\n[config.sqlite.base]\n\
                set = { journal_mode = \"wal\", synchronous = \"full\" }\n";
    base.to_owned() + &CONFIGS.replace("ENGINE", "sqlite")
}

pub(crate) fn postgres() -> String {
    let base = "[build.pg]\npostgres = \"distribution\"\n[config.postgres.base]\n\
                set.shared_buffers = \"32MB\"\n";
    base.to_owned() + &CONFIGS.replace("ENGINE", "postgres")
}

pub(crate) fn mysql(build: &str) -> String {
    let base = format!(
        "[build.my]\nmysql = '{build}'\n[config.mysql.base]\n\
         set.innodb_buffer_pool_size = \"64M\"\n"
    );
    base + &CONFIGS.replace("ENGINE", "mysql")
}

/// Returns the rows of the targets that `only` names in `l.i1`, and in `qr500` if the workload goes
/// on to that.
fn rows(place: &Place, engine: &str, turns: &str, last_steps: &str, only: &str) -> Vec<Value> {
    let steps = format!("steps = [\"l.i0\", \"l.x\", {last_steps}]\ntransactions = \"small\"");
    let plan = format!("turns = \"{turns}\"\n{}{engine}", workload(5000, 20_000, "2s", &steps));
    let run = place.run(&plan, &["--only", only]).expect_code(0).run_directory();
    let shown = Shown::read(place, &run);
    let is_measured = |row: &&Value| row["step"] == "l.i1" || row["step"] == "qr500";
    shown.rows().iter().filter(is_measured).cloned().collect()
}

#[test]
fn a_target_in_turns_has_the_host_s_columns() {
    let place = Place::on_disk();
    let other = "[config.sqlite.other]\nextends = \"base\"\nset.cache_size = -4000\n";
    let targets = format!("{SQLITE}{other}");
    for row in rows(&place, &targets, "10ms", "\"l.i1\", \"qr500\"", "*") {
        let metrics = &row["metrics"];
        for name in COLUMNS.iter().chain(&READS) {
            let is_of_disk = !name.starts_with('c');
            // A file system in memory has no device.
            if !is_of_disk || metrics["wps"].is_number() {
                assert!(metrics[name].is_number(), "{name}: {row}");
            }
        }

        // Assay's own process, in which SQLite works for all targets, is of each in its turns.
        assert!(metrics["others%"].is_number(), "{row}");
    }
}

/// The share of the processors, in percent, from which on other programs shape the columns.
const OTHERS_MAX: f64 = 30.0;

/// Checks that each of three equal targets in turns has the figures of one that is measured alone.
/// A third of them, or three times as much, would be those of all targets. The host's CPU time, context
/// switches and writes are those of all programs, so they are only compared if others did little.
pub(crate) fn columns_agree_with_those_of_a_run_without_turns(place: &Place, engine: &str) {
    // In `qr500`, most of what a disk writes is written back at moments of the kernel's choice.
    let alone = rows(place, engine, "off", "\"l.i1\"", "*.base");
    let in_turns = rows(place, engine, "20ms", "\"l.i1\"", "*");
    assert_eq!((alone.len(), in_turns.len()), (1, 3));

    let others = alone.iter().chain(&in_turns).map(|row| row["metrics"]["others%"].as_f64());
    let others_max = others.map(|percent| percent.expect("no others%")).fold(0.0, f64::max);

    if others_max > OTHERS_MAX {
        eprintln!("nothing is compared: other programs used {others_max}% of the processors");
        return;
    }

    for name in COLUMNS {
        let mean = |rows: &[Value]| {
            let values = rows.iter().map(|row| row["metrics"][name].as_f64());
            let sum = values.sum::<Option<f64>>().unwrap_or_else(|| panic!("no {name}"));
            sum / rows.len() as f64
        };
        let (alone, in_turns) = (mean(&alone), mean(&in_turns));
        let ratio = in_turns / alone;
        assert!((0.4..2.5).contains(&ratio), "{name}: {in_turns} in turns, {alone} alone");
    }
}
