//! A server that assay did not start: used by its URL, and left as it was.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::StartOptions;
use engine::guard::{Ending, Guarded, Spawn};
use engine::postgres::Postgres;
use engine::{Engine, Session, SqlEngine};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use rustix::process::Signal;

use crate::place::{ASSAY, Place, eventually, workload};
use crate::show_json::Shown;
use crate::{postgres_is_here_or_test_is_skipped, share_the_machine};

/// A server on 127.0.0.1 that wants a password: user `me`, password `right`, database `ib`.
pub(crate) struct Foreign {
    guarded: Guarded,
    port: FreePort,
    place: Place,
}

impl Foreign {
    pub(crate) fn start() -> Self {
        let place = Place::new();
        let log = place.join("server.log");
        let data = place.join("data");
        // Assay makes the cluster; then it is run by other rules.
        let postgres = Postgres::start(&StartOptions {
            build: "distribution",
            data_dir: &data,
            config_files: &["fsync = off\nshared_buffers = 16MB\n".to_owned()],
            set: &[],
            user: None,
            guard_exe: ASSAY.as_ref(),
            log: &log,
            connections: 10,
            limits: &engine::limits::Limits::default(),
            timeout: Duration::from_secs(60),
            stop: &AtomicBool::new(false),
        })
        .unwrap();
        let mut session = postgres.connect().unwrap();
        for sql in [
            "set password_encryption = 'scram-sha-256'",
            "create role me superuser login password 'right'",
        ] {
            session.query(sql).unwrap();
        }
        drop(session);
        let cluster = postgres.storage().data[0].clone();
        let program = postgres.installation().unwrap().bin_dir.join("postgres");
        let owner = fs_err::metadata(&cluster).unwrap();
        postgres.stop().unwrap();
        let rules = cluster.join("pg_hba.conf");
        fs_err::write(&rules, "host all all 127.0.0.1/32 scram-sha-256\n").unwrap();
        fs_err::set_permissions(&rules, PermissionsExt::from_mode(0o644)).unwrap();
        let port = FreePort::take();
        let mut args = vec!["-D".into(), cluster.into_os_string()];
        for option in [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", port.number),
            "unix_socket_directories=".to_owned(),
        ] {
            args.extend(["-c".into(), option.into()]);
        }
        let guarded = Guarded::spawn(&Spawn {
            guard_exe: ASSAY.as_ref(),
            program: &program,
            args,
            env: Vec::new(),
            env_remove: Vec::new(),
            directory: None,
            user: Some((owner.uid(), owner.gid())).filter(|_| rustix::process::geteuid().is_root()),
            log: Some(&log),
            orphaned: Ending::Quit,
            remove_directory: None,
            input: None,
        })
        .unwrap();
        let mut foreign = Self {
            guarded,
            port,
            place,
        };
        eventually("it lets somebody in", || {
            foreign.must_be_alive();
            Postgres::attach(&foreign.url("right")).is_ok()
        });
        foreign
    }

    fn must_be_alive(&mut self) {
        if let Some(status) = self.guarded.exit_status() {
            let log = fs_err::read_to_string(self.place.join("server.log")).unwrap();
            panic!("the server has ended, {status}\n{log}");
        }
    }

    pub(crate) fn url(&self, password: &str) -> String {
        let port = self.port.number;
        format!("postgresql://me:{password}@127.0.0.1:{port}/ib")
    }

    fn plan(&self, password: &str) -> String {
        let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\"]";
        let url = self.url(password);
        workload(2_000, 1_000, 1, steps) + &format!("[build.theirs]\nurl = \"{url}\"\n")
    }

    fn tables(&self) -> Vec<String> {
        let postgres = Postgres::attach(&self.url("right")).unwrap();
        let rows = postgres
            .connect()
            .unwrap()
            .query("select tablename from pg_tables where schemaname = 'public' order by 1")
            .unwrap();
        rows.into_iter().flatten().flatten().collect()
    }
}

/// A port that nothing listens on, and that the kernel gives to nobody while this lives. A server that asks for it by
/// its number gets it.
pub(crate) struct FreePort {
    pub(crate) number: u16,
    _socket: OwnedFd,
}

impl FreePort {
    pub(crate) fn take() -> Self {
        let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
        let socket = net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        // Both have to allow it: PostgreSQL does.
        net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddrV4::try_from(net::getsockname(&socket).unwrap()).unwrap();
        Self {
            number: address.port(),
            _socket: socket,
        }
    }
}

#[test]
fn a_server_with_a_password_is_measured_and_left_as_it_was() {
    let _machine = share_the_machine();
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let mut server = Foreign::start();
    let place = Place::new();

    let refused = place.run(&server.plan("wr0ngword"), &[]).expect_code(1);
    let refused =
        refused.expect_in_stderr(&["password authentication failed", "help: ", "`PGPASSWORD`"]);
    assert!(!refused.stderr.contains("wr0ngword"), "{refused}");
    assert_eq!(server.tables(), Vec::<String>::new());

    let ended = place.run(&server.plan("right"), &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    assert_eq!(server.tables(), Vec::<String>::new());
    server.must_be_alive();
    for file in ["run.json", "report.html"] {
        let text = fs_err::read_to_string(run.join(file)).unwrap();
        assert!(!text.contains("me:right"), "`{file}` holds the password");
    }

    // A table of that name that is somebody else's is not touched.
    let postgres = Postgres::attach(&server.url("right")).unwrap();
    let mut session = postgres.connect().unwrap();
    session.query("create table pi1 (precious text)").unwrap();
    session.query("insert into pi1 values ('data')").unwrap();
    place
        .run(&server.plan("right"), &[])
        .expect_code(1)
        .expect_in_stderr(&["a table of that name that this run did not make is left as it is"]);
    assert_eq!(server.tables(), ["pi1"]);
    assert_eq!(
        session.query("select precious from pi1").unwrap(),
        [[Some("data".to_owned())]]
    );

    // Where a part of a table is somebody else's, what was made of it before that is dropped again.
    session.query("drop table pi1").unwrap();
    session
        .query("create table pi1_p1 (precious text)")
        .unwrap();
    let parts = server
        .plan("right")
        .replacen("steps", "partitions = 3\nsteps", 1);
    place
        .run(&parts, &[])
        .expect_code(1)
        .expect_in_stderr(&["`create table pi1_p1 partition of pi1 "]);
    assert_eq!(server.tables(), ["pi1_p1"]);
    drop(session);
    server
        .guarded
        .stop(&[(Ending::Interrupt, Duration::from_secs(20))])
        .unwrap();
}

#[test]
fn a_role_whose_sessions_may_be_idle_for_less_than_a_step_takes_loses_neither_the_step_nor_the_tables_end()
 {
    let _machine = share_the_machine();
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let mut server = Foreign::start();
    let postgres = Postgres::attach(&server.url("right")).unwrap();
    let mut session = postgres.connect().unwrap();
    if session
        .query("alter role me set idle_session_timeout = '6s'")
        .is_ok()
    {
        drop(session);
        let place = Place::new();
        // What works in the step is idle for a tenth of a second at a time: the rest is for a machine that stands still.
        let steps = "steps = [\"l.i0\", \"l.x\", \"qr1000\"]";
        let url = server.url("right");
        let plan = workload(2_000, 1_000, 9, steps) + &format!("[build.theirs]\nurl = \"{url}\"\n");
        let ended = place.run(&plan, &[]).expect_code(0);
        Shown::read(&place, &ended.run_directory()).assert_all_valid();
        assert_eq!(server.tables(), Vec::<String>::new());
    }
    server
        .guarded
        .stop(&[(Ending::Interrupt, Duration::from_secs(20))])
        .unwrap();
}

#[test]
fn a_killed_run_goes_on_with_its_password_and_drops_the_tables_that_it_made() {
    let _machine = share_the_machine();
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let mut server = Foreign::start();
    let place = Place::new();
    // Longer than the test may be late with the signal; what goes on begins the step anew.
    let plan = server.plan("right").replace("\"1s\"", "\"10s\"");
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "05-qr100");
    running.signal(Signal::KILL);
    let ended = running.wait();
    assert_eq!(ended.signal, Some(9), "{ended}");
    assert_eq!(server.tables(), ["pi1"]);
    let run = place.only_run();
    let run = run.to_str().unwrap();

    let missing = place.assay(&["run", "--resume", run]).expect_code(2);
    missing.expect_in_stderr(&[
        "the plan of this run has a password, which was not recorded",
        "PLAN was plan.toml",
    ]);
    place.write("other.toml", &plan.replace("2000", "2001"));
    let other = place.assay(&["run", "--resume", run, "other.toml"]);
    let other = other.expect_code(2).expect_in_stderr(&[
        "the plan is not the one that the run began with: line 3 was `initial-rows = 2000`, and is `initial-rows = 2001`",
    ]);
    assert!(!other.stderr.contains("right"), "{other}");
    assert_eq!(server.tables(), ["pi1"]);

    let resumed = place.assay(&["run", "--resume", run, "plan.toml"]);
    resumed.expect_code(0);
    Shown::read(&place, run.as_ref()).assert_all_valid();
    assert_eq!(server.tables(), Vec::<String>::new());
    server
        .guarded
        .stop(&[(Ending::Interrupt, Duration::from_secs(20))])
        .unwrap();
}
