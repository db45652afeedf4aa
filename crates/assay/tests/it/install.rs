//! What a package of assay installs beside the binary: completions and manual pages, taken by the programs that read them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::not_here;
use crate::place::Place;

/// What bash offers for a line of words, of which the last is being typed.
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
            return not_here("groff", "it can't be started");
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
