//! Targets that share the load of each repeat.

use std::path::PathBuf;

use rustix::process::Signal;

use super::{ROCKSDB, cell, plan, recorded_steps};
use crate::place::{POSTGRES, Place, SQLITE, entries, eventually};
use crate::show_json::Shown;
use crate::{postgres_is_here_or_test_is_skipped, rocksdb_or_test_is_skipped};

/// Asserts that one target of each repeat loads, and that both continue with copies of that load.
/// Returns the run.
fn one_load_for_each_repeat(
    place: &Place,
    targets: &str,
    names: [&str; 2],
    turns: &str,
) -> PathBuf {
    let plan = format!("turns = \"{turns}\"\n{}", plan("\"repeat\"", targets));
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    Shown::read(place, &run).assert_all_valid();

    let mut fingerprints = Vec::new();
    for repeat in [1, 2] {
        let mut counts = names.map(|target| recorded_steps(&run, target, repeat).len());
        counts.sort_unstable();
        assert_eq!(counts, [2, 4], "{turns}, repeat {repeat}: {ended}");

        let [first, second] = names.map(|target| cell(&run, target, repeat)["database"].clone());
        assert_eq!(first["fingerprint"], second["fingerprint"]);
        fingerprints.push(first["fingerprint"].clone());
    }
    assert_ne!(fingerprints[0], fingerprints[1]);

    // Nothing is kept after the run.
    assert!(entries(&place.join("data")).iter().all(|path| path.is_file()));
    run
}

/// The same for targets that follow each other, and for those that take turns.
fn targets_share_the_load_of_a_repeat(targets: &str, names: [&str; 2]) {
    let place = Place::new();
    for turns in ["off", "20ms"] {
        let run = one_load_for_each_repeat(&place, targets, names, turns);

        let compared = place.assay(&["compare", run.to_str().unwrap()]);
        assert!(compared.stdout.contains("share its load"), "{compared}");
        assert!(!compared.stdout.contains("of one load"), "{compared}");
    }
}

#[test]
fn configs_of_sqlite_share_the_load_of_a_repeat() {
    let targets =
        format!("{SQLITE}\n[config.sqlite.small]\nextends = \"base\"\nset.cache_size = 500\n");
    targets_share_the_load_of_a_repeat(&targets, ["lite.base", "lite.small"]);
}

#[test]
fn configs_of_postgres_share_the_load_of_a_repeat() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let targets = format!(
        "{POSTGRES}\n[config.postgres.small]\nextends = \"base\"\nset.work_mem = \"1MB\"\n"
    );
    targets_share_the_load_of_a_repeat(&targets, ["pg.base", "pg.small"]);
}

#[test]
fn configs_of_rocksdb_in_processes_of_their_own_share_the_load_of_a_repeat() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let targets = format!(
        "[build.rocks]\nrocksdb = '{}'\n{ROCKSDB}\n[config.rocksdb.few]\nextends = \"base\"\n\
         set.max_open_files = 100\n",
        libraries[0].display()
    );
    targets_share_the_load_of_a_repeat(&targets, ["rocks.base", "rocks.few"]);
}

#[test]
fn a_target_in_turns_opens_what_another_one_has_loaded() {
    let place = Place::new();
    let targets = "[build.old]\nsqlite = \"bundled\"\n[build.new]\nsqlite = \"bundled\"\n[[target]]\n\
         builds = [\"old\"]\n[[target]]\nbuilds = [\"new\"]\nload-with = \"old.default\"\n";
    let names = ["old.default", "new.default-from-old.default"];
    let run = one_load_for_each_repeat(&place, targets, names, "20ms");
    assert_eq!(cell(&run, names[1], 1)["database"]["loaded_by"], names[0]);
}

#[test]
fn repeats_that_a_growing_run_adds_load_before_they_are_copied() {
    let place = Place::new();
    let targets = "[build.old]\nsqlite = \"bundled\"\n[build.new]\nsqlite = \"bundled\"\n[[target]]\n\
         builds = [\"old\"]\n[[target]]\nbuilds = [\"new\"]\nload-with = \"old.default\"\n";
    // Nothing rules out a change as small as this.
    let growing = "repeats = \"until decided\"\neffect = 0.001\ntime = \"1h\"\nturns = \"20ms\"";
    let growing = plan("\"repeat\"", targets).replace("repeats = 2", growing);
    let mut running = place.spawn_run(&growing, &[]);

    // An added repeat that fails ends the run.
    for repeat in ["r2", "r3", "r4"] {
        eventually(&format!("repeat {repeat} begins"), || {
            running.must_run(repeat);
            let runs = entries(&place.join("results"));
            runs.iter().any(|run| run.join("cells/old.default/c1").join(repeat).is_dir())
        });
    }
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    let steps = recorded_steps(&place.only_run(), "new.default-from-old.default", 3);
    assert!(!steps.is_empty());
}

#[test]
fn a_load_that_fails_in_turns_ends_the_cells_that_wait_for_it() {
    let place = Place::new();
    let targets = "[build.old]\nsqlite = \"bundled\"\n[build.new]\nsqlite = \"bundled\"\n\
         [config.sqlite.full]\nset.max_page_count = 20\n[[target]]\n\
         builds = [\"old\"]\nconfigs = [\"full\"]\n[[target]]\nbuilds = [\"new\"]\n\
         configs = [\"full\"]\nload-with = \"old.full\"\n";
    let plan = format!("turns = \"20ms\"\n{}", plan("\"repeat\"", targets));
    place
        .run(&plan, &[])
        .expect_code(1)
        .expect_in_stderr(&["no database that `old.full` loaded is kept"]);
}

#[test]
fn a_repeat_whose_cells_are_apart_shares_no_load() {
    let place = Place::new();
    let plan = format!("order = \"grouped\"\n{}", plan("\"repeat\"", SQLITE));
    place
        .run(&plan, &[])
        .expect_code(2)
        .expect_in_stderr(&["cannot share a load", "`\"grouped\"`"]);
}
