//! Servers that a test starts itself: by the code of an engine, without a run.

use std::path::Path;

use engine::{SetupError, StartOptions};

use crate::place::ASSAY;

/// A server that a test starts.
pub(crate) struct OwnServer<'a> {
    /// The directory of its files: its data in `NAME`, its log in `NAME.log`.
    pub(crate) folder: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) build: &'a str,
    /// The text of its configuration file.
    pub(crate) config: &'a str,
}

impl OwnServer<'_> {
    /// Gives `start` the server's options, and returns the server that it starts. A failure of the
    /// start fails the test, and shows the server's log.
    pub(crate) fn start<E>(
        &self,
        start: impl FnOnce(&StartOptions<'_>) -> Result<E, SetupError>,
    ) -> E {
        let log = self.folder.join(format!("{}.log", self.name));

        let started = start(&StartOptions {
            build: self.build,
            data_dir: &self.folder.join(self.name),
            config_files: &[self.config.to_owned()],
            guard_exe: ASSAY.as_ref(),
            log: &log,
            connections: 20,
            ..StartOptions::default()
        });

        started.unwrap_or_else(|error| {
            panic!("{error}\n{}", fs_err::read_to_string(log).unwrap_or_default())
        })
    }
}
