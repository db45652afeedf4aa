//! A PostgreSQL server whose memory is limited, for a test that kills this program: prints the
//! server's process and waits for the end of its input.
//!
//! Arguments: the build, a directory for the server's files, the limit in bytes.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a part of a test, in a process of its own"
)]

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use engine::Engine;
use engine::StartOptions;
use engine::limits::Limits;
use engine::postgres::Postgres;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == engine::guard::SUBCOMMAND) {
        return engine::guard::main(args);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let directory = Path::new(&args[1]);
    let postgres = Postgres::start(&StartOptions {
        build: &args[0],
        data_dir: directory,
        config_files: &["fsync = off\nshared_buffers = 16MB\n".to_string()],
        guard_exe: &std::env::current_exe().unwrap(),
        log: &directory.join("server.log"),
        limits: &Limits { memory_bytes: Some(args[2].parse().unwrap()), ..Limits::default() },
        ..StartOptions::default()
    })
    .unwrap();
    println!("{}", postgres.process_id().unwrap());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    ExitCode::SUCCESS
}
