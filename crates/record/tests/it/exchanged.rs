//! Parts of a record that were edited, exchanged or copied: each is told as damage.

use std::path::Path;

use record::{Cell, CellRef, Run, RunDir, StepState};

use crate::sample;

const STEP: &str = "steps/01-l.i1";

/// Returns a run of two cells with equal steps.
fn two_cells(results: &Path, id: &str) -> (RunDir, [CellRef; 2]) {
    let cells =
        ["bundled.base", "bundled.other"].map(|target| CellRef::new(target, "insert", None, 2, 1));
    let run = Run { id: id.to_owned(), cells: cells.to_vec(), ..sample::run() };
    let directory = RunDir::create(results, &run).unwrap();
    for cell in &cells {
        let cell_dir = directory.begin_cell(cell).unwrap();
        let record = Cell { key: cell.key.clone(), ..sample::cell() };
        cell_dir.write(&Cell { status: record::Status::Incomplete, ..record.clone() }).unwrap();
        sample::measure(&cell_dir).finish(&sample::step()).unwrap();
        cell_dir.write(&record).unwrap();
        directory.end_cell(cell).unwrap();
    }
    (directory, cells)
}

/// Returns what is wrong with a run, as readers would tell it.
fn damage(path: &Path) -> Option<String> {
    let read = || -> Result<Option<String>, record::RecordError> {
        let run = RunDir::open(path)?;
        for cell in &run.read_run()?.cells {
            let cell_dir = run.cell(cell)?;
            let cell = cell_dir.read()?;
            cell_dir.read_log_events()?;
            let steps = cell_dir.read_steps()?;
            let mut missing = cell_dir.missing_steps(&cell, &steps).into_iter();
            let damaged =
                steps.iter().find(|step| step.state() == StepState::Damaged || !step.is_whole());
            if let Some(step) = damaged.cloned().or_else(|| missing.find(|step| step.is_lost())) {
                return Ok(Some(step.step().reasons.join("; ")));
            }
        }
        Ok(None)
    };
    read().unwrap_or_else(|error| Some(error.to_string()))
}

#[track_caller]
fn check_damage(run: &RunDir, text: &str) {
    let damage = damage(run.path()).expect("it is damaged");
    assert!(damage.contains(text), "{damage}");
}

fn copy_folder(from: &Path, to: &Path) {
    fs_err::create_dir(to).unwrap();
    for entry in fs_err::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs_err::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_changed_byte_of_any_json_file_is_found() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let cell = run.path().join(sample::cell_ref().path);
    for path in
        [run.path().join("run.json"), cell.join("cell.json"), cell.join(STEP).join("step.json")]
    {
        let whole = fs_err::read(&path).unwrap();
        for at in (0..whole.len()).step_by(17) {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            fs_err::write(&path, &changed).unwrap();
            assert!(damage(run.path()).is_some(), "byte {at} of `{}`", path.display());
        }
        fs_err::write(&path, &whole).unwrap();
    }
    assert_eq!(damage(run.path()), None);
}

#[test]
fn an_edited_count_is_found() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let path = run.path().join(sample::cell_ref().path).join(STEP).join("step.json");
    let text = fs_err::read_to_string(&path).unwrap();
    assert!(text.contains("\"ok\": 240"));
    fs_err::write(&path, text.replace("\"ok\": 240", "\"ok\": 420")).unwrap();
    check_damage(&run, "step.json` is damaged: its checksum does not match the one in `cell.json`");
}

#[test]
fn steps_that_are_exchanged_between_cells_are_found() {
    let results = tempfile::tempdir().unwrap();
    let (run, cells) = two_cells(results.path(), "a");
    assert_eq!(damage(run.path()), None);
    let [a, b] = cells.map(|cell| run.path().join(cell.path).join(STEP));
    fs_err::rename(&a, results.path().join("aside")).unwrap();
    fs_err::rename(&b, &a).unwrap();
    fs_err::rename(results.path().join("aside"), &b).unwrap();
    check_damage(&run, "step.json` is damaged");
}

#[test]
fn cells_that_are_exchanged_are_found() {
    let results = tempfile::tempdir().unwrap();
    let (run, cells) = two_cells(results.path(), "a");
    let [a, b] = cells.map(|cell| run.path().join(cell.path));
    fs_err::rename(&a, results.path().join("aside")).unwrap();
    fs_err::rename(&b, &a).unwrap();
    fs_err::rename(results.path().join("aside"), &b).unwrap();
    check_damage(&run, "cell.json` is damaged");
}

#[test]
fn a_cell_of_another_run_is_found_though_the_run_was_killed_before_it_listed_its_cell() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let (other, cells) = two_cells(results.path(), "another");
    let place = run.path().join(sample::cell_ref().path);
    // The list is empty again, as it is until a cell has ended.
    run.begin_cell(&sample::cell_ref()).unwrap();
    fs_err::remove_dir_all(&place).unwrap();
    fs_err::rename(other.path().join(&cells[0].path), &place).unwrap();
    check_damage(&run, "it is a cell of another run");
}

#[test]
fn a_copied_step_folder_is_found() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let steps = run.path().join(sample::cell_ref().path).join("steps");
    for name in ["99-l.i1", "02-l.i1", "01-l.i1.partial"] {
        copy_folder(&steps.join("01-l.i1"), &steps.join(name));
        check_damage(&run, "`cell.json` does not list this step");
        fs_err::remove_dir_all(steps.join(name)).unwrap();
    }
    assert_eq!(damage(run.path()), None);
}

#[test]
fn a_step_or_a_cell_that_was_recorded_and_is_gone_is_found() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let cell = run.path().join(sample::cell_ref().path);
    fs_err::rename(cell.join("steps"), cell.join("aside")).unwrap();
    check_damage(&run, "it was recorded, but");
    fs_err::rename(cell.join("aside"), cell.join("steps")).unwrap();
    fs_err::remove_dir_all(&cell).unwrap();
    check_damage(&run, "cannot open");
}

#[test]
fn a_run_that_is_killed_at_any_moment_is_read_as_far_as_it_came() {
    let results = tempfile::tempdir().unwrap();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let read_states = || -> Vec<StepState> {
        let run = RunDir::open(run.path()).unwrap();
        let cell = run.cell(&sample::cell_ref()).unwrap();
        cell.read_steps().unwrap().iter().map(record::StepReader::state).collect()
    };
    let cell = sample::begin(&run);
    let writer = sample::measure(&cell);
    assert_eq!(read_states(), [StepState::Unfinished]);
    writer.finish(&sample::step()).unwrap();
    assert_eq!(read_states(), [StepState::Finished]);

    // Between the list and the final name.
    let steps = cell.path().join("steps");
    fs_err::rename(steps.join("01-l.i1"), steps.join("01-l.i1.partial")).unwrap();
    assert_eq!(read_states(), [StepState::Unfinished]);
    fs_err::rename(steps.join("01-l.i1.partial"), steps.join("01-l.i1")).unwrap();

    // Between the end of the cell and the list of the run.
    cell.write(&sample::cell()).unwrap();
    assert_eq!(damage(run.path()), None);
    run.end_cell(&sample::cell_ref()).unwrap();
    assert_eq!(damage(run.path()), None);

    // While the cell is measured again.
    run.begin_cell(&sample::cell_ref()).unwrap();
    assert!(!RunDir::open(run.path()).unwrap().cell(&sample::cell_ref()).unwrap().exists());
}

#[test]
fn damaged_events_of_the_log_are_found() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let cell = run.begin_cell(&sample::cell_ref()).unwrap();
    cell.write(&sample::cell()).unwrap();
    cell.write_log_events(&[record::LogEvent::default()]).unwrap();
    assert_eq!(cell.read_log_events().unwrap().unwrap().len(), 1);
    let path = cell.path().join("log_events.parquet");
    let mut bytes = fs_err::read(&path).unwrap();
    bytes[20] ^= 4;
    fs_err::write(&path, bytes).unwrap();
    check_damage(&run, "log_events.parquet` is damaged");
}
