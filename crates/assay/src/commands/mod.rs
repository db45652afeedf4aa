//! A file for each command.

pub mod bisect;
pub mod builds;
pub mod bundle;
pub mod check;
pub mod compare;
pub mod conform;
pub mod databases;
pub mod export;
pub mod fetch;
pub mod history;
pub mod host;
pub mod import;
pub mod init;
pub mod install;
pub mod ls;
pub mod processes;
pub mod report;
pub mod run;
pub mod show;
pub mod tune;
pub mod versus;
