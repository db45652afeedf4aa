//! Bundles: a finding of a run, and the run of somebody else that repeats it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tar::EntryType;

use crate::fetch::Shop;
use crate::place::{Ended, Place, QUICK, SQLITE, entries, workload};
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// A config that waits for the disk at every commit, unlike the base.
const FULL: &str =
    "[config.sqlite.full]\nset = { journal_mode = \"delete\", synchronous = \"extra\" }\n";

/// The largest README, which fits into a comment on GitHub.
const README_BYTES_MAX: u64 = 60_000;

/// Returns a plan whose targets differ by far more than noise in `l.i1`: one of them waits for the
/// disk a hundred times as often. Six repeats of a second show that on a busy machine, too.
fn plan(place: &Place) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"settle\", \"qr0\", \"l.i1\", \"l.i2\"]\n\
                 transactions = \"small\"\nstep.\"l.i1\".time = \"200ms\"";
    let data = place.join("planted-folder");
    format!(
        "repeats = 6 # planted-comment\ndata-dir = \"{}\"\n{}{SQLITE}{FULL}",
        data.display(),
        workload(100, 100, QUICK, steps)
    )
}

/// Runs the plan, whose end tells how to bundle a finding, and bundles one.
fn bundle_of(place: &Place, output: &str) -> PathBuf {
    let ended = place.run(&plan(place), &[]).expect_code(0);
    let run = ended.run_directory();
    ended.expect_in_stderr(&["next: `assay bundle ", " --between lite.base lite.full --step l."]);
    let run = run.to_str().unwrap();
    let args =
        ["bundle", run, "--between", "lite.base", "lite.full", "--step", "l.i1", "-o", output];
    let ended = place.assay(&args).expect_code(0);
    assert_eq!(ended.stdout, format!("{output}\n"));
    fs_err::remove_dir_all(run).unwrap();
    place.join(output)
}

/// Returns the one run in a place, next to the directory for databases.
fn run_in(place: &Place) -> PathBuf {
    let mut runs = entries(&place.join("results"));
    runs.retain(|entry| entry.join("run.json").is_file());
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// Copies a file or a directory of files.
fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs_err::copy(from, to).unwrap();
        return;
    }
    fs_err::create_dir(to).unwrap();
    for file in entries(from) {
        fs_err::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

/// Runs the commands of a README in a place, but the first one, which installs assay.
fn follow(readme: &str, place: &Place) -> Vec<Ended> {
    let commands: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert_eq!(commands.len(), 3, "{readme}");
    assert_eq!(commands[0], "cargo install --locked --path crates/assay");
    let mut ended = Vec::new();
    for command in &commands[1..] {
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[0], "assay");
        ended.push(place.assay(&words[1..]));
    }
    ended
}

#[test]
fn a_finding_is_repeated_its_opposite_is_not_and_no_secret_and_no_place_leaves() {
    let place = Place::on_disk();
    let bundle = bundle_of(&place, "finding");
    assert_has_none_of(&bundle, &[place.path().to_str().unwrap(), "planted"]);
    somebody_else_repeats_it_with_the_readme_alone(&bundle);
    its_opposite_is_not_reproduced(&bundle);
}

/// Follows the README of a bundle where nothing else is.
fn somebody_else_repeats_it_with_the_readme_alone(bundle: &Path) {
    let other = Place::on_disk();
    copy(bundle, &other.join("finding"));

    let readme = fs_err::read_to_string(other.join("finding/README.md")).unwrap();
    assert!((readme.len() as u64) < README_BYTES_MAX);
    for text in
        ["## l.i1: throughput of lite.full is 0.", "journal\\_mode: wal → delete", "### Repeat it"]
    {
        assert!(readme.contains(text), "no `{text}` in\n{readme}");
    }

    let [ran, compared] = <[Ended; 2]>::try_from(follow(&readme, &other)).ok().unwrap();
    let reproduced = "\nreproduced: l.i1 of lite.full against lite.base: throughput is 0.";
    ran.expect_code(0).expect_in_stderr(&[reproduced]);
    compared.expect_code(0).expect_in_stdout(&["lite.full compared with lite.base"]);

    // Only what the step needs was run, and whoever resumes the run still knows the finding.
    let run = run_in(&other);
    let json: Value =
        serde_json::from_str(&fs_err::read_to_string(run.join("run.json")).unwrap()).unwrap();
    let steps = &json["workloads"][0]["steps"];
    assert_eq!(*steps, serde_json::json!(["l.i0", "l.x", "settle", "l.i1"]));
    let resume = ["run", "--resume", run.to_str().unwrap(), "--repeats", "7"];
    // After another look, the interval is wider: on a busy machine, it may be too wide to tell.
    let ended = other.assay(&resume);
    let judged = ["reproduced: l.i1 of lite.full against lite.base: throughput is 0."];
    let ended = ended.expect_in_stderr(&judged);
    assert!(!ended.stderr.contains("not reproduced"), "{ended}");
}

/// Runs the bundle with a finding that says the opposite.
fn its_opposite_is_not_reproduced(bundle: &Path) {
    let other = Place::on_disk();
    copy(bundle, &other.join("finding"));
    let check = other.assay(&["check", "finding"]).expect_code(0);
    check.expect_in_stdout(&["journal_mode: wal -> delete"]);

    // Somebody claims that waiting for the disk is a hundred times as fast.
    let path = other.join("finding/finding.json");
    let mut finding: Value = serde_json::from_str(&fs_err::read_to_string(&path).unwrap()).unwrap();
    finding["finding"]["ratio"] = 100.0.into();
    finding["finding"]["interval"] =
        serde_json::json!({ "low": 90.0, "high": 110.0, "confidence": 0.95 });
    fs_err::write(&path, finding.to_string()).unwrap();
    let ended = other.assay(&["run", "finding"]).expect_code(3);
    let expected = "\nnot reproduced: l.i1 of lite.full against lite.base: throughput is 0.";
    ended.expect_in_stderr(&[expected, "here, and was 100 (90-110)"]);
}

/// Bundles the work of a step of a run with two exact cells of each target, and repeats it where
/// nothing else is.
pub(crate) fn work_is_repeated_elsewhere(place: &Place, run: &str, pair: [&str; 2], step: &str) {
    let other = Place::new();
    let [base, target] = pair;
    let bundle = ["bundle", run, "--between", base, target, "--step", step, "-o", "work.tar.gz"];

    // Once is enough for work, but not for throughput.
    place.assay(&bundle).expect_code(0);
    copy(&place.join("work.tar.gz"), &other.join("work.tar.gz"));

    let ended = other.assay(&["run", "work.tar.gz"]).expect_code(0);
    let reproduced = format!("\nreproduced: {step} of {target} against {base}: work of ");
    ended.expect_in_stderr(&[&reproduced]);

    let finding = fs_err::read_to_string(run_in(&other).join("finding.json")).unwrap();
    let finding: Value = serde_json::from_str(&finding).unwrap();
    assert_eq!(finding["finding"]["metric"], "work");
}

#[test]
fn a_run_without_a_finding_is_not_bundled() {
    let place = Place::new();
    let twice = "[config.sqlite.next]\nextends = \"base\"\n";
    let plan = format!("{}{SQLITE}{twice}", workload(300, 300, QUICK, "steps = [\"l.i0\"]"));
    let run = place.run(&plan, &[]).expect_code(0).run_directory();

    let bundle = |more: &[&str]| {
        let args = ["bundle", run.to_str().unwrap(), "--between", "lite.base"];
        place.assay(&[&args[..], more].concat()).expect_code(2)
    };

    bundle(&["lite.next", "--step", "l.i0"]).expect_in_stderr(&[
        "there is no finding to bundle: `l.i0` of `lite.next` against `lite.base` shows no change",
        "assay run --resume RUN --repeats 10",
    ]);
    bundle(&["lite.nxt", "--step", "l.i0"]).expect_in_stderr(&["did you mean `lite.next`"]);
    bundle(&["lite.next", "--step", "l.i9"]).expect_in_stderr(&["the run has no step `l.i9`"]);
    bundle(&["lite.base", "--step", "l.i0"]).expect_in_stderr(&["cannot be compared with itself"]);
}

#[test]
fn options_that_name_programs_and_passwords_stay_at_home() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let (place, other) = (Place::new(), Place::new());
    place.write(
        "base.conf",
        "# planted-comment\nshared_buffers = '32MB'\nfsync = off\nsynchronous_commit = off\n\
         archive_command = 'cp %p /home/planted-user/'\nprimary_conninfo = 'host=planted-host password=planted-password'\n",
    );
    let directory = engine::postgres::locate("distribution").unwrap().bin_dir;
    let directory = directory.parent().unwrap().to_str().unwrap();
    let steps = "steps = [\"l.i0\"]\ntransactions = \"small\"";
    let plan = format!(
        "repeats = 4\n{}[build.own]\npostgres = \"{directory}\"\n[config.postgres.base]\nfile = \"base.conf\"\n\
         [config.postgres.sync]\nextends = \"base\"\nset = {{ fsync = true, synchronous_commit = true, commit_delay = 100000, commit_siblings = 0, \
         \"my.size\" = \"planted-anything\", \"my.api_token\" = \"planted-token\" }}\n",
        workload(200, 200, QUICK, steps),
    );

    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    let run = run.to_str().unwrap();

    let args =
        ["bundle", run, "--between", "own.base", "own.sync", "--step", "l.i0", "-o", "finding"];
    let ended = place.assay(&args).expect_code(0).expect_in_stderr(&[
        "build own cannot be downloaded",
        "config.postgres.base.set.archive_command is left out: it ",
        "config.postgres.base.set.primary_conninfo is left out: it may name a program",
        "config.postgres.sync.set.\"my.size\" is left out: the engine does not report such an option",
        "config.postgres.sync.set.\"my.api_token\" is left out",
    ]);
    assert!(!ended.stderr.contains("planted"), "{ended}");
    let bundle = place.join("finding");

    assert_has_none_of(&bundle, &["planted", directory, place.path().to_str().unwrap()]);
    let text = fs_err::read_to_string(bundle.join("plan.toml")).unwrap();
    assert!(text.contains("shared_buffers = \"32MB\"") && text.contains("commit_delay"), "{text}");

    // Whoever has a build names it; the finding is judged all the same.
    copy(&bundle, &other.join("finding"));
    other.assay(&["run", "finding"]).expect_code(2).expect_in_stderr(&[
        "a bundle cannot have `build.own.postgres`: it does not name a build that everybody can fetch",
        "`assay run finding/plan.toml`",
    ]);

    let set = format!("build.own.postgres={directory}");
    let ended = other.assay(&["run", "finding", "--set", &set]).expect_code(0);
    ended.expect_in_stderr(&["\nreproduced: l.i0 of own.sync against own.base"]);
}

/// Fails if one of these texts is in a file of the bundle.
fn assert_has_none_of(bundle: &Path, texts: &[&str]) {
    let files = entries(bundle);
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let text = fs_err::read_to_string(&file).unwrap();
        for planted in texts {
            assert!(!text.contains(planted), "`{planted}` is in {}:\n{text}", file.display());
        }
    }
}

const PLAN: &str = "[workload.insert]\nsteps = [\"l.i0\"]\n";

/// Returns the smallest finding that can be read.
fn finding() -> String {
    let figure = serde_json::json!({
        "metric": "throughput", "more_is_better": true, "base_values": [], "values": [], "ratio": null,
        "interval": null, "verdict": "", "repeats_needed": null
    });
    serde_json::json!({
        "format": 1, "assay": "", "sentence": "", "started_unix_ns": 0, "base": "a", "target": "b",
        "workload": "insert", "step": "l.i0", "clients": 1, "finding": figure, "figures": [], "builds": [],
        "settings": {}, "host": {}, "host_fingerprint": ""
    })
    .to_string()
}

/// Writes a bundle of a stranger with this plan.
fn stranger(place: &Place, plan: &str) {
    place.write("bundle/plan.toml", plan);
    place.write("bundle/finding.json", &finding());
}

#[test]
fn a_strangers_plan_runs_nothing_of_its_own() {
    let place = Place::new();
    let marker = place.join("was-here");
    let program = place
        .write_program("own/bin/postgres", &format!("#!/bin/sh\ntouch {}\n", marker.display()));
    let own = program.parent().unwrap().parent().unwrap().to_str().unwrap();
    // A directory with the name of a version, where somebody unpacks and runs the bundle.
    place.write_program("17.2/bin/postgres", &format!("#!/bin/sh\ntouch {}\n", marker.display()));

    for (lines, key) in [
        (format!("[build.x]\npostgres = \"{own}\"\n"), "build.x.postgres"),
        (format!("[build.x]\npostgres = \"dir:{own}=x\"\n"), "build.x.postgres"),
        ("[build.x]\npostgres = \"own\"\n".to_owned(), "build.x.postgres"),
        ("[build.x]\npostgres = \"17.2\"\n".to_owned(), "build.x.postgres"),
        ("[build.x]\nurl = \"postgresql://127.0.0.1:1/x\"\n".to_owned(), "build.x.url"),
        (
            format!("{SQLITE}[config.sqlite.x]\nset = {{ temp_store_directory = \"x\" }}\n"),
            "config.sqlite.x.set.temp_store_directory",
        ),
        (format!("{SQLITE}[config.sqlite.x]\nfile = \"/etc/passwd\"\n"), "config.sqlite.x.file"),
        (
            "[build.x]\nmysql = \"distribution\"\n[config.mysql.x]\nset.feedback = \"ON\"\n".into(),
            "config.mysql.x.set.feedback",
        ),
    ] {
        stranger(&place, &format!("{PLAN}{lines}"));
        let refused = format!("a bundle cannot have `{key}`");
        for command in ["run", "check"] {
            place.assay(&[command, "bundle"]).expect_code(2).expect_in_stderr(&[
                &refused,
                "a bundle may come from a stranger",
                "`assay run bundle/plan.toml`",
            ]);
        }
    }
    assert!(!marker.exists());
}

#[test]
fn a_strangers_option_is_named_in_full() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };
    let place = Place::new();
    let own = format!("build.x.mysql={build}");
    let plan = |option: &str| {
        let build = "[build.x]\nmysql = \"distribution\"\n";
        format!("{PLAN}{build}[config.mysql.x]\nset.{option}\n")
    };

    // The servers take unique beginnings: this one names the parent of the directory for data.
    for option in ["innodb_data_h = '..'", "loose_innodb_data_h = '..'", "lc_messages_d = 'x'"] {
        stranger(&place, &plan(option));
        for command in ["run", "check"] {
            let refused = place.assay(&[command, "bundle", "--set", &own]).expect_code(2);
            refused.expect_in_stderr(&["has no option `", "of this full name"]);
        }
    }

    for option in ["innodb_flush_log_at_trx_commit = 2", "skip_log_bin = true"] {
        stranger(&place, &plan(option));
        place.assay(&["check", "bundle", "--set", &own]).expect_code(0);
    }
}

#[test]
fn an_archive_of_a_stranger_reaches_no_file() {
    let place = Place::new();
    let refused = |fill: &dyn Fn(&mut tar::Builder<Vec<u8>>), why: &str| {
        let mut builder = tar::Builder::new(Vec::new());
        let plan = format!("{PLAN}{SQLITE}");
        for (name, text) in [("x/plan.toml", plan.as_str()), ("x/finding.json", &finding())] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            builder.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        fill(&mut builder);
        fs_err::write(place.join("b.tar"), builder.into_inner().unwrap()).unwrap();

        place.assay(&["run", "b.tar"]).expect_code(2).expect_in_stderr(&["as a bundle", why]);
    };
    let add = |builder: &mut tar::Builder<Vec<u8>>, name: &str, kind: EntryType, size: u64| {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_link_name("/etc/passwd").unwrap();
        header.set_size(size);
        header.set_cksum();
        builder.append(&header, &b""[..]).unwrap();
    };

    refused(&|tar| add(tar, "x/link", EntryType::Symlink, 0), "`x/link` is a link");
    refused(&|tar| add(tar, "../up", EntryType::Regular, 0), "leads out of the archive");
    refused(&|tar| add(tar, "/tmp/up", EntryType::Regular, 0), "leads out of the archive");
    refused(&|tar| add(tar, "x/big", EntryType::Regular, 10 << 30), "`x/big` is larger than 1 MiB");

    place.write("linked/finding.json", &finding());
    std::os::unix::fs::symlink("/etc/passwd", place.join("linked/plan.toml")).unwrap();
    let ended = place.assay(&["run", "linked"]).expect_code(2);
    ended.expect_in_stderr(&["`linked/plan.toml` is not a regular file"]);

    place.write("empty/other", "");
    place
        .assay(&["run", "empty"])
        .expect_code(2)
        .expect_in_stderr(&["cannot use `empty` as a bundle"]);
}

#[test]
fn the_builds_of_a_bundle_are_fetched() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    let plan = "[workload.kv]\nsteps = [\"fillseq\"]\n[build.x]\nrocksdb = \"rocksdb@9.9.3\"\n";
    stranger(&shop.place, plan);

    // What the shop has is no library, so the run ends there.
    shop.check(
        "
        check bundle | 2 | the build `rocksdb@9.9.3` is not downloaded
        run bundle | 2 | build `x`
        check bundle | 2 | build `x`
        ",
    );

    let calls = shop.calls();
    let downloads = calls.iter().filter(|call| call.ends_with(":9.9.3:jar"));
    assert_eq!(downloads.count(), 1, "{calls:?}");
}
