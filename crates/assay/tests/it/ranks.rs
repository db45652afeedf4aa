//! Load made by several processes, with Open MPI on this host.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{
    ASSAY, Ended, POSTGRES, Place, QUICK, Running, eventually, mysql, send, with_children, workload,
};
use crate::show_json::Shown;
use crate::stall::{at_least, stall, step};
use crate::{mysql_or_test_is_skipped, not_here, postgres_is_here_or_test_is_skipped};

/// Returns whether this build of assay has MPI, and PostgreSQL is here; if not, the test is
/// skipped.
pub(crate) fn mpi_is_here_or_test_is_skipped() -> bool {
    if !cfg!(feature = "mpi") {
        not_here("mpi", "assay was built without the feature `mpi`");
        return false;
    }
    postgres_is_here_or_test_is_skipped()
}

/// Starts assay with so many load ranks.
pub(crate) fn spawn(place: &Place, load_ranks: usize, args: &[&str]) -> Running {
    let mut command = Command::new("mpirun");
    command
        // A killed `mpirun` leaves its own files and its memory for messages there.
        .env("OMPI_MCA_orte_tmpdir_base", place.join("output"))
        .env("OMPI_MCA_btl_vader_backing_directory", place.join("output"))
        // Else `mpirun` kills all ranks a second after one has died, which is too soon on a slow
        // machine.
        .args(["--mca", "odls_base_sigkill_timeout", "5"])
        .args(["--oversubscribe", "--allow-run-as-root", "-n"])
        .arg((load_ranks + 1).to_string())
        .arg(ASSAY);
    place.spawn_as(command, args)
}

pub(crate) fn run(place: &Place, plan: &str, load_ranks: usize) -> Ended {
    place.write("plan.toml", plan);
    let args = ["run", "plan.toml", "--results", "results", "--data", "data"];
    let ended = spawn(place, load_ranks, &args).wait();
    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_nothing_is_left();
    ended
}

/// Returns the process of a rank, if `mpirun` has started it and it runs.
pub(crate) fn rank(running: &Running, rank: u32) -> Option<u32> {
    let variable = format!("OMPI_COMM_WORLD_RANK={rank}");
    let is_rank = |pid: &u32| {
        let environment = fs_err::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|it| it == variable.as_bytes())
    };
    // The numbers of processes need not ascend.
    with_children(running.id()).into_iter().find(is_rank)
}

/// Four clients, which 3 ranks cannot share evenly.
fn plan(time: &str, more: &str) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\"]\n";
    let workload = workload(600, 200, time, &format!("{steps}{more}"));
    format!("clients = [4]\n{workload}{POSTGRES}")
}

/// Returns the work of a step, as far as it does not depend on time.
fn work(row: &Value) -> (String, BTreeMap<String, [u64; 2]>) {
    let ops = row["ops"].as_object().unwrap().iter();
    let counts = ops.map(|(kind, ops)| {
        let count = |key: &str| ops[key].as_u64().unwrap();
        (kind.clone(), [count("count"), count("rows")])
    });
    (row["step"].as_str().unwrap().to_owned(), counts.collect())
}

#[test]
fn one_plan_does_the_same_work_on_any_number_of_load_ranks() {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }

    let alone = Place::new();
    let ended = alone.run(&plan(QUICK, ""), &[]).expect_code(0);
    let shown = Shown::read(&alone, &ended.run_directory());
    let timed = |row: &&Value| row["step"] == "qr100";
    let expected: Vec<_> = shown.rows().iter().filter(|row| !timed(row)).map(work).collect();
    assert!(shown.rows().iter().all(|row| row["ranks"] == serde_json::json!([])));
    for load_ranks in 1..=3 {
        let place = Place::new();
        run(&place, &plan(QUICK, ""), load_ranks).expect_code(0);
        let shown = Shown::read(&place, &place.only_run());
        shown.assert_all_valid();
        let found: Vec<_> = shown.rows().iter().filter(|row| !timed(row)).map(work).collect();
        assert_eq!(found, expected, "with {load_ranks} load ranks");
        for row in shown.rows() {
            let ranks = row["ranks"].as_array().unwrap();
            let sum = |key: &str| ranks.iter().map(|rank| rank[key].as_u64().unwrap()).sum::<u64>();
            assert_eq!(ranks.len(), load_ranks, "{row}");
            assert_eq!(sum("clients"), 4, "{row}");
            let ops = row["ops"].as_object().unwrap().values();
            let rows: u64 = ops.map(|ops| ops["rows"].as_u64().unwrap()).sum();
            assert_eq!(sum("rows"), rows, "{row}");
            // The load ranks are on the server's host.
            assert_eq!(row["client_hosts"], serde_json::json!([]), "{row}");
            assert_server_threads_are_measured(row);
        }
    }
}

/// Asserts that rank 0 measured the server's threads of all connections.
fn assert_server_threads_are_measured(row: &Value) {
    let metric = |name: &str| row["metrics"][name].as_f64();
    let cpu = metric("op_server_cpu_us").filter(|us| *us > 0.0);
    let own = metric("own_cpu_us_per_op").filter(|us| Some(*us) > cpu);
    assert!(cpu.is_some() && own.is_some(), "{row}");
    assert!(metric("background_cpu_us_per_op").is_some(), "{row}");
}

/// Starts a run with a client on each of two load ranks, and waits until its query step runs, in
/// which each inserts at this rate.
fn start_with_rate(place: &Place, rate: u32) -> Running {
    let steps = format!(
        "steps = [\"l.i0\", \"l.x\", \"qr{rate}\"]\nstep.qr{rate}.rows-per-commit = {ROWS_PER_COMMIT}"
    );
    let plan = format!("clients = [2]\n{}{POSTGRES}", workload(20_000, 1_000, "6s", &steps));
    place.write("plan.toml", &plan);
    let args = ["run", "plan.toml", "--results", "results", "--data", "data"];
    let mut running = spawn(place, 2, &args);
    place.wait_for_step(&mut running, &format!("03-qr{rate}"));
    std::thread::sleep(Duration::from_millis(1300));
    running
}

/// So few commits that a slow server catches up with them soon, too.
const ROWS_PER_COMMIT: u64 = 10;

/// Measures a step of two load ranks in which the server pauses.
pub(crate) fn a_stall_shows_on_all_ranks(place: &Place) {
    let running = start_with_rate(place, 1000);
    let stall = stall(&with_children(place.server("pg.base")));
    running.wait().expect_code(0);
    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_nothing_is_left();
    let run = place.only_run();
    Shown::read(place, &run).assert_all_valid();
    let step = step(&run, "qr1000");

    // Rank 0 samples its host by the clock by which the load ranks begin.
    let host = step.host().unwrap();
    let elapsed_ns = step.step().elapsed_ns.cast_signed();
    assert_eq!(host.seconds.first(), Some(&0));
    assert!(host.at_ns.last() >= Some(&elapsed_ns), "{:?}", host.at_ns);
    let histograms = step.histograms().unwrap();
    let late = at_least(&histograms["insert.response"], 100);
    let seconds = stall.least_ns.saturating_sub(100_000_000) as f64 / 1e9;

    // Each rank's connection may have sent one before the stall.
    let due = seconds * (2 * 1000 / ROWS_PER_COMMIT) as f64 - 2.0;
    assert!(late as f64 >= due, "{late} inserts were late, not {due}");
    let waited = at_least(&histograms["insert.service"], 1000);
    assert!(waited >= 2, "{waited} inserts waited for the server, not one of each rank");
}

#[test]
fn a_stall_of_a_load_rank_makes_the_step_invalid() {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let running = start_with_rate(&place, 100);
    let load_rank = rank(&running, 1).unwrap();
    send(load_rank, Signal::STOP);
    std::thread::sleep(Duration::from_secs(2));
    send(load_rank, Signal::CONT);
    running.wait();
    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_nothing_is_left();
    let shown = Shown::read(&place, &place.only_run());
    let row = shown.row("pg.base", "qr100");
    assert_eq!(row["valid"], false, "{row}");
    let reasons = row["reasons"].to_string();
    assert!(reasons.contains("assay itself was stalled"), "{reasons}");

    // Both sides of the connections were sampled.
    for waited in ["op_read_us", "op_lock_us", "op_handover_us"] {
        assert!(row["metrics"][waited].is_number(), "{waited}: {row}");
    }
}

#[test]
fn engines_without_load_ranks_say_so_under_mpirun() {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let plan = workload(600, 200, QUICK, "")
        + "[build.lite]\nsqlite = \"bundled\"\n[config.sqlite.base]\n";
    run(&place, &plan, 1).expect_code(2).expect_in_stderr(&[
        "`lite.base` cannot have load ranks: `sqlite` runs inside assay's own process",
        "help: start assay without `mpirun`",
    ]);
}

#[test]
fn steps_whose_clients_number_rows_together_say_so_under_mpirun() {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let plan = format!(
        "[workload.transactions]\nuse = \"ycsb\"\nsteps = [\"load\", \"c\", \"d\"]\n{POSTGRES}"
    );
    run(&place, &plan, 1).expect_code(2).expect_in_stderr(&[
        "step `d` cannot have load ranks: all its clients take the numbers of rows from one place",
        "help: start assay without `mpirun`, or remove the step",
    ]);
}

#[test]
fn other_commands_print_once_under_mpirun() {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    place.write("plan.toml", &plan(QUICK, ""));
    let ended = spawn(&place, 2, &["check", "plan.toml"]).wait().expect_code(0);
    assert_eq!(ended.stdout.matches("builds:").count(), 1, "{ended}");
}

#[test]
fn a_load_rank_of_another_build_is_refused() {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }

    let version = Command::new(ASSAY).arg("--version").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let Some((_, hash)) = version.split_once('(') else {
        return not_here("git", "assay was built without git");
    };

    let hash = hash.split(',').next().unwrap();
    let other_hash: String = hash.chars().rev().collect();
    let place = Place::new();
    let other = place.join("other");

    // Not written by this process: a child that is being started would have it open.
    let copied = Command::new("sh")
        .args([
            "-c",
            "sed \"s/$0/$1/g\" \"$2\" > \"$3\" && chmod 755 \"$3\"",
            hash,
            &other_hash,
            ASSAY,
        ])
        .arg(&other)
        .status();
    assert!(copied.unwrap().success());

    place.write("plan.toml", &plan(QUICK, ""));
    let mut command = Command::new("mpirun");
    command
        .env("OMPI_MCA_orte_tmpdir_base", place.join("output"))
        .env("OMPI_MCA_btl_vader_backing_directory", place.join("output"))
        .args(["--oversubscribe", "--allow-run-as-root", "-n", "1", ASSAY])
        .args(["run", "plan.toml", "--results", "results", "--data", "data", ":", "-n", "1"])
        .arg(other);
    let ended = place.spawn_as(command, &["run", "plan.toml"]).wait().expect_code(2);
    ended.expect_in_stderr(&[
        &format!("({other_hash}, "),
        "but rank 0 is assay ",
        "help: install the same build of assay on all hosts",
    ]);

    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_nothing_is_left();
}

#[test]
#[cfg(not(feature = "mpi"))]
fn an_assay_without_mpi_says_so_when_mpirun_starts_it() {
    let place = Place::new();
    let mut command = Command::new(ASSAY);
    command.env("OMPI_COMM_WORLD_SIZE", "4");
    let ended = place.spawn_as(command, &["run"]).wait().expect_code(2);
    let text = "one of 4 MPI ranks, but this build of assay has no MPI";
    ended.expect_in_stderr(&[text, "help: ", "--features mpi"]);
}

/// The connection between network namespaces.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Link {
    /// A bridge.
    Bridge,
    /// Nothing yet: the device of each is a TUN device, whose other end is the test's.
    Tun,
}

/// Network namespaces, which are hosts as far as names and addresses tell.
pub(crate) struct Hosts {
    pub(crate) names: Vec<String>,
    bridge: String,
    /// The network that connects them.
    network: String,
}

impl Hosts {
    /// Makes hosts; `None` if the test is skipped.
    pub(crate) fn make_or_test_is_skipped(count: usize, link: Link) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Two tests of one process, or of two, don't share names or networks.
        let id = 4 * (std::process::id() % 4096) + MADE.fetch_add(1, Ordering::Relaxed);
        let hosts = Self {
            names: (0..count).map(|index| format!("as{id}n{index}")).collect(),
            bridge: format!("as{id}br"),
            network: format!("10.{}.{}", 192 + id / 256, id % 256),
        };

        let (bridge, network) = (&hosts.bridge, &hosts.network);
        let mut commands = Vec::new();
        if link == Link::Bridge {
            commands.push(format!("link add {bridge} type bridge"));
            commands.push(format!("link set {bridge} up"));
        }

        for (index, name) in hosts.names.iter().enumerate() {
            let wire = format!("as{id}w{index}");
            commands.push(format!("netns add {name}"));
            match link {
                Link::Bridge => commands.extend([
                    format!("link add {wire} type veth peer name eth0 netns {name}"),
                    format!("link set {wire} master {bridge} up"),
                ]),
                Link::Tun => commands.push(format!("-n {name} tuntap add dev eth0 mode tun")),
            }
            commands.extend([
                format!("-n {name} address add {network}.{}/24 dev eth0", index + 1),
                format!("-n {name} link set eth0 up"),
                format!("-n {name} link set lo up"),
            ]);
        }

        for command in commands {
            let done = Command::new("ip").args(command.split(' ')).output();
            if !done.is_ok_and(|done| done.status.success()) {
                not_here("namespaces", &format!("`ip {command}` failed"));
                return None;
            }
        }

        Some(hosts)
    }

    /// Starts assay with a rank on each host; the first has rank 0.
    pub(crate) fn spawn(&self, place: &Place, args: &[&str]) -> Running {
        // How `mpirun` starts processes elsewhere: the host's name, then words for a shell.
        let agent = place.write_program(
            "agent",
            "#!/bin/sh\nhost=$1\nshift\nexec ip netns exec $host unshare --uts sh -c \"hostname $host; $*\"\n",
        );

        let [first, ..] = &self.names[..] else {
            panic!("no hosts");
        };

        let network = format!("{}.0/24", self.network);
        let mut command = Command::new(&agent);
        command
            .args([first.as_str(), "exec", "mpirun", "--allow-run-as-root", "-n"])
            .args([&self.names.len().to_string(), "--host", &self.names.join(",")])
            .args(["--mca", "odls_base_sigkill_timeout", "5"])
            .args(["--mca", "plm_rsh_agent", agent.to_str().unwrap()])
            .args(["--mca", "oob_tcp_if_include", &network])
            .args(["--mca", "btl_tcp_if_include", &network])
            .args(["--mca", "btl", "tcp,self"])
            .arg(ASSAY);
        place.spawn_as(command, args)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let delete = |kind: &[&str]| {
            let _ = Command::new("ip").args(kind).output();
        };
        for name in &self.names {
            delete(&["netns", "delete", name]);
        }
        delete(&["link", "delete", &self.bridge]);
    }
}

/// Runs a plan with load ranks on two other hosts than the server's. `listen` says where on that
/// host the server is; assay finds an address by itself without.
fn run_on_three_hosts(engine: &str, target: &str, listen: Option<&str>) {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }

    let Some(hosts) = Hosts::make_or_test_is_skipped(3, Link::Bridge) else {
        return;
    };

    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\", \"qp100\"]\n";
    let plan = format!("clients = [3]\n{}{engine}", workload(1_000, 200, QUICK, steps));
    place.write("plan.toml", &plan);
    let mut args = vec!["run", "plan.toml", "--results", "results", "--data", "data"];
    let listen = listen.map(|host| format!("listen={}.{host}", hosts.network));
    args.extend(listen.iter().flat_map(|listen| ["--set", listen]));
    hosts.spawn(&place, &args).wait().expect_code(0);
    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_nothing_is_left();
    let shown = Shown::read(&place, &place.only_run());
    shown.assert_all_valid();
    let row = shown.row(target, "qr100");
    for traffic in ["net_received_kb_per_op", "net_sent_kb_per_op"] {
        assert!(row["metrics"][traffic].as_f64() > Some(0.0), "{row}");
    }

    assert_server_threads_are_measured(row);
    let of = |list: &str, key: &str| -> Vec<Value> {
        let items = row[list].as_array().unwrap().iter();
        items.map(|item| item[key].clone()).collect()
    };

    let clients = &hosts.names[1..];
    assert_eq!(of("ranks", "host"), clients);
    assert_eq!(of("ranks", "clients"), [2, 1]);
    assert_eq!(of("client_hosts", "host"), clients);
    for metrics in of("client_hosts", "metrics") {
        for name in ["cpups", "csps", "net_received_kb_per_op", "net_sent_kb_per_op"] {
            assert!(metrics[name].as_f64() > Some(0.0), "{name}: {metrics}");
        }
    }

    let run = place.only_run();
    let table = ["show", run.to_str().unwrap(), "--table", "client-hosts"];
    let table = place.assay(&table).expect_code(0).stdout;
    let report = fs_err::read_to_string(run.join("report.html")).unwrap();
    for host in clients {
        assert!(table.contains(host.as_str()), "{table}");
        assert!(report.contains(&format!("client host {host}")));
    }

    let described = record::RunDir::open(run).unwrap().read_run().unwrap();
    let described = &described.invocations[0].client_hosts;
    assert_eq!(described.len(), 2);
    assert!(described.iter().all(|it| it.host.fact("kernel_release").is_some()));
    let ranks = row["ranks"].as_array().unwrap();
    assert!(ranks.iter().all(|rank| rank["round_trip_us"].as_f64().unwrap() > 0.0));
}

#[test]
#[ignore = "it needs network namespaces"]
fn load_ranks_on_other_hosts_log_in_to_postgres_by_password() {
    run_on_three_hosts(POSTGRES, "pg.base", None);
}

#[test]
#[ignore = "the ranks are those of a run in plain"]
fn load_ranks_on_other_hosts_trust_the_servers_certificate() {
    run_on_three_hosts(&format!("{POSTGRES}tls = true\n"), "pg.base", Some("1"));
}

#[test]
#[ignore = "it needs network namespaces"]
fn an_address_that_load_ranks_do_not_reach_fails_the_cell() {
    if !mpi_is_here_or_test_is_skipped() {
        return;
    }

    let Some(hosts) = Hosts::make_or_test_is_skipped(2, Link::Bridge) else {
        return;
    };

    let place = Place::new();
    place.write("plan.toml", &format!("listen = \"127.0.0.1\"\n{}", plan(QUICK, "")));
    let args = ["run", "plan.toml", "--results", "results", "--data", "data"];
    let ended = hosts.spawn(&place, &args).wait();
    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_nothing_is_left();
    ended.expect_in_stderr(&[
        "the load ranks reach no common address of this host: tried 127.0.0.1, the `listen` of the plan",
    ]);
}

#[test]
#[ignore = "the ranks are those of PostgreSQL"]
fn load_ranks_on_other_hosts_log_in_to_mysql_by_password() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        run_on_three_hosts(&mysql(&build, "innodb"), "my.base", None);
    }
}
