//! Bucket sort for roughly uniform numbers: about one bucket per number, then each bucket is sorted.
//!
//! Arrivals inside a minute are drawn at random, so a bucket holds one on average and rarely five: 6,000 of
//! them cost three passes instead of thirteen. For any distribution, sorting the buckets is never more work
//! than sorting everything.

/// Buckets with more numbers than this are sorted by the library.
const FEW: u32 = 8;

/// Buffers for sorting, reused between calls.
#[derive(Debug, Default)]
pub(crate) struct BucketSort {
    /// Index at which the next number of each bucket is stored.
    next: Vec<u32>,
    sorted: Vec<u64>,
}

impl BucketSort {
    /// Sorts `numbers`, which must be in `low..high`, in descending order.
    pub(crate) fn largest_first(&mut self, numbers: &mut Vec<u64>, low: u64, high: u64) {
        let buckets = numbers.len().next_power_of_two();
        let bits = (high - low).max(1).ilog2() + 1;
        let shift = bits.saturating_sub(buckets.ilog2());
        // Reversed, so that the largest numbers come first.
        let bucket_of = |number: u64| buckets - 1 - ((number - low) >> shift) as usize;
        self.next.clear();
        self.next.resize(buckets, 0);
        for &number in &*numbers {
            self.next[bucket_of(number)] += 1;
        }
        let mut before = 0;
        for next in &mut self.next {
            before += std::mem::replace(next, before);
        }
        self.sorted.clear();
        self.sorted.resize(numbers.len(), 0);
        for &number in &*numbers {
            let next = &mut self.next[bucket_of(number)];
            self.sorted[*next as usize] = number;
            *next += 1;
        }
        // Each bucket now ends at its `next` index.
        let mut start = 0;
        for &end in &self.next {
            if end - start > FEW {
                self.sorted[start as usize..end as usize].sort_unstable_by(|a, b| b.cmp(a));
            }
            start = end;
        }
        insert_few(&mut self.sorted);
        std::mem::swap(numbers, &mut self.sorted);
    }
}

/// Insertion sort for numbers that are at most a few places from their position. Nearly all are already in
/// place, which the branch predictor learns; whether a bucket holds one number or two it cannot predict.
fn insert_few(numbers: &mut [u64]) {
    for end in 1..numbers.len() {
        let mut place = end;
        while place > 0 && numbers[place] > numbers[place - 1] {
            numbers.swap(place, place - 1);
            place -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_numbers_are_sorted(
            low: u64, spread in 0u32..64, numbers in proptest::collection::vec(any::<u64>(), 0..200),
        ) {
            let mut numbers: Vec<u64> =
                numbers.into_iter().map(|number| low.saturating_add(number >> spread)).collect();
            let high = numbers.iter().max().map_or(low, |&most| most).saturating_add(1);
            let mut expected = numbers.clone();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            BucketSort::default().largest_first(&mut numbers, low, high);
            prop_assert_eq!(numbers, expected);
        }
    }
}
