//! The files for shells, `man` and editors, taken by the programs that read them.
//! `ASSAY_TEST_FASTJSONSCHEMA` names a Python that has fastjsonschema.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::not_here;
use crate::place::Place;

/// Returns the completions of bash for a line of words whose last one is incomplete.
fn completed(place: &Place, words: &[&str]) -> Vec<String> {
    const SCRIPT: &str = r#"
        set -eu
        . ./assay.bash
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _assay assay "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", SCRIPT, "bash"]).args(words);
    let output = bash.current_dir(place.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let place = Place::new();
    let script = place.assay(&["completions", "bash"]).expect_code(0).stdout;
    place.write("assay.bash", &script);
    let after = |words: &[&str]| completed(&place, words);
    assert_eq!(after(&["assay", "comp"]), ["compare", "completions"]);
    assert_eq!(after(&["assay", "check", "--bet"]), ["--between"]);
    assert_eq!(after(&["assay", "show", "--format", "c"]), ["csv"]);

    // Commands for assay alone.
    let commands = after(&["assay", ""]);
    assert!(commands.contains(&"run".to_owned()), "{commands:?}");
    assert!(!commands.contains(&"cell".to_owned()), "{commands:?}");
}

#[test]
fn groff_formats_every_manual_page_without_a_warning() {
    let place = Place::new();
    place.assay(&["man", "."]).expect_code(0);
    let printed = place.assay(&["man"]).expect_code(0).stdout;
    place.write("printed.1", &printed);
    let pages = fs_err::read_dir(place.path()).unwrap();
    let paths = pages.map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|it| it == "1");
    let pages: Vec<PathBuf> = paths.filter(is_page).collect();
    for name in ["assay.1", "assay-run.1", "printed.1"] {
        assert!(pages.contains(&place.join(name)), "{pages:?}");
    }

    assert!(!pages.contains(&place.join("assay-cell.1")), "{pages:?}");
    for page in pages {
        let mut groff = Command::new("groff");
        // Without bold and underlined letters, which a plain terminal overstrikes.
        groff.args(["-man", "-ww", "-Tascii", "-P-cbou"]).arg(&page);
        let Ok(output) = groff.stdin(Stdio::null()).output() else {
            return not_here("groff", "it cannot be started");
        };
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && warnings.is_empty(), "{warnings}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("SYNOPSIS"), "{text}");
    }
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let place = Place::new();
    let ended = place.assay(&["man", "absent"]).expect_code(1);
    ended.expect_in_stderr(&["cannot write manual pages into `absent`", "No such file"]);
}

/// Checks each plan that is named after the schema, and prints those that it refuses.
const VALIDATE: &str = "
import fastjsonschema, json, sys, tomllib
validate = fastjsonschema.compile(json.load(open(sys.argv[1])))
for path in sys.argv[2:]:
    try:
        validate(tomllib.load(open(path, 'rb')))
    except fastjsonschema.JsonSchemaException as error:
        print(path, error, sep='\\t')
";

/// Returns the plans of a folder of the workspace.
fn plans(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let paths = fs_err::read_dir(folder).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    let paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    assert!(!paths.is_empty());
    paths
}

/// Returns whether a plan is TOML and has a key that no such table has. The steps of a workload
/// have one schema, though each kind of step has keys of its own.
fn has_unknown_key(path: &Path) -> bool {
    let text = fs_err::read_to_string(path).unwrap();
    // Arguments of `--set` are no part of the file.
    let errors = plan::parse("plan", &text, &[]).err().unwrap_or_default();
    let is_unknown = |it: &plan::Diagnostic| it.code == "plan::unknown-key";
    errors.iter().any(|it| is_unknown(it) && !it.message.contains(".step."))
}

#[test]
fn the_schema_takes_good_plans_and_refuses_unknown_keys() {
    const VARIABLE: &str = "ASSAY_TEST_FASTJSONSCHEMA";
    let Some(python) = std::env::var_os(VARIABLE) else {
        return not_here("fastjsonschema", &format!("{VARIABLE} names none"));
    };

    let place = Place::new();
    let schema = place.assay(&["plan-schema"]).expect_code(0).stdout;
    place.write("schema.json", &schema);
    let mut good = plans("plans");
    good.extend(plans("crates/plan/tests/corpus/ok"));
    good.extend(plans("docs/examples"));
    let mut bad = plans("crates/plan/tests/corpus/bad");
    bad.retain(|path| has_unknown_key(path));
    assert!(bad.len() >= 3, "{bad:?}");
    let mut command = Command::new(python);
    command.args(["-I", "-c", VALIDATE]).arg(place.join("schema.json"));
    let output = command.args(&good).args(&bad).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let refused = |path: &PathBuf| {
        let begin = format!("{}\t", path.display());
        stdout.lines().any(|line| line.starts_with(&begin))
    };

    good.retain(refused);
    assert!(good.is_empty(), "{stdout}");
    bad.retain(|path| !refused(path));
    assert!(bad.is_empty(), "not refused: {bad:?}");
}
