//! A server for a benchmark: starts one of a build, prints its URL, and stops it when stdin ends.
//!
//! Arguments: the engine, `postgres` or `mysql`; the build, as a plan names one; a directory for
//! the server's files; settings, as `NAME=VALUE`. With `listen=PASSWORD` among them, the server also
//! listens on a port of 127.0.0.1, for clients that know the password.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::io::Read;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use engine::Engine as _;
use engine::mysql::Mysql;
use engine::postgres::Postgres;
use engine::{Network, Port, StartOptions};
use words::Secret;

fn main() -> anyhow::Result<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == engine::guard::SUBCOMMAND) {
        return Ok(engine::guard::main(args));
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [engine, build, directory, settings @ ..] = args.as_slice() else {
        bail!("usage: server ENGINE BUILD DIRECTORY [NAME=VALUE]...");
    };
    let mut set = settings
        .iter()
        .map(|setting| {
            let (name, value) = setting
                .split_once('=')
                .with_context(|| format!("`{setting}` is not NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let network = match set.iter().position(|(name, _)| name == "listen") {
        Some(index) => {
            let password = Secret::new(set.remove(index).1);
            let port = Port::reserve(Ipv4Addr::LOCALHOST.into())?;
            Some(Network { port, password, certificate: None })
        }
        None => None,
    };

    let options = StartOptions {
        build,
        data_dir: Path::new(directory),
        set: &set,
        guard_exe: &std::env::current_exe()?,
        log: &Path::new(directory).join("server.log"),
        connections: 8,
        network: network.as_ref(),
        ..StartOptions::default()
    };
    match engine.as_str() {
        "postgres" => {
            let server = Postgres::start(&options)?;
            serve(&server.address().to_string())?;
            server.stop()?;
        }
        "mysql" => {
            let server = Mysql::start(&options)?;
            serve(&server.address().to_string())?;
            server.stop()?;
        }
        other => bail!("unknown engine `{other}` - expected `postgres` or `mysql`"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the server's URL and waits for the end of stdin, which also comes if the parent process
/// is killed.
fn serve(url: &str) -> std::io::Result<usize> {
    println!("{url}");
    std::io::stdin().read_to_end(&mut Vec::new())
}
