//! Indexes of replicas that get rows, but no definitions.

use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use engine::{Replicated, Table};

use super::link::Link;
use super::locked;

/// What came of the indexes of a replica.
type Created = Receiver<Result<(), engine::Error>>;

/// Creates indexes on replicas, each on a thread of its own, since that may take long.
pub struct Indexes<E> {
    /// The replicas, by number, that are busy with that.
    running: Mutex<Vec<(usize, Created)>>,
    engine: PhantomData<fn() -> E>,
}

impl<E> Default for Indexes<E> {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            engine: PhantomData,
        }
    }
}

impl<E: Replicated + 'static> Indexes<E> {
    /// Begins to create the indexes that a replica lacks of these tables, unless it is still busy with that.
    pub fn begin(&self, number: usize, [primary, replica]: [&str; 2], tables: Vec<Table>) {
        let mut running = locked(&self.running);
        if running.iter().any(|(other, _)| *other == number) {
            return;
        }
        let (sender, receiver) = channel();
        let [mut primary, mut replica] = [primary, replica].map(Link::<E>::to);
        std::thread::spawn(move || {
            let created = primary
                .ask(|primary| replica.ask(|replica| E::create_indexes(primary, replica, &tables)));
            let _ = sender.send(created);
        });
        running.push((number, receiver));
    }

    /// Returns whether all replicas have the indexes.
    ///
    /// # Errors
    /// The number of a replica, and its error.
    pub fn are_there(&self) -> Result<bool, (usize, engine::Error)> {
        let mut failed = None;
        let mut running = locked(&self.running);
        running.retain(|(number, receiver)| match receiver.try_recv() {
            Err(TryRecvError::Empty) => true,
            Ok(Err(error)) => {
                failed = Some((*number, error));
                false
            }
            Ok(Ok(())) | Err(TryRecvError::Disconnected) => false,
        });
        failed.map_or(Ok(running.is_empty()), Err)
    }
}
