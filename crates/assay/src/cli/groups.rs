//! The groups in which `assay --help` lists the commands, by what somebody wants to do.

use std::fmt::Write as _;

use clap::Command;

/// Each group with its commands. A command is in one of them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Ask a question", &["versus", "find", "tune", "bisect"]),
    ("Measure by a plan", &["init", "check", "run", "augment"]),
    (
        "Read what was measured",
        &["ls", "show", "compare", "history", "report", "serve", "export", "bundle", "import"],
    ),
    ("Builds, databases and this machine", &["fetch", "builds", "databases", "conform", "host"]),
    ("Shells and editors", &["completions", "man", "plan-schema"]),
];

/// The layout of the help, without clap's own list of commands.
const TEMPLATE: &str =
    "{about}\n\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The longest line.
const WIDTH: usize = 100;

/// Returns the command with a help that lists its subcommands in groups.
pub fn with_groups(command: Command) -> Command {
    let list = list_of(&command);
    command.help_template(TEMPLATE).before_help(list)
}

fn list_of(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or(0);

    let mut list = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(list, "{title}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let lines = wrapped(&about, WIDTH - width - 4);
            let _ = writeln!(
                list,
                "  {name:width$}  {}",
                lines.join(&format!("\n{:1$}", "", width + 4))
            );
        }
        list.push('\n');
    }
    list
}

/// Returns a text in lines of at most so many characters, if its words are short enough.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last].push_str(word);
        } else if lines[last].chars().count() + 1 + word.chars().count() <= width {
            lines[last].push(' ');
            lines[last].push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut all: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
