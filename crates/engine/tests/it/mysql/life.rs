//! The life of a server: start, stop, and what can go wrong.

use std::path::Path;

use engine::ServerEngine;
use engine::mysql::{Host, Mysql, StorageEngine};
use engine::{Engine, ErrorClass, MARKER, Session, SetupError, SqlEngine};
use rustix::process::Signal;

use super::{Place, installed, is_mariadb, storage_engines};
use crate::guard::{eventually, freeze, is_running, kill_guard_of, signal};
use crate::tables::class_of;

fn error(result: Result<Mysql, SetupError>) -> SetupError {
    result.err().expect("it must not start")
}

#[test]
fn a_server_starts_answers_and_stops_cleanly() {
    for storage_engine in storage_engines() {
        let place = Place::new();
        let mysql = place
            .start(&[
                ("port", "6543"),
                ("sort_buffer_size", "1M"),
                ("default-storage-engine", storage_engine),
            ])
            .unwrap();
        assert_eq!(
            mysql.connect().unwrap().query_i64("select 6 * 7").unwrap(),
            Some(42)
        );
        assert_eq!(
            *mysql.storage_engine(),
            StorageEngine::named(storage_engine)
        );
        let pid = mysql.process_id().unwrap();
        assert!(is_running(pid));
        assert!(mysql.config_text().unwrap().contains("sort_buffer_size=1M"));
        assert!(mysql.notes()[0].contains("`port`"), "{:?}", mysql.notes());
        let storage = mysql.storage();
        assert!(storage.data[0].join("ib").is_dir(), "{storage:?}");
        assert!(!storage.logs.is_empty(), "{storage:?}");
        if rustix::process::geteuid().is_root() {
            assert!(mysql.server_user().is_some_and(|user| user != "root"));
        } else {
            assert_eq!(mysql.server_user(), None);
        }
        assert!(!mysql.log_tail(1000).is_empty());
        let Host::Unix(socket) = mysql.address().host.clone() else {
            panic!("{}", mysql.address());
        };
        mysql.stop().unwrap();
        assert!(!is_running(pid));
        assert!(!socket.exists(), "the socket's directory is removed");
        let log = fs_err::read_to_string(place.log()).unwrap();
        assert!(log.to_lowercase().contains("shutdown complete"), "{log}");
    }
}

#[test]
fn a_directory_of_ours_is_made_anew() {
    if installed().is_none() {
        return;
    }
    let place = Place::new();
    let first = place.start(&[]).unwrap();
    let mut session = first.connect().unwrap();
    session.query("create table remains (a int)").unwrap();
    drop(session);
    first.stop().unwrap();
    let second = place.start(&[]).unwrap();
    let remains = second.connect().unwrap().query("select * from remains");
    assert_eq!(remains.unwrap_err().code.as_deref(), Some("1146"));
    second.stop().unwrap();
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    if installed().is_none() {
        return;
    }
    let place = Place::new();
    let theirs = place.path().join("data/mysql");
    fs_err::create_dir_all(&theirs).unwrap();
    fs_err::write(theirs.join("ibdata1"), "x").unwrap();
    let error = error(place.start(&[]));
    assert!(
        matches!(&error, SetupError::Directory { path, .. } if path.ends_with("data/mysql")),
        "{error}"
    );
    assert!(error.help().unwrap().contains(MARKER));
    assert!(theirs.join("ibdata1").exists());
}

#[test]
fn files_in_use_are_left_alone() {
    if installed().is_none() {
        return;
    }
    let place = Place::new();
    let mysql = place.start(&[]).unwrap();
    let error = error(place.start(&[]));
    let pid = mysql.process_id().unwrap().to_string();
    assert!(
        matches!(error, SetupError::Directory { .. }) && error.to_string().contains(&pid),
        "{error}"
    );
    assert_eq!(
        mysql.connect().unwrap().query_i64("select 1").unwrap(),
        Some(1)
    );
}

#[test]
fn a_bad_option_is_named() {
    if installed().is_none() {
        return;
    }
    for (name, value) in [
        ("colour", "red"),
        ("innodb_flush_method", "many"),
        ("default_storage_engine", "nosuch"),
    ] {
        let place = Place::new();
        let error = error(place.start(&[(name, value)]));
        assert!(
            matches!(error, SetupError::Config { .. }),
            "{name}: {error}; {:?}",
            error.log_tail()
        );
        let text = error.to_string();
        assert!(text.contains(name) || text.contains(value), "{error}");
    }
}

#[test]
fn a_bad_option_is_named_without_a_start() {
    if installed().is_none() {
        return;
    }
    let place = Place::new();
    place.try_config(&[("innodb-page-size", "4k")]).unwrap();
    for (name, value) in [
        ("innodb_bufer_pool_size", "32M"),
        ("innodb_buffer_pool_size", "lots"),
        ("colour", "red"),
    ] {
        let error = place.try_config(&[(name, value)]).unwrap_err();
        assert!(
            matches!(error, SetupError::Config { .. }),
            "{name}: {error}; {:?}",
            error.log_tail()
        );
        let text = error.to_string().replace('-', "_");
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn a_storage_engine_that_the_build_lacks_is_said_before_anything_runs() {
    if storage_engines() != ["innodb"] {
        return;
    }
    let place = Place::new();
    let error = error(place.start(&[("storage_engine", "myrocks")]));
    assert!(matches!(error, SetupError::Config { .. }), "{error}");
    let program = installed().unwrap().program;
    let base = program.parent().and_then(Path::parent).unwrap();
    let has_plugins = ["lib", "lib/mysql", "lib/mariadb", "lib64", "lib64/mysql"]
        .iter()
        .any(|place| base.join(place).join("plugin").is_dir());
    if has_plugins || is_mariadb() {
        assert!(error.to_string().contains("ha_rocksdb.so"), "{error}");
        assert!(!place.log().exists());
    } else {
        // It may have it built in: its own word is waited for.
        assert!(error.to_string().contains("ROCKSDB"), "{error}");
    }
}

#[test]
fn a_server_dies_with_its_guard_and_its_data_is_removed_after_it() {
    if installed().is_none() {
        return;
    }
    let place = Place::new();
    let mysql = place.start(&[]).unwrap();
    let (pid, data_dir) = (
        mysql.process_id().unwrap(),
        mysql.data_dir().cloned().unwrap(),
    );
    let session = mysql.connect().unwrap();
    kill_guard_of(pid);
    let stopped = mysql.stop().unwrap_err().to_string();
    assert!(stopped.contains("guard was killed"), "{stopped}");
    assert!(!is_running(pid));
    drop(session);
    data_dir.remove().unwrap();
}

#[test]
fn a_killed_server_is_a_lost_connection_and_an_unclean_stop() {
    if installed().is_none() {
        return;
    }
    let place = Place::new();
    let mysql = place.start(&[]).unwrap();
    let mut session = mysql.connect().unwrap();
    let pid = mysql.process_id().unwrap();
    signal(pid, Signal::KILL);
    eventually("it is gone", || !is_running(pid));
    for _ in 0..2 {
        assert_eq!(
            class_of(session.query("select 1")),
            ErrorClass::ConnectionLost
        );
    }
    assert_eq!(class_of(mysql.connect()), ErrorClass::ConnectionLost);
    let error = mysql.stop().unwrap_err();
    assert!(error.to_string().contains("signal: 9"), "{error}");
}

#[test]
fn dropping_a_server_ends_it() {
    if installed().is_none() {
        return;
    }
    let place = Place::new();
    let mysql = place.start(&[]).unwrap();
    let pid = mysql.process_id().unwrap();
    // Even one that is stopped.
    freeze(pid);
    drop(mysql);
    assert!(!is_running(pid));
}

#[test]
fn a_version_that_is_too_old_is_refused_before_anything_is_made() {
    let place = Place::new();
    let script = "echo 'mysqld  Ver 5.1.73 for Linux on x86_64 (x)'";
    let error = error(place.start_build(&place.fake_build(&[("mysqld", script)]), &[]));
    assert!(
        matches!(&error, SetupError::Version { found, .. } if found == "MySQL 5.1.73"),
        "{error}"
    );
    assert!(!place.path().join("data").exists());
}

#[test]
fn a_build_that_can_not_make_system_tables_shows_what_it_said() {
    let place = Place::new();
    let script = "case \"$*\" in *--version*) \
        echo 'mysqld  Ver 8.0.36 for Linux on x86_64 (x)';; \
        *) echo 'no messages' >&2; exit 1;; esac";
    let error = error(place.start_build(&place.fake_build(&[("mysqld", script)]), &[]));
    assert!(matches!(error, SetupError::Command { .. }), "{error}");
    assert_eq!(error.log_tail(), ["no messages"]);
}

#[test]
fn a_start_can_be_stopped_and_leaves_nothing_behind() {
    if installed().is_some() {
        Place::new().start_and_stop();
    }
}

#[test]
fn a_server_that_is_not_there_is_said_with_its_address() {
    let nowhere = Path::new("/nowhere");
    let error = error(Mysql::attach(&format!(
        "mysql://me:secret@localhost/ib?socket={}",
        nowhere.display()
    )));
    assert!(matches!(error, SetupError::Server { .. }), "{error}");
    assert!(
        error.to_string().contains("socket=/nowhere") && !error.to_string().contains("secret"),
        "{error}"
    );
    assert!(error.help().unwrap().contains("start the server"));
}
