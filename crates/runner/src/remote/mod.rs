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

mod channel;
mod clock;
mod hosts;
mod load_rank;
mod protocol;
mod rank0;
mod ranked_step;
mod reach;

pub use channel::LostRank;
pub use load_rank::serve;
pub use protocol::CellOrder;
pub use rank0::LoadRanks;
pub use ranked_step::RankedStep;
