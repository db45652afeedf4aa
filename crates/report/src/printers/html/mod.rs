//! The shell of all HTML pages: their heads, with the policy of what a page may load, and their style.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, Render, html as markup};
use sha2::{Digest, Sha256};

/// The style of all pages.
pub(crate) const STYLE: &str = include_str!("style.css");

/// The head of a page.
#[derive(Clone, Copy, Default)]
pub(crate) struct Head<'a> {
    /// The title.
    pub title: &'a str,
    /// The scripts of the page, which are all that it may run.
    pub scripts: &'a [&'a str],
    /// The styles, the last of which decide.
    pub styles: &'a [&'a str],
    /// Directives of the page's policy that allow it to load something: `connect-src 'self'; `.
    pub allowed: &'a str,
    /// The page says that it has no icon, so that a browser does not ask its server for one.
    pub is_served: bool,
    /// A browser asks for the page again soon, since its data is not complete.
    pub is_incomplete: bool,
}

impl Head<'_> {
    /// Returns the policy, which forbids the page to load or run anything else.
    fn policy(&self) -> String {
        let mut hashes = Vec::new();
        for script in self.scripts {
            let hash = Sha256::digest(script.as_bytes());
            hashes.push(format!("'sha256-{}'", STANDARD.encode(hash)));
        }

        format!(
            "default-src 'none'; {}style-src 'unsafe-inline'; script-src {}; img-src data:",
            self.allowed,
            hashes.join(" ")
        )
    }
}

impl Render for Head<'_> {
    fn render(&self) -> Markup {
        markup! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(self.policy());
                @if self.is_incomplete { meta http-equiv="refresh" content="2"; }
                @if self.is_served { link rel="icon" href="data:,"; }
                title { (self.title) }
                style { @for style in self.styles { (PreEscaped(style)) } }
            }
        }
    }
}
