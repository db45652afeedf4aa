//! Work on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The most threads; each holds a step in memory.
const THREADS_MAX: usize = 8;

/// Applies `work` to each item with as many threads as there are processors, and returns the
/// results in order. After an error no more items are started.
pub(crate) fn map_parallel<I: Sync, T: Send, E: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T, E> + Sync,
) -> Vec<Result<T, E>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(THREADS_MAX).min(items.len()).max(1);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some(at) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < items.len())
        {
            let result = work(&items[at]);
            let failed = result.is_err();
            done.push((at, result));
            if failed {
                next.store(items.len(), Ordering::Relaxed);
            }
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        // Fewer threads do the same work if the system refuses one.
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (1..threads).map_while(spawn).collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(theirs) => done.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_and_the_first_error_is_among_them() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = map_parallel(&items, |item| Ok::<u32, ()>(item * 2));
        let doubled: Result<Vec<u32>, ()> = doubled.into_iter().collect();
        assert_eq!(doubled.unwrap(), (0..200).step_by(2).collect::<Vec<u32>>());
        let failing = map_parallel(&items, |item| if *item == 40 { Err(40) } else { Ok(()) });
        let failing: Result<Vec<()>, u32> = failing.into_iter().collect();
        assert_eq!(failing, Err(40));
        assert!(map_parallel(&[], |_: &u32| Ok::<(), ()>(())).is_empty());
    }
}
