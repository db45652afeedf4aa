//! The targets of a repeat take turns within each step.
//!
//! ```text
//!            start, tables ..│ turns of step 1          │ checks, settle │ turns of step 2
//! target a   ████            │ ██      ██  ██      ██   │ ███            │ ██      ██
//! target b       ████        │   ██  ██      ██  ██     │    ████        │   ██  ██
//! ```
//!
//! Cells of one variant, number of clients and repeat form a [`group`](crate::cells::group). Each
//! cell lives on its own thread as it would without turns, and all of them sit at one [`Table`].
//! Only one works at a time:
//!
//! * Outside of the load, a cell works alone, until its next load is ready.
//! * When the loads of all cells are ready, the [`conductor`] gives them turns in the order of
//!   [`order`], until all have ended.
//!
//! A target that waits is frozen, and its clock stands still ([`load::Gate`]). So its record is
//! that of a target that was measured alone, and has one row for each turn besides.

pub mod clock;
pub mod conductor;
pub mod events;
pub mod frozen;
mod host_share;
pub mod link;
pub mod order;
mod pace;
pub mod placing;
pub mod seat;
pub mod table;

pub use clock::StepClock;
pub use frozen::Frozen;
pub use host_share::HostShare;
pub use link::{LinkPipes, TableEnd};
pub use placing::Placing;
pub use seat::Seat;

/// Locks a mutex, even if a thread that held it has panicked: the others must be able to end.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
