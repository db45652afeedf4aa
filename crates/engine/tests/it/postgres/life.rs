//! The life of a server: start, stop, and what can go wrong.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use engine::ServerEngine;
use engine::postgres::Postgres;
use engine::{Engine, ErrorClass, MARKER, Session, SetupError, SqlEngine};
use rustix::process::Signal;

use super::{Place, build, is_installed};
use crate::guard::{eventually, freeze, is_running, kill_guard_of, signal};
use crate::tables::class_of;

fn started(place: &Place) -> Postgres {
    place.start(&[]).unwrap()
}

fn error(result: Result<Postgres, SetupError>) -> SetupError {
    result.err().expect("it must not start")
}

#[test]
fn a_server_starts_answers_and_stops_cleanly() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let postgres = place
        .start(&[
            ("port", "6543"),
            ("listen_addresses", "*"),
            ("work_mem", "7MB"),
        ])
        .unwrap();
    assert_eq!(
        postgres
            .connect()
            .unwrap()
            .query_i64("select 6 * 7")
            .unwrap(),
        Some(42)
    );
    let pid = postgres.process_id().unwrap();
    assert!(is_running(pid));
    assert!(postgres.config_text().unwrap().contains("work_mem = '7MB'"));
    let notes = postgres.notes();
    assert!(
        notes[0].contains("`listen_addresses`") && notes[1].contains("`port`"),
        "{notes:?}"
    );
    let settings = postgres.settings().unwrap();
    let listens = settings.iter().find(|it| it.name == "listen_addresses");
    assert_eq!(listens.unwrap().value, "");
    let storage = postgres.storage();
    assert!(storage.data[0].join("PG_VERSION").is_file() && storage.logs[0].is_dir());
    if rustix::process::geteuid().is_root() {
        assert_ne!(postgres.server_user(), Some("root"));
        assert!(postgres.server_user().is_some());
    } else {
        assert_eq!(postgres.server_user(), None);
    }
    assert!(!postgres.log_tail(1000).is_empty());
    let socket = match &postgres.address().host {
        engine::postgres::Host::Unix(directory) => directory.clone(),
        other => panic!("{other:?}"),
    };
    postgres.stop().unwrap();
    assert!(!is_running(pid));
    assert!(!socket.exists(), "the socket's directory is removed");
    let log = fs_err::read_to_string(place.log()).unwrap();
    assert!(log.contains("database system is shut down"), "{log}");
}

#[test]
fn a_cluster_of_ours_is_made_anew() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let first = started(&place);
    first
        .connect()
        .unwrap()
        .query("create table remains (a int)")
        .unwrap();
    first.stop().unwrap();
    let second = started(&place);
    let remains = second
        .connect()
        .unwrap()
        .query_i64("select to_regclass('remains')::oid::bigint")
        .unwrap();
    assert_eq!(remains, None);
    second.stop().unwrap();
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let theirs = place.path().join("data/postgres");
    fs_err::create_dir_all(&theirs).unwrap();
    fs_err::write(theirs.join("PG_VERSION"), "15").unwrap();
    let error = error(place.start(&[]));
    assert!(
        matches!(&error, SetupError::Directory { path, .. } if path.ends_with("data/postgres")),
        "{error}"
    );
    assert!(error.help().unwrap().contains(MARKER));
    assert!(theirs.join("PG_VERSION").exists());
}

#[test]
fn a_cluster_in_use_is_left_alone() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let postgres = started(&place);
    let error = error(place.start(&[]));
    let pid = postgres.process_id().unwrap().to_string();
    assert!(
        matches!(error, SetupError::Directory { .. }) && error.to_string().contains(&pid),
        "{error}"
    );
    assert_eq!(
        postgres.connect().unwrap().query_i64("select 1").unwrap(),
        Some(1)
    );
}

#[test]
fn a_bad_option_is_named() {
    if !is_installed() {
        return;
    }
    for (name, value, said) in [
        ("colour", "red", "\"colour\""),
        ("shared_buffers", "many", "\"shared_buffers\""),
        ("shared_buffers", "900TB", "shared"),
        (
            "shared_preload_libraries",
            "no_such_library",
            "no_such_library",
        ),
        ("work_mem", "1kB", "\"work_mem\""),
        ("wal_level", "minimal", "max_wal_senders"),
        ("max_connections", "2", "superuser_reserved_connections"),
    ] {
        let place = Place::new();
        let error = error(place.start(&[(name, value)]));
        assert!(
            matches!(error, SetupError::Config { .. }),
            "{name}: {error}; {:?}",
            error.log_tail()
        );
        assert!(error.to_string().contains(said), "{name}: {error}");
    }
}

#[test]
fn a_bad_option_is_named_without_a_start() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    place.try_config(&[("work_mem", "8MB")]).unwrap();
    for (name, value, said) in [
        (
            "shared_bufers",
            "3",
            "unrecognized configuration parameter \"shared_bufers\"",
        ),
        (
            "shared_buffers",
            "many",
            "invalid value for parameter \"shared_buffers\": \"many\"",
        ),
        ("work_mem", "1kB", "\"work_mem\""),
    ] {
        let error = place.try_config(&[(name, value)]).unwrap_err();
        assert!(
            matches!(error, SetupError::Config { .. }),
            "{name}: {error}; {:?}",
            error.log_tail()
        );
        let text = error.to_string();
        // The file is gone by now.
        assert!(
            text.contains(said) && !text.contains("server.conf"),
            "{text}"
        );
    }
}

#[test]
fn directories_that_the_servers_user_can_not_enter_are_named_without_a_start() {
    if !is_installed() || !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
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
    let error = place
        .try_config_of(&closed_build, &data_dir, &[])
        .unwrap_err();
    assert!(
        matches!(&error, SetupError::Build { .. }) && error.to_string().contains("can't enter"),
        "{error}"
    );
}

#[test]
fn memory_that_can_not_be_had_is_said_in_the_servers_words() {
    if !is_installed() {
        return;
    }
    // Where the kernel promises any memory the server would try to use it.
    if fs_err::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|it| it.trim() == "1") {
        return;
    }
    let place = Place::new();
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
    let theirs = Place::new();
    let other = started(&theirs);
    let cluster = other.storage().data[0].clone();
    let directory = cluster.to_str().unwrap();
    let hba = cluster.join("pg_hba.conf");
    let place = Place::new();
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
    assert_eq!(postgres.notes().len(), set.len(), "{:?}", postgres.notes());
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
    let place = Place::new();
    let long = "far too long for the path of a socket ".repeat(4);
    let data_dir = place
        .path()
        .join("it's a \"d\u{e4}ta\" $dir, really\\")
        .join(long.trim());
    let postgres = place.start_in(&data_dir, &build(), &[], 120).unwrap();
    assert_eq!(
        postgres.connect().unwrap().query_i64("select 1").unwrap(),
        Some(1)
    );
    assert!(postgres.storage().data[0].starts_with(&data_dir));
    postgres.stop().unwrap();
}

#[test]
fn a_server_that_refuses_to_stop_is_ended_and_that_is_said() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let data_dir = place.path().join("data");
    // What is short for the stop holds for the start too: a machine that is too slow for it gets more.
    let mut limits_s = [5, 30, 180].into_iter();
    let (limit_s, postgres) = loop {
        let limit_s = limits_s.next().unwrap();
        match place.start_in(&data_dir, &build(), &[], limit_s) {
            Ok(postgres) => break (limit_s, postgres),
            Err(error) => assert!(limits_s.len() > 0, "{error}: {:?}", error.log_tail()),
        }
    };
    let mut session = postgres.connect().unwrap();
    let backend = session
        .query_i64("select pg_backend_pid()")
        .unwrap()
        .unwrap() as u32;
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

#[test]
fn a_server_dies_with_its_guard_and_its_data_is_removed_after_it() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let postgres = place.start(&[]).unwrap();
    let (pid, data_dir) = (
        postgres.process_id().unwrap(),
        postgres.data_dir().cloned().unwrap(),
    );
    let mut busy = postgres.connect().unwrap();
    let backend = busy.query_i64("select pg_backend_pid()").unwrap().unwrap() as u32;
    let mut other = postgres.connect().unwrap();
    std::thread::scope(|scope| {
        // It uses the processor alone, so it does not notice that the server has ended.
        let numbers = "generate_series(1, 100000)";
        let sql = format!("select count(*) from {numbers} a, {numbers} b");
        let counting = scope.spawn(move || class_of(busy.query(&sql)));
        let running = format!(
            "select count(*) from pg_stat_activity where pid = {backend} and state = 'active'"
        );
        eventually("the statement runs", || {
            other.query_i64(&running).unwrap() == Some(1)
        });
        kill_guard_of(pid);
        let stopped = postgres.stop().unwrap_err().to_string();
        assert!(stopped.contains("guard was killed"), "{stopped}");
        assert!(!is_running(pid) && !is_running(backend));
        assert_eq!(counting.join().unwrap(), ErrorClass::ConnectionLost);
    });
    data_dir.remove().unwrap();
}

#[test]
fn a_killed_server_is_a_lost_connection_and_an_unclean_stop() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let postgres = started(&place);
    let mut session = postgres.connect().unwrap();
    let backend = session
        .query_i64("select pg_backend_pid()")
        .unwrap()
        .unwrap() as u32;
    signal(postgres.process_id().unwrap(), Signal::KILL);
    eventually("the backend follows", || !is_running(backend));
    assert_eq!(
        class_of(session.query("select 1")),
        ErrorClass::ConnectionLost
    );
    assert_eq!(
        class_of(session.query("select 1")),
        ErrorClass::ConnectionLost
    );
    assert_eq!(class_of(postgres.connect()), ErrorClass::ConnectionLost);
    let mut stopped = None;
    let postgres = std::cell::Cell::new(Some(postgres));
    eventually("the guard has seen it", || {
        stopped = postgres.take().map(Engine::stop);
        stopped.is_some()
    });
    let error = stopped.unwrap().unwrap_err();
    assert!(error.to_string().contains("signal: 9"), "{error}");
}

#[test]
fn dropping_a_server_ends_it() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    let postgres = started(&place);
    let backend = postgres
        .connect()
        .unwrap()
        .query_i64("select pg_backend_pid()")
        .unwrap()
        .unwrap() as u32;
    let pid = postgres.process_id().unwrap();
    // Even one that is stopped.
    freeze(pid);
    drop(postgres);
    assert!(!is_running(pid) && !is_running(backend));
}

#[test]
fn a_version_that_is_too_old_is_refused_before_anything_is_made() {
    let place = Place::new();
    let script = "echo 'postgres (PostgreSQL) 9.6.24'";
    let build = place.fake_build(&[("postgres", script), ("initdb", script)]);
    let error = error(place.start_build(&build, &[]));
    assert!(
        matches!(&error, SetupError::Version { found, .. } if found == "9.6.24"),
        "{error}"
    );
    assert!(!place.path().join("data").exists());
}

#[test]
fn a_build_whose_initdb_fails_shows_what_it_said() {
    let place = Place::new();
    let build = place.fake_build(&[
        ("postgres", "echo 'postgres (PostgreSQL) 15.1'"),
        ("initdb", "echo 'no share directory' >&2; exit 1"),
    ]);
    let error = error(place.start_build(&build, &[]));
    assert!(matches!(error, SetupError::Command { .. }), "{error}");
    assert_eq!(error.log_tail(), ["no share directory"]);
}

#[test]
fn a_start_can_be_stopped_and_leaves_nothing_behind() {
    if is_installed() {
        Place::new().start_and_stop();
    }
}

#[test]
fn a_parent_that_the_servers_user_can_not_enter_is_named() {
    if !is_installed() || !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    fs_err::set_permissions(place.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let error = error(place.start(&[]));
    assert!(
        error
            .to_string()
            .contains(&format!("can't enter `{}`", place.path().display())),
        "{error}"
    );
    assert!(error.help().unwrap().contains("chmod a+x"));
}

#[test]
fn a_server_that_is_not_there_is_said_with_its_address() {
    let nowhere = Path::new("/nowhere");
    let error = error(Postgres::attach(&format!(
        "postgresql://me:secret@/ib?host={}",
        nowhere.display()
    )));
    assert!(matches!(error, SetupError::Server { .. }), "{error}");
    assert!(
        error.to_string().contains("host=/nowhere") && !error.to_string().contains("secret"),
        "{error}"
    );
    assert!(error.help().unwrap().contains("start the server"));
}
