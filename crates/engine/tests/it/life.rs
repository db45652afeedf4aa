//! Starts and stops every kind of server, with their possible failures.

use engine::{ErrorClass, MARKER, Session, SetupError};
use rustix::process::Signal;

use crate::guard::{eventually, freeze, is_running, kill_guard_of, signal};
use crate::server::{ServerDir, TestServer, on_each_server};
use crate::tables::class_of;

on_each_server!(
    a_server_starts_answers_and_stops_cleanly,
    a_directory_of_ours_is_made_anew,
    a_directory_that_is_not_ours_is_left_alone,
    files_in_use_are_left_alone,
    a_bad_option_is_named,
    a_bad_option_is_named_without_a_start,
    a_server_dies_with_its_guard_and_its_data_is_removed_after_it,
    a_killed_server_is_a_lost_connection_and_an_unclean_stop,
    dropping_a_server_ends_it,
    a_version_that_is_too_old_is_refused_before_anything_is_made,
    a_build_that_can_not_make_a_data_directory_shows_what_it_said,
    a_start_can_be_stopped_and_leaves_nothing_behind,
    a_server_that_is_not_there_is_said_with_its_address,
);

fn error<S>(result: Result<S, SetupError>) -> SetupError {
    result.err().expect("it must not start")
}

fn a_server_starts_answers_and_stops_cleanly<S: TestServer>() {
    for variant in S::variants() {
        let place = ServerDir::<S>::new();
        let set = [S::LIFE.set, &S::options_of(variant)].concat();
        let server = place.start(&set).unwrap();
        let mut session = server.connect().unwrap();
        assert_eq!(session.query_i64("select 6 * 7").unwrap(), Some(42));
        let pid = server.process_id().unwrap();
        assert!(is_running(pid));
        assert!(server.config_text().unwrap().contains(S::LIFE.config));
        let settings = server.settings().unwrap();
        let port = settings.iter().find(|setting| setting.name == "port").unwrap();
        assert_ne!(port.value, S::LIFE.port, "Assay overrides the option");
        if rustix::process::geteuid().is_root() {
            assert!(server.server_user().is_some_and(|user| user != "root"));
        } else {
            assert_eq!(server.server_user(), None);
        }
        assert!(!server.log_tail(1000).is_empty());
        server.look_at_start();
        let socket = server.socket();
        drop(session);
        server.stop().unwrap();
        assert!(!is_running(pid));
        assert!(!socket.exists(), "the socket's directory is removed");
        let log = fs_err::read_to_string(place.log()).unwrap();
        let has_ended = log.to_lowercase().contains(S::LIFE.last_words);
        assert!(has_ended, "{log}");
    }
}

fn a_directory_of_ours_is_made_anew<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let first = place.start(&[]).unwrap();
    let mut session = first.connect().unwrap();
    session.query("create table remains (a int)").unwrap();
    drop(session);
    first.stop().unwrap();
    let second = place.start(&[]).unwrap();
    let remains = second.connect().unwrap().query("select * from remains");
    let code = remains.unwrap_err().code;
    assert_eq!(code.as_deref(), Some(S::SQL.codes[1]));
    second.stop().unwrap();
}

fn a_directory_that_is_not_ours_is_left_alone<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let theirs = place.path().join("data").join(S::NAME);
    fs_err::create_dir_all(&theirs).unwrap();
    let file = theirs.join(S::LIFE.file);
    fs_err::write(&file, "x").unwrap();
    let error = error(place.start(&[]));
    assert!(matches!(&error, SetupError::Directory { path, .. } if *path == theirs), "{error}");
    assert!(error.help().unwrap().contains(MARKER));
    assert!(file.exists());
}

fn files_in_use_are_left_alone<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let server = place.start(&[]).unwrap();
    let error = error(place.start(&[]));
    let pid = server.process_id().unwrap().to_string();
    assert!(
        matches!(error, SetupError::Directory { .. }) && error.to_string().contains(&pid),
        "{error}"
    );
    let mut session = server.connect().unwrap();
    assert_eq!(session.query_i64("select 1").unwrap(), Some(1));
}

fn a_bad_option_is_named<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    for (name, value, said) in S::LIFE.refused {
        let error = error(ServerDir::<S>::new().start(&[(name, value)]));
        let text = error.to_string();
        assert!(
            matches!(error, SetupError::Config { .. })
                && said.iter().any(|said| text.contains(said)),
            "{name}: {error}; {:?}",
            error.log_tail()
        );
    }
}

fn a_bad_option_is_named_without_a_start<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    place.try_config(&[S::LIFE.taken]).unwrap();
    for (name, value, said) in S::LIFE.refused_at_once {
        let error = place.try_config(&[(name, value)]).unwrap_err();
        let text = error.to_string().replace('-', "_");
        assert!(
            matches!(error, SetupError::Config { .. }) && text.contains(said),
            "{name}: {error}; {:?}",
            error.log_tail()
        );
        // The file is gone by now.
        assert!(!text.contains("server.c"), "{text}");
    }
}

fn a_server_dies_with_its_guard_and_its_data_is_removed_after_it<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let server = place.start(&[]).unwrap();
    let (pid, data_dir) = (server.process_id().unwrap(), server.data_dir().cloned().unwrap());
    let [mut busy, mut other] = [(); 2].map(|()| server.connect().unwrap());
    let thread = busy.server_thread().unwrap();
    let [name, _, count] = S::SQL.session;
    let name = busy.query_i64(name).unwrap().unwrap().to_string();
    std::thread::scope(|scope| {
        // This backend only uses the processor, so it does not notice that the server has ended.
        let working = scope.spawn(move || class_of(busy.query(S::SQL.work[1])));
        let runs = format!("{} and {}", count.replace('?', &name), S::SQL.is_active);
        eventually("the statement runs", || other.query_i64(&runs).unwrap() == Some(1));
        kill_guard_of(pid);
        let stopped = server.stop().unwrap_err().to_string();
        assert!(stopped.contains("guard was killed"), "{stopped}");
        assert!(!is_running(pid));
        eventually("what served the session is gone", || !is_running(thread));
        assert_eq!(working.join().unwrap(), ErrorClass::ConnectionLost);
    });
    data_dir.remove().unwrap();
}

fn a_killed_server_is_a_lost_connection_and_an_unclean_stop<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let server = place.start(&[]).unwrap();
    let mut session = server.connect().unwrap();
    let thread = session.server_thread().unwrap();
    signal(server.process_id().unwrap(), Signal::KILL);
    eventually("what serves the session follows", || !is_running(thread));
    for _ in 0..2 {
        assert_eq!(class_of(session.query("select 1")), ErrorClass::ConnectionLost);
    }
    assert_eq!(class_of(server.connect()), ErrorClass::ConnectionLost);
    let error = server.stop().unwrap_err();
    assert!(error.to_string().contains("signal: 9"), "{error}");
}

fn dropping_a_server_ends_it<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let server = place.start(&[]).unwrap();
    let thread = server.connect().unwrap().server_thread().unwrap();
    let pid = server.process_id().unwrap();
    // Even one that is stopped.
    freeze(pid);
    drop(server);
    assert!(!is_running(pid) && !is_running(thread));
}

fn a_version_that_is_too_old_is_refused_before_anything_is_made<S: TestServer>() {
    let place = ServerDir::<S>::new();
    let (programs, version) = S::LIFE.old;
    let error = error(place.start_build(&place.fake_build(programs), &[]));
    assert!(matches!(&error, SetupError::Version { found, .. } if found == version), "{error}");
    assert!(!place.path().join("data").exists());
}

fn a_build_that_can_not_make_a_data_directory_shows_what_it_said<S: TestServer>() {
    let place = ServerDir::<S>::new();
    let error = error(place.start_build(&place.fake_build(S::LIFE.broken), &[]));
    assert!(matches!(error, SetupError::Command { .. }), "{error}");
    assert_eq!(error.log_tail(), ["say so"]);
}

fn a_start_can_be_stopped_and_leaves_nothing_behind<S: TestServer>() {
    if S::is_installed() {
        ServerDir::<S>::new().start_and_stop();
    }
}

fn a_server_that_is_not_there_is_said_with_its_address<S: TestServer>() {
    let error = error(S::attach(S::LIFE.nowhere));
    assert!(matches!(error, SetupError::Server { .. }), "{error}");
    assert!(
        error.to_string().contains("=/nowhere") && !error.to_string().contains("secret"),
        "{error}"
    );
    assert!(error.help().unwrap().contains("start the server"));
}
