//! Work that is split among the threads of one call.

use std::ops::Range;
use std::thread;

/// Calls `work` on `parts` nearly equal ranges of `0..items`, each on a thread of its own; results are in order.
///
/// 10 items in 4 parts are 0..2, 2..5, 5..7, 7..10.
pub(super) fn split<T: Send>(
    items: usize,
    parts: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let bound = |part: usize| part * items / parts;
    let work = &work;
    thread::scope(|scope| {
        let started: Vec<_> = (1..parts)
            .map(|part| {
                let range = bound(part)..bound(part + 1);
                let spawned = thread::Builder::new().spawn_scoped(scope, {
                    let range = range.clone();
                    move || work(range)
                });
                (range, spawned)
            })
            .collect();
        let mut results = vec![work(0..bound(1))];
        for (range, spawned) in started {
            // Where the limit on processes leaves no thread, this one does the part as well.
            results.push(match spawned {
                Ok(thread) => thread.join().expect("a part fails only if the whole does"),
                Err(_) => work(range),
            });
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once_and_in_order() {
        assert_eq!(split(10, 4, |range| range), [0..2, 2..5, 5..7, 7..10]);
        assert_eq!(split(1, 3, |range| range.len()).into_iter().sum::<usize>(), 1);
        assert_eq!(split(5, 1, |range| range.sum::<usize>()), [10]);
    }
}
