//! A run on several hosts: `mpirun -n 3 assay run PLAN`.
//!
//! ```text
//!   rank 0                                      load rank 1, 2, ...
//!   starts the target    ── Cell ──►            connects to it
//!   counters             ── Prepare ──►         opens its clients' connections
//!                        ◄── Prepared ──
//!   clock offsets        ◄── ReadClock, Clock ──►
//!                        ── Begin ──►           load, second by second
//!   record, display      ◄── Intervals, Latencies ──
//!                        ◄── Ended ──
//!   checks, settles      ── Apply ──►           notes what all ranks did
//! ```
//!
//! Rank 0 does everything that a run on one host does, except for the load. The workload's state is
//! the same in all ranks: each has the plan and the seed, and learns after a step what the
//! connections of all ranks did.
//!
//! This room has rank 0's side and the messages between both. The other side, which needs an engine
//! and a workload, is [`load_rank`](crate::run::load_rank).

mod channel;
mod clock;
pub mod hosts;
pub mod protocol;
mod rank0;
mod ranked_step;
pub mod reach;

pub use channel::LostRank;
pub use protocol::CellOrder;
pub use rank0::LoadRanks;
pub use ranked_step::RankedStep;
