//! The floor of the disk: by itself, and in a run.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Ended, NULL, Place, QUICK, entries, eventually, workload};

/// Returns the arguments of a measurement of `data` that takes 10 ms for each rate.
const BRIEFLY: [&str; 7] = ["host", "data", "--disk", "--file-size", "4MiB", "--time", "10ms"];

/// The tests' folder may be in memory, which has no disk to measure.
fn is_in_memory(ended: &Ended) -> bool {
    ended.stderr.contains("which has no disk")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_floor_of_a_disk_is_shown_as_a_table_and_as_json() {
    let place = Place::on_disk();
    let table = place.assay(&[BRIEFLY.as_slice(), &["--depth", "1,2"]].concat());
    if is_in_memory(&table) {
        table.expect_code(2);
        return;
    }
    let table = table.expect_code(0).stdout;

    assert!(table.contains("Floor of the disk"), "{table}");
    for (start, count) in
        [("random read", 12), ("append + fdatasync", 2), ("overwrite + fdatasync", 2)]
    {
        let lines = table.lines().filter(|line| line.starts_with(start)).count();
        // A file system may refuse direct reads and writes, or have the file in memory.
        assert!(lines == count || table.contains("Not measured"), "{start}\n{table}");
    }

    let more = ["--block-size", "8KiB", "--format", "json"];
    let text = place.assay(&[BRIEFLY.as_slice(), &more].concat()).expect_code(0).stdout;
    let data: Value = serde_json::from_str(&text).unwrap();
    let floor = &data["disk_floor"];
    assert_eq!(floor["file_bytes"], 4 << 20);
    for read in floor["reads"].as_array().unwrap() {
        assert_eq!((&read["depth"], &read["block_bytes"]), (&1.into(), &8192.into()));
    }
    assert!(data["host"]["facts"].is_array() && data["warnings"].is_array());
    assert!(entries(&place.join("data")).is_empty());
}

#[test]
fn a_measurement_that_is_interrupted_leaves_no_file() {
    let place = Place::on_disk();
    // The reads are over with the last block of the file, and syncs would take hours.
    let arguments = ["host", "data", "--disk", "--file-size", "1MiB", "--time", "10h"];
    let mut running = place.spawn(&arguments);
    let data = place.join("data");
    let has_file = || {
        let mut names = entries(&data).into_iter();
        names.any(|path| path.to_string_lossy().contains(".assay-disk-"))
    };
    let mut is_refused = false;

    eventually("a file is synced", || {
        is_refused = running.said().contains("which has no disk");
        is_refused || has_file() && running.said().contains("measuring the disk")
    });
    if is_refused {
        running.wait().expect_code(2);
        return;
    }
    running.must_run("it is interrupted");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    assert!(entries(&data).is_empty());
}

#[test]
fn options_of_the_floor_need_a_disk_and_sizes_of_blocks() {
    let place = Place::on_disk();
    place.assay(&["host", "data", "--depth", "2"]).expect_code(2).expect_in_stderr(&["--disk"]);
    place
        .assay(&["host", "data", "--disk", "--block-size", "5000B"])
        .expect_code(2)
        .expect_in_stderr(&["expected a power of two from `512B` to `16MiB`"]);
    place
        .assay(&[BRIEFLY.as_slice(), &["--depth", "1024", "--block-size", "1MiB"]].concat())
        .expect_code(2)
        .expect_in_stderr(&["the file is too small", "`--file-size`"]);
}

#[test]
#[ignore = "it keeps a disk busy for a minute, and the other tests measure the same with a small file"]
fn a_run_records_the_floor_before_and_after_its_cells() {
    let place = Place::on_disk();
    let plan = workload(2000, 1000, QUICK, "steps = [\"l.i0\", \"l.x\"]") + NULL;
    let ended = place.run(&plan, &["--disk-floor"]).expect_code(0);
    let is_in_memory = is_in_memory(&ended);
    let path = ended.run_directory();

    let run = json(&path.join("run.json"));

    let floors = &run["invocations"][0]["disk_floors"];
    if is_in_memory {
        assert!(floors.is_null());
        assert_eq!(run["warnings"].as_array().unwrap().len(), 1);
        return;
    }

    let [before, after] = floors.as_array().unwrap().as_slice() else { panic!("{floors}") };
    let times = [before, after].map(|floor| floor["measured_unix_ns"].as_u64().unwrap());
    let cell_path = path.join(run["cells"][0]["path"].as_str().unwrap());
    let cell = json(&cell_path.join("cell.json"));
    let began = cell["started_unix_ns"].as_u64().unwrap();
    assert!(times[0] < began && began < times[1]);

    let run = path.to_str().unwrap();
    let shown = place.assay(&["show", run, "--table", "disk-floor"]).expect_code(0).stdout;
    assert!(shown.contains("after the"), "{shown}");
    let page = fs_err::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("Floor of the disk"));
}

#[test]
fn data_in_memory_has_no_floor_and_the_run_goes_on() {
    let place = Place::on_disk();
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let plan = workload(2000, 1000, QUICK, "steps = [\"l.i0\", \"l.x\"]") + NULL;
    let data = memory.path().to_str().unwrap();
    let ended = place.run(&plan, &["--set", "disk-floor=true", "--data", data]).expect_code(0);
    let ended = ended.expect_in_stderr(&["host::no-disk-floor", "which has no disk"]);
    let run = json(&ended.run_directory().join("run.json"));

    let warnings = run["warnings"].as_array().unwrap().iter();
    let of_floor = warnings.filter(|warning| warning["code"] == "host::no-disk-floor");
    assert_eq!(of_floor.count(), 1);
}
