//! Pages over many runs, for `assay serve`: a list, a run, and two targets side by side. They have no
//! scripts: forms and links ask the server.
//!
//! ```text
//! list ──► run ──► history    of a step, over runs of one plan: `printers::history`
//!   └───► compared            any two targets of any two runs
//! ```
//!
//! Strangers may have made the records that they show. Text is escaped and bounded, and a page's
//! policy forbids it to load or run anything.

mod compared;
mod list;
mod run;

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, html as markup};

pub use compared::{ComparedSides, SideChoice, comparison_page, refused_page};
pub use list::{CatalogRow, RunList, list_page};
pub use run::{RunPage, run_page};

use crate::model::text::clean;
use crate::plot;
use crate::printers::html::{Head, STYLE};

const OWN_STYLE: &str = include_str!("style.css");

/// The paths of the pages, without the key of the server.
pub mod paths {
    /// The list of runs.
    pub const LIST: &str = "/";
    /// One run.
    pub const RUN: &str = "/run";
    /// The report of a run.
    pub const REPORT: &str = "/report";
    /// Two targets.
    pub const COMPARE: &str = "/compare";
    /// The history of a step.
    pub const HISTORY: &str = "/history";
}

/// The most letters of a name that a page shows.
const NAME_MAX: usize = 120;

/// Returns a text of a record for a page, shortened.
pub(in crate::printers) fn shown(text: &str) -> String {
    let text = clean(text);
    match text.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns an address with a query. The address is relative to the folder of all pages, whose name
/// is the key of the server.
pub(in crate::printers) fn address(path: &str, query: &[(&str, &str)]) -> String {
    let mut address = format!(".{path}");

    for (index, (key, value)) in query.iter().enumerate() {
        let separator = if index == 0 { '?' } else { '&' };
        let _ = write!(address, "{separator}{key}=");
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
                address.push(char::from(byte));
            } else {
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }

    address
}

/// Returns a page with this title. If its data is not complete, a browser asks again soon.
fn page(title: &str, is_incomplete: bool, body: Markup) -> String {
    let head = Head {
        title: &format!("{} - Assay", shown(title)),
        styles: &[STYLE, plot::STYLE, OWN_STYLE],
        is_served: true,
        is_incomplete,
        ..Head::default()
    };

    markup! {
        (DOCTYPE)
        html lang="en" {
            (head)

            body.catalog {
                nav { a href=(address(paths::LIST, &[])) { "All runs" } }
                (body)
            }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_every_name_whole() {
        let odd = [("name", "a b&c=d"), ("step", "ü/\"<")];
        assert_eq!(address("/run", &odd), "./run?name=a%20b%26c%3Dd&step=%C3%BC%2F%22%3C");
        assert_eq!(address("/", &[]), "./");
    }

    #[test]
    fn a_page_shortens_long_names_and_drops_what_turns_text() {
        assert_eq!(shown("a\u{202e}b"), "ab");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), NAME_MAX + 1);
    }
}
