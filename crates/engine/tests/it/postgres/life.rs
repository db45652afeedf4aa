//! Failures of starting and stopping that only PostgreSQL has.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use engine::postgres::Postgres;
use engine::{Engine, Session, SetupError, SqlEngine};

use super::{ServerDir, build, is_installed};
use crate::guard::{freeze, is_running};

fn error(result: Result<Postgres, SetupError>) -> SetupError {
    result.err().expect("it must not start")
}

#[test]
fn directories_that_the_servers_user_can_not_enter_are_named_without_a_start() {
    if !is_installed() || !rustix::process::geteuid().is_root() {
        return;
    }
    let place = ServerDir::new();
    let script = "echo 'postgres (PostgreSQL) 15.1'";
    let closed_build = place.fake_build(&[("postgres", script), ("initdb", script)]);
    let closed = place.path().join("closed");
    fs_err::create_dir(&closed).unwrap();
    let close = |path: &Path| {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    };
    close(&closed);
    let error = place.try_config_of(&build(), &closed.join("data"), &[]);
    let error = error.unwrap_err();
    assert!(
        matches!(&error, SetupError::Directory { .. }) && error.to_string().contains("closed`"),
        "{error}"
    );
    close(closed_build.as_ref());
    let data_dir = place.path().join("data");
    let error = place.try_config_of(&closed_build, &data_dir, &[]).unwrap_err();
    assert!(
        matches!(&error, SetupError::Build { .. }) && error.to_string().contains("cannot enter"),
        "{error}"
    );
    assert!(error.help().unwrap().contains("chmod a+x"));
    // A start says the same.
    close(place.path());
    let error = place.start(&[]).err().expect("it must not start");
    let said = format!("cannot enter `{}`", place.path().display());
    assert!(error.to_string().contains(&said), "{error}");
}

#[test]
fn the_servers_message_about_unavailable_memory_is_reported() {
    if !is_installed() {
        return;
    }
    // Where the kernel promises any memory the server would try to use it.
    if fs_err::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|it| it.trim() == "1") {
        return;
    }
    let place = ServerDir::new();
    let error = error(place.start(&[("shared_buffers", "7TB")]));
    assert!(matches!(error, SetupError::Config { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("could not map anonymous shared memory: Cannot allocate memory")
            && text.contains("shared_buffers"),
        "{text}"
    );
}

#[test]
fn a_config_that_names_the_files_of_another_cluster_does_not_reach_them() {
    if !is_installed() {
        return;
    }
    let theirs = ServerDir::new();
    let other = theirs.start(&[]).unwrap();
    let cluster = other.storage().data[0].clone();
    let directory = cluster.to_str().unwrap();
    let hba = cluster.join("pg_hba.conf");
    let place = ServerDir::new();
    let set = [
        ("data_directory", directory),
        ("hba_file", hba.to_str().unwrap()),
        ("ident_file", "/nowhere/ident"),
        ("external_pid_file", "/nowhere/pid"),
        ("unix_socket_group", "nobody-has-this-group"),
    ];
    // While their server runs, and when it would be there for the taking.
    let postgres = place.start(&set).unwrap();
    let used = |postgres: &Postgres, name: &str| {
        let settings = postgres.settings().unwrap();
        let setting = settings.into_iter().find(|it| it.name == name).unwrap();
        setting.value
    };
    let ours = postgres.storage().data[0].clone();
    assert_eq!(Path::new(&used(&postgres, "data_directory")), ours);
    assert!(used(&postgres, "hba_file").starts_with(ours.to_str().unwrap()));
    postgres.stop().unwrap();
    other.stop().unwrap();
    let postgres = place.start(&set).unwrap();
    assert_eq!(Path::new(&used(&postgres, "data_directory")), ours);
    postgres.stop().unwrap();
}

#[test]
fn a_path_may_be_long_and_have_blanks_and_quotes() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::new();
    let long = "far too long for the path of a socket ".repeat(4);
    let data_dir = place.path().join("it's a \"d\u{e4}ta\" $dir, really\\").join(long.trim());
    let postgres = place.start_in(&data_dir, &build(), &[], 120).unwrap();
    assert_eq!(postgres.connect().unwrap().query_i64("select 1").unwrap(), Some(1));
    assert!(postgres.storage().data[0].starts_with(&data_dir));
    postgres.stop().unwrap();
}

#[test]
fn a_server_that_refuses_to_stop_is_killed_and_reported() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::new();
    let data_dir = place.path().join("data");
    // What is short for the stop holds for the start too: a machine that is too slow for it gets
    // more.
    let mut limits_s = [5, 30, 180].into_iter();
    let (limit_s, postgres) = loop {
        let limit_s = limits_s.next().unwrap();
        match place.start_in(&data_dir, &build(), &[], limit_s) {
            Ok(postgres) => break (limit_s, postgres),
            Err(error) => assert!(limits_s.len() > 0, "{error}: {:?}", error.log_tail()),
        }
    };
    let mut session = postgres.connect().unwrap();
    let backend = session.query_i64("select pg_backend_pid()").unwrap().unwrap() as u32;
    let pid = postgres.process_id().unwrap();
    // A backend that does not heed its end holds up a fast shutdown.
    freeze(backend);
    let error = postgres.stop().unwrap_err();
    let text = error.to_string();
    let said = format!("did not stop within {limit_s} s");
    assert!(text.contains(&said), "{text}");
    assert!(!error.log_tail().is_empty());
    assert!(!is_running(pid) && !is_running(backend));
}
