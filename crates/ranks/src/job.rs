//! A process in an MPI job of several ranks.
//!
//! Sends and receives are MPI's nonblocking ones, so that a rank that has died or hangs cannot block
//! another one. Errors are returned: by default MPI would abort the whole job, and rank 0 could not
//! record why.

#![allow(unsafe_code, reason = "the safe interface of `mpi` ignores errors")]

use std::ffi::{CStr, c_char, c_int};

use mpi::ffi;

use crate::{RanksError, launched_ranks};

/// The tag of all messages.
const TAG: c_int = 1;

/// The ranks of the MPI job that this process belongs to.
pub struct Ranks {
    rank: u32,
    size: u32,
    /// Messages that MPI may still read.
    outgoing: Vec<Transfer>,
    /// Messages that MPI may still write, oldest first.
    incoming: Vec<Transfer>,
    /// MPI's handles belong to the thread that initialized it.
    _one_thread: std::marker::PhantomData<*const ()>,
}

/// A message in transit.
struct Transfer {
    peer: u32,
    request: ffi::MPI_Request,
    /// MPI holds its address until `request` is complete; the heap block does not move with the
    /// `Vec`.
    bytes: Vec<u8>,
}

impl Transfer {
    /// Returns whether MPI is done with it.
    fn is_complete(&mut self) -> Result<bool, RanksError> {
        let mut done = 0;
        // SAFETY: the request was made by MPI, and its buffer lives as long as this value.
        let code = unsafe { ffi::MPI_Test(&mut self.request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        check("MPI_Test", code)?;
        Ok(done != 0)
    }
}

impl Ranks {
    /// Joins the MPI job that started this process; `None` if it is alone.
    ///
    /// # Errors
    /// The MPI library's own.
    pub fn join() -> Result<Option<Self>, RanksError> {
        // Alone, MPI is not initialized: that takes time, and starts threads beside the load.
        if launched_ranks() < 2 {
            return Ok(None);
        }

        let mut provided = 0;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: called once, before any other function of MPI; without arguments, which MPI 2
        // allows. The constants were initialized when the library was loaded.
        unsafe {
            let level = ffi::RSMPI_THREAD_FUNNELED;
            let no_args = std::ptr::null_mut();
            check(
                "MPI_Init_thread",
                ffi::MPI_Init_thread(no_args, std::ptr::null_mut(), level, &mut provided),
            )?;
            let world = ffi::RSMPI_COMM_WORLD;
            check(
                "MPI_Comm_set_errhandler",
                ffi::MPI_Comm_set_errhandler(world, ffi::RSMPI_ERRORS_RETURN),
            )?;
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(world, &mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(world, &mut size))?;
        }

        Ok(Some(Self {
            rank: rank.cast_unsigned(),
            size: size.cast_unsigned(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            _one_thread: std::marker::PhantomData,
        }))
    }

    /// Returns this process' rank, from 0.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Sends a message to a rank, and returns before it has arrived. Large messages move on in
    /// later calls.
    ///
    /// # Errors
    /// The MPI library's own.
    pub fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), RanksError> {
        self.is_sent()?;

        let mut transfer = Transfer {
            peer: to,
            // SAFETY: a constant of the library.
            request: unsafe { ffi::RSMPI_REQUEST_NULL },
            bytes,
        };
        // SAFETY: the buffer is kept unchanged in `outgoing` until the request is complete.
        let code = unsafe {
            ffi::MPI_Isend(
                transfer.bytes.as_ptr().cast(),
                count(&transfer.bytes),
                ffi::RSMPI_UINT8_T,
                to.cast_signed(),
                TAG,
                ffi::RSMPI_COMM_WORLD,
                &mut transfer.request,
            )
        };

        check("MPI_Isend", code)?;
        self.outgoing.push(transfer);
        Ok(())
    }

    /// Returns the next message that has arrived and its sender.
    ///
    /// # Errors
    /// The MPI library's own.
    pub fn receive(&mut self) -> Result<Option<(u32, Vec<u8>)>, RanksError> {
        self.is_sent()?;
        self.begin_receive()?;
        for at in 0..self.incoming.len() {
            let peer = self.incoming[at].peer;
            // A short message must not overtake a long one of the same rank.
            let is_next = self.incoming[..at].iter().all(|earlier| earlier.peer != peer);
            if is_next && self.incoming[at].is_complete()? {
                return Ok(Some((peer, self.incoming.remove(at).bytes)));
            }
        }
        Ok(None)
    }

    /// Returns whether all messages have been sent.
    ///
    /// # Errors
    /// The MPI library's own.
    pub fn is_sent(&mut self) -> Result<bool, RanksError> {
        let mut at = 0;
        while at < self.outgoing.len() {
            if self.outgoing[at].is_complete()? {
                self.outgoing.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(self.outgoing.is_empty())
    }

    /// Leaves the job, and waits for the other ranks to leave it. To be called only after an
    /// orderly end of all ranks: MPI would wait for one that has died.
    pub fn leave(&mut self) {
        // SAFETY: the last call of MPI, by the thread that initialized it.
        unsafe { ffi::MPI_Finalize() };
    }

    /// Begins to receive a message that is being sent.
    fn begin_receive(&mut self) -> Result<(), RanksError> {
        let mut found = 0;
        // SAFETY: plain structs of integers and pointers, which MPI fills in.
        let mut status: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        let mut length = 0;
        // SAFETY: constants of the library.
        let (mut message, mut request) =
            unsafe { (ffi::RSMPI_MESSAGE_NULL, ffi::RSMPI_REQUEST_NULL) };

        // SAFETY: all pointers are of local variables. A matched message is received below, by this
        // thread.
        let code = unsafe {
            ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                TAG,
                ffi::RSMPI_COMM_WORLD,
                &mut found,
                &mut message,
                &mut status,
            )
        };
        check("MPI_Improbe", code)?;

        if found == 0 {
            return Ok(());
        }

        // SAFETY: `status` is of the probe above.
        let code = unsafe { ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut length) };
        check("MPI_Get_count", code)?;

        let mut bytes = vec![0; length.max(0) as usize];
        // SAFETY: the buffer has the message's length, and is kept in `incoming` until the request
        // is complete.
        let code = unsafe {
            ffi::MPI_Imrecv(
                bytes.as_mut_ptr().cast(),
                length,
                ffi::RSMPI_UINT8_T,
                &mut message,
                &mut request,
            )
        };

        check("MPI_Imrecv", code)?;
        self.incoming.push(Transfer { peer: status.MPI_SOURCE.cast_unsigned(), request, bytes });
        Ok(())
    }
}

/// Returns the length of a message as MPI counts.
fn count(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).expect("a message is far shorter than 2 GiB")
}

/// Returns an error for every code but that of success.
fn check(function: &'static str, code: c_int) -> Result<(), RanksError> {
    const SUCCESS: c_int = 0;
    if code == SUCCESS {
        return Ok(());
    }

    let mut text = [0 as c_char; 1024];
    let mut length = 0;
    // SAFETY: the buffer is longer than MPI_MAX_ERROR_STRING of Open MPI (256) and MPICH (512), and
    // starts as zeros.
    let reason = unsafe {
        ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length);
        CStr::from_ptr(text.as_ptr())
    };

    Err(RanksError::Mpi { function, reason: reason.to_string_lossy().into_owned() })
}
