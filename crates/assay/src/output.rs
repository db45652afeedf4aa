//! All that assay prints: results to stdout, the rest to stderr.

use std::io::{IsTerminal, Write};

use anyhow::Context;
use record::Failure;
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
    let stdout = std::io::stdout();
    let width = stdout.is_terminal().then(|| {
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        Some(usize::from(size.ws_col)).filter(|&width| width > 0)
    });
    TableStyle {
        colour: has_colour(&stdout),
        width: width.flatten(),
        unicode: stdout.is_terminal() && is_utf8(),
        all_settings: false,
    }
}

/// Returns whether the characters of this terminal are those of Unicode: the first of these variables that is set says so.
fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
    let charset = set.into_iter().flatten().find(|value| !value.is_empty());
    charset.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// Returns whether what is written to `stream` may be coloured.
pub fn has_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints causes, the way out and the end of a log to stderr.
pub fn print_failure(failure: &Failure) {
    let first = failure.causes.first().map_or("it failed", String::as_str);
    complain!("error: {}", terminal_text(first));
    for cause in failure.causes.iter().skip(1) {
        complain!("  caused by: {}", terminal_text(cause));
    }
    if !failure.log_tail.is_empty() {
        complain!("  the last lines of its log:");
        for line in &failure.log_tail {
            complain!("    {}", terminal_text(line));
        }
    }
    if let Some(help) = &failure.help {
        complain!("help: {}", terminal_text(help));
    }
}
