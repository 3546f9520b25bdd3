use super::*;
use proptest::prelude::*;

fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(second)
}

const A: CallId = CallId(1);
const B: CallId = CallId(2);
const C: CallId = CallId(3);

#[test]
fn the_entry_that_lasts_longest_is_lent_first_and_split() {
    let mut pool = HarvestPool::default();
    pool.put(A, Allocation::new(500, 0), at(4));
    pool.put(B, Allocation::new(1000, 64), at(9));
    assert_eq!(pool.borrow(C, Allocation::new(1200, 100)), Allocation::new(1200, 64));
    assert_eq!(pool.free(), Allocation::new(300, 0));

    let mut recalls = Vec::new();
    pool.end(B, &mut recalls);
    assert_eq!(recalls, [Recall { borrower: C, amount: Allocation::new(1000, 64) }]);
    assert_eq!(pool.borrowed_by(C), Allocation::new(200, 0));
    assert!(pool.balances());
}

#[test]
fn what_a_borrower_leaves_goes_back_to_the_donor_with_its_end() {
    let mut pool = HarvestPool::default();
    pool.put(A, Allocation::new(500, 0), at(4));
    pool.borrow(C, Allocation::new(500, 0));
    let mut recalls = Vec::new();
    pool.end(C, &mut recalls);
    assert!(recalls.is_empty());
    assert_eq!(pool.put_by(A), Allocation::new(500, 0));
    assert_eq!(pool.free(), Allocation::new(500, 0));
    assert_eq!(pool.until(A), Some(at(4)));
}

#[test]
fn coverage_by_hand() {
    let mut pool = HarvestPool::default();
    pool.put(A, Allocation::new(1000, 0), at(10));
    pool.put(B, Allocation::new(3000, 0), at(5));
    let Coverage { cpu, memory } = pool.coverage(Allocation::new(2000, 0), at(0), at(10));
    assert!((cpu - 0.75).abs() < 1e-12, "{cpu}");
    assert_eq!(memory, 1.0);
    assert_eq!(
        pool.coverage(Allocation::new(2000, 1), at(10), at(12)),
        Coverage { cpu: 0.0, memory: 0.0 }
    );
    assert_eq!(pool.coverage(Allocation::new(8000, 0), at(1), at(1)).cpu, 0.5);
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, Allocation, u64),
    Borrow(u64, Allocation),
    GiveBack(u64, Allocation),
    TakeBack(u64, Allocation),
    Recall(Allocation),
    End(u64),
}

fn amount() -> impl Strategy<Value = Allocation> {
    (0u32..3000, 0u32..300).prop_map(|(cpu, memory)| Allocation::new(cpu, memory))
}

fn step() -> impl Strategy<Value = Step> {
    let call = 0u64..8;
    prop_oneof![
        (call.clone(), amount(), 0u64..100).prop_map(|(c, a, u)| Step::Put(c, a, u)),
        (call.clone(), amount()).prop_map(|(c, a)| Step::Borrow(c, a)),
        (call.clone(), amount()).prop_map(|(c, a)| Step::GiveBack(c, a)),
        (call.clone(), amount()).prop_map(|(c, a)| Step::TakeBack(c, a)),
        amount().prop_map(Step::Recall),
        call.prop_map(Step::End),
    ]
}

proptest! {
    #[test]
    fn the_ledger_balances_whatever_happens(steps in prop::collection::vec(step(), 0..60)) {
        let mut pool = HarvestPool::default();
        for step in steps {
            let mut recalls = Vec::new();
            let before = pool.clone();
            match step {
                Step::Put(call, amount, until) => {
                    pool.put(CallId(call), amount, at(until));
                    prop_assert_eq!(pool.put_by(CallId(call)), before.put_by(CallId(call)) + amount);
                }
                Step::Borrow(call, amount) => {
                    let got = pool.borrow(CallId(call), amount);
                    prop_assert!(got.fits(amount) && got.fits(before.free()));
                    prop_assert_eq!(pool.lent(), before.lent() + got);
                }
                Step::GiveBack(call, amount) => {
                    pool.give_back(CallId(call), amount);
                    let had = before.borrowed_by(CallId(call));
                    prop_assert_eq!(pool.borrowed_by(CallId(call)), had.saturating_sub(amount));
                }
                Step::TakeBack(call, amount) => {
                    pool.take_back(CallId(call), amount, &mut recalls);
                    let had = before.put_by(CallId(call));
                    prop_assert_eq!(pool.put_by(CallId(call)), had.saturating_sub(amount));
                }
                Step::Recall(amount) => {
                    pool.recall(amount, &mut recalls);
                    let called = sum(recalls.iter().map(|recall| recall.amount));
                    prop_assert_eq!(called, amount.min(before.lent()));
                    prop_assert_eq!(pool.free(), before.free() + called);
                }
                Step::End(call) => {
                    pool.end(CallId(call), &mut recalls);
                    prop_assert_eq!(pool.put_by(CallId(call)), Allocation::ZERO);
                    prop_assert_eq!(pool.borrowed_by(CallId(call)), Allocation::ZERO);
                }
            }
            prop_assert!(pool.balances(), "{pool:?}");
            for call in (0..8).map(CallId) {
                let called = recalls.iter().filter(|recall| recall.borrower == call);
                let called = sum(called.map(|recall| recall.amount));
                prop_assert!(called.fits(before.borrowed_by(call)), "more recalled than lent");
            }
        }
        let mut recalls = Vec::new();
        for call in (0..8).map(CallId) {
            pool.end(call, &mut recalls);
        }
        prop_assert!(pool.is_empty() && pool.lent() == Allocation::ZERO);
    }

    #[test]
    fn coverage_is_a_share(steps in prop::collection::vec((0u64..8, amount(), 0u64..100), 0..20), wanted in amount(), from in 0u64..100, length in 0u64..50) {
        let mut pool = HarvestPool::default();
        for (call, amount, until) in steps {
            pool.put(CallId(call), amount, at(until));
        }
        let Coverage { cpu, memory } = pool.coverage(wanted, at(from), at(from + length));
        prop_assert!((0.0..=1.0 + 1e-9).contains(&cpu) && (0.0..=1.0 + 1e-9).contains(&memory));
    }
}
