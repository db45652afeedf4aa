//! Context switches of the threads of a server's processes.

use std::collections::HashMap;

use crate::Proc;
use crate::parse::parse_context_switches;

/// The largest number of threads whose switches are read: each takes a file of its own.
const THREADS_MAX: usize = 512;

/// Counts the switches of threads. Threads that start and end between two samples are not counted.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// The last count of each thread.
    of_threads: HashMap<u32, u64>,
    /// The switches of threads that ended.
    ended: u64,
}

impl Switches {
    /// Returns the switches so far of all threads of these processes; `None` if there are too many
    /// threads, or none was ever found.
    pub(crate) fn sample(
        &mut self,
        proc: &Proc,
        processes: impl Iterator<Item = u32>,
        buffer: &mut Vec<u8>,
    ) -> Option<u64> {
        let mut current = HashMap::with_capacity(self.of_threads.len());
        for pid in processes {
            for thread in proc.names(format!("proc/{pid}/task")) {
                if current.len() == THREADS_MAX {
                    return None;
                }
                let name = format!("proc/{pid}/task/{thread}/status");
                let Ok(text) = proc.read_at_once(&name, &mut None, false, buffer) else {
                    continue;
                };
                let switches = parse_context_switches(&text).ok()?;
                current.insert(thread.parse().ok()?, switches.total());
            }
        }

        for (thread, last) in &self.of_threads {
            // A lower count belongs to another thread with the same ID.
            if current.get(thread).is_none_or(|count| count < last) {
                self.ended += last;
            }
        }

        self.of_threads = current;
        let total = self.ended + self.of_threads.values().sum::<u64>();
        // A thread that runs was switched to.
        (total > 0).then_some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_ended_threads_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let proc = Proc::at(root.path());
        let set = |thread: u32, counts: Option<(u64, u64)>| {
            let directory = root.path().join(format!("proc/7/task/{thread}"));
            fs_err::create_dir_all(&directory).unwrap();
            match counts {
                Some((by_itself, by_others)) => fs_err::write(
                    directory.join("status"),
                    format!("Name:\tx\nvoluntary_ctxt_switches:\t{by_itself}\nnonvoluntary_ctxt_switches:\t{by_others}\n"),
                )
                .unwrap(),
                None => fs_err::remove_dir_all(directory).unwrap(),
            }
        };
        let mut switches = Switches::default();
        let mut sample = || switches.sample(&proc, [7].into_iter(), &mut Vec::new());
        set(7, Some((10, 1)));
        set(8, Some((100, 0)));
        assert_eq!(sample(), Some(111));
        set(8, None);
        set(7, Some((20, 2)));
        assert_eq!(sample(), Some(122));
        // The ID of a thread that ended.
        set(7, Some((1, 0)));
        assert_eq!(sample(), Some(123));
    }
}
