//! Work sharing among threads: an idle thread takes the next range.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::ThreadPool;

/// The ranges that one thread takes: an iterator that shares its counter with those of other threads.
pub(crate) struct Ranges<'a> {
    next: &'a AtomicUsize,
    count: usize,
    each: usize,
}

impl Iterator for Ranges<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.next.fetch_add(self.each, Relaxed);
        (start < self.count).then(|| start..self.count.min(start + self.each))
    }
}

/// Shares `0..count`, in ranges of `each`, among the calling thread and those of the pool: `work` is called once on
/// each, with the ranges that it is to take.
pub(crate) fn share(count: usize, each: usize, threads: Option<&ThreadPool>, work: impl Fn(Ranges) + Sync) {
    let next = AtomicUsize::new(0);
    let run = || work(Ranges { next: &next, count, each });
    let workers = threads.map_or(1, ThreadPool::current_num_threads).min(count.div_ceil(each.max(1)));
    match threads {
        Some(pool) if workers > 1 => pool.in_place_scope(|scope| {
            (1..workers).for_each(|_| scope.spawn(|_| run()));
            run();
        }),
        _ => run(),
    }
}

/// Ranges for each thread, to balance threads that start late or are slow.
const EACH: usize = 4;

/// Shares `0..count` as [`share`] does, in ranges of a fourth of a thread's part; without a pool, in one range.
pub fn share_evenly(count: usize, threads: Option<&ThreadPool>, work: impl Fn(Range<usize>) + Sync) {
    let ranges = threads.map_or(1, |pool| pool.current_num_threads() * EACH);
    share(count, count.div_ceil(ranges).max(1), threads, |ranges| ranges.for_each(&work));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_number_is_taken_once_in_order_of_ranges() {
        for workers in [0, 1, 3] {
            let pool = (workers > 0).then(|| rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap());
            for (count, each) in [(0, 1), (1, 1), (7, 1), (7, 3), (7, 10), (1000, 7)] {
                let taken = Mutex::new(Vec::new());
                share(count, each, pool.as_ref(), |ranges| {
                    ranges.for_each(|range| {
                        assert!(range.start.is_multiple_of(each) && range.len() <= each);
                        taken.lock().unwrap().extend(range);
                    });
                });
                let mut taken = taken.into_inner().unwrap();
                taken.sort_unstable();
                assert_eq!(taken, (0..count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn without_a_pool_there_is_one_range() {
        let ranges = Mutex::new(Vec::new());
        share_evenly(100, None, |range| ranges.lock().unwrap().push(range));
        assert_eq!(ranges.into_inner().unwrap(), vec![0..100]);
    }
}
