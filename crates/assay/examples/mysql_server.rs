//! A MySQL or MariaDB server for a benchmark: starts a build's, prints its URL, and stops it when stdin ends.
//!
//! Arguments: the build, as a plan names one; a directory for the server's files; options, as `NAME=VALUE`.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use engine::Engine as _;
use engine::StartOptions;
use engine::mysql::Mysql;

fn main() -> anyhow::Result<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args
        .next()
        .is_some_and(|arg| arg == engine::guard::SUBCOMMAND)
    {
        return Ok(engine::guard::main(args));
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [build, directory, options @ ..] = args.as_slice() else {
        bail!("usage: mysql_server BUILD DIRECTORY [NAME=VALUE]...");
    };
    let set = options
        .iter()
        .map(|option| {
            let (name, value) = option
                .split_once('=')
                .with_context(|| format!("`{option}` is not NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mysql = Mysql::start(&StartOptions {
        build,
        data_dir: Path::new(directory),
        config_files: &[],
        set: &set,
        user: None,
        guard_exe: &std::env::current_exe()?,
        log: &Path::new(directory).join("server.log"),
        connections: 8,
        limits: &engine::limits::Limits::default(),
        timeout: Duration::from_secs(120),
        stop: &AtomicBool::new(false),
    })?;
    println!("{}", mysql.address());
    // Whoever began it holds the other end, and lets go of it also when killed.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    mysql.stop()?;
    Ok(ExitCode::SUCCESS)
}
