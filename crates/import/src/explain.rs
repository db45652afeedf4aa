//! Says how each file of a campaign was understood.

use std::fmt::Write as _;

use crate::assembly::{Fate, Understood};

/// The most files that are listed for a reason that many have.
const LISTED_MAX: usize = 20;

/// Returns a text with a line for each file, and a line for each doubt below it.
pub fn explain(understood: &Understood) -> String {
    let mut text = String::new();
    let mut unknown = Vec::new();
    let mut ignored = 0;

    for file in &understood.files {
        match &file.fate {
            Fate::Read { format, lines, contents } => {
                let name = format.name();
                let _ = writeln!(
                    text,
                    "{}: {name}, {}, {lines} lines, {contents}",
                    file.path, file.place
                );
            }
            Fate::Refused(refusal) => {
                let _ = writeln!(text, "refused: {refusal}");
            }
            Fate::Unknown => unknown.push(file.path.as_str()),
            Fate::Ignored => ignored += 1,
        }

        for doubt in &file.doubts {
            let line = doubt.line.map_or(String::new(), |line| format!("line {line}: "));
            let _ = writeln!(text, "  {}: {line}{}", doubt.code, doubt.text);
        }
    }

    for refusal in &understood.refused {
        let _ = writeln!(text, "refused: {refusal}");
    }
    add_unknown(&mut text, &unknown);
    if ignored > 0 {
        let _ = writeln!(text, "the campaign ignores {}", words::counted(ignored, "file"));
    }

    let step_count = understood.step_count();
    let _ = writeln!(
        text,
        "{} {} results, from {}",
        words::counted(step_count, "step"),
        if step_count == 1 { "has" } else { "have" },
        words::counted(understood.files.len(), "file")
    );
    text
}

/// Lists the first of the files that no pattern matches.
fn add_unknown(text: &mut String, unknown: &[&str]) {
    if unknown.is_empty() {
        return;
    }

    let count = words::counted(unknown.len(), "file");
    let _ = writeln!(text, "no pattern matches {count}:");
    for path in unknown.iter().take(LISTED_MAX) {
        let _ = writeln!(text, "  {path}");
    }
    if unknown.len() > LISTED_MAX {
        let _ = writeln!(text, "  and {} more", unknown.len() - LISTED_MAX);
    }
}
