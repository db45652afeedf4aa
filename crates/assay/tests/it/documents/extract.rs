//! Finds the command lines of Assay in documents and in the comments of plans.

use std::path::{Path, PathBuf};

/// A command line of a document.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "each of two tests reads some of it")]
pub struct DocumentedCommand {
    /// The document.
    pub file: PathBuf,
    /// Its words, as a shell splits them.
    pub words: Vec<String>,
    /// It is in a block of code. Otherwise it is mentioned in a sentence, which may leave out what
    /// does not matter there.
    pub is_whole: bool,
}

/// Returns the folder of the whole workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the commands of all documents, each once.
pub fn commands() -> Vec<DocumentedCommand> {
    let root = workspace();
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/examples", "plans"] {
        let entries = fs_err::read_dir(root.join(folder)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }

    files.sort();

    let mut found: Vec<DocumentedCommand> = Vec::new();
    for file in files {
        let text = match file.extension().and_then(|it| it.to_str()) {
            Some("md") => fs_err::read_to_string(&file).unwrap(),
            Some("toml") => comments(&fs_err::read_to_string(&file).unwrap()),
            _ => continue,
        };

        let text = text.replace("\\\n", " ");
        let is_plan = file.extension().is_some_and(|it| it == "toml");
        let whole = blocks(&text, is_plan).into_iter().map(|line| (line, true));
        let mentioned = mentions(&text).into_iter().map(|line| (line, false));

        for (line, is_whole) in whole.chain(mentioned) {
            let words = words(&line);
            if !found.iter().any(|known| known.words == words) {
                found.push(DocumentedCommand { file: file.clone(), words, is_whole });
            }
        }
    }
    found
}

/// Returns the comments of a plan.
fn comments(plan: &str) -> String {
    let lines = plan.lines().map(|line| line.strip_prefix('#').unwrap_or_default().trim());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the lines that begin with `assay`, of blocks of code or of anywhere.
fn blocks(text: &str, anywhere: bool) -> Vec<String> {
    let mut is_code = anywhere;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code && line.trim_start().starts_with("assay ") {
            // An explanation may follow after some spaces.
            let line = line.trim();
            lines.push(line.split("   ").next().unwrap().to_owned());
        }
    }
    lines
}

/// Returns the commands in backquotes within sentences.
fn mentions(text: &str) -> Vec<String> {
    let mut mentions = Vec::new();
    for paragraph in text.split("\n\n") {
        let parts: Vec<&str> = paragraph.split('`').collect();
        let quoted = parts.iter().skip(1).step_by(2);
        let commands = quoted.filter(|part| part.starts_with("assay "));
        mentions.extend(commands.map(|part| part.replace('\n', " ")));
    }
    mentions
}

/// Splits a command as a shell does, up to a pipe, a redirection or a comment. Omits the brackets
/// around what is optional, and takes the first of several alternatives.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '|') if word.is_some() && letters.peek() != Some(&' ') => {
                while letters.next_if(|next| !matches!(next, ' ' | ']')).is_some() {}
            }
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_none() => break,
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }

    words.extend(word);
    words.iter().map(|word| plain(word)).collect()
}

/// Removes the brackets of an optional word, and the dots after one that may be repeated.
fn plain(word: &str) -> String {
    let word = word.strip_prefix('[').unwrap_or(word);
    let word = if word.contains('[') { word } else { word.trim_end_matches(']') };
    word.strip_suffix("...").unwrap_or(word).to_owned()
}
