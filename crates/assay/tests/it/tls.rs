//! Servers that assay starts and whose clients connect by TCP: with `listen`, and with TLS.

use engine::postgres::Postgres;
use engine::{Session, SqlEngine};
use rustix::process::Signal;

use crate::place::{POSTGRES, Place, QUICK, Running, eventually, mysql, workload};
use crate::ranks;
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// The base of an engine, and another config that differs in TLS alone.
fn plan(engine: &str, name: &str, time: &str) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\"]";
    let workload = workload(600, 200, time, steps);
    format!(
        "listen = \"127.0.0.1\"\nclients = [2]\n{workload}{engine}[config.{name}.tls]\nextends = \"base\"\ntls = true\n"
    )
}

/// Runs both configs, and expects these differences between them.
fn compare(plan: &str, target: &str, expected: &[&str]) {
    let place = Place::new();
    let run = place.run(plan, &["--quiet"]).expect_code(0).run_directory();
    Shown::read(&place, &run).assert_all_valid();
    let shown = place.assay(&["show", run.to_str().unwrap(), "--all"]).expect_code(0);
    let (_, section) = shown.stdout.split_once("\nWhat differs between targets\n").unwrap();
    let (_, differences) =
        section.split_once(&format!("{target}.tls against {target}.base\n")).unwrap();
    let differences = differences.lines().map(str::trim);
    let differences: Vec<&str> = differences.take_while(|line| line.contains(" -> ")).collect();
    assert_eq!(differences, expected, "{section}");
}

#[test]
fn configs_of_postgres_may_differ_in_tls_alone() {
    if postgres_is_here_or_test_is_skipped() {
        let plan = plan(POSTGRES, "postgres", QUICK);
        compare(&plan, "pg", &["tls: off -> on"]);
        let without_listen = plan.replace("listen", "# listen");
        let transport = "transport: unix socket -> tcp [undeclared]";
        compare(&without_listen, "pg", &["tls: off -> on", transport]);
    }
}

#[test]
fn configs_of_mysql_may_differ_in_tls_alone() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        let plan = plan(&mysql(&build, "innodb"), "mysql", QUICK);
        compare(&plan, "my", &["tls: off -> on"]);
    }
}

/// Counts the server's clients that come over the network, and those among them that are encrypted,
/// in the midst of a step. Assay also asks for the server's state over its Unix socket, now and then.
fn every_client_is_encrypted(start: impl FnOnce(&Place, &[&str]) -> Running) {
    let place = Place::new();
    place.write("plan.toml", &plan(POSTGRES, "postgres", "60s"));
    let args =
        ["run", "plan.toml", "--results", "results", "--data", "data", "--only", "pg.tls/*/*"];
    let mut running = start(&place, &args);
    place.wait_for_step(&mut running, "04-qr100");
    let home = place.join("data/pg.tls/postgres");
    let directory = fs_err::read_to_string(home.join("socket-directory")).unwrap();
    let config = fs_err::read_to_string(home.join("server.conf")).unwrap();
    let port = config.lines().rev().find_map(|line| line.strip_prefix("port = ")).unwrap();
    let socket = format!("postgresql://assay@/ib?host={directory}&port={port}");
    let mut session = Postgres::attach(&socket).unwrap().connect().unwrap();

    // Two clients, each with a connection that queries and one that inserts, and one that reads
    // counters.
    let [mut all, mut encrypted] = [0; 2];
    let sql = "select count(*), count(*) filter (where ssl) from pg_stat_activity join pg_stat_ssl using (pid) \
               where backend_type = 'client backend' and client_addr is not null";
    eventually("all clients are connected", || {
        let rows = session.query(sql).unwrap();
        [all, encrypted] = [0, 1].map(|at| rows[0][at].clone().unwrap().parse::<u32>().unwrap());
        all >= 5
    });

    drop(session);
    running.signal(Signal::INT);
    running.wait();
    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_no_process_is_left();
    assert_eq!(encrypted, all);
}

#[test]
fn every_client_of_a_run_with_tls_is_encrypted() {
    if postgres_is_here_or_test_is_skipped() {
        every_client_is_encrypted(|place, args| place.spawn(args));
    }
}

#[test]
fn every_client_of_load_ranks_is_encrypted() {
    if ranks::mpi_is_here_or_test_is_skipped() {
        every_client_is_encrypted(|place, args| ranks::spawn(place, 2, args));
    }
}

#[test]
fn an_address_of_another_host_is_refused_before_anything_runs() {
    let place = Place::new();
    let plan = plan(POSTGRES, "postgres", QUICK).replace("127.0.0.1", "192.0.2.1");
    place.run(&plan, &[]).expect_code(2).expect_in_stderr(&[
        "a server cannot listen on 192.0.2.1: ",
        "plan.toml:1:10",
        "help: write an address of this host (",
    ]);
}
