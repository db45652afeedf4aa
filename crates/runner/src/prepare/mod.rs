//! Everything that is decided before a run begins: its plan and whether it can run, the builds and
//! whether they accept their configs, and what the run will need.
//!
//! ```text
//! plan_file ─► preflight ─► locate ─► installed    the build in the store or on the system
//!                              └────► trials       each build tries its configs, side by side
//!                                       └─► library   with a library, in another process
//! ```
//!
//! * [`plan_file`] reads a plan and the files that it names, and [`preflight`] refuses what its
//!   parser cannot see.
//! * [`commits`] builds the commits that a plan names. From then on they are builds like others.
//! * [`locate`] finds and tries the builds: `engines` has a row for each engine. [`memory`] and
//!   [`estimate`] compare what a run needs with this machine.
//! * [`data_place`] refuses a directory in which no databases can be made, or on too small a disk.
//! * [`known_times`] has what an earlier run took, and [`other_host`] describes a machine on which
//!   the plan will run.
//! * [`bundled_plan`] says what the plan of a bundle, which may be a stranger's, cannot say.
//! * [`target_builds`] finds the builds that targets on a command line stand for, and [`fetching`]
//!   downloads those that are missing.
//! * [`drafts`] writes plans for such targets.
//! * [`trust`] says whether the author of a record is trusted.

pub mod bundled_plan;
pub mod commits;
pub mod data_place;
pub mod drafts;
pub(crate) mod engines;
pub mod estimate;
pub mod fetching;
pub(crate) mod installed;
pub mod known_times;
pub(crate) mod library;
pub mod locate;
pub mod memory;
pub mod other_host;
pub mod overridden;
pub mod plan_file;
pub mod preflight;
pub mod target_builds;
pub(crate) mod trials;
pub mod trust;
pub mod turns;
