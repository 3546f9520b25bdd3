use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const LIMIT: Allocation = Allocation::new(8000, 4096);

#[test]
fn the_worked_numbers() {
    let mut book = NodeBook::new(LIMIT);
    book.hold(Allocation::new(6000, 1024));
    book.hold_back(MilliCpu::ZERO, MilliCpu::new(500));
    assert_eq!(book.room(), Allocation::new(1500, 3072));

    book.hold(Allocation::new(1700, 0));
    book.owe(7, Allocation::new(1000, 0));
    book.owe(9, Allocation::new(500, 0));
    assert_eq!(book.room(), Allocation::ZERO);
    let paid =
        Payment { call: 7, amount: Allocation::new(300, 0), still_owed: Allocation::new(700, 0) };
    assert_eq!(book.pay(), Some(paid));
    assert_eq!(book.pay(), None);
    assert_eq!(book.owed_to(9), Allocation::new(500, 0));
}

#[test]
fn a_debt_of_one_resource_does_not_wait_for_the_other() {
    let mut book = NodeBook::new(LIMIT);
    book.hold(Allocation::new(8000, 0));
    book.owe(1, Allocation::new(100, 0));
    book.owe(2, Allocation::new(0, 64));
    assert_eq!(book.pay().map(|paid| paid.call), Some(2));
    assert!(book.owes() && book.pay().is_none());
}

#[test]
fn a_closed_node_pays_its_debts_and_takes_nobody_in() {
    let mut book = NodeBook::new(LIMIT);
    book.set_open(false);
    book.owe(1, Allocation::new(100, 0));
    assert_eq!(book.pay().map(|paid| paid.still_owed), Some(Allocation::ZERO));
    assert_eq!(book.room(), Allocation::ZERO);
    assert!(!book.has_room(Allocation::new(1, 1)));
}

#[test]
fn a_node_that_holds_more_than_its_limit_has_no_room() {
    let mut book: NodeBook<u32> = NodeBook::new(LIMIT);
    book.hold(Allocation::new(9000, 1));
    assert_eq!(book.room(), Allocation::new(0, 4095));
    assert!(!book.has_room(Allocation::new(1, 1)));
    book.release(Allocation::new(9000, 1));
    assert_eq!(book.room(), LIMIT);
}

/// One thing that happens on a node, with numbers that are brought into range when it is played.
#[derive(Clone, Copy, Debug)]
enum Step {
    Start { cpu: u32, memory: u32 },
    Resize { who: usize, cpu: u32, memory: u32 },
    HoldBack { who: usize, cpu: u32 },
    End { who: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let amount = || (0u32..5000, 0u32..3000);
    let step = prop_oneof![
        amount().prop_map(|(cpu, memory)| Step::Start { cpu, memory }),
        (0usize..8, amount()).prop_map(|(who, (cpu, memory))| Step::Resize { who, cpu, memory }),
        (0usize..8, 0u32..5000).prop_map(|(who, cpu)| Step::HoldBack { who, cpu }),
        (0usize..8).prop_map(|who| Step::End { who }),
    ];
    proptest::collection::vec(step, 0..60)
}

/// What one call holds, worked out a second time.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    in_force: Allocation,
    held_back: MilliCpu,
    /// When its debt began, by the number of the step.
    asked_at: usize,
}

/// A node with its calls, as a driver would keep them.
struct Node {
    book: NodeBook<u64>,
    calls: BTreeMap<u64, Held>,
    next: u64,
}

impl Node {
    fn nth(&self, who: usize) -> Option<u64> {
        let place = who.checked_rem(self.calls.len())?;
        self.calls.keys().nth(place).copied()
    }

    fn play(&mut self, at: usize, step: Step) {
        match step {
            Step::Start { cpu, memory } => self.start(Allocation::new(cpu, memory)),
            Step::Resize { who, cpu, memory } => {
                if let Some(call) = self.nth(who) {
                    self.resize(at, call, Allocation::new(cpu, memory));
                }
            }
            Step::HoldBack { who, cpu } => {
                if let Some(call) = self.nth(who).and_then(|call| self.calls.get_mut(&call)) {
                    let cpu = MilliCpu::new(cpu);
                    self.book.hold_back(std::mem::replace(&mut call.held_back, cpu), cpu);
                }
            }
            Step::End { who } => {
                if let Some((call, held)) = self.nth(who).and_then(|c| self.calls.remove_entry(&c))
                {
                    self.book.forgive(call);
                    self.book.release(held.in_force);
                    self.book.hold_back(held.held_back, MilliCpu::ZERO);
                }
            }
        }
        self.pay();
    }

    fn start(&mut self, grant: Allocation) {
        assert_eq!(self.book.has_room(grant), grant.fits(self.book.room()) && self.takes_calls());
        if self.book.has_room(grant) {
            assert!(!self.book.owes(), "a new call went ahead of a debt");
            self.book.hold(grant);
            self.calls.insert(self.next, Held { in_force: grant, ..Held::default() });
            self.next += 1;
        }
    }

    fn takes_calls(&self) -> bool {
        self.book.is_open() && !self.book.owes()
    }

    fn resize(&mut self, at: usize, call: u64, wanted: Allocation) {
        self.book.forgive(call);
        let held = self.calls.get_mut(&call).unwrap();
        let lowered = held.in_force.min(wanted);
        self.book.release(held.in_force - lowered);
        held.in_force = lowered;
        held.asked_at = at;
        self.pay();
        self.book.owe(call, wanted - lowered);
    }

    fn pay(&mut self) {
        while let Some(payment) = self.book.pay() {
            let asked_at = self.calls[&payment.call].asked_at;
            for (&other, held) in &self.calls {
                let owed = self.book.owed_to(other);
                let is_earlier = held.asked_at < asked_at;
                let took_cpu = payment.amount.cpu.get() > 0 && owed.cpu.get() > 0;
                let took_memory = payment.amount.memory.get() > 0 && owed.memory.get() > 0;
                assert!(!(is_earlier && (took_cpu || took_memory)), "{other} was owed before");
            }
            self.calls.get_mut(&payment.call).unwrap().in_force += payment.amount;
        }
    }
}

proptest! {
    #[test]
    fn grants_stay_within_the_limit_and_debts_come_before_new_calls(steps in steps()) {
        let mut node = Node { book: NodeBook::new(LIMIT), calls: BTreeMap::new(), next: 0 };
        for (at, step) in steps.into_iter().enumerate() {
            node.play(at, step);
            let book = &node.book;
            let sum = node.calls.values().fold(Allocation::ZERO, |sum, held| sum + held.in_force);
            prop_assert_eq!(sum, book.in_force());
            prop_assert!(book.in_force().fits(LIMIT), "{} is granted", book.in_force());
            let kept = node.calls.values().fold(MilliCpu::ZERO, |sum, held| sum + held.held_back);
            prop_assert_eq!(kept, book.held_back());
            // Held back is out of new calls' reach, unless nothing runs.
            prop_assert!(book.room().cpu <= book.free().cpu.saturating_sub(kept));
            if node.calls.is_empty() {
                prop_assert_eq!(book.room(), LIMIT);
                prop_assert!(!book.owes());
            }
            // What is owed and what is free never meet: it would have been paid.
            for &call in node.calls.keys() {
                prop_assert_eq!(book.owed_to(call).min(book.free()), Allocation::ZERO);
            }
        }
    }
}
