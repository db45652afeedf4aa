//! A program that is frozen and thawed again and again, for a test that kills this process, the
//! guard or the program. Prints the means, the guard's process and the program's, and waits for the
//! end of its input.
//!
//! Arguments: `group` or `signals`, the program's user and group, its log, the program, and its
//! arguments.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a part of a test, in a process of its own"
)]

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use engine::freeze::Freezer;
use engine::guard::{Ending, Guarded, SUBCOMMAND, Spawn};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == SUBCOMMAND) {
        return engine::guard::main(args);
    }

    let args: Vec<String> = std::env::args().skip(1).collect();
    let [means, uid, gid, log, program, arguments @ ..] = args.as_slice() else {
        return ExitCode::FAILURE;
    };
    let is_root = rustix::process::geteuid().is_root();
    let guarded = Guarded::spawn(&Spawn {
        guard_exe: &std::env::current_exe().unwrap(),
        program: Path::new(program),
        args: arguments.iter().map(Into::into).collect(),
        env: vec![("LC_ALL".into(), "C".into())],
        program_env: &[],
        env_remove: Vec::new(),
        input: None,
        directory: None,
        user: is_root.then(|| (uid.parse().unwrap(), gid.parse().unwrap())),
        log: Some(Path::new(log)),
        // As for PostgreSQL: a frozen process does not handle this signal.
        orphaned: Ending::Quit,
        remove_directory: None,
        confinement: None,
    })
    .unwrap();

    let mut freezer = match means.as_str() {
        "signals" => Freezer::by_signals(&guarded, "the test asks for it").unwrap(),
        _ => Freezer::of(&guarded).unwrap(),
    };
    let guard = probe::state_and_parent(guarded.pid()).unwrap().1;
    println!("{guard} {} {}", guarded.pid(), freezer.how());

    std::thread::spawn(move || {
        while freezer.freeze().is_ok() {
            std::thread::sleep(Duration::from_millis(2));
            freezer.thaw().unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        // The real program may be slow to react, so that others have to.
        loop {
            std::thread::park();
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    ExitCode::SUCCESS
}
