//! Measures what the begin and the end of a turn cost: to freeze and thaw a server by each means,
//! and to read what its processes use and the host's counters. The servers are PostgreSQL, and MySQL or MariaDB, with four
//! connections, idle and busy. Each column has the median and the largest of 500 times.
//!
//! Arguments: a build of PostgreSQL and one of MySQL or MariaDB; `distribution` by default.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measurement for developers, in a process of its own"
)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::freeze::Freezer;
use engine::guard::SUBCOMMAND;
use engine::mysql::Mysql;
use engine::postgres::Postgres;
use engine::{Session, SqlEngine, StartOptions};
use probe::{Sampler, Targets, TreeUse};

const CONNECTIONS: u32 = 4;
const ROUNDS: usize = 500;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == SUBCOMMAND) {
        return engine::guard::main(args);
    }
    let builds: Vec<String> = std::env::args().skip(1).collect();
    let build = |index: usize| builds.get(index).map_or("distribution", String::as_str);

    println!(
        "server      load  means                      freeze us     thaw us   answer us     \
         read us   rescan us     host us  threads"
    );
    measure("PostgreSQL", build(0), "fsync = off\n", Postgres::start);
    measure("MySQL", build(1), "innodb_flush_log_at_trx_commit = 0\n", Mysql::start);
    ExitCode::SUCCESS
}

/// Starts a server, and prints a line for each means and load.
fn measure<S: SqlEngine>(
    name: &str,
    build: &str,
    config: &str,
    start: fn(&StartOptions<'_>) -> Result<S, engine::SetupError>,
) {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(directory.path(), everyone).unwrap();
    let server = start(&StartOptions {
        build,
        data_dir: &directory.path().join("data"),
        config_files: &[config.to_string()],
        guard_exe: &std::env::current_exe().unwrap(),
        log: &directory.path().join("server.log"),
        connections: CONNECTIONS + 1,
        ..StartOptions::default()
    })
    .unwrap();

    let guarded = server.server().unwrap().guarded();
    for load in ["idle", "busy"] {
        let mut freezers = [
            Freezer::of(guarded).unwrap(),
            Freezer::by_signals(guarded, "for comparison").unwrap(),
        ];
        for freezer in &mut freezers {
            measure_freezer(&format!("{name:<11} {load}"), &server, freezer, load == "busy");
        }
    }
    server.stop().unwrap();
}

fn measure_freezer<S: SqlEngine>(what: &str, server: &S, freezer: &mut Freezer, is_busy: bool) {
    let has_finished = AtomicBool::new(false);
    let mut asking = server.connect().unwrap();
    let mut times = [const { Vec::new() }; 6];
    let mut tree = TreeUse::open(server.process_id().unwrap()).unwrap();
    let files = Targets { data: server.storage().data, ..Targets::default() };
    let mut host = Sampler::new(files).host_counters();

    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let mut session = server.connect().unwrap();
            let has_finished = &has_finished;
            scope.spawn(move || {
                while !has_finished.load(Ordering::Relaxed) {
                    if is_busy {
                        session.query_i64("select 6 * 7").unwrap();
                    } else {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
            });
        }

        for _ in 0..ROUNDS {
            let begin = Instant::now();
            freezer.freeze().unwrap();
            let frozen = Instant::now();
            std::thread::sleep(Duration::from_millis(2));
            let reading = Instant::now();
            tree.read().unwrap();
            let read = Instant::now();
            tree.rescan().unwrap();
            let rescanned = Instant::now();
            host.read().unwrap();
            let host_read = Instant::now();
            let thawing = Instant::now();
            freezer.thaw().unwrap();
            let thawed = Instant::now();
            asking.query_i64("select 6 * 7").unwrap();

            times[0].push(frozen - begin);
            times[1].push(thawed - thawing);
            times[2].push(thawing.elapsed());
            times[3].push(read - reading);
            times[4].push(rescanned - read);
            times[5].push(host_read - rescanned);
            std::thread::sleep(Duration::from_millis(2));
        }
        has_finished.store(true, Ordering::Relaxed);
    });

    let how = freezer.how().to_string();
    let means: String = how.chars().take_while(|&letter| letter != ',').collect();
    let columns = times.map(|mut times| {
        times.sort_unstable();
        format!("{:>5}{:>7}", times[ROUNDS / 2].as_micros(), times[ROUNDS - 1].as_micros())
    });
    let processes = probe::process_tree(server.process_id().unwrap());
    let threads: usize = processes.iter().map(|&pid| probe::threads_of(pid).len()).sum();
    println!("{what}  {means:<25} {} {threads:>6}", columns.join(""));
}
