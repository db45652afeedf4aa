//! The system calls of an engine that a step counts by kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// The kinds of system calls that steps count. Each kind makes the engine slower, so that fewer
    /// kinds disturb it less.
    pub enum SystemCallSet {
        /// None.
        Off = "off",
        /// Those that wait until data is durable.
        Syncs = "syncs",
        /// Those that most engines use most.
        Common = "common",
        /// All that matter to databases.
        All = "all",
    }
}

impl SystemCallSet {
    /// Returns the kernel's names of the kinds, the most telling first.
    pub fn names(self) -> &'static [&'static str] {
        let count = match self {
            Self::Off => 0,
            Self::Syncs => SYNCS_COUNT,
            Self::Common => COMMON_COUNT,
            Self::All => NAMES.len(),
        };
        &NAMES[..count]
    }
}

/// The number of [`NAMES`] in [`SystemCallSet::Syncs`].
const SYNCS_COUNT: usize = 4;
/// The number of [`NAMES`] in [`SystemCallSet::Common`].
const COMMON_COUNT: usize = 20;

/// The kernel's names of the kinds. A set is those up to a place.
const NAMES: [&str; 49] = [
    // Syncs.
    "fdatasync",
    "fsync",
    "sync_file_range",
    "msync",
    // What most engines use most.
    "pread64",
    "pwrite64",
    "read",
    "write",
    "preadv",
    "pwritev",
    "recvfrom",
    "sendto",
    "futex",
    "epoll_wait",
    "poll",
    "lseek",
    "fcntl",
    "openat",
    "io_submit",
    "io_uring_enter",
    // Other reads and writes.
    "readv",
    "preadv2",
    "writev",
    "pwritev2",
    "io_getevents",
    // Other messages.
    "recvmsg",
    "sendmsg",
    // Other waits.
    "epoll_pwait",
    "ppoll",
    "select",
    "clock_nanosleep",
    "semop",
    "semtimedop",
    "sched_yield",
    "kill",
    // Memory.
    "mmap",
    "munmap",
    "madvise",
    "mprotect",
    "brk",
    // Files.
    "close",
    "fstat",
    "newfstatat",
    "unlink",
    "rename",
    "fallocate",
    "ftruncate",
    "fadvise64",
    "tgkill",
];

/// The system calls of an engine in a step, as the kernel counted them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemCallCounts {
    /// The reason why nothing was counted; `None` if something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The threads of the engine when counting began. Those that they started are counted, too.
    pub threads: u64,
    /// The calls of each kind, by the kernel's names. A kind that was not counted is absent.
    pub calls: BTreeMap<String, u64>,
    /// The kinds that were to be counted but were not, because this machine has no such system
    /// call, or because of the limit on open files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_set_contains_the_smaller_ones_and_no_name_twice() {
        let distinct: BTreeSet<&str> = NAMES.into_iter().collect();
        assert_eq!(distinct.len(), NAMES.len());

        assert!(SystemCallSet::Off.names().is_empty());
        assert_eq!(SystemCallSet::Syncs.names().last(), Some(&"msync"));
        assert_eq!(SystemCallSet::Common.names().last(), Some(&"io_uring_enter"));
        assert_eq!(SystemCallSet::All.names().len(), NAMES.len());
    }
}
