//! Prints: results to stdout, everything else to stderr.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use anyhow::Context;
use record::Failure;
use report::{TableStyle, is_printable, terminal_text};

use crate::cli::Colors;

/// Writes a line to stderr, as `eprintln!` does, but without what a terminal would obey: names and
/// reasons may come from the record of a stranger. Colored text is for [`eprint_colored`].
macro_rules! eprint_line {
    ($($text:tt)*) => {
        $crate::output::eprint_plain(&format!($($text)*))
    };
}
pub(crate) use eprint_line;

/// Writes text and a line break to stderr; see [`eprint_line`].
pub fn eprint_plain(text: &str) {
    eprint_colored(&text.chars().filter(|letter| is_safe(*letter)).collect::<String>());
}

/// Writes a note to stderr.
pub fn print_note(note: &str) {
    eprint_line!("note: {note}");
}

/// Writes text and a line break to stderr. Whoever colored the text has removed the escapes of
/// others from it. Ignores errors: a run must not end because its terminal was closed.
pub fn eprint_colored(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns true if a terminal prints the character, or breaks the line or aligns with it.
fn is_safe(letter: char) -> bool {
    matches!(letter, '\n' | '\t') || is_printable(letter)
}

/// Prints to stdout. A closed pipe is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Prints an error in the command line. What was typed may hold escapes that somebody else chose.
pub fn print_clap_error(error: &clap::Error) {
    let plain = error.render().to_string();
    if plain.chars().all(is_safe) {
        // With colors.
        let _ = error.print();
        return;
    }

    for line in plain.lines() {
        eprint_line!("{}", terminal_text(line));
    }
}

/// Returns the style of tables for this stdout.
pub fn style() -> TableStyle {
    let stdout = std::io::stdout();
    let width = stdout.is_terminal().then(|| {
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        Some(usize::from(size.ws_col)).filter(|&width| width > 0)
    });

    TableStyle {
        color: has_color(&stdout),
        width: width.flatten(),
        unicode: stdout.is_terminal() && is_utf8(),
        ..TableStyle::default()
    }
}

/// Returns true if the terminal uses UTF-8, by the first locale variable that is set.
fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
    let charset = set.into_iter().flatten().find(|value| !value.is_empty());

    charset.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// The choice of colors on the command line.
static COLORS: OnceLock<Colors> = OnceLock::new();

/// Colors text from now on as the command line says.
pub fn use_colors(colors: Colors) {
    // The command line is read once.
    let _ = COLORS.set(colors);
}

/// Returns true if text for `stream` may be colored.
pub fn has_color(stream: &impl IsTerminal) -> bool {
    match COLORS.get() {
        Some(Colors::Always) => return true,
        Some(Colors::Never) => return false,
        Some(Colors::Auto) | None => {}
    }
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints an error to stderr: its causes, the last lines of a log, and the help.
pub fn print_failure(failure: &Failure) {
    let first = match failure.causes.first() {
        Some(cause) => cause.as_str(),
        None => "it failed for an unknown reason",
    };

    eprint_line!("error: {}", terminal_text(first));
    for cause in failure.causes.iter().skip(1) {
        eprint_line!("  caused by: {}", terminal_text(cause));
    }

    if !failure.log_tail.is_empty() {
        eprint_line!("  the last lines of the log:");
        for line in &failure.log_tail {
            eprint_line!("    {}", terminal_text(line));
        }
    }

    if let Some(help) = &failure.help {
        eprint_line!("help: {}", terminal_text(help));
    }
}
