//! The output of the commands.

use crate::place::{ASSAY, NULL, Place, QUICK, SQLITE, workload};
use crate::postgres_is_here_or_test_is_skipped;

/// Returns text with what differs between machines and versions taken out.
fn settled(place: &Place, text: &str) -> String {
    let text = text.replace(place.path().to_str().unwrap(), "[PLACE]");

    let line = |line: &str| -> String {
        let name = line.trim_start().split(": ").next().unwrap_or_default();
        for engine in ["sqlite", "postgres", "null"] {
            if line.starts_with("  ") && line.contains(&format!(": {engine} ")) {
                return format!("  {name}: {engine} [VERSION] ([SOURCE])");
            }
        }
        match line.split_once(" at a time") {
            Some((disk, _)) => format!("{disk} at a time[FREE]"),
            None => line.trim_end().to_owned(),
        }
    };

    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_help_of_every_command() {
    let place = Place::new();
    let all = place.assay(&["--help"]).expect_code(0).stdout;
    // Each command is a line in one of the groups, before the options.
    let (commands, _) = all.split_once("\nOptions:\n").unwrap();
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = commands.lines().filter(is_name);
    let names = names.filter_map(|line| line.split_whitespace().next());

    let mut text = String::new();
    for command in std::iter::once("").chain(names) {
        let args: Vec<&str> =
            [command, "--help"].into_iter().filter(|arg| !arg.is_empty()).collect();
        let ended = place.assay(&args).expect_code(0);
        assert!(ended.stderr.is_empty(), "{ended}");
        text.push_str(&format!("$ assay {}\n{}\n", args.join(" "), ended.stdout));
    }

    insta::assert_snapshot!(settled(&place, &text));
}

#[test]
fn the_version_says_from_which_commit_assay_was_built_and_how() {
    let place = Place::new();
    let version = place.assay(&["--version"]).expect_code(0);
    let begin = concat!("assay ", env!("CARGO_PKG_VERSION"), " (");
    assert!(version.stdout.starts_with(begin), "{version}");

    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    assert!(version.stdout.ends_with(&format!("{profile})\n")), "{version}");

    let mut git = std::process::Command::new("git");
    git.args(["rev-parse", "--short=12", "HEAD"]);
    let git = git.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    // Without git, or of sources that were unpacked, the commit is not known.
    if let Ok(head) = git.map(|git| String::from_utf8(git.stdout).unwrap())
        && !head.is_empty()
    {
        let head = head.trim();
        let built = [format!("({head}, clean, {profile})"), format!("({head}, dirty, {profile})")];
        let says = |built: &String| version.stdout.contains(built.as_str());
        assert!(built.iter().any(says), "{version}");
    }
}

#[test]
fn what_the_built_in_plan_comes_to() {
    let place = Place::new();
    let ended = place.assay(&["check", "--all"]).expect_code(0);
    assert!(ended.stderr.is_empty(), "{ended}");
    insta::assert_snapshot!(settled(&place, &ended.stdout));
}

#[test]
fn what_a_plan_of_servers_comes_to() {
    let place = Place::new();
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    place.write("conf/base.conf", "shared_buffers = 1GB\n");
    let plan = r#"name = "round-6"
clients = [1, 8]
repeats = 2
base = "pg.base"

[workload.insert]
initial-rows = "200k"
write-rows = "400k"
read-write-time = "1m"
partitions = 8
step.qr100.rows-per-commit = 100

[build.pg]
postgres = "distribution"

[config.postgres.base]
file = "conf/base.conf"
[config.postgres.a16]
extends = "base"
set = { autovacuum_vacuum_scale_factor = 0.05 }
"#;

    place.write("plan.toml", plan);
    let ended = place
        .assay(&["check", "plan.toml", "--set", "workload.insert.initial-rows=300k"])
        .expect_code(0);
    assert!(ended.stderr.is_empty(), "{ended}");
    insta::assert_snapshot!(settled(&place, &ended.stdout));
}

#[test]
fn the_host_is_described() {
    let place = Place::new();
    let ended = place.assay(&["host", "data"]).expect_code(0);
    for fact in ["cpu_model", "kernel_release", "memory_total_bytes", "data_fs_type", "fsync"] {
        assert!(ended.stdout.contains(fact), "no `{fact}`\n{ended}");
    }

    let [p50, p99, max] = ["p50 ", "p99 ", "max "].map(|name| -> f64 {
        let line = ended.stdout.lines().find(|line| line.starts_with("fsync"));
        let value = line.unwrap().split(name).nth(1).unwrap();
        value.split(' ').next().unwrap().parse().unwrap()
    });

    // Memory has nothing to flush.
    let is_memory = ended.stdout.contains("warning[host::data-in-memory]");
    assert!((0.0 < p50 || is_memory) && p50 <= p99 && p99 <= max, "{ended}");
    assert!(crate::place::entries(&place.join("data")).is_empty());
}

#[test]
fn a_quiet_run_prints_its_directory_alone() {
    let place = Place::new();
    let plan = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\", \"l.x\", \"qr100\"]") + NULL;

    let quiet = place.run(&plan, &["--quiet"]).expect_code(0);
    assert_eq!(quiet.stdout.lines().count(), 1, "{quiet}");
    quiet.run_directory();

    // Problems and warnings are printed anyway, but no progress.
    for line in quiet.stderr.lines() {
        assert!(line.starts_with("warning["), "{quiet}");
    }

    let loud = place.run(&plan, &[]).expect_code(0);
    assert!(loud.stderr.contains("cell 1 of 1") && loud.stderr.contains("qr100"), "{loud}");
    assert!(loud.stdout.contains("Throughput"), "{loud}");
    loud.run_directory();
}

#[test]
fn color_is_for_terminals_that_do_not_refuse_it() {
    let place = Place::new();
    let plan = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\", \"l.x\"]") + SQLITE;
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    place.write("bad.toml", "nam = 1\n");

    // `script` gives a command a terminal; it is part of every Linux that has `mount`.
    let on_terminal = |args: &str, no_color: &str| {
        let shell = format!("NO_COLOR={no_color} TERM=xterm {ASSAY} {args}");
        let output = std::process::Command::new("script")
            .args(["-qec", &shell, "/dev/null"])
            .current_dir(place.path())
            .stdin(std::process::Stdio::null())
            .output();
        match output {
            Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
            Err(_) => None,
        }
    };

    for args in ["check bad.toml".to_owned(), format!("show {}", run.display())] {
        let Some(plain) = on_terminal(&args, "1") else {
            crate::say_skipped("the program `script`, which makes a terminal, is missing");
            return;
        };
        assert!(!plain.contains("\x1b["), "{args}: {plain:?}");
        assert!(!plain.is_empty());
    }

    let colored = on_terminal("check bad.toml", "").unwrap();
    assert!(colored.contains("\x1b["), "{colored:?}");
    let piped = place.assay(&["check", "bad.toml"]).expect_code(2);
    assert!(!piped.stderr.contains("\x1b["), "{piped}");
}
