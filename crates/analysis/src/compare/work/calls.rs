//! Counts system calls and allocations by the functions that make them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::names;
use super::union::CellGraph;

/// The purpose of a called function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A call of the kernel.
    SystemCall,
    /// An allocation of memory, or its end.
    Allocation,
}

/// The calls of one kind per operation, in two targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCalls {
    /// System call or allocation.
    pub kind: CallKind,
    /// The kernel's name of the system call, or the name of the allocating function.
    pub name: &'static str,
    /// Calls per operation in the base; `None` if it has no counted cells.
    pub base: Option<f64>,
    /// Calls per operation in the target.
    pub target: f64,
}

impl ComparedCalls {
    /// Returns whether the numbers of calls differ by more than a little.
    pub fn has_changed(&self) -> bool {
        self.base.is_some_and(|base| numbers_differ(base, self.target))
    }
}

/// Returns whether two numbers of calls per operation differ by more than a little.
pub(crate) fn numbers_differ(base: f64, target: f64) -> bool {
    (target - base).abs() > CHANGE_MIN.max(CHANGE_SHARE * base.max(target))
}

/// Numbers of calls that differ by less than this, per operation, are the same.
const CHANGE_MIN: f64 = 0.01;
/// Numbers of calls that differ by less than this share are the same.
const CHANGE_SHARE: f64 = 0.01;
/// Fewer calls per operation than this are not listed.
const LISTED_MIN: f64 = 0.001;

/// Libraries whose functions are wrappers of system calls.
const SYSTEM_LIBRARIES: [&str; 6] = ["libc", "libpthread", "librt", "libaio", "liburing", ""];

/// The wrappers of each system call, by the kernel's name. Some libraries have several symbols at
/// the address of a wrapper, and callgrind names one of them.
const SYSTEM_CALLS: [(&str, &[&str]); 39] = [
    ("read", &["read", "__read", "__libc_read"]),
    ("pread64", &["pread64", "pread", "__pread64", "__libc_pread64", "__libc_pread"]),
    ("readv", &["readv", "__readv"]),
    ("preadv", &["preadv", "preadv64"]),
    ("preadv2", &["preadv2", "preadv64v2"]),
    ("write", &["write", "__write", "__libc_write"]),
    ("pwrite64", &["pwrite64", "pwrite", "__pwrite64", "__libc_pwrite64", "__libc_pwrite"]),
    ("writev", &["writev", "__writev"]),
    ("pwritev", &["pwritev", "pwritev64"]),
    ("pwritev2", &["pwritev2", "pwritev64v2"]),
    ("openat", &["open", "open64", "__open64", "__libc_open64", "openat", "openat64"]),
    ("close", &["close", "__close", "__libc_close"]),
    ("lseek", &["lseek", "lseek64", "__lseek64", "llseek"]),
    ("fstat", &["fstat", "fstat64", "__fstat64", "__fxstat64"]),
    ("newfstatat", &["stat", "stat64", "lstat64", "fstatat64", "__xstat64"]),
    ("unlink", &["unlink"]),
    ("rename", &["rename"]),
    ("ftruncate", &["ftruncate", "ftruncate64"]),
    ("fallocate", &["fallocate", "fallocate64", "posix_fallocate64"]),
    ("fadvise64", &["posix_fadvise", "posix_fadvise64"]),
    ("fsync", &["fsync", "__fsync", "__libc_fsync"]),
    ("fdatasync", &["fdatasync", "__fdatasync"]),
    ("sync_file_range", &["sync_file_range"]),
    ("fcntl", &["fcntl", "fcntl64", "__fcntl64", "__libc_fcntl64"]),
    ("mmap", &["mmap", "mmap64", "__mmap", "__mmap64"]),
    ("munmap", &["munmap", "__munmap"]),
    ("madvise", &["madvise", "__madvise"]),
    ("sendto", &["send", "__send", "__libc_send", "sendto", "__libc_sendto"]),
    ("recvfrom", &["recv", "__recv", "__libc_recv", "recvfrom", "__libc_recvfrom"]),
    ("sendmsg", &["sendmsg", "__libc_sendmsg"]),
    ("recvmsg", &["recvmsg", "__libc_recvmsg"]),
    ("poll", &["poll", "__poll", "ppoll", "__poll_chk"]),
    ("select", &["select", "__select", "pselect"]),
    ("epoll_wait", &["epoll_wait", "epoll_pwait"]),
    (
        "futex",
        &[
            "__lll_lock_wait",
            "__lll_lock_wait_private",
            "__lll_lock_wake",
            "__lll_lock_wake_private",
            "__futex_abstimed_wait_common",
            "__futex_abstimed_wait_common64",
            "futex_wait",
            "futex_wake",
        ],
    ),
    ("semop", &["semop", "semtimedop"]),
    ("kill", &["kill", "tgkill", "pthread_kill"]),
    ("io_submit", &["io_submit", "io_getevents"]),
    ("io_uring_enter", &["io_uring_submit", "io_uring_enter", "__io_uring_submit_and_wait"]),
];

/// Functions that allocate memory or free it. Some call another one of these, so that their numbers
/// don't add up.
const ALLOCATIONS: [&str; 22] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "operator new",
    "operator delete",
    // PostgreSQL's contexts of memory.
    "AllocSetAlloc",
    "AllocSetRealloc",
    "AllocSetFree",
    "GenerationAlloc",
    "GenerationFree",
    "SlabAlloc",
    "SlabFree",
    "BumpAlloc",
    // MySQL's, MariaDB's and InnoDB's.
    "my_malloc",
    "my_free",
    "alloc_root",
    "mem_heap_create_block_func",
    // RocksDB's, and SQLite's with its pages.
    "rocksdb::Arena::AllocateNewBlock",
    "sqlite3Malloc",
];

/// Returns the calls of the kernel and of allocators in base and target.
pub(super) fn compared(base: &[CellGraph<'_>], target: &[CellGraph<'_>]) -> Vec<ComparedCalls> {
    let of_base = (!base.is_empty()).then(|| mean_counts(base));
    let of_target = mean_counts(target);

    let mut known: Vec<(CallKind, &'static str)> = of_target.keys().copied().collect();
    known.extend(of_base.iter().flatten().map(|(call, _)| *call));
    known.sort_unstable();
    known.dedup();

    let mut all = Vec::new();
    for call in known {
        let count = |counts: &Counts| counts.get(&call).copied().unwrap_or(0.0);
        let compared = ComparedCalls {
            kind: call.0,
            name: call.1,
            base: of_base.as_ref().map(count),
            target: count(&of_target),
        };
        if compared.base.unwrap_or(0.0).max(compared.target) >= LISTED_MIN {
            all.push(compared);
        }
    }
    all
}

type Counts = BTreeMap<(CallKind, &'static str), f64>;

/// Returns the calls per operation, as means of the cells.
fn mean_counts(cells: &[CellGraph<'_>]) -> Counts {
    let mut counts = Counts::new();
    for CellGraph { graph, operations } in cells {
        let functions = graph.functions.iter();
        let known: Vec<_> =
            functions.map(|function| call_of(&function.name, &function.object)).collect();
        let share = 1.0 / (cells.len() as f64 * (*operations).max(1) as f64);
        for call in &graph.calls {
            // A wrapper that calls another one of the same is one call.
            if let Some(kind) = known[call.callee].filter(|kind| known[call.caller] != Some(*kind))
            {
                *counts.entry(kind).or_default() += call.count as f64 * share;
            }
        }
    }
    counts
}

/// Returns what a function stands for; `None` if it is any other function.
fn call_of(name: &str, object: &str) -> Option<(CallKind, &'static str)> {
    let name = names::function(name);
    if let Some(allocation) = ALLOCATIONS.into_iter().find(|allocation| *allocation == name) {
        return Some((CallKind::Allocation, allocation));
    }

    if !SYSTEM_LIBRARIES.contains(&names::object(object)) {
        return None;
    }

    let (kernel, _) =
        SYSTEM_CALLS.into_iter().find(|(_, wrappers)| wrappers.contains(&name.as_str()))?;
    Some((CallKind::SystemCall, kernel))
}

#[cfg(test)]
mod tests {
    use words::{WorkCalls, WorkFunction, WorkGraph};

    use super::*;

    fn graph(calls: &[(usize, usize, u64)]) -> WorkGraph {
        let functions = [
            ("serve", "postgres"),
            ("__libc_pread64", "libc.so.6"),
            ("AllocSetAlloc", "postgres"),
            ("operator new(unsigned long)", "libstdc++.so.6.0.30"),
            ("malloc", "libc.so.6"),
            ("write", "postgres"),
            ("fdatasync", "libc-2.31.so"),
            ("pread", "libc.so.6"),
        ];
        let function = |(name, object): (&str, &str)| WorkFunction {
            name: name.into(),
            object: object.into(),
            own: 10,
        };
        let call =
            |&(caller, callee, count)| WorkCalls { caller, callee, count, inclusive: 10 * count };
        WorkGraph {
            functions: functions.map(function).to_vec(),
            calls: calls.iter().map(call).collect(),
        }
    }

    #[test]
    fn wrappers_count_as_the_system_calls_that_they_make() {
        let base = graph(&[(0, 1, 2000), (7, 1, 500), (0, 7, 500), (0, 2, 8000), (0, 5, 900)]);
        let target = graph(&[(0, 1, 1000), (0, 2, 8000), (0, 3, 70), (3, 4, 70), (0, 6, 1000)]);
        let cells = |graph| [CellGraph { graph, operations: 1000 }];
        let found = compared(&cells(&base), &cells(&target));
        let counts: Vec<_> =
            found.iter().map(|calls| (calls.name, calls.base.unwrap(), calls.target)).collect();
        assert_eq!(
            counts,
            [
                ("fdatasync", 0.0, 1.0),
                ("pread64", 2.5, 1.0),
                ("AllocSetAlloc", 8.0, 8.0),
                ("malloc", 0.0, 0.07),
                ("operator new", 0.0, 0.07),
            ]
        );
        assert!(found[0].has_changed() && !found[2].has_changed());
    }

    #[test]
    fn no_wrapper_is_listed_twice() {
        let mut all: Vec<&str> =
            SYSTEM_CALLS.iter().flat_map(|(_, names)| *names).copied().collect();
        all.extend(ALLOCATIONS);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
