//! The ranks of a build without MPI, which never has several.

use crate::{RanksError, launched_ranks};

/// The ranks of a job of several; a build without MPI never has one.
#[derive(Debug)]
pub enum Ranks {}

impl Ranks {
    /// Joins the MPI job that started this process; `None` if it is alone.
    ///
    /// # Errors
    /// [`RanksError::NotBuilt`] if `mpirun` started several ranks.
    pub fn join() -> Result<Option<Self>, RanksError> {
        match launched_ranks() {
            0 | 1 => Ok(None),
            size => Err(RanksError::NotBuilt { size }),
        }
    }

    /// Returns this process' rank, from 0.
    pub fn rank(&self) -> u32 {
        match *self {}
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        match *self {}
    }

    /// Sends a message to a rank.
    ///
    /// # Errors
    /// None: there is no job.
    pub fn send(&mut self, _: u32, _: Vec<u8>) -> Result<(), RanksError> {
        match *self {}
    }

    /// Returns the next message and its sender.
    ///
    /// # Errors
    /// None: there is no job.
    pub fn receive(&mut self) -> Result<Option<(u32, Vec<u8>)>, RanksError> {
        match *self {}
    }

    /// Returns whether all messages have been sent.
    ///
    /// # Errors
    /// None: there is no job.
    pub fn is_sent(&mut self) -> Result<bool, RanksError> {
        match *self {}
    }

    /// Leaves the job.
    pub fn leave(&mut self) {
        match *self {}
    }
}
