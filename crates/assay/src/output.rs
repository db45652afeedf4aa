//! All that assay prints: results to stdout, the rest to stderr.

use std::io::{IsTerminal, Write};

use anyhow::Context;
use report::{TableStyle, terminal_text};

/// Writes a line to stderr, as `eprintln!` does. Where nobody reads it any more, as when a terminal was closed, that is no
/// reason to end: a run goes on, or comes to its end in good order.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub(crate) use complain;

/// Prints to stdout; a reader that has gone is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("stdout can't be written"),
    }
}

/// JSON for scripts that people can read as well.
pub fn json_text(value: &serde_json::Value) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

/// Returns how tables look on this stdout.
pub fn style() -> TableStyle {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let width = || {
        rustix::termios::tcgetwinsize(std::io::stdout())
            .ok()
            .map(|size| usize::from(size.ws_col))
    };
    TableStyle {
        colour,
        width: if terminal {
            width().filter(|&width| width > 0)
        } else {
            None
        },
        all_settings: false,
    }
}

/// Prints causes, the way out and the end of a log to stderr.
pub fn print_failure(causes: &[String], help: Option<&str>, log_tail: &[String]) {
    let (first, rest) = causes
        .split_first()
        .map_or(("it failed", &[][..]), |(first, rest)| {
            (first.as_str(), rest)
        });
    complain!("error: {}", terminal_text(first));
    for cause in rest {
        complain!("  caused by: {}", terminal_text(cause));
    }
    if !log_tail.is_empty() {
        complain!("  the last lines of its log:");
        for line in log_tail {
            complain!("    {}", terminal_text(line));
        }
    }
    if let Some(help) = help {
        complain!("help: {}", terminal_text(help));
    }
}
