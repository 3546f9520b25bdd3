//! Work on several cores whose results do not depend on how many there are.

use rayon::prelude::*;

/// The caller's thread, or a pool.
#[derive(Debug)]
pub struct Workers(Option<rayon::ThreadPool>);

impl Workers {
    /// This many threads; one means the caller's own. If the system refuses threads, one it is.
    pub fn new(threads: usize) -> Self {
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
        Self(if threads > 1 { pool() } else { None })
    }

    /// Does `work` to every item. Items must not share anything that changes, which the compiler checks;
    /// what each becomes then depends on the item alone.
    pub fn each<T: Send>(&self, items: &mut [T], work: impl Fn(&mut T) + Sync + Send) {
        match &self.0 {
            None => items.iter_mut().for_each(work),
            Some(pool) => pool.install(|| items.par_iter_mut().for_each(work)),
        }
    }

    /// Results of `work` on every item, in the order of the items.
    pub fn map<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> R + Sync + Send,
    ) -> Vec<R> {
        match &self.0 {
            None => items.iter().map(work).collect(),
            Some(pool) => pool.install(|| items.par_iter().with_max_len(1).map(work).collect()),
        }
    }
}

#[test]
fn results_come_in_the_order_of_the_items() {
    let items: Vec<u64> = (0..100).collect();
    let square = |x: &u64| x * x;
    assert_eq!(Workers::new(1).map(&items, square), Workers::new(3).map(&items, square));
    let (mut one, mut many) = (items.clone(), items);
    Workers::new(1).each(&mut one, |x| *x += 1);
    Workers::new(2).each(&mut many, |x| *x += 1);
    assert_eq!(one, many);
}
