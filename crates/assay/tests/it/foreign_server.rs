//! A server that assay did not start: used by its URL, and left as it was.

use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use engine::guard::{Ending, Guarded, Spawn};
use engine::postgres::Postgres;
use engine::{Engine, Port, Session, SqlEngine};
use rustix::process::Signal;
use serde_json::Value;

use crate::own_server::OwnServer;
use crate::place::{ASSAY, Place, QUICK, entries, eventually, workload};
use crate::show_json::Shown;
use crate::{postgres_is_here_or_test_is_skipped, say_skipped};

/// A server on 127.0.0.1 that wants a password: user `me`, password `right`, database `ib`.
pub(crate) struct Foreign {
    guarded: Guarded,
    port: Port,
    place: Place,
}

/// Makes a cluster with the role `me`, which may log in by TCP, and returns its directory. Assay
/// makes the cluster; then it is run by other rules.
fn make_cluster(folder: &Path) -> PathBuf {
    let server = OwnServer {
        folder,
        name: "server",
        build: "distribution",
        config: "fsync = off\nshared_buffers = 16MB\n",
    };
    let postgres = server.start(Postgres::start);

    let mut session = postgres.connect().unwrap();
    for sql in [
        "set password_encryption = 'scram-sha-256'",
        "create role me superuser login password 'right'",
    ] {
        session.query(sql).unwrap();
    }
    drop(session);

    let cluster = postgres.storage().data[0].clone();
    postgres.stop().unwrap();

    let rules = cluster.join("pg_hba.conf");
    fs_err::write(
        &rules,
        "host all all 127.0.0.1/32 scram-sha-256\nhost all all samenet scram-sha-256\n",
    )
    .unwrap();
    fs_err::set_permissions(&rules, PermissionsExt::from_mode(0o644)).unwrap();
    cluster
}

impl Foreign {
    pub(crate) fn start() -> Self {
        Self::start_at(&Ipv4Addr::LOCALHOST.to_string())
    }

    /// Starts a server that also accepts connections to `address`.
    fn start_at(address: &str) -> Self {
        let place = Place::on_disk();
        let log = place.join("server.log");
        let cluster = make_cluster(place.path());
        let program = engine::postgres::locate("distribution").unwrap().bin_dir.join("postgres");
        let owner = fs_err::metadata(&cluster).unwrap();

        let port = Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap();
        let mut args = vec!["-D".into(), cluster.into_os_string()];
        for option in [
            format!("listen_addresses=127.0.0.1,{address}"),
            format!("port={}", port.number()),
            "unix_socket_directories=".to_owned(),
        ] {
            args.extend(["-c".into(), option.into()]);
        }
        let guarded = Guarded::spawn(&Spawn {
            guard_exe: ASSAY.as_ref(),
            program: &program,
            args,
            env: Vec::new(),
            program_env: &[],
            env_remove: Vec::new(),
            directory: None,
            user: Some((owner.uid(), owner.gid())).filter(|_| rustix::process::geteuid().is_root()),
            log: Some(&log),
            orphaned: Ending::Quit,
            remove_directory: None,
            confinement: None,
            input: None,
        })
        .unwrap();

        let mut foreign = Self { guarded, port, place };
        eventually("it lets somebody in", || {
            foreign.must_be_alive();
            Postgres::attach(&foreign.url("right")).is_ok()
        });
        foreign
    }

    fn must_be_alive(&mut self) {
        if let Some(status) = self.guarded.ended() {
            let log = fs_err::read_to_string(self.place.join("server.log")).unwrap();
            panic!("the server has ended, {status}\n{log}");
        }
    }

    /// Ends it, and looks whether it ran until then.
    fn stop(mut self) {
        let ending = [(Ending::Interrupt, Duration::from_secs(20))];
        self.guarded.stop(&ending).unwrap();
    }

    pub(crate) fn url(&self, password: &str) -> String {
        let port = self.port.number();
        format!("postgresql://me:{password}@127.0.0.1:{port}/ib")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    fn plan(&self, password: &str) -> String {
        self.plan_of(&self.url(password))
    }

    fn plan_of(&self, url: &str) -> String {
        let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\"]";
        // In a second, each connection does something, however long it waits for a processor.
        workload(2_000, 1_000, "1s", steps) + &format!("[build.theirs]\nurl = \"{url}\"\n")
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

#[test]
fn a_server_with_a_password_is_measured_and_left_as_it_was() {
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
        .expect_in_stderr(&["the table exists, and this run did not create it"]);
    assert_eq!(server.tables(), ["pi1"]);
    assert_eq!(session.query("select precious from pi1").unwrap(), [[Some("data".to_owned())]]);

    // Where a part of a table is somebody else's, what was made of it before that is dropped again.
    session.query("drop table pi1").unwrap();
    session.query("create table pi1_p1 (precious text)").unwrap();
    let parts = server.plan("right").replacen("steps", "partitions = 3\nsteps", 1);
    place
        .run(&parts, &[])
        .expect_code(1)
        .expect_in_stderr(&["`create table pi1_p1 partition of pi1 "]);
    assert_eq!(server.tables(), ["pi1_p1"]);
    drop(session);
    server.stop();
}

/// A network namespace, which is another host as far as addresses tell, and a wire to it.
struct OtherHost {
    name: String,
    /// The address of this host on the wire.
    address: String,
}

impl OtherHost {
    /// Makes it; where that cannot be done, the test that asks has been called skipped.
    fn make_or_test_is_skipped() -> Option<Self> {
        let id = std::process::id();
        let net = format!("10.213.{}", id % 256);
        let other = Self { name: format!("assay-{id}"), address: format!("{net}.1") };
        let (name, here, there) = (&other.name, format!("as{id}a"), format!("as{id}b"));
        let commands = [
            format!("netns add {name}"),
            format!("link add {here} type veth peer name {there} netns {name}"),
            format!("address add {net}.1/30 dev {here}"),
            format!("link set {here} up"),
            format!("-n {name} address add {net}.2/30 dev {there}"),
            format!("-n {name} link set {there} up"),
        ];

        for command in commands {
            let done = Command::new("ip").args(command.split(' ')).output();
            let why = match done {
                Ok(done) if done.status.success() => continue,
                Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
                Err(error) => error.to_string(),
            };
            say_skipped(&format!("no network namespace can be made: ip {command}: {why}"));
            return None;
        }
        Some(other)
    }

    fn assay(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, ASSAY]);
        command
    }
}

impl Drop for OtherHost {
    fn drop(&mut self) {
        let delete = ["netns", "delete", &self.name];
        let _ = Command::new("ip").args(delete).output();
    }
}

#[test]
fn the_figures_of_the_clients_machine_are_not_those_of_a_server_on_another() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let Some(other) = OtherHost::make_or_test_is_skipped() else {
        return;
    };

    let server = Foreign::start_at(&other.address);
    let measured = |plan: &str, command: Command| -> (Value, Value) {
        let place = Place::on_disk();
        place.write("plan.toml", plan);
        let args = ["run", "plan.toml", "--results", "results", "--data", "data"];
        place.spawn_as(command, &args).wait().expect_code(0);
        let run = place.only_run();
        let shown = place.assay(&["show", run.to_str().unwrap(), "--format", "json"]);
        let shown: Value = serde_json::from_str(&shown.expect_code(0).stdout).unwrap();
        let rows = shown["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["step"] == "qr100").unwrap();
        let cell = record::RunDir::open(&run).unwrap().started_cells().unwrap();
        let cell = serde_json::to_value(cell[0].read().unwrap()).unwrap();
        (cell["server_host"].clone(), row.clone())
    };

    // All of what was sampled of the machine.
    let of_host = ["cpupq", "cpu/o", "cpups", "csps", "cspq", "cs/o", "wps", "wkbpi"];
    let of_clients = ["qps", "client_cpu_us_per_op", "maxop"];
    let traffic = ["net_received_kb_per_op", "net_sent_kb_per_op"];

    let url = server.url("right");
    let (host, row) = measured(&server.plan_of(&url), Command::new(ASSAY));
    assert_eq!(host, "local");
    for name in of_host.iter().chain(&of_clients) {
        assert!(row["metrics"][name].is_number(), "{name}: {row}");
    }
    for name in traffic {
        assert!(row["metrics"][name].is_null(), "{name}: {row}");
    }

    let away = url.replace("127.0.0.1", &other.address);
    let plan = server.plan_of(&away);
    let (host, row) = measured(&plan, other.assay());
    assert_eq!(host, "remote");
    assert_eq!(row["valid"], true, "{row}");
    for name in of_clients {
        assert!(row["metrics"][name].is_number(), "{name}: {row}");
    }
    for name in of_host.iter().chain(&["others%", "cpu_mhz", "server_cpu_us_per_op"]) {
        assert!(row["metrics"][name].is_null(), "{name}: {row}");
    }
    for name in traffic {
        assert!(row["metrics"][name].as_f64() > Some(0.0), "{name}: {row}");
    }

    // From this machine, the same address is this machine.
    let (host, _) = measured(&plan, Command::new(ASSAY));
    assert_eq!(host, "local");

    // An exporter on the server's host tells what a local sample would.
    if let Some(exporter) = NodeExporter::start_or_test_is_skipped(&other.address) {
        let with_exporter = format!("{plan}host-metrics = \"{}\"\n", exporter.url);
        let (host, row) = measured(&with_exporter, other.assay());
        assert_eq!(host, "remote");
        assert_eq!(row["valid"], true, "{row}");
        for name in ["cpupq", "cpu/o", "cpups", "csps", "cs/o", "wps"] {
            assert!(row["metrics"][name].is_number(), "{name}: {row}");
        }

        // What others do between two of its pages would count as that of a target in turns.
        let beside = "[build.lite]\nsqlite = \"bundled\"\n";
        let in_turns = format!("turns = \"100ms\"\n{with_exporter}{beside}");
        let (_, row) = measured(&in_turns, other.assay());
        assert_eq!((&row["build"], &row["valid"]), (&"theirs".into(), &true.into()), "{row}");
        assert!(row["metrics"]["csps"].is_null(), "{row}");
        assert!(row["warnings"].to_string().contains("takes turns"), "{row}");

        // One that has gone leaves gaps, and the step is valid all the same.
        drop(exporter);
        let (_, row) = measured(&with_exporter, other.assay());
        assert_eq!(row["valid"], true, "{row}");
        assert!(row["metrics"]["cpupq"].is_null(), "{row}");
        assert!(row["warnings"].to_string().contains("from `host-metrics`"), "{row}");
    }
    server.stop();
}

/// The exporter of this host's metrics, which ends with this value.
struct NodeExporter {
    process: std::process::Child,
    url: String,
}

impl NodeExporter {
    /// Starts it at an address of this host; where there is no such program, the test that asks has
    /// been called skipped.
    fn start_or_test_is_skipped(address: &str) -> Option<Self> {
        let port = Port::reserve(address.parse().unwrap()).unwrap().number();
        let at = format!("{address}:{port}");
        for program in ["prometheus-node-exporter", "node_exporter"] {
            let mut command = Command::new(program);
            command.arg(format!("--web.listen-address={at}"));
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let Ok(process) = command.spawn() else {
                continue;
            };

            let exporter = Self { process, url: format!("http://{at}/metrics") };
            eventually("it listens", || std::net::TcpStream::connect(&at).is_ok());
            return Some(exporter);
        }
        say_skipped("there is no `prometheus-node-exporter`");
        None
    }
}

impl Drop for NodeExporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_would_stop_a_run_on_a_server_is_reported_before_it_begins() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let server = Foreign::start();
    let postgres = Postgres::attach(&server.url("right")).unwrap();
    let mut session = postgres.connect().unwrap();
    let mut run_all = |statements: &[&str]| {
        for sql in statements {
            session.query(sql).unwrap();
        }
    };
    run_all(&[
        "set password_encryption = 'scram-sha-256'",
        "create role weak login password 'right'",
        "revoke create on schema public from public",
    ]);

    let place = Place::new();
    let url = server.url("right").replace("me:", "weak:");
    let plan = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]")
        + &format!("[build.theirs]\nurl = \"{url}\"\n");
    let refused = |clients: &str, words: &[&str]| {
        let ended = place.run(&plan, &["--set", clients]).expect_code(2);
        let ended = ended.expect_in_stderr(words);
        assert!(!ended.stderr.contains("right"), "{ended}");
    };

    let one = "clients=1";
    refused(
        one,
        &[
            "plan.toml:8:7",
            "role `weak` lacks the privilege to create tables in schema `public`",
            "help: run `grant create on schema public to weak`",
        ],
    );

    run_all(&[
        "grant create on schema public to weak",
        "alter role weak set statement_timeout = '7s'",
        "alter role weak set search_path = nowhere",
        "alter role weak connection limit 4",
    ]);

    // All at once.
    refused(
        one,
        &[
            "the server cancels statements after 7s: `statement_timeout` is set",
            "help: run `alter role weak set statement_timeout = 0`",
            "no schema for tables: `search_path` is `nowhere`",
            "the run needs 5 connections, but the role may open only 4 more",
            "help: run `alter role weak connection limit -1`, or use fewer clients",
            "3 errors in `plan.toml`",
        ],
    );

    run_all(&[
        "alter role weak reset all",
        "alter role weak set default_transaction_read_only = on",
        "alter role weak connection limit -1",
    ]);
    refused(
        one,
        &["transactions are read-only by default", "set default_transaction_read_only = off`"],
    );

    run_all(&["alter role weak reset all"]);
    refused("clients=100", &["but the server accepts only", "help: raise `max_connections`, or"]);

    assert_eq!(entries(&place.join("results")).len(), 0);
    place.run(&plan, &[]).expect_code(0);
    assert_eq!(server.tables(), Vec::<String>::new());
    drop(session);
    server.stop();
}

#[test]
fn a_table_that_cannot_be_created_is_reported_with_its_own_reason() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let server = Foreign::start();
    let postgres = Postgres::attach(&server.url("right")).unwrap();
    let mut session = postgres.connect().unwrap();
    // A type has the name of the table.
    session.query("create type pi1 as enum ('x')").unwrap();

    let place = Place::new();
    let ended = place.run(&server.plan("right"), &[]).expect_code(1);
    let ended = ended
        .expect_in_stderr(&["error: `create table pi1", "caused by: type \"pi1\" already exists"]);
    assert!(!ended.stderr.contains("a table of that name"), "{ended}");
    drop(session);
    server.stop();
}

#[test]
fn a_role_whose_sessions_may_be_idle_for_less_than_a_step_takes_loses_neither_the_step_nor_the_tables_end()
 {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let server = Foreign::start();
    let postgres = Postgres::attach(&server.url("right")).unwrap();

    let mut session = postgres.connect().unwrap();
    if session.query("alter role me set idle_session_timeout = '6s'").is_ok() {
        drop(session);
        let place = Place::new();
        // Connections of the step are idle for a tenth of a second at a time: the rest allows for a
        // machine that pauses.
        let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\"]\n\
                     step.\"l.i1\".time = \"9s\"\nstep.\"l.i1\".rate = \"1k\"";
        let url = server.url("right");
        let plan =
            workload(2_000, 1_000, QUICK, steps) + &format!("[build.theirs]\nurl = \"{url}\"\n");
        let ended = place.run(&plan, &[]).expect_code(0);
        Shown::read(&place, &ended.run_directory()).assert_all_valid();
        assert_eq!(server.tables(), Vec::<String>::new());
    }

    server.stop();
}

#[test]
fn a_killed_run_goes_on_with_its_password_and_drops_the_tables_that_it_made() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let server = Foreign::start();
    let place = Place::new();

    // Longer than the signal may be late; a resumed run begins the step again.
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
        "the plan of this run has a password, which is not recorded",
        "PLAN was plan.toml",
    ]);

    place.write("other.toml", &plan.replace("2000", "2001"));
    let other = place.assay(&["run", "--resume", run, "other.toml"]);
    let other = other.expect_code(2).expect_in_stderr(&[
        "the plan differs from the recorded one: line 3 was `initial-rows = 2000` and is now `initial-rows = 2001`",
    ]);
    assert!(!other.stderr.contains("right"), "{other}");
    assert_eq!(server.tables(), ["pi1"]);

    let resumed = place.assay(&["run", "--resume", run, "plan.toml"]);
    resumed.expect_code(0);
    Shown::read(&place, run.as_ref()).assert_all_valid();
    assert_eq!(server.tables(), Vec::<String>::new());
    server.stop();
}
