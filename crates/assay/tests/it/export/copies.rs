//! A run that is given twice: its measurements would count twice wherever the table is read.

use super::*;

#[test]
fn a_run_is_exported_once_by_whatever_path_it_is_given() {
    let exported = Exported::new();
    let name = exported.run.file_name().unwrap();
    let roundabout = exported.place.join("results/../results").join(name);
    let copy = exported.place.join("copy");
    let mut copying = Command::new("cp");
    output(copying.arg("-r").arg(&exported.run).arg(&copy));

    for again in [&exported.run, &roundabout, &copy] {
        for format in ["csv", "benchstat"] {
            let options = [again.to_str().unwrap(), "--format", format];
            let ended = exported.export(&options).expect_code(2);
            let ended = ended
                .expect_in_stderr(&["runs 1 and 2 are copies of one run", "give each run once"]);
            assert_eq!(ended.stdout, "", "{ended}");
        }
    }
}
