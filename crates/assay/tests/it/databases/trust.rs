//! Kept databases that are damaged, or that others could have changed.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use super::{change_last_byte, kept, plan, recorded_steps, run};
use crate::place::{POSTGRES, Place, SQLITE};
use crate::{postgres_is_here_or_test_is_skipped, say_skipped};

#[test]
fn a_damaged_database_is_not_used_but_replaced() {
    let place = Place::new();
    run(&place, SQLITE);
    let database = kept(&place)[0].clone();
    let file = fs_err::OpenOptions::new().write(true).open(database.join("data/assay.sqlite"));
    file.unwrap().set_len(4096).unwrap();

    let ended = run(&place, SQLITE);
    let run_directory = ended.run_directory();
    assert_eq!(recorded_steps(&run_directory, "lite.base", 1).len(), 4, "{ended}");
    let ended = ended.expect_in_stderr(&["is not used", "is not as it was kept"]);
    assert_eq!(kept(&place), [database], "{ended}");
    place.assay(&["databases", "--verify"]).expect_code(0).expect_in_stdout(&["verified"]);
}

#[test]
fn a_database_with_a_changed_byte_is_not_used_but_replaced() {
    let place = Place::new();
    run(&place, SQLITE);
    let database = kept(&place)[0].clone();
    change_last_byte(&database.join("data/assay.sqlite"));

    let ended = run(&place, SQLITE);
    assert_eq!(recorded_steps(&ended.run_directory(), "lite.base", 1).len(), 4, "{ended}");
    let ended = ended.expect_in_stderr(&["is not used", "assay.sqlite` has changed"]);
    assert_eq!(kept(&place), [database], "{ended}");
    place.assay(&["databases", "--verify"]).expect_code(0).expect_in_stdout(&["verified"]);
}

#[test]
fn a_database_that_another_user_can_change_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        say_skipped("only root can give a file to another user");
        return;
    }
    let place = Place::new();
    run(&place, SQLITE);
    let database = kept(&place)[0].clone();
    let list = || place.assay(&["databases"]);

    // Others may write to it.
    fs_err::set_permissions(&database, PermissionsExt::from_mode(0o777)).unwrap();
    list().expect_code(1).expect_in_stdout(&["another user can write"]);
    fs_err::set_permissions(&database, PermissionsExt::from_mode(0o700)).unwrap();
    list().expect_code(0);

    // A file in it is another user's.
    let file = database.join("data/assay.sqlite");
    std::os::unix::fs::chown(&file, Some(7002), Some(7002)).unwrap();
    list().expect_code(1).expect_in_stdout(&["belongs to another user"]);
    std::os::unix::fs::chown(&file, Some(0), Some(0)).unwrap();

    // A link in it leads elsewhere.
    std::os::unix::fs::symlink("/etc/passwd", database.join("data/link")).unwrap();
    let ended = run(&place, SQLITE).expect_in_stderr(&["is a link"]);
    assert_eq!(recorded_steps(&ended.run_directory(), "lite.base", 1).len(), 4);

    // The folder of databases belongs to somebody else.
    std::os::unix::fs::chown(place.join("databases"), Some(7002), Some(7002)).unwrap();
    list().expect_code(2).expect_in_stderr(&["another user can write to"]);
    let refused = place.run(&plan("true", SQLITE), &["--set", "seed=9"]);
    refused.expect_code(1).expect_in_stderr(&["another user can write to"]);
}

#[test]
fn a_kept_database_and_its_copy_belong_to_nobody_else() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();

    run(&place, POSTGRES);
    let own = rustix::process::geteuid().as_raw();
    for path in [kept(&place)[0].clone(), kept(&place)[0].join("data")] {
        let metadata = fs_err::metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.mode() & 0o777), (own, 0o700), "{}", path.display());
    }

    let version = kept(&place)[0].join("data/PG_VERSION");
    assert_eq!(fs_err::metadata(version).unwrap().uid(), own);
}
