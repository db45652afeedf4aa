//! Indexes of replicas that get rows, but no definitions.

use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use engine::{Error, ErrorClass, Replicated, Table};

use super::link::Link;
use super::locked;
use crate::ground::threads::spawn;

/// A replica that is busy with its indexes.
struct Running {
    /// The number of the replica.
    number: usize,
    /// The URLs of its primary and its own.
    urls: [String; 2],
    created: Receiver<Result<(), Error>>,
    /// The tables of the newest request since this one began.
    next: Option<Vec<Table>>,
}

/// Creates indexes on replicas, each on a thread of its own, since that may take long.
pub struct Indexes<E> {
    running: Mutex<Vec<Running>>,
    engine: PhantomData<fn() -> E>,
}

impl<E> Default for Indexes<E> {
    fn default() -> Self {
        Self { running: Mutex::default(), engine: PhantomData }
    }
}

impl<E: Replicated + 'static> Indexes<E> {
    /// Begins to create the indexes of these tables that a replica lacks. If it is still creating
    /// others, begins after them.
    pub fn begin(&self, number: usize, urls: [&str; 2], tables: Vec<Table>) {
        let mut running = locked(&self.running);
        if let Some(busy) = running.iter_mut().find(|busy| busy.number == number) {
            busy.next = Some(tables);
            return;
        }

        let urls = urls.map(str::to_owned);
        running.push(Running { number, created: Self::create(&urls, tables), urls, next: None });
    }

    fn create([primary, replica]: &[String; 2], tables: Vec<Table>) -> Receiver<Result<(), Error>> {
        let (sender, receiver) = channel();
        let [mut primary, mut replica] = [primary, replica].map(|url| Link::<E>::to(url));

        let refused = sender.clone();
        let spawned = spawn("indexes", move || {
            let created = primary
                .ask(|primary| replica.ask(|replica| E::create_indexes(primary, replica, &tables)));
            let _ = sender.send(created);
        });

        if let Err(error) = spawned {
            let _ = refused.send(Err(Error::new(ErrorClass::Other, error.to_string())));
        }

        receiver
    }

    /// Returns whether all replicas have the indexes.
    ///
    /// # Errors
    /// The number of a replica, and its error.
    pub fn are_there(&self) -> Result<bool, (usize, Error)> {
        let mut failed = None;
        let mut running = locked(&self.running);
        running.retain_mut(|busy| {
            let error = match busy.created.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Ok(Ok(())) => {
                    // Others were asked for meanwhile.
                    let Some(tables) = busy.next.take() else {
                        return false;
                    };
                    busy.created = Self::create(&busy.urls, tables);
                    return true;
                }
                Ok(Err(error)) => error,
                Err(TryRecvError::Disconnected) => {
                    Error::new(ErrorClass::Other, "the thread that creates them has ended")
                }
            };
            failed = Some((busy.number, error));
            false
        });

        failed.map_or(Ok(running.is_empty()), Err)
    }
}
