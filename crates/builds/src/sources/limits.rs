//! Limits of a client as a whole. The clients limit single requests, and a slow server can stay within those limits forever.

use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::BuildError;
use crate::listing::size_of;
use crate::waiting::now;

/// The pause between two looks at the folder of downloads, which has many files.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The limits of a client.
pub struct Limits {
    /// The time until its end.
    pub time: Duration,
    /// The bytes that it may print, and add to the folder of downloads.
    pub bytes: u64,
}

impl Limits {
    /// Begins to watch a client that writes to the folder `downloads` and prints to `outputs`.
    pub fn begin<'a>(&'a self, downloads: &'a Path, outputs: [&'a File; 2]) -> Usage<'a> {
        let began = now();
        Usage {
            limits: self,
            downloads,
            outputs,
            began,
            bytes_before: size_of(downloads),
            looked: Cell::new(began),
        }
    }
}

/// The use that a client has made of its limits.
pub struct Usage<'a> {
    limits: &'a Limits,
    downloads: &'a Path,
    outputs: [&'a File; 2],
    began: Instant,
    bytes_before: u64,
    /// The time of the last look at the folder.
    looked: Cell<Instant>,
}

impl Usage<'_> {
    /// Returns true if the client has exceeded a limit.
    pub fn is_too_much(&self) -> bool {
        if self.is_late() {
            return true;
        }
        if self.looked.get().elapsed() < LOOK_INTERVAL {
            return false;
        }

        self.looked.set(now());
        self.written_bytes() > self.limits.bytes
    }

    fn is_late(&self) -> bool {
        self.began.elapsed() > self.limits.time
    }

    /// Returns the bytes that the client has printed, and by which the folder has grown.
    fn written_bytes(&self) -> u64 {
        let printed = self.outputs.iter().filter_map(|output| output.metadata().ok());
        let printed_bytes: u64 = printed.map(|metadata| metadata.len()).sum();

        // A file may vanish meanwhile. Then the next look counts.
        printed_bytes + size_of(self.downloads).saturating_sub(self.bytes_before)
    }

    /// Returns the error of the client `name`, which was ended at a limit. Its output is in `log`.
    pub fn error(&self, name: &str, log: &Path) -> BuildError {
        let log = log.display();
        if self.is_late() {
            let minutes = self.limits.time.as_secs() / 60;
            return BuildError::new(
                format!("`{name}` ran for more than {minutes} minutes, and was ended"),
                format!(
                    "the server may send too slowly: try again later, or register a build on this machine with `dir:/PATH=NAME`; \
                    the output of `{name}` is in `{log}`"
                ),
            );
        }

        let folder = self.downloads.display();
        let gigabytes = self.limits.bytes / 1_000_000_000;
        BuildError::new(
            format!("`{name}` wrote more than {gigabytes} GB to `{folder}`, and was ended"),
            format!(
                "no build has so much, so the server may send something else: remove `{folder}`, and look at the output of \
                `{name}` and at the addresses that it is configured with"
            ),
        )
    }
}
