//! Mistakes of users: each mistake has its exit code, names the place and the way out, and changes
//! nothing.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use engine::Port;

use crate::place::{NULL, POSTGRES, Place, QUICK, SQLITE, entries, mysql, workload};
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// Runs assay once for each line: a name, arguments, the exit code, and what stderr says, between
/// bars. `{}` is the place.
fn check_cases(place: &Place, cases: &str) {
    let cases = cases.replace("{}", place.path().to_str().unwrap());
    for case in cases.lines().map(str::trim).filter(|case| !case.is_empty()) {
        let mut fields = case.split(" | ");
        let mut field = || fields.next().unwrap();
        let (name, args, code) = (field(), field(), field().parse().unwrap());
        let args: Vec<&str> = args.split_whitespace().collect();

        let ended = place.assay(&args);
        assert_eq!(ended.code, Some(code), "{name}\n{ended}");
        for word in fields {
            assert!(ended.stderr.contains(word), "{name}: no `{word}`\n{ended}");
        }

        assert!(!ended.stderr.contains("panicked"), "{name}\n{ended}");
        // What was refused before it began has printed no result.
        if code == 2 {
            assert!(ended.stdout.is_empty(), "{name}\n{ended}");
        }
    }

    place.assert_no_process_is_left();
}

/// Returns a place with a plan for each engine, all of them right.
fn place_with_plans() -> Place {
    let place = Place::new();
    let base = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]");
    for (name, engine) in [("lite", SQLITE), ("pg", POSTGRES), ("null", NULL)] {
        place.write(&format!("{name}.toml"), &(base.clone() + engine));
    }
    place
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let place = place_with_plans();

    place.write("file", "no directory");
    check_cases(
        &place,
        r#"
        no command |  | 2 | Usage:
        unknown command | frobnicate | 2 | unrecognized subcommand 'frobnicate'
        almost a command | chek | 2 | 'check'
        unknown flag | run --speed 3 | 2 | unexpected argument '--speed'
        unknown format | show x --format xml | 2 | table, json, csv
        no run | show | 2 | <RUN>
        missing plan | run nowhere.toml | 2 | `nowhere.toml` | No such file | help:
        a directory as plan | check data | 2 | `data` | help:
        set without value | check --set seed | 2 | --set seed
        a key that is set twice | check --set seed=1 --set seed=2 | 2 | `seed` is set twice | --set seed=2 | set first: `--set seed=1`
        set of an unknown key | check --set sed=1 | 2 | `sed` | `seed`
        host of no directory | host file | 2 | `file` is not a directory | help:
        "#,
    );

    assert_eq!(entries(&place.join("results")).len(), 0);
}

#[test]
fn a_wrong_plan_is_refused_with_line_and_column() {
    let place = place_with_plans();
    let plan = |name: &str, more: &str| {
        place.write(name, &(workload(2_000, 1_000, QUICK, more) + SQLITE));
    };

    plan("key.toml", "initial-row = 3");
    plan("unit.toml", "settle-at-most = \"3 parsecs\"");
    plan("type.toml", "delete-per-insert = \"yes\"");
    plan("two.toml", "partitions = -1\ntables = \"mine\"");
    place.write("broken.toml", "name = [");
    place.write("empty.toml", "");
    place.write(
        "not-utf8.toml",
        "name = \"caf\u{e9}\"\n[workload.insert]\n[build.null]\nnull = \"unbundled\"\n",
    );
    place.write(
        "missing-file.toml",
        &(workload(2_000, 1_000, QUICK, "")
            + "[build.pg]\npostgres = \"distribution\"\n[config.postgres.c]\nfile = \"nowhere.conf\"\n"),
    );

    check_cases(
        &place,
        r#"
        unknown key | run key.toml | 2 | key.toml:6:1 | `initial-rows`
        wrong unit | run unit.toml | 2 | unit.toml:6:18 | parsecs
        wrong type | run type.toml | 2 | type.toml:6:21
        two at once | check two.toml | 2 | two.toml:6:14 | two.toml:7:10 | 2 errors
        not TOML | check broken.toml | 2 | broken.toml:1:
        nothing in it | check empty.toml | 2 | empty.toml
        wide characters | check not-utf8.toml | 2 | not-utf8.toml:4:8 | `bundled`
        partitions on SQLite | run lite.toml --set workload.insert.partitions=4 | 2 | --set workload.insert.partitions=4 | `lite.base` | SQLite has no partitions | help:
        "#,
    );

    if postgres_is_here_or_test_is_skipped() {
        check_cases(
            &place,
            "missing config | check missing-file.toml | 2 | missing-file.toml:10:8 | nowhere.conf | No such file | help:",
        );
    }

    assert_eq!(entries(&place.join("results")).len(), 0);
}

#[test]
fn a_file_that_holds_no_text_is_refused_at_its_place() {
    let place = place_with_plans();
    let steps = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]");
    for (number, file) in ["/dev/zero", "pipe", "data", "huge", "latin"].iter().enumerate() {
        let engine = format!(
            "[build.pg]\npostgres = \"distribution\"\n[config.postgres.c]\nfile = \"{file}\"\n"
        );
        place.write(&format!("{number}.toml"), &(steps.clone() + &engine));
    }

    // Nobody writes into it: who opens it waits forever.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let huge = fs_err::File::create(place.join("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    fs_err::write(place.join("latin"), b"work_mem = 8MB\n# caf\xe9\n").unwrap();
    fs_err::write(place.join("latin.toml"), b"name = 'a'\n# caf\xe9\n").unwrap();

    check_cases(
        &place,
        r#"
        a device | run 0.toml | 2 | .toml:10:8 | config `c`: `/dev/zero` is not a regular file | help:
        a pipe | check 1.toml | 2 | .toml:10:8 | `pipe` is not a regular file
        a directory | run 2.toml | 2 | .toml:10:8 | `data` is not a regular file
        more than any configuration | run 3.toml | 2 | .toml:10:8 | `huge` is larger than 16 MiB
        a file that is not UTF-8 | run 4.toml | 2 | .toml:10:8 | `latin` is not UTF-8: line 2, byte 6 is 0xE9
        a plan that is not UTF-8 | check latin.toml | 2 | `latin.toml` is not UTF-8: line 2, byte 6 is 0xE9 | help:
        a plan without an end | check /dev/zero | 2 | `/dev/zero` is larger than 16 MiB
        "#,
    );

    assert_eq!(entries(&place.join("results")).len(), 0);
}

#[test]
fn a_url_that_is_wrong_is_refused_at_its_place_without_its_password() {
    let place = place_with_plans();
    let steps = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]");

    for (number, (url, said)) in [
        ("postgresql://me:hunter2", "the port is not a number"),
        ("postgresql://me:hun/ter2@127.0.0.1/ib", "write `/` as `%2F`"),
        ("mysql://me:12?hunter2@127.0.0.1/ib", "`?` as `%3F`"),
        ("mysql://me:hunter2@127.0.0.1:99999/ib", "the port `99999` is not"),
        ("postgresql://me:hunter2@h/ib?sslmode=maybe", "`sslmode=maybe`"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.toml");
        place.write(&name, &format!("{steps}[build.theirs]\nurl = \"{url}\"\n"));
        check_cases(
            &place,
            &format!("{url} | run {name} | 2 | {name}:8:7 | {said} | build `theirs` | help:"),
        );

        let ended = place.assay(&["check", &name]).expect_code(2);
        for part in ["hunter2", "hun/", "ter2", "12?"] {
            assert!(!ended.stderr.contains(part), "{part}: {ended}");
        }
    }
}

#[test]
fn processors_that_are_not_there_are_refused_at_their_place() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = place_with_plans();
    let steps = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]");
    let engine =
        format!("{POSTGRES}cpus = \"0-999\"\n[config.postgres.next]\nextends = \"base\"\n");
    place.write("cpus.toml", &(steps + &engine));

    for command in ["check", "run"] {
        let said = "cpus.toml:12:8 | targets `pg.base`, `pg.next`: config: `cpus` lists | 999, which are not online \
        | help: choose from the processors that are online: 0 | 1 error in `cpus.toml`";
        check_cases(&place, &format!("cpus | {command} cpus.toml | 2 | {said}"));
    }
}

#[test]
fn options_and_limits_of_replicas_are_tried_before_the_run() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = place_with_plans();
    let steps = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]");

    for (name, line) in [("cpus", "cpus = \"0-999\""), ("set", "set.work_mem = \"many\"")] {
        let engine = format!("{POSTGRES}replicas = 1\nreplica.{line}\n");
        place.write(&format!("{name}.toml"), &(steps.clone() + &engine));
    }

    check_cases(
        &place,
        r#"
        limit | check cpus.toml | 2 | cpus.toml:13:16 | target `pg.base`: its replicas: config: `cpus` lists | 999 | help:
        option | check set.toml | 2 | set.toml:13:24 | target `pg.base`: its replicas: config: | work_mem | many | help:
        "#,
    );
}

#[test]
fn an_invalid_build_is_refused() {
    let place = place_with_plans();
    fs_err::create_dir(place.join("empty")).unwrap();

    for (build, says) in [("old", "postgres (PostgreSQL) 11.22"), ("strange", "hello")] {
        for program in ["postgres", "initdb"] {
            place.write_program(
                &format!("{build}/bin/{program}"),
                &format!("#!/bin/sh\necho '{says}'\n"),
            );
        }
    }

    check_cases(
        &place,
        r#"
        no directory | run pg.toml --set build.pg.postgres={}/nowhere | 2 | --set build.pg.postgres= | build `pg` | does not exist | help:
        no server in it | run pg.toml --set build.pg.postgres={}/empty | 2 | build `pg` | neither `{}/empty` nor `{}/empty/bin` contains `postgres` | help:
        too old | run pg.toml --set build.pg.postgres={}/old | 2 | version 11.22 is not supported | 12 to 18
        too old, checked | check pg.toml --set build.pg.postgres={}/old | 2 | version 11.22 is not supported
        no version | run pg.toml --set build.pg.postgres={}/strange | 1 | the program prints no version of PostgreSQL | hello
        "#,
    );

    assert_eq!(entries(&place.join("results")).len(), 0);
}

#[test]
fn an_option_that_an_engine_does_not_know_is_refused_at_its_place() {
    let place = place_with_plans();
    let steps = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]");
    let lite = |name: &str, set: &str| {
        let engine = "[build.lite]\nsqlite = \"bundled\"\n[config.sqlite.base]\nset.temp_store = \"memory\"\n";
        let text = format!("{steps}{engine}[config.sqlite.next]\nextends = \"base\"\n{set}\n");
        place.write(name, &text);
    };

    lite("unknown.toml", "set.jurnal_mode = \"wal\"");
    lite("value.toml", "set.journal_mode = \"wall\"");

    check_cases(
        &place,
        r#"
        unknown pragma | run unknown.toml | 2 | unknown.toml:13:19 | target `lite.next`: config: `jurnal_mode` is not a pragma of SQLite | help:
        value of a pragma, checked | check value.toml | 2 | value.toml:13:20 | `journal_mode = wall` did not take effect
        one that is extended, by `--set` | check value.toml --set config.sqlite.base.set.jurnal=1 | 2 | --set config.sqlite.base.set.jurnal=1 | targets `lite.base`, `lite.next`: config: `jurnal` is not a pragma of the build | 1 error in `--set`
        "#,
    );

    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        let engine = mysql(&build, "innodb") + "innodb_bufer_pool_size = \"1G\"\n";
        let engine = engine.replace(" }\n", " }\n[config.mysql.next.set]\n");
        place.write("my.toml", &(steps.clone() + &engine));
        check_cases(
            &place,
            "MySQL | run my.toml | 2 | my.toml:13:26 | target `my.next`: config: | unknown variable | help:",
        );
    }

    if postgres_is_here_or_test_is_skipped() {
        place.write("base.conf", "work_mem = 8MB\nshared_buffers = lots\n");
        let engine =
            format!("{POSTGRES}shared_bufers = 3\n[config.postgres.filed]\nfile = \"base.conf\"\n");
        let engine = engine.replace(" }\n", " }\n[config.postgres.next.set]\n");
        place.write("pg-options.toml", &(steps + &engine));
        for command in ["check", "run"] {
            let said = "pg-options.toml:13:17 | unrecognized configuration parameter \"shared_bufers\" \
                        | pg-options.toml:15:8 | line 2 of this file \
                        | invalid value for parameter \"shared_buffers\": \"lots\" \
                        | 2 errors in `pg-options.toml`; nothing was run";
            let case = format!("PostgreSQL | {command} pg-options.toml | 2 | {said}");
            check_cases(&place, &case);
        }
    }

    assert_eq!(entries(&place.join("results")).len(), 0);
    assert_eq!(entries(&place.join("data")).len(), 0);
}

#[test]
fn a_server_that_can_not_be_reached_is_named_without_its_password() {
    let place = place_with_plans();
    let steps = workload(2_000, 1_000, QUICK, "steps = [\"l.i0\"]");
    let plan = |name: &str, port: u16, more: &str| {
        let url = format!("postgresql://me:hunter2@127.0.0.1:{port}/ib");
        place.write(name, &format!("{steps}[build.theirs]\nurl = \"{url}\"\n{more}"));
    };

    let closed = Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap();
    plan("closed.toml", closed.number(), "");
    plan("config.toml", closed.number(), "[config.postgres.c]\nset = { work_mem = \"4MB\" }\n");
    place.write("no-url.toml", &format!("{steps}[build.theirs]\nurl = \"http://127.0.0.1/\"\n"));

    // Something that listens but is not PostgreSQL.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    plan("other.toml", listener.local_addr().unwrap().port(), "");
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 8]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });

    check_cases(
        &place,
        r#"
        closed port | run closed.toml | 1 | 127.0.0.1 | Connection refused | help: start the server
        no PostgreSQL | run other.toml | 1 | 127.0.0.1 | PostgreSQL
        a config | run config.toml | 2 | config.toml:10:20 | cannot configure a server | help:
        no URL | check no-url.toml | 2 | no-url.toml:8:7 | postgresql://
        "#,
    );
    other.join().unwrap();

    let ended = place.assay(&["run", "closed.toml"]);
    assert!(!ended.stderr.contains("hunter2"), "{ended}");

    assert_eq!(entries(&place.join("results")).len(), 0);
}

#[test]
fn a_place_that_can_not_be_written_is_named() {
    let place = place_with_plans();
    place.write("file", "precious");
    check_cases(
        &place,
        r#"
        results in /proc | run null.toml --results /proc/assay --data data | 2 | `/proc/assay` | help: | `--results`
        results is a file | run null.toml --results file --data data | 2 | `file | help: | `--results`
        data in /proc | run null.toml --results results --data /proc/assay | 2 | `/proc/assay` | help: | `--data`
        data is a file | run null.toml --results results --data file | 2 | `file` is not a directory | help: | `--data`
        check of data in /proc | check null.toml --data /proc/assay | 2 | `/proc/assay` | help: | `--data`
        check of data in a file | check null.toml --data file/data | 2 | `file` is not a directory | help: | `--data`
        both | run null.toml --results file | 2 | `file/data` | help: | use `--results`
        "#,
    );

    assert_eq!(fs_err::read_to_string(place.join("file")).unwrap(), "precious");

    // What root may do all the same.
    if !rustix::process::geteuid().is_root() {
        let closed = place.join("closed");
        fs_err::create_dir(&closed).unwrap();
        fs_err::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o555))
            .unwrap();
        check_cases(
            &place,
            "closed | run null.toml --results closed --data data | 2 | `closed/ | Permission denied | help:",
        );
    }
}

#[test]
fn a_database_directory_of_somebody_else_is_left_alone() {
    let place = place_with_plans();
    let mut engines = vec![("lite.toml", "lite.base/sqlite")];
    if postgres_is_here_or_test_is_skipped() {
        engines.push(("pg.toml", "pg.base/postgres"));
    }

    for (plan, directory) in engines {
        let directory = format!("data/{directory}");
        let precious = place.write(&format!("{directory}/precious"), "data");
        let link = place.join(&directory).join("link");
        std::os::unix::fs::symlink(&precious, &link).unwrap();

        let said = "not assay's: it has no marker | help:";
        let case = format!("{plan} | run {plan} --data data | 1 | {directory} | {said}");
        check_cases(&place, &case);

        assert_eq!(fs_err::read_to_string(&precious).unwrap(), "data");
        assert_eq!(entries(&place.join(&directory)), [link, precious]);
    }
}

#[test]
fn a_directory_without_a_run_is_neither_shown_nor_reported() {
    let place = place_with_plans();
    fs_err::create_dir(place.join("empty")).unwrap();
    place.write("damaged/run.json", "{\"format\":{\"major\":1");
    for args in ["show empty", "show nowhere", "show lite.toml", "report empty"] {
        let said = "is not a run directory | help: give a directory that `assay run` wrote";
        check_cases(&place, &format!("{args} | {args} | 2 | {said}"));
    }
    fs_err::create_dir_all(place.join("tuning/runs")).unwrap();
    let said = "is not a run directory | help: `assay tune` and `assay bisect` write several runs";
    check_cases(&place, &format!("show tuning | show tuning | 2 | {said}"));
    check_cases(&place, "damaged | show damaged | 1 | `damaged/run.json` | help:");
    assert_eq!(entries(&place.join("empty")).len(), 0);
}

#[test]
fn a_run_of_a_later_format_is_refused_with_the_version_to_use() {
    let place = place_with_plans();
    let args = ["run", "null.toml", "--results", "results", "--data", "data"];
    place.assay(&args).expect_code(0);

    let run = place.only_run();
    let file = run.join("run.json");
    let mut json: serde_json::Value =
        serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap();
    let major = json["format"]["major"].as_u64().unwrap();
    json["format"]["major"] = (major + 1).into();
    json["assay"]["version"] = "99.1.0".into();
    fs_err::write(&file, json.to_string()).unwrap();

    let run = run.to_str().unwrap();
    for args in [format!("show {run}"), format!("report {run} -o never.html")] {
        let later = major + 1;
        let said = format!("has format {later}. | help: | 99.1.0");
        check_cases(&place, &format!("later | {args} | 2 | {said}"));
    }
    assert!(!place.join("never.html").exists());
}
