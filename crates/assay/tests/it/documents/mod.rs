//! The commands of documents that read runs, typed as documents show them.

mod extract;

use crate::place::{Place, entries, workload};
use extract::DocumentedCommand;

/// Targets with the names of the documents' examples, on the engine that is always there.
const PLAN: &str = r#"
[build.pg15]
sqlite = "bundled"
[build.pg17]
sqlite = "bundled"
[config.sqlite.base]
set = { journal_mode = "wal", synchronous = "off" }
"#;

const STEPS: &str = r#"steps = ["l.i0", "l.x", "l.i1", "settle", "qr0", "qr100", "qr500", "qr100.pre", "qr100.post"]"#;

/// Commands that need more than a run on SQLite.
const NEED_MORE: [(&str, &str); 16] = [
    ("folded", "a profile"),
    ("pprof", "a profile"),
    ("firefox", "a profile"),
    ("client-hosts", "load ranks on other hosts"),
    ("network", "load ranks on other hosts"),
    ("waits", "an engine that tells its waits"),
    ("engine-status", "an engine that has a status"),
    ("log-events", "an engine with a log"),
    ("indexes", "an engine that tells sizes"),
    ("sync_binlog", "configs of MySQL"),
    ("mysql.bl1_sync1_dw1", "configs of MySQL"),
    ("mysql=mysql.bl1_sync1_dw1", "configs of MySQL"),
    ("disk-floor", "the floor of the disk"),
    ("design", "a designed experiment"),
    ("wal_compression", "a designed experiment"),
    ("variant", "variants of a workload"),
];

/// Returns the arguments of a command on these runs, or `None` if it does not read runs or needs
/// more than they have.
fn arguments(command: &DocumentedCommand, runs: &[String]) -> Option<Vec<String>> {
    let [_, subcommand, rest @ ..] = command.words.as_slice() else {
        return None;
    };

    let reads_runs = ["show", "compare", "report", "export"].contains(&subcommand.as_str());
    let needs_more = |word: &String| NEED_MORE.iter().any(|(name, _)| name == word);
    if !reads_runs || rest.iter().any(needs_more) {
        return None;
    }

    let mut arguments = vec![subcommand.clone()];
    let mut names_run = false;
    for word in rest {
        let words: Vec<String> = match word.as_str() {
            "RUN" | "YESTERDAY" => vec![runs[0].clone()],
            "TODAY" => vec![runs[1].clone()],
            name if name.starts_with("results/2") || name.starts_with("results/..") => {
                vec![runs[0].clone()]
            }
            "results/*" | "RESULTS/*" => in_results(runs),
            "latest" | "results" => vec![word.clone()],
            "A" => vec!["pg15.base".into()],
            "B" => vec!["pg17.base".into()],
            "FORMAT" => vec!["csv".into()],
            "FILE" => vec!["written".into()],
            _ => {
                arguments.push(word.clone());
                continue;
            }
        };

        names_run =
            names_run || words.iter().any(|word| word.starts_with("results") || word == "latest");
        arguments.extend(words);
    }

    names_run.then_some(arguments)
}

/// Returns what a shell puts in the place of `results/*`.
fn in_results(runs: &[String]) -> Vec<String> {
    let data = "results/data".to_owned();
    [vec![data], runs.to_vec()].concat()
}

/// Returns the exit codes that are no failure: a gate may find noise or, on a busy machine, more.
fn expected_codes(arguments: &[String]) -> &'static [i32] {
    let judges = arguments.iter().any(|word| word == "--gate" || word == "--require");
    if judges { &[0, 3, 4] } else { &[0] }
}

#[test]
fn every_command_of_the_documents_that_reads_runs_works() {
    let place = Place::on_disk();
    // Enough operations for the percentiles that documents mention.
    let plan = format!("clients = [2]\n{}{PLAN}", workload(2_000, 12_000, "400ms", STEPS));
    for _ in 0..2 {
        place.run(&plan, &["--quiet"]).expect_code(0);
    }

    // As in the default layout.
    fs_err::create_dir_all(place.join("results/data")).unwrap();
    let names =
        entries(&place.join("results")).into_iter().filter(|path| path.join("run.json").exists());
    let runs = names.map(|path| format!("results/{}", path.file_name().unwrap().to_str().unwrap()));
    let runs: Vec<String> = runs.collect();

    let (mut count, mut failed) = (0, Vec::new());
    for command in extract::commands() {
        let Some(arguments) = arguments(&command, &runs) else {
            continue;
        };
        let ended = place.assay(&arguments);
        let codes = expected_codes(&arguments);
        let code = ended.code.unwrap();
        if !codes.contains(&code) {
            let file = command.file.display();
            failed.push(format!("{file}: {arguments:?}\n{}", ended.stderr));
        }
        count += 1;
    }

    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(count > 25, "only {count} commands were run");
}
