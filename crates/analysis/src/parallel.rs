//! Work on all processors.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most threads; each holds a step in memory.
const THREADS_MAX: usize = 8;

/// Applies `work` to each item with as many threads as there are processors, and returns the
/// results in order.
pub fn map_parallel<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let work = |item: &I| Ok::<T, Infallible>(work(item));
    let Ok(results) = try_map_parallel(items, work);
    results
}

/// Applies `work` to each item with as many threads as there are processors, and returns the
/// results in order. After an error no more items are started.
///
/// # Errors
/// The error of the first item that failed.
pub(crate) fn try_map_parallel<I: Sync, T: Send, E: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let threads = thread_count(items.len());
    let next = AtomicUsize::new(0);
    let worker = || work_off(items, &next, &work);

    let mut done = std::thread::scope(|scope| {
        // Fewer threads do the same work if the system refuses one.
        let others: Vec<_> = (1..threads)
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, worker).ok())
            .collect();
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

/// Returns the number of threads for so many items.
fn thread_count(item_count: usize) -> usize {
    // To find out how many processors it may use, a process reads several files.
    if item_count < 2 {
        return 1;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.min(THREADS_MAX).min(item_count)
}

/// Takes items from the counter `next` until none are left, and returns the results with the items'
/// indexes. After an error no thread takes another item.
fn work_off<I, T, E>(
    items: &[I],
    next: &AtomicUsize,
    work: impl Fn(&I) -> Result<T, E>,
) -> Vec<(usize, Result<T, E>)> {
    let mut done = Vec::new();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(at) else {
            return done;
        };

        let result = work(item);
        if result.is_err() {
            next.store(items.len(), Ordering::Relaxed);
        }
        done.push((at, result));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_and_the_first_error_is_among_them() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = map_parallel(&items, |item| item * 2);
        assert_eq!(doubled, (0..200).step_by(2).collect::<Vec<u32>>());

        let failing = |item: &u32| if *item >= 40 { Err(*item) } else { Ok(()) };
        assert_eq!(try_map_parallel(&items, failing), Err(40));
        assert!(map_parallel(&[], |_: &u32| ()).is_empty());
    }
}
