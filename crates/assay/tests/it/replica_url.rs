//! Replicas that assay did not start: used by their URLs, and left as they were.

use std::net::Ipv4Addr;

use engine::mysql::Mysql;
use engine::postgres::Postgres;
use engine::{
    Engine, ForReplicas, Network, Port, Replicated, ServerEngine, Session, SqlEngine, StartOptions,
};
use rustix::process::Signal;

use crate::own_server::OwnServer;
use crate::place::{Place, send, workload};
use crate::show_json::{Shown, number};
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

fn port() -> Port {
    Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap()
}

/// Returns the access to a server for clients with the password `right`.
fn network() -> Network {
    Network { port: port(), password: words::Secret::new("right"), certificate: None }
}

/// A PostgreSQL server with a replica.
struct Pair {
    primary: Postgres,
    replica: Postgres,
}

impl Pair {
    fn start(place: &Place, logical: bool) -> Self {
        let (port, of_primary, of_replica) = (port(), network(), network());
        // A physical replica has the roles of its primary, and no more.
        let of_replica = logical.then_some(&of_replica);
        let replicas = Some(ForReplicas { port: &port, logical });

        let server = OwnServer {
            folder: place.path(),
            name: "primary",
            build: "distribution",
            config: "fsync = off\nshared_buffers = 16MB\n",
        };
        let primary = server.start(|options| {
            Postgres::start(&StartOptions { network: Some(&of_primary), replicas, ..*options })
        });
        let replica = OwnServer { name: "replica", ..server }.start(|options| {
            let options = StartOptions { network: of_replica, replicas, ..*options };
            primary.start_replica("theirs", &options)
        });

        Self { primary, replica }
    }

    fn plan(&self) -> String {
        plan(&self.primary.url(), &self.replica.url(), "postgres")
    }
}

fn plan(url: &str, replica: &str, engine: &str) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\"]";
    let engine = format!("[config.{engine}.base]\nreads = \"replica\"\n");
    // Costs are the difference of two samples, and a busy machine may take one in two seconds.
    workload(2_000, 1_000, "4s", steps)
        + &format!("[build.theirs]\nurl = \"{url}\"\nreplica-url = \"{replica}\"\n{engine}")
}

/// Returns the names of tables in a database of PostgreSQL.
fn tables(server: &Postgres) -> Vec<String> {
    let sql = "select tablename from pg_tables where schemaname = 'public' order by 1";
    server.connect().unwrap().query_column(sql).unwrap()
}

/// Runs the plan, and looks at its results. Returns the run directory.
fn measures(place: &Place, plan: &str) -> std::path::PathBuf {
    let run = place.run(plan, &[]).expect_code(0).run_directory();
    let shown = Shown::read(place, &run);
    shown.assert_all_valid();
    let row = shown.row("theirs.base", "qr100");
    let metric = |name: &str| number(&row["metrics"][name]);
    for name in ["lag_ms_max", "lag_bytes_max", "catch_up_s"] {
        assert!(metric(name) >= 0.0, "{name}");
    }

    assert!(metric("replica_cpu_us_per_op") > metric("server_cpu_us_per_op"));
    let step = crate::stall::step(&run, "l.i1");
    let mut checks = step.step().checks.iter();
    let check = checks.find(|check| check.what == "contents of pi1 on replica_1");
    assert!(check.is_some_and(|check| check.holds && check.found.contains("pdc")));
    for file in ["run.json", "report.html", "cells/theirs.base/c1/r1/cell.json"] {
        let text = fs_err::read_to_string(run.join(file)).unwrap();
        assert!(!text.contains(":right"), "`{file}` holds the password");
    }

    run
}

#[test]
fn a_replica_that_runs_is_measured_and_left_as_it_was() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let (servers, place) = (Place::new(), Place::new());
    let pair = Pair::start(&servers, false);
    measures(&place, &pair.plan());
    for server in [&pair.primary, &pair.replica] {
        assert!(engine::guard::is_alive(server.process_id().unwrap()));
    }

    assert_eq!(tables(&pair.primary), Vec::<String>::new());
    let mut session = pair.primary.connect().unwrap();
    let theirs = "create table assay_heartbeat as select 1 as precious";
    session.query(theirs).unwrap();
    let ended = place.run(&pair.plan(), &[]).expect_code(1);
    ended.expect_in_stderr(&["the table exists, and this run did not create it"]);
    assert_eq!(tables(&pair.primary), ["assay_heartbeat"]);
    session.query("drop table assay_heartbeat").unwrap();
    drop(session);
    let set = "config.postgres.base.replica.set.work_mem=1MB";
    let ended = place.run(&pair.plan(), &["--set", set]).expect_code(2);
    ended.expect_in_stderr(&[
        "assay cannot configure or limit replicas that it does not start",
        "remove `replica` from its config",
    ]);

    let needed = |plan: &str| -> u32 {
        let ended = place.run(plan, &["--set", "clients=[500]"]).expect_code(2);
        let (_, rest) = ended.stderr.split_once("the run needs ").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };

    let watched = pair.plan();
    let (alone, _) = watched.split_once("replica-url").unwrap();
    let of_engine = "\n[config.postgres.base]\n";

    // One writes heartbeats, and three watch the replica.
    assert_eq!(needed(&watched), needed(&format!("{alone}{of_engine}")) + 4);

    // A replica that cannot show the heartbeat is refused without waiting for `server-timeout`.
    let mut session = pair.primary.connect().unwrap();
    session.query("create role weak superuser login password 'right'").unwrap();
    session.query("create database other").unwrap();
    let weak = pair.replica.url().replacen("assay", "weak", 1);
    let weak = plan(&pair.primary.url(), &weak, "postgres");
    session.query("alter role weak nosuperuser").unwrap();
    let ended = place.run(&weak, &[]).expect_code(1);
    ended.expect_in_stderr(&[
        "replica_1 cannot show the heartbeats of its primary",
        "permission denied for table assay_heartbeat",
        "grant its user `select`",
    ]);

    let other = pair.replica.url().replacen("/ib", "/other", 1);
    let ended = place.run(&plan(&pair.primary.url(), &other, "postgres"), &[]).expect_code(2);
    ended.expect_in_stderr(&["replica_1: its URL names database `other`", "primary's is `ib`"]);
    session.query("drop database other").unwrap();
    session.query("drop role weak").unwrap();
    drop(session);

    // A server is no replica of itself.
    let url = pair.primary.url();
    let ended = place.run(&plan(&url, &url, "postgres"), &[]).expect_code(2);
    ended.expect_in_stderr(&["replica_1: it follows no primary", "help: "]);
}

#[test]
#[ignore = "the end of a load whose replica is lost is that of a server that assay starts"]
fn a_run_ends_though_commits_wait_for_a_lost_replica() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let (servers, place) = (Place::new(), Place::new());
    let pair = Pair::start(&servers, false);
    let mut session = pair.primary.connect().unwrap();
    session.query("alter system set synchronous_standby_names = '*'").unwrap();
    session.query("select pg_reload_conf()").unwrap();
    let plan = pair.plan().replace("write-rows = 1000", "write-rows = 1_000_000_000");
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    send(pair.replica.process_id().unwrap(), Signal::KILL);
    let ended = running.wait().expect_code(1);
    ended.expect_in_stderr(&["replica_1 no longer follows its primary"]);
    let left = tables(&pair.primary);
    assert!(left.is_empty() || left == ["assay_heartbeat"], "{left:?}");
}

#[test]
fn a_logical_replica_that_runs_gets_the_tables_of_its_primary_and_loses_only_these() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let (servers, place) = (Place::new(), Place::new());
    let pair = Pair::start(&servers, true);
    let mut session = pair.replica.connect().unwrap();
    for sql in [
        "create table pi2 (precious text)",
        "create role weak login password 'right'",
        "revoke create on schema public from public",
    ] {
        session.query(sql).unwrap();
    }

    let two_kept = ["--set", "clients=[2]", "--set", "keep-data=true"];
    let ended = place.run(&pair.plan(), &two_kept).expect_code(1);
    ended.expect_in_stderr(&[
        "replica_1 cannot get the tables of its primary",
        "relation \"pi2\" already exists",
    ]);

    // Those of a failed cell are dropped by the next one of its run, but only on the primary.
    assert_eq!(tables(&pair.primary), ["pi1", "pi2"]);
    assert_eq!(tables(&pair.replica), ["pi2"]);
    session.query("drop table pi2").unwrap();
    let mut on_primary = pair.primary.connect().unwrap();
    on_primary.query("drop table pi1, pi2").unwrap();
    drop(on_primary);
    let weak = pair
        .plan()
        .replace("replica-url = \"postgresql://assay:", "replica-url = \"postgresql://weak:");
    let ended = place.run(&weak, &[]).expect_code(2);
    let ended = ended.expect_in_stderr(&[
        "replica_1: role `weak` lacks the privilege to create tables in schema `public`",
        "replica_1: only `assay` may add tables to subscription `theirs`",
        "help: use `assay` as the user in `replica-url`",
    ]);

    assert!(!ended.stderr.contains(":right"), "{ended}");

    measures(&place, &pair.plan());
    for server in [&pair.primary, &pair.replica] {
        assert_eq!(tables(server), Vec::<String>::new());
    }

    assert_eq!(Postgres::replication_error(&mut session).unwrap(), None);
    session.query("alter subscription theirs disable").unwrap();
    let ended = place.run(&pair.plan(), &[]).expect_code(2);
    ended.expect_in_stderr(&["replica_1: its subscription does not apply changes"]);
}

#[test]
#[ignore = "other servers with the same code"]
fn a_replica_of_mysql_that_runs_is_measured_and_left_as_it_was() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };

    let (servers, place) = (Place::new(), Place::new());
    let (port, of_primary, of_replica) = (port(), network(), network());
    let replicas = Some(ForReplicas { port: &port, logical: false });

    let server = OwnServer {
        folder: servers.path(),
        name: "primary",
        build: &build,
        config: "innodb_buffer_pool_size = 32M\ninnodb_flush_log_at_trx_commit = 0\n",
    };
    let primary = server.start(|options| {
        Mysql::start(&StartOptions { network: Some(&of_primary), replicas, ..*options })
    });
    let replica = OwnServer { name: "replica", ..server }.start(|options| {
        let options = StartOptions { network: Some(&of_replica), replicas, ..*options };
        primary.start_replica("replica_1", &options)
    });

    measures(&place, &plan(&primary.url(), &replica.url(), "mysql"));
    let left = primary.connect().unwrap().query("show tables").unwrap();
    assert!(left.is_empty(), "{left:?}");

    // The primary is no replica.
    let other = plan(&replica.url(), &primary.url(), "mysql");
    let ended = place.run(&other, &[]).expect_code(2);
    ended.expect_in_stderr(&["replica_1: it follows no primary", "help: "]);
}
