//! A small HTTP server for pages that only the user who started it reads: the live page of a run,
//! and the pages of `assay serve`.
//!
//! * `request.rs` reads a request, and refuses what is none, is for another host, or lacks the key.
//! * `hosts.rs` has the names by which the server may be requested.
//! * `key.rs` makes the key, and finds it in a request.
//! * `server.rs` polls the connections.
//!
//! A [`Site`] has the pages.

mod hosts;
mod key;
mod request;
mod server;

use std::sync::mpsc::Receiver;

pub use server::{Listener, bind, serve};

#[cfg(test)]
pub use hosts::AllowedHosts;
#[cfg(test)]
pub use key::Key;
#[cfg(test)]
pub use request::{Access, reply_now};

/// The type of plain text.
const TEXT: &str = "text/plain; charset=utf-8";
/// The type of pages.
pub const HTML: &str = "text/html; charset=utf-8";

/// A status, and a body of a type.
#[derive(Debug)]
pub struct Content {
    pub status: &'static str,
    pub kind: &'static str,
    pub body: String,
}

impl Content {
    /// Returns the answer to a request that succeeded.
    pub fn ok(kind: &'static str, body: String) -> Self {
        Self { status: "200 OK", kind, body }
    }

    /// Returns a line of text, with a status.
    pub fn text(status: &'static str, line: &str) -> Self {
        Self { status, kind: TEXT, body: format!("{line}\n") }
    }
}

/// The answer to a request.
pub enum Answer {
    Now(Content),
    /// Another thread will send it. The server answers other requests meanwhile.
    Later(Receiver<Content>),
}

/// The pages of a server.
pub trait Site {
    /// Does what is due, several times a second.
    fn tick(&mut self, _now_ns: u64) {}

    /// Returns the answer to a request for a path, which may have a query. The path lacks the key.
    fn answer(&mut self, target: &str, now_ns: u64) -> Answer;
}
