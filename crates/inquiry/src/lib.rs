//! Answers questions that need many runs, or a run and what somebody else found, without a command
//! line and without a terminal.
//!
//! ```text
//! compare/   which targets of some runs are faster or slower, and the gate
//! bisect/    which version or commit changed a step
//! tune/      which configuration is better than the base
//! search/    runs until a trial is decided, and the log from which an interrupted search continues
//! bundle/    a finding with all that others need to repeat it, and the run that repeats it
//! shelf/     the runs of a folder, and what is known of each
//! known_run  an earlier run whose times tell how long a plan takes
//! next       the commands with which a user continues after a run
//! page       the HTML report of runs
//! damage     the facts about damaged steps on which their remedy depends
//! selection  chosen cells and steps of runs, for other tools
//! reading    runs that another process may be resuming, and the steps and targets in them
//! ```
//!
//! This crate prints nothing and never exits: what happens meanwhile is told to the caller.

#![forbid(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod bisect;
pub mod bundle;
pub mod compare;
pub mod damage;
pub mod known_run;
pub mod next;
pub mod page;
pub mod reading;
pub mod search;
pub mod selection;
pub mod shelf;
pub mod tune;
