//! Hands requests to threads that make the pages.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use inquiry::shelf::{Index, careful};

use super::pages;
use crate::http::{Answer, Content, Site};

/// The threads that make pages: a report takes a second or two, and must not block a list.
const MAKERS: usize = 2;
/// The most requests that wait for a thread.
const WAITING_MAX: usize = 32;

/// The pages over the runs in a folder.
pub(super) struct CatalogSite {
    requests: SyncSender<Request>,
}

struct Request {
    target: String,
    reply: Sender<Content>,
}

impl CatalogSite {
    /// Starts the threads that read records and make pages.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        let index = Arc::new(Index::new(folder));
        let (requests, received) = sync_channel(WAITING_MAX);
        let received = Arc::new(Mutex::new(received));

        for number in 0..MAKERS {
            let (index, received) = (Arc::clone(&index), Arc::clone(&received));
            spawn(&format!("pages-{number}"), move || make_pages(&index, &received))?;
        }

        spawn("index", move || index.keep_reading())?;
        Ok(Self { requests })
    }
}

impl Site for CatalogSite {
    fn answer(&mut self, target: &str, _now_ns: u64) -> Answer {
        let (reply, content) = channel();
        match self.requests.try_send(Request { target: target.to_owned(), reply }) {
            Ok(()) => Answer::Later(content),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                let busy = Content::text("503 Service Unavailable", "too many requests at once");
                Answer::Now(busy)
            }
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.context("cannot start a thread for the pages")?;
    Ok(())
}

/// Answers requests, one after another, as long as there can be more.
fn make_pages(index: &Index, received: &Mutex<Receiver<Request>>) {
    loop {
        let next = received.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Request { target, reply }) = next else {
            return;
        };

        let content = careful(|| pages::answer(&target, index)).unwrap_or_else(|why| {
            let why = report::terminal_text(&why);
            Content::text("500 Internal Server Error", &format!("the page cannot be made: {why}"))
        });
        // The reader may have left.
        let _ = reply.send(content);
    }
}
