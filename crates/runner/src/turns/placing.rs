//! Puts the connections of a load on processors.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use engine::Engine;
use engine::placement::{own_cpus, set_thread_cpus, set_tree_cpus};
use load::ConnectionThreads;
use rustix::io::Errno;
use words::{Placement, Processors, Random};

/// The way in which the connections of a target get their processors.
pub struct Placing {
    placement: Placement,
    processors: Processors,
    seed: u64,
    /// The threads of the load that runs.
    threads: Mutex<Vec<ConnectionThreads>>,
}

impl Placing {
    /// Returns the placing of a running target. With pinned connections, all of its server stays on
    /// the processors for servers. `limit` has the processors that its config allows.
    ///
    /// # Errors
    /// The server's threads cannot be placed.
    pub fn of(
        engine: &dyn Engine,
        placement: Placement,
        limit: Option<&[u32]>,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let own = own_cpus().context("the processors of assay cannot be read")?;
        let processors = Processors::new(&own, limit);

        if placement == Placement::Pinned
            && let Some(server) = engine.process_id()
            && engine.server().is_some()
        {
            let placed = set_tree_cpus(server, processors.divided().servers());
            placed.context("the server cannot be placed on processors")?;
        }

        Ok(Self { placement, processors, seed, threads: Mutex::default() })
    }

    /// Takes the threads of a load that is about to begin, and places them.
    ///
    /// # Errors
    /// A thread cannot be placed.
    pub fn begin(&self, threads: &[ConnectionThreads]) -> anyhow::Result<()> {
        *self.threads() = threads.to_vec();
        self.place(0)
    }

    /// Places the threads for another turn. Turns with the same `draw` have the same places.
    ///
    /// # Errors
    /// A thread cannot be placed.
    pub fn next(&self, draw: u64) -> anyhow::Result<()> {
        if self.placement == Placement::Shuffled {
            self.place(draw)?;
        }
        Ok(())
    }

    fn place(&self, draw: u64) -> anyhow::Result<()> {
        let threads = self.threads();
        // An engine within the client works on the client's thread, which may use all processors.
        let is_embedded = threads.iter().all(|thread| thread.server.is_none());
        if self.placement == Placement::Pinned && is_embedded {
            let processors = self.processors.clients().iter().cycle();
            for (thread, cpu) in threads.iter().zip(processors) {
                put(thread.client, *cpu)?;
            }
            return Ok(());
        }

        let mut random = Random::stream(self.seed, &[draw]);
        let places = self.placement.places(&self.processors, threads.len(), &mut random);
        for (thread, place) in threads.iter().zip(places) {
            put(thread.client, place.client)?;
            put(thread.server, place.server)?;
        }

        Ok(())
    }

    fn threads(&self) -> MutexGuard<'_, Vec<ConnectionThreads>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a thread on a processor, if it is known and has not ended.
fn put(thread: Option<u32>, cpu: u32) -> anyhow::Result<()> {
    let Some(thread) = thread else {
        return Ok(());
    };

    match set_thread_cpus(thread, &[cpu]) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => Ok(()),
        placed => {
            placed.with_context(|| format!("a connection cannot be placed on processor {cpu}"))
        }
    }
}
