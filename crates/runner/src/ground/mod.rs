//! The ground of all other rooms, which uses none of them.
//!
//! * [`request`] is what a caller asks for, and [`events`] what it is told.
//! * [`failure`] says what went wrong, and [`stop`] ends a run in an orderly way.
//! * [`lock`] keeps other processes out of a directory.
//! * [`host`], [`program`], [`time`], [`threads`] and [`server_threads`] ask the system.
//! * [`similar`] proposes names.

pub mod events;
pub mod failure;
pub mod host;
pub(crate) mod lock;
pub(crate) mod program;
pub(crate) mod request;
pub(crate) mod server_threads;
pub mod similar;
pub mod stop;
pub(crate) mod threads;
pub(crate) mod time;
